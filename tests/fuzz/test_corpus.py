"""What fuzzing has found interesting holds its promises still."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS, seeds

CORPUS = Path(__file__).with_name("corpus")


@pytest.mark.parametrize("target", TARGETS)
def test_every_kept_input_keeps_the_promises(target: str) -> None:
    kept = sorted((CORPUS / target).glob("*"))
    assert kept
    for content in (*seeds(target), *(path.read_bytes() for path in kept)):
        TARGETS[target](content)


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 1_000_000
