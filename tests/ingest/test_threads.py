"""From discussions and write-ups to threads: what is quoted, and that a run only does what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trainmedic.ingest.items import Discussion, Failure, Message, Raw
from trainmedic.ingest.threads.facts import read_item
from trainmedic.ingest.threads.local import Local
from trainmedic.ingest.threads.sync import SyncSummary, sync
from trainmedic.kb.threads.store import ThreadStore
from trainmedic.kb.threads.thread import Quote, Role

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123456789"
QUESTION = Message(
    text=f"With trl 0.15.0 it hangs.\n```\nRuntimeError: NCCL timeout\n```\nHF_TOKEN={SECRET}", role="reporter"
)
AGREES = Message(text="Same issue here, any update?")
CAUSE = Message(
    text="Hi. The cause is that vLLM shares the device. Please set `vllm_device` to a free GPU.", role="maintainer"
)
ASKS = Message(text="Could you share the launch command?", role="maintainer")


def discussion(*replies: Message, key: str = "7", resolved: bool = True) -> Discussion:
    messages = (QUESTION, *replies)
    return Discussion(
        origin="f", key=key, title="GRPO hangs", messages=messages, url="https://x.org/7", resolved=resolved
    )


Summary = tuple[tuple[Quote, ...], tuple[Quote, ...], Role | None]


def summary(*replies: Message, resolved: bool = True) -> Summary:
    """Symptom, resolution, and who resolved it."""
    read = read_item("x", discussion(*replies, resolved=resolved))
    assert read is not None
    return read.thread.symptom, read.thread.resolution, read.thread.resolved_by


def test_the_message_that_says_the_cause_is_quoted_with_its_author() -> None:
    symptom, resolution, by = summary(AGREES, ASKS, CAUSE)
    assert [quote.text for quote in symptom] == ["GRPO hangs", "RuntimeError: NCCL timeout"]
    assert [(quote.text, quote.role, quote.message) for quote in resolution] == [
        ("The cause is that vLLM shares the device.", "maintainer", 4),
        ("Please set `vllm_device` to a free GPU.", "maintainer", 4),
    ]
    assert by == "maintainer"


@pytest.mark.parametrize("replies", [(), (AGREES,), (ASKS,), (AGREES, ASKS)])
def test_a_discussion_in_which_nobody_says_it_has_no_resolution(replies: tuple[Message, ...]) -> None:
    _, resolution, by = summary(*replies, resolved=False)
    assert (resolution, by) == ((), None)


def test_the_accepted_answer_wins_over_a_maintainers_remark() -> None:
    answer = Message(text="Set fsdp_offload_params to false.", accepted=True)
    _, resolution, by = summary(CAUSE, answer)
    assert (resolution[0].text, by) == ("Set fsdp_offload_params to false.", "other")
    own = Message(text="Solved: 升级到 0.16.0 就好了。", role="reporter")
    assert summary(AGREES, own)[2] == "reporter"


def test_a_write_up_is_quoted_by_its_headings() -> None:
    text = "# NaN in fp16\n## Symptom\nThe loss is nan.\n## Root cause\nAdam underflows.\n## Fix\nUse bf16.\n"
    read = read_item("folder", Raw(origin="a.md", content=text, format="markdown"))
    assert read is not None
    thread, passages = read.thread, read.passages
    assert [quote.text for quote in thread.resolution] == ["Adam underflows."]
    assert thread.resolved_by == "author"
    assert "Use bf16." in passages[0]


LABELLED = """# NaN in fp16
Author: Jane Miller

What we saw: the loss is nan.
Root cause: the second moment of Adam underflows in half precision because nothing
scales it, and the update divides by zero.

**Fix:** switch to bf16.
"""
CHINESE = (
    "# KTO\n\n现象：训练 400 步之后 OOM。\n\n原因：每一步都保存了 logits。\n\n解决:callback 只保存标量，不再上涨。\n"
)


@pytest.mark.parametrize(
    ("content", "symptom", "resolution"),
    [
        (
            LABELLED,
            ["NaN in fp16", "What we saw: the loss is nan."],
            [
                "Root cause: the second moment of Adam underflows in half precision because nothing scales it, and the "
                "update divides by zero.",
                "**Fix:** switch to bf16.",
            ],
        ),
        (
            CHINESE,
            ["KTO", "现象：训练 400 步之后 OOM。"],
            ["原因：每一步都保存了 logits。", "解决:callback 只保存标量，不再上涨。"],
        ),
        (
            "# A\n## Summary\nThe loss is nan in step 4.\n## Resolution\nSwitch to bfloat16.\n",
            ["A", "The loss is nan in step 4."],
            ["Switch to bfloat16."],
        ),
    ],
)
def test_a_write_up_is_quoted_by_its_labels_too(content: str, symptom: list[str], resolution: list[str]) -> None:
    read = read_item("folder", Raw(origin="a.md", content=content, format="markdown"))
    assert read is not None
    assert [quote.text for quote in read.thread.symptom] == symptom
    assert [quote.text for quote in read.thread.resolution] == resolution


def embed(texts: Sequence[str]) -> np.ndarray:
    return np.tile(np.array([[1.0, 0.0]], np.float32), (len(texts), 1))


@pytest.fixture
def store(tmp_path: Path) -> ThreadStore:
    return ThreadStore(tmp_path, "encoder", 2)


def run(store: ThreadStore, *items: Raw | Discussion | Failure, complete: bool = True) -> SyncSummary:
    return sync("github:x", items, store, Local(embed), lambda vector: {"hang": 1.0}, complete=complete).summary


def test_secrets_are_masked_before_anything_is_stored(store: ThreadStore, tmp_path: Path) -> None:
    run(store, discussion(CAUSE))
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"vllm_device" in stored
    assert SECRET[3:].encode() not in stored


def test_a_second_run_does_only_what_changed(store: ThreadStore) -> None:
    first, second = discussion(CAUSE), discussion(CAUSE, key="8")
    assert run(store, first, second).added == 2
    changed = replace(second, title="GRPO hangs at once")
    summary = run(store, first, changed)
    assert (summary.added, summary.changed, summary.unchanged, summary.removed) == (0, 1, 1, 0)
    assert [thread.title for thread in store.get(["github:x:8"])] == ["GRPO hangs at once"]


def test_what_is_gone_from_the_source_is_forgotten_if_all_was_read(store: ThreadStore) -> None:
    run(store, discussion(CAUSE), discussion(CAUSE, key="8"))
    failed = run(store, discussion(CAUSE), Failure(origin="f", reason="broken"))
    assert (failed.removed, len(failed.failures)) == (0, 1)
    assert run(store, discussion(CAUSE), complete=False).removed == 0
    assert store.count() == 2
    assert run(store, discussion(CAUSE), discussion(CAUSE)).removed == 1
    assert store.get(["github:x:8"]) == ()


def test_a_long_thread_is_cut_into_passages_with_its_title() -> None:
    read = read_item("x", discussion(*(Message(text="word " * 400) for _ in range(40))))
    assert read is not None
    passages = read.passages
    assert 2 < len(passages) <= 13
    assert all(passage.startswith("GRPO hangs\n") for passage in passages)
