"""What a draft reads in a write-up, and which of its claims it marks as contradicted by the knowledge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.ingest.reading import clean
from tests.shipped import shipped_cases
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.drafting import draft_of
from trainmedic.ingest.drafts.store import load_drafts
from trainmedic.ingest.items import Options
from trainmedic.ingest.pipeline import Drafting, run
from trainmedic.ingest.sources import source
from trainmedic.ingest.threads.local import Local
from trainmedic.kb.threads.store import ThreadStore

WRITEUPS = Path(__file__).parent / "writeups"
RELATED = {
    "kto-vanilla-loss": ("openrlhf-kto-vanilla-loss-nan", "openrlhf-kto-micro-batch-one"),
    "gemma2-softcap": ("gemma2-flash-attn-softcap-nan", "gemma2-softcap-ignored"),
    "fp16-head": ("fp16-trainable-head-adam-eps-nan", "qwen2-fp16-nan", "reward-head-not-saved-causal-lm"),
    "swift-sequence-parallel": ("swift-dpo-sequence-parallel-nan", "preference-empty-completion-nan"),
    "nccl-timeout": ("nccl-timeout-one-rank-busy", "unequal-batches-per-rank"),
    "learning-rate": ("series-learning-rate-too-high", "logits-explosion-real"),
    "kto-halved-rate": ("openrlhf-kto-vanilla-loss-nan", "openrlhf-kto-micro-batch-one", "qwen2-fp16-nan"),
    "gemma2-upgrade": ("gemma2-flash-attn-softcap-nan", "gemma2-sdpa-padding-nan"),
    "factory-kto-options": ("kto-logits-sum-not-explosion", "logits-explosion-real"),
    "swift-rank": ("swift-dpo-sequence-parallel-nan", "preference-empty-completion-nan"),
    "reward-model": ("fp16-trainable-head-adam-eps-nan", "qwen2-fp16-nan"),
}
"""The cases that the ranking proposes."""


def draft(name: str) -> Draft:
    (path,) = WRITEUPS.glob(f"*/{name}.*")
    (document,) = clean(list(source("folder")(Options(location=str(path)))))  # type: ignore[arg-type]
    return draft_of(document, related=RELATED[name], cases=shipped_cases().published)


@pytest.mark.parametrize("name", sorted(path.stem for path in (WRITEUPS / "true").iterdir()))
def test_a_true_write_up_gets_no_mark(name: str) -> None:
    assert draft(name).marks == ()


@pytest.mark.parametrize(
    ("name", "page", "lines"),
    [
        ("kto-halved-rate", "openrlhf-kto-vanilla-loss-nan", {5, 7, 11}),
        ("gemma2-upgrade", "gemma2-flash-attn-softcap-nan", {5, 8, 9}),
        ("factory-kto-options", "kto-logits-sum-not-explosion", {4, 7}),
        ("swift-rank", "swift-dpo-sequence-parallel-nan", {5, 8}),
        ("reward-model", "fp16-trainable-head-adam-eps-nan", {8, 10, 12}),
    ],
)
def test_what_a_case_refutes_is_marked_with_its_line(name: str, page: str, lines: set[int]) -> None:
    made = draft(name)
    marks = [mark for mark in made.marks if mark.kind == "refuted"]
    assert {mark.claim.first_line for mark in marks} == lines
    case = shipped_cases().get(page)
    assert case is not None
    for mark in marks:
        assert mark.claim.text in made.lines[mark.claim.first_line - 1]
        assert (mark.page, mark.claim.first_line) == (page, mark.claim.last_line)
        assert (mark.statement, mark.why) in [(refuted.claim, refuted.why) for refuted in case.refutations]
        assert mark.statement is not None
        assert mark.reason("en") == f'{page} refutes "{mark.statement.en}": {mark.why.en}'


def test_a_draft_on_disk_has_the_marks_of_the_cases_that_the_run_was_given(tmp_path: Path) -> None:
    items = source("folder")(Options(location=str(WRITEUPS / "wrong" / "swift-rank.txt")))
    drafting = Drafting(
        folder=tmp_path, related=lambda document: RELATED["swift-rank"], cases=shipped_cases().published
    )
    embedder = Local(lambda texts: np.zeros((len(texts), 1), np.float32))
    run("folder", items, ThreadStore(tmp_path / "threads", "encoder", 1), embedder, lambda vector: {}, drafting)
    (stored,) = load_drafts(tmp_path)
    assert stored.marks == draft("swift-rank").marks != ()


def test_an_option_that_the_framework_does_not_have_is_marked_with_its_line() -> None:
    made = draft("factory-kto-options")
    (mark,) = (mark for mark in made.marks if mark.kind == "option")
    assert (mark.claim.first_line, mark.page) == (6, "option:llamafactory:pref_betta")
    assert mark.claim.text == made.lines[5]
    assert "pref_beta" in mark.why.en
    assert "pref_beta" in mark.why.zh


def test_versions_settings_and_errors_are_read_with_their_places() -> None:
    made = draft("kto-vanilla-loss")
    assert made.values("framework") == ("openrlhf",)
    assert made.values("version")[0] == "openrlhf 0.3.2"
    assert "vanilla_loss = true" in made.values("setting")
    for field in made.fields:
        for passage in field.passages:
            assert passage.text in "\n".join(made.lines[passage.first_line - 1 : passage.last_line])
