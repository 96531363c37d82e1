"""Issues and discussions from the files that GitHub's interfaces return."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainmedic.ingest.items import Discussion, Failure, Options
from trainmedic.ingest.sources import source

ISSUE = {
    "number": 7,
    "title": "loss is nan",
    "html_url": "https://github.com/x/y/issues/7",
    "state": "closed",
    "state_reason": "completed",
    "updated_at": "2025-03-01T10:00:00Z",
    "user": {"login": "Alice"},
    "body": "It is nan.\r\nWhy?",
    "comments": [
        {"user": {"login": "bob"}, "author_association": "NONE", "body": "same here"},
        {"user": {"login": "carol"}, "author_association": "MEMBER", "body": "Use bf16."},
        {"user": {"login": "alice"}, "author_association": "NONE", "body": "That helped."},
        {"user": {"login": "stale[bot]"}, "author_association": "NONE", "body": "inactive"},
    ],
}
DISCUSSION = {
    "title": "How to resume?",
    "url": "https://github.com/x/y/discussions/9",
    "author": {"login": "dan"},
    "body": "How?",
    "comments": {
        "nodes": [
            {
                "author": {"login": "eve"},
                "authorAssociation": "NONE",
                "body": "Pass resume_from_checkpoint.",
                "isAnswer": True,
                "replies": {"nodes": [{"author": {"login": "dan"}, "body": "Thanks."}]},
            }
        ]
    },
}


def read(tmp_path: Path, text: str, name: str = "issues.json") -> list[Discussion | Failure]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return list(source("folder")(Options(location=str(tmp_path / name))))  # type: ignore[arg-type]


def only(tmp_path: Path, item: object) -> Discussion:
    (discussion,) = read(tmp_path, json.dumps(item))
    assert isinstance(discussion, Discussion)
    return discussion


def test_an_issue_holds_its_messages_with_roles_and_no_names(tmp_path: Path) -> None:
    discussion = only(tmp_path, [ISSUE])
    assert [(m.role, m.text) for m in discussion.messages] == [
        ("reporter", "It is nan.\nWhy?"),
        ("other", "same here"),
        ("maintainer", "Use bf16."),
        ("reporter", "That helped."),
    ]
    assert (discussion.url, discussion.resolved, discussion.updated) == (
        "https://github.com/x/y/issues/7",
        True,
        "2025-03-01T10:00:00Z",
    )
    assert "carol" not in str(discussion).lower()
    assert not only(tmp_path, {**ISSUE, "state_reason": "not_planned"}).resolved
    assert read(tmp_path, json.dumps([{**ISSUE, "pull_request": {}}])) == []


def test_a_discussion_knows_its_answer_and_the_replies(tmp_path: Path) -> None:
    discussion = only(tmp_path, {"data": {"repository": {"discussions": {"nodes": [DISCUSSION]}}}})
    assert [(m.accepted, m.role) for m in discussion.messages] == [
        (False, "reporter"),
        (True, "other"),
        (False, "reporter"),
    ]
    assert discussion.resolved


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    lines = [json.dumps(ISSUE), "{broken", "[1]", json.dumps(DISCUSSION)]
    items = read(tmp_path, "\n".join(lines), "issues.jsonl")
    assert [type(item) for item in items] == [Discussion, Failure, Failure, Discussion]
    assert [item.origin for item in items] == [f"issues.jsonl:{n}" for n in (1, 2, 3, 4)]


def test_a_file_that_a_windows_shell_wrote_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([ISSUE]), encoding="utf-16")
    (item,) = source("folder")(Options(location=str(tmp_path / "a.json")))
    assert isinstance(item, Discussion)


@pytest.mark.parametrize(
    "item",
    [
        {**ISSUE, "body": None, "comments": None},
        {**ISSUE, "comments": 12},
        {**ISSUE, "comments": [None, {"body": 3}, {"body": ""}]},
        {**ISSUE, "comments": [{"body": "x", "replies": 5}, {"body": "y", "replies": {"nodes": 5}}]},
        {**ISSUE, "user": None},
        {**ISSUE, "comments": {"nodes": None}},
    ],
)
def test_missing_and_odd_fields_leave_the_issue_readable(tmp_path: Path, item: object) -> None:
    assert only(tmp_path, item).title == "loss is nan"


@pytest.mark.parametrize("text", ["", "nonsense", "[" * 100_000, "3", '{"title": 4}'])
def test_what_is_no_export_is_a_failure(tmp_path: Path, text: str) -> None:
    assert [type(item) for item in read(tmp_path, text)] == [Failure]
