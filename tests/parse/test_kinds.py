"""What a text is as a whole."""

from __future__ import annotations

import pytest

from trainmedic.kb.parse.text.kinds import whole


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}\n', "metrics"),
        ('{\n  "fp16": true,\n  "seed": 1\n}\n', "json"),
        ("#!/bin/sh\npython train.py\n", "command"),
        ("\n \n", ""),
    ],
)
def test_a_text_that_is_one_thing_is_known_by_its_first_lines(text: str, kind: str) -> None:
    assert whole(text) == kind
