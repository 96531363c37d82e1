"""What a draft reads in a write-up, and which of its statements it marks as contradicted by the knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.shipped import shipped_cases
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.drafting import Aids, draft_of
from trainmedic.ingest.drafts.fields import find_passage
from trainmedic.ingest.items import Block, Document, Options
from trainmedic.ingest.read.clean import clean
from trainmedic.ingest.sources import source

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
    cases = {case.id: case for case in shipped_cases().published}
    return draft_of(document, aids=Aids(cases=cases), related=RELATED[name])


@pytest.mark.parametrize("name", sorted(path.stem for path in (WRITEUPS / "true").iterdir()))
def test_a_true_write_up_gets_no_mark(name: str) -> None:
    assert [(mark.claim.text, mark.page, mark.statement.en) for mark in draft(name).marks] == []


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        (
            "kto-halved-rate",
            {
                (5, "refuted", "openrlhf-kto-vanilla-loss-nan"),
                (7, "refuted", "openrlhf-kto-vanilla-loss-nan"),
                (7, "value", "option:openrlhf:vanilla_loss"),
                (11, "refuted", "openrlhf-kto-vanilla-loss-nan"),
            },
        ),
        (
            "gemma2-upgrade",
            {
                (5, "refuted", "gemma2-flash-attn-softcap-nan"),
                (8, "refuted", "gemma2-flash-attn-softcap-nan"),
                (9, "refuted", "gemma2-flash-attn-softcap-nan"),
            },
        ),
        (
            "factory-kto-options",
            {
                (4, "refuted", "kto-logits-sum-not-explosion"),
                (6, "option", "option:llamafactory:pref_betta"),
                (7, "refuted", "kto-logits-sum-not-explosion"),
                (8, "refuted", "kto-logits-sum-not-explosion"),
            },
        ),
        (
            "swift-rank",
            {
                (5, "refuted", "swift-dpo-sequence-parallel-nan"),
                (8, "refuted", "swift-dpo-sequence-parallel-nan"),
            },
        ),
        (
            "reward-model",
            {
                (8, "refuted", "fp16-trainable-head-adam-eps-nan"),
                (10, "refuted", "fp16-trainable-head-adam-eps-nan"),
                (11, "value", "option:trl:torch_dtype"),
                (12, "refuted", "fp16-trainable-head-adam-eps-nan"),
            },
        ),
    ],
)
def test_what_contradicts_the_knowledge_is_marked_with_its_line(name: str, marks: set[tuple[int, str, str]]) -> None:
    made = draft(name)
    assert {(mark.claim.first_line, mark.kind, mark.page) for mark in made.marks} == marks
    for mark in made.marks:
        quoted = "\n".join(made.lines[mark.claim.first_line - 1 : mark.claim.last_line])
        assert mark.claim.text in quoted
        assert all((mark.why.en, mark.why.zh))


def test_versions_settings_and_the_failed_attempts_are_read_with_their_places() -> None:
    made = draft("kto-vanilla-loss")
    assert made.values("framework") == ("openrlhf",)
    assert made.values("version")[0] == "openrlhf 0.3.2"
    assert "vanilla_loss = true" in made.values("setting")
    assert made.values("no_help") == ("降低学习率", "增大梯度裁剪阈值", "更换 Flash Attention 版本")
    assert any("从命令里删掉" in value for value in made.values("fix"))


def test_a_model_only_chooses_sentences_that_the_write_up_has() -> None:
    lines: list[str] = []

    def choose(article: Sequence[str]) -> list[tuple[str, str]]:
        lines.extend(article)
        return [
            ("cause", "the eps  underflows in float16"),
            ("fix", "use a larger batch"),
            ("framework", "The eps underflows in float16"),
        ]

    blocks = (Block(kind="text", text="The loss is nan. I think the eps underflows in float16. Use bfloat16."),)
    document = Document(origin="x", title="TRL reward nan", blocks=blocks, language="en")
    made = draft_of(document, aids=Aids(choose=choose))
    assert lines == list(made.lines)
    assert [(field.value, field.by) for field in made.fields if field.name == "cause"] == [
        ("the eps underflows in float16", "model")
    ]
    assert "use a larger batch" not in made.values("fix")
    assert made.values("framework") == ("trl",)


def test_a_quote_may_run_over_lines_but_not_be_invented() -> None:
    passage = find_passage(["one two", "three four", "five"], "two three\nfour")
    assert passage is not None
    assert (passage.first_line, passage.last_line) == (1, 2)
    assert find_passage(["one two three"], "two four three") is None
    assert find_passage(["one two three"], "two") is None
