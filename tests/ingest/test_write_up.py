"""From the export of a chat to drafts: what a resolved thread says, and nobody in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from trainmedic.ingest.drafts.draft import Draft, article_lines
from trainmedic.ingest.drafts.drafting import draft_of
from trainmedic.ingest.drafts.page import page_of
from trainmedic.ingest.drafts.write_up import write_up
from trainmedic.ingest.items import Discussion, Message, Options
from trainmedic.ingest.pipeline import Drafting, run
from trainmedic.ingest.sources import folder
from trainmedic.ingest.threads.facts import read_item
from trainmedic.ingest.threads.local import Local
from trainmedic.kb.serialization import from_json, to_json
from trainmedic.kb.threads.store import ThreadStore

EXPORT = Path(__file__).parent / "writeups" / "slack_export"


def thread(*texts: str, resolved: bool = True) -> Discussion:
    first, *replies = texts
    said: Sequence[Message] = [Message(text=text) for text in replies]
    messages = (Message(text=first, role="reporter"), *said)
    return Discussion(origin="a", key="1", title="it hangs", messages=messages, resolved=resolved)


def lines(*texts: str) -> str:
    return "\n".join(article_lines("", write_up(thread(*texts))))


def explain(vector: np.ndarray) -> Mapping[str, float]:
    return {}


def test_a_slack_export_becomes_one_draft_with_cause_and_fix_and_without_persons(tmp_path: Path) -> None:
    items = folder.read(Options(location=str(EXPORT)))
    store = ThreadStore(tmp_path / "threads", "encoder", 1)
    embedder = Local(lambda texts: np.zeros((len(texts), 1), np.float32))
    outcome = run("slack", items, store, embedder, explain, Drafting(folder=tmp_path))
    assert outcome.threads.added == 2
    (draft,) = outcome.drafts.written
    page = (tmp_path / f"{draft.id}.md").read_text(encoding="utf-8")
    record = (tmp_path / f"{draft.id}.json").read_text(encoding="utf-8")
    hidden = ("bob", "Bob", "Ann", "annlee", "张伟", "gpu-17", "corp.internal", "10.12.0.7", "4567", "AbCdEf")
    assert [word for word in hidden if word in page + record] == []
    cause, _, fix = page.partition("### Cause")[2].partition("### Fix")
    assert "returns `results`" in cause
    assert "export REWARD_API=v1" in fix
    assert "ScoreSchemaError: expected key" in page
    assert "any update" not in page
    assert draft.values("framework") == ("trl",)


def test_an_answer_that_names_no_cause_is_the_cause_as_a_whole() -> None:
    told = lines("it hangs", "The image has an old driver, upgrade to 550.", "it works now, closing this")
    assert "## Root cause\nThe image has an old driver, upgrade to 550." in told


def test_code_stays_whole_and_an_open_fence_is_closed() -> None:
    told = lines("it hangs", "The cause is a flag. Set it, this fixed it:\n```\nA=1\n\nB=2")
    assert "## Root cause\nThe cause is a flag.\n" in told
    assert told.endswith("```\nA=1\n\nB=2\n```")


def test_a_thread_that_nobody_resolved_is_no_write_up() -> None:
    assert write_up(thread("it hangs", "The cause is a flag, set it, that fixed it", resolved=False)) == ()
    assert write_up(thread("it hangs", "same here, any update?")) == ()
    assert write_up(thread("it hangs")) == ()


def test_a_resolved_thread_is_read_once_and_its_draft_has_a_check_that_its_own_examples_bear_out() -> None:
    said = (
        "With trl 0.11.4 it never stops.\n```\ntrl sft --model_name_or_path m \\\n  --dataset_name d --packing\n```",
        "same here",
        "The cause is that packing cuts the end token off. This is fixed in 0.12.0, please upgrade.",
    )
    read = read_item("x", thread(*said), drafted=True)
    assert read is not None
    assert read.facts is not None
    assert read.thread.versions == {"trl": "0.11.4"}
    draft = draft_of(read.facts.document, read.facts.evidence, key="1")
    assert draft.check is not None
    page = page_of(draft)
    assert 'when: packing and version("trl", ">=0.11.4,<0.12.0")' in page
    assert "\n  --dataset_name d ⟦--packing⟧\n" in page
    assert from_json(Draft, to_json(draft)) == draft
    vague = read_item("x", thread(said[0], "The cause is a kernel, upgrading the driver helped."), drafted=True)
    assert vague is not None
    assert vague.facts is not None
    assert draft_of(vague.facts.document, vague.facts.evidence, key="1").check is None
