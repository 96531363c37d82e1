"""Review drafts of cases and publish them: list, show, edit, approve, reject, merge, publish.

list     the queue: state, marks (options that the framework does not have) and problems of each draft
show     one draft: its fields with their lines, marks, probable duplicates, and what the page still lacks
edit     replace the draft's page by a file (- reads standard input)
approve  say that the page is right; it must have no problem
reject   say that it is not to be published, and why
merge    add the draft's symptoms and sources to a page of yours
publish  write the approved page to causes/ of your folder (the first of kb_paths), as one commit in a git checkout

A draft's id may be shortened to its last part. Nothing is pushed. The audit log has each change,
and that it came from the command line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmedic.ingest.review.desk import Desk, Entry, Publication

ACTIONS = {
    "list": "the queue",
    "show": "one draft",
    "edit": "replace the page of a draft",
    "approve": "say that a draft is right",
    "reject": "say that a draft is not to be published",
    "merge": "add a draft to a published case",
    "publish": "write an approved page to your folder",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in ACTIONS.items():
        action = actions.add_parser(name, help=text)
        if name != "list":
            action.add_argument("id", metavar="ID", help="id of the draft, or its last part")
        if name == "edit":
            action.add_argument("file", metavar="FILE", help="the page; - for standard input")
        if name == "reject":
            action.add_argument("--reason", required=True)
        if name == "merge":
            action.add_argument("case", metavar="CASE")
        if name == "publish":
            action.add_argument("--folder", type=Path, help="your folder of pages (the first of kb_paths)")
        action.add_argument(
            "--drafts", type=Path, metavar="PATH", help="folder with the drafts (as given to ingest --out)"
        )
        action.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    desk = _desk(options)
    match options.action:
        case "list":
            return _list(desk, options)
        case "show":
            entry = desk.entry(options.id)
            return _done(options, entry, _lines(entry))
        case _:
            return _decide(desk, options)


def _decide(desk: Desk, options: argparse.Namespace) -> int:
    """What changes a draft, and is in the audit log."""
    from datetime import UTC, datetime

    from trainmedic.ui.cli._service import open_journal

    note, now, draft = open_journal(options), datetime.now(UTC), desk.entry(options.id).draft.id
    value: object
    publication = None
    match options.action:
        case "edit":
            problems = desk.edit(draft, _text(options.file), now)
            value, lines = {"problems": problems}, [f"problem: {text}" for text in problems] or ["complete"]
        case "approve":
            value = review = desk.approve(draft, now)
            lines = [review.state]
        case "reject":
            value = review = desk.reject(draft, options.reason, now)
            lines = [review.state]
        case "merge":
            value = publication = desk.merge(draft, options.case, now)
            lines = []
        case _:
            value = publication = desk.publish(draft, now, options.folder)
            lines = []
    note(f"review {options.action}", draft)
    if publication is not None:
        return _published(options, publication)
    return _done(options, value, lines)


def _desk(options: argparse.Namespace) -> Desk:
    from trainmedic.ui.cli._service import settings_of
    from trainmedic.ui.desk import load_desk

    return load_desk(settings_of(options), options.drafts, getattr(options, "folder", None))


def _list(desk: Desk, options: argparse.Namespace) -> int:
    queue = desk.queue()
    lines = []
    for item in queue:
        notes = [f"write-up {item.source_state}"] if item.source_state != "current" else []
        notes += ["changed since it was published"] if item.changed else []
        counts = f"{item.marks:2} marks  {item.problems:2} problems"
        lines.append(f"{item.state:9}  {counts}  {item.id}  {item.title}{''.join(f'  ({note})' for note in notes)}")
    _done(options, queue, lines)
    if not queue:
        print("no drafts", file=sys.stderr)
    return 0


def _lines(entry: Entry) -> Iterator[str]:
    draft, review = entry.draft, entry.review
    yield f"{draft.id}: {draft.title}"
    yield f"{review.state}{f' at {review.at}' if review.at else ''}{f': {review.reason}' if review.reason else ''}"
    yield f"source: {draft.url or draft.origin} ({draft.source_state})"
    yield f"page: {entry.path}"
    for field in draft.fields:
        places = ", ".join(str(passage.first_line) for passage in field.passages)
        yield f"  {field.name}: {field.value}  (line {places})"
    for mark in draft.marks:
        yield f"line {mark.claim.first_line}: {mark.claim.text}"
        yield f"  {mark.reason(draft.language)}"
    for duplicate in entry.duplicates:
        yield f"like {duplicate.of} {duplicate.id} ({duplicate.share:.0%})"
    for problem in entry.problems:
        yield f"problem: {problem}"


def _published(options: argparse.Namespace, publication: Publication) -> int:
    """Exit code 1 if git did not take the page."""
    from trainmedic.ui.cli import CLEAN, FINDINGS

    commit = f"  (commit {publication.commit})" if publication.commit else ""
    _done(options, publication, [f"{publication.path}{commit}"])
    if publication.problem:
        print(f"written, not committed: {publication.problem}", file=sys.stderr)
        return FINDINGS
    return CLEAN


def _done(options: argparse.Namespace, value: object, lines: Iterator[str] | list[str]) -> int:
    from trainmedic.kb.serialization import to_json

    sys.stdout.write(to_json(value, indent=2) + "\n" if options.json else "".join(f"{line}\n" for line in lines))
    return 0


def _text(name: str) -> str:
    from trainmedic.kb.errors import InvalidRequest

    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{name} cannot be read: {error}") from error
