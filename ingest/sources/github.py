"""Issues and discussions of GitHub from files: what the REST API, GraphQL or ``gh … --json`` returns, as JSON or JSONL.

    gh issue list --state closed --limit 5000 --json number,title,body,author,comments,url,state,stateReason,updatedAt

Of people only the role is read, never the name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmedic.ingest.document import Discussion, Failure, Message
from trainmedic.kb.threads.thread import Role

SUFFIXES = (".json", ".jsonl", ".ndjson")
MAX_BYTES = 2 * 1024**3
_MAINTAINERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_LISTS = ("nodes", "items", "issues", "discussions", "data", "repository", "search")
"""Keys under which responses wrap what they list."""
_BOTS = ("[bot]", "-bot", "github-actions")


def read(location: str) -> Iterator[Discussion | Failure]:
    """Every issue or discussion of a file, or of the files of a folder."""
    root = Path(location)
    if not root.exists():
        yield Failure(origin=location, reason="no such file or folder")
        return
    paths = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES)
    for path in paths:
        origin = path.name if root.is_file() else path.relative_to(root).as_posix()
        try:
            if path.stat().st_size > MAX_BYTES:
                yield Failure(origin=origin, reason=f"larger than {MAX_BYTES // 1024**3} GiB")
                continue
            yield from _file(path, origin)
        except (OSError, UnicodeDecodeError) as error:
            yield Failure(origin=origin, reason=f"cannot be read ({error})")


def _file(path: Path, origin: str) -> Iterator[Discussion | Failure]:
    if path.suffix == ".json":
        try:
            listed = _listed(json.loads(path.read_text(encoding="utf-8-sig")))
        except (ValueError, RecursionError) as error:
            yield Failure(origin=origin, reason=f"no JSON ({error})")
            return
        for number, item in enumerate(listed, start=1):
            yield from _item(item, f"{origin}#{number}")
        return
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield Failure(origin=f"{origin}:{number}", reason=f"no JSON ({error})")
                continue
            yield from _item(item, f"{origin}:{number}")


def _listed(data: object) -> Sequence[object]:
    """The items of a response, unwrapped."""
    while isinstance(data, Mapping):
        if "title" in data and ("body" in data or "comments" in data):
            return [data]
        inner = next((data[name] for name in _LISTS if isinstance(data.get(name), Mapping | list)), None)
        if inner is None:
            return [data]
        data = inner
    return data if isinstance(data, list) else [data]


def _item(item: object, origin: str) -> Iterator[Discussion | Failure]:
    if not isinstance(item, Mapping) or not isinstance(item.get("title"), str):
        yield Failure(origin=origin, reason="neither an issue nor a discussion")
        return
    if "pull_request" in item:
        return
    reporter = _login(item)
    first = Message(text=_text(item.get("body")), role="reporter")
    replies = [message for reply in _replies(item) for message in _messages(reply, reporter)]
    url = str(item.get("html_url") or item.get("url") or "")
    reason = str(item.get("stateReason") or item.get("state_reason") or "completed").lower()
    closed = str(item.get("state") or "").lower() == "closed" or bool(item.get("closed"))
    yield Discussion(
        origin=origin,
        key=url or str(item.get("number") or origin),
        title=item["title"].strip(),
        messages=(first, *replies),
        url=url,
        resolved=(closed and reason == "completed") or any(message.accepted for message in replies),
        updated=str(item.get("updatedAt") or item.get("updated_at") or ""),
    )


def _replies(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The comments, with the replies to each; an answer that is not among them is one more."""
    answer = item.get("answer")
    listed = item.get("comments")
    if isinstance(listed, Mapping):
        listed = listed.get("nodes")
    comments = [comment for comment in listed if isinstance(comment, Mapping)] if isinstance(listed, list) else []
    texts = {_text(comment.get("body")) for comment in comments}
    for comment in comments:
        yield comment
        nested = comment.get("replies")
        nodes = nested.get("nodes") if isinstance(nested, Mapping) else nested
        yield from (reply for reply in nodes or () if isinstance(reply, Mapping))
    if isinstance(answer, Mapping) and _text(answer.get("body")) not in texts:
        yield {**answer, "isAnswer": True}


def _messages(comment: Mapping[str, Any], reporter: str) -> Iterator[Message]:
    login, text = _login(comment), _text(comment.get("body"))
    if not text or login.endswith(_BOTS):
        return
    association = str(comment.get("authorAssociation") or comment.get("author_association") or "").upper()
    role: Role = "reporter" if login and login == reporter else "maintainer" if association in _MAINTAINERS else "other"
    yield Message(text=text, role=role, accepted=bool(comment.get("isAnswer")))


def _login(item: Mapping[str, Any]) -> str:
    person = item.get("author") or item.get("user")
    return str(person.get("login") or "").lower() if isinstance(person, Mapping) else str(person or "").lower()


def _text(value: object) -> str:
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else ""
