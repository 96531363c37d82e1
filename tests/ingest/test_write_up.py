"""From the export of a chat to drafts: what a resolved thread says, and nobody in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainmedic.ingest.build import build
from trainmedic.ingest.document import Discussion, Message
from trainmedic.ingest.sources import slack
from trainmedic.ingest.write_up import write_up

EXPORT = Path(__file__).parent / "writeups" / "slack_export"


def thread(*texts: str, resolved: bool = True) -> Discussion:
    first, *replies = texts
    said: Sequence[Message] = [Message(text=text) for text in replies]
    messages = (Message(text=first, role="reporter"), *said)
    return Discussion(origin="a", key="1", title="it hangs", messages=messages, resolved=resolved)


def test_a_slack_export_becomes_one_draft_with_cause_and_fix_and_without_persons(tmp_path: Path) -> None:
    threads = [item for item in slack.read(str(EXPORT)) if isinstance(item, Discussion)]
    raws = [raw for item in threads if (raw := write_up(item)) is not None]
    assert (len(threads), len(raws)) == (2, 1)
    (draft,) = build(raws, tmp_path).written
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
    raw = write_up(thread("it hangs", "The image has an old driver, upgrade to 550.", "it works now, closing this"))
    assert raw is not None
    assert "## Root cause\n\nThe image has an old driver, upgrade to 550." in raw.content


def test_code_stays_whole_and_an_open_fence_is_closed() -> None:
    raw = write_up(thread("it hangs", "The cause is a flag. Set it, this fixed it:\n```\nA=1\n\nB=2"))
    assert raw is not None
    assert "## Root cause\n\nThe cause is a flag.\n" in raw.content
    assert raw.content.endswith("```\nA=1\n\nB=2\n```\n")


def test_a_thread_that_nobody_resolved_is_no_write_up() -> None:
    assert write_up(thread("it hangs", "The cause is a flag, set it, that fixed it", resolved=False)) is None
    assert write_up(thread("it hangs", "same here, any update?")) is None
    assert write_up(thread("it hangs")) is None
