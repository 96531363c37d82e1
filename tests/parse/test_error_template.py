"""Messages of runs that fail alike are one template."""

from __future__ import annotations

import pytest

from trainmedic.kb.parse.logs.error_lines import template


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tried to allocate 2.50 GiB on GPU 3", "Tried to allocate 1.25 GiB on GPU 0"),
        ("No such file: /data/a/b.json", "no such file:   /mnt/c.json\nmore"),
        ("unexpected key 'lora_A' at 0x7f3a", 'unexpected key "lora_B" at 0x9c'),
    ],
)
def test_what_differs_between_runs_does_not_count(one: str, other: str) -> None:
    assert template(one) == template(other) != ""


def test_other_words_are_another_template() -> None:
    assert template("loss is nan at step 4") != template("loss is inf at step 4")


@pytest.mark.parametrize("message", ["", "\n", "  \n  "])
def test_nothing_is_the_template_of_nothing(message: str) -> None:
    assert template(message) == ""
