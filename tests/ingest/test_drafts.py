"""What a draft reads in a write-up, and which options it marks as unknown to the framework."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.reading import clean
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.drafting import draft_of
from trainmedic.ingest.items import Options
from trainmedic.ingest.sources import source

WRITEUPS = Path(__file__).parent / "writeups"


def draft(path: Path) -> Draft:
    (document,) = clean(list(source("folder")(Options(location=str(path)))))  # type: ignore[arg-type]
    return draft_of(document)


@pytest.mark.parametrize("path", sorted((WRITEUPS / "true").iterdir()), ids=lambda path: path.stem)
def test_a_true_write_up_gets_no_mark(path: Path) -> None:
    assert draft(path).marks == ()


def test_an_option_that_the_framework_does_not_have_is_marked_with_its_line() -> None:
    made = draft(WRITEUPS / "wrong" / "factory-kto-options.txt")
    (mark,) = made.marks
    assert (mark.claim.first_line, mark.page) == (6, "option:llamafactory:pref_betta")
    assert mark.claim.text == made.lines[5]
    assert "pref_beta" in mark.why.en
    assert "pref_beta" in mark.why.zh


def test_versions_settings_and_errors_are_read_with_their_places() -> None:
    made = draft(WRITEUPS / "true" / "kto-vanilla-loss.md")
    assert made.values("framework") == ("openrlhf",)
    assert made.values("version")[0] == "openrlhf 0.3.2"
    assert "vanilla_loss = true" in made.values("setting")
    for field in made.fields:
        for passage in field.passages:
            assert passage.text in "\n".join(made.lines[passage.first_line - 1 : passage.last_line])
