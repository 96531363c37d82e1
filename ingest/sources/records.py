"""Write-ups and discussions in JSON: issues as GitHub's REST API, GraphQL or ``gh issue list --json`` returns them, the
comments of issues as the REST API lists them, and records for everything that has no export of its own:

    {"id": "inc-12", "title": "…", "text": "…", "url": "https://…", "resolution": "…", "resolved": true}
    {"id": "t-7", "title": "…", "messages": [{"role": "reporter", "text": "…"}, {"role": "maintainer", "text": "…"}]}

``text`` (Markdown) alone makes a write-up; with ``messages`` or ``resolution`` it is a discussion. Roles are reporter,
maintainer and other; ``accepted: true`` marks the answer. Of people only the role is read, never the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmedic.ingest.items import Discussion, Failure, Item, Message, Raw, shortened
from trainmedic.ingest.read.files import File, json_of
from trainmedic.kb.threads.thread import Role

SUFFIXES = (".json", ".jsonl", ".ndjson")
MAX_BYTES = 2 * 1024**3
LONGEST_TITLE = 120
_MAINTAINERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_LISTS = ("nodes", "items", "issues", "discussions", "data", "repository", "search")
"""Keys under which responses wrap what they list."""
_BOTS = ("[bot]", "-bot", "github-actions")
_ROLES: Mapping[str, Role] = {"reporter": "reporter", "maintainer": "maintainer"}
NEITHER = "neither an issue, a discussion nor a record"


def read_file(file: File) -> Iterator[Item]:
    """Every item of a file; of lines each broken one is a `Failure` of its own."""
    if file.suffix != ".json":
        for line in file.lines():
            yield from [line] if isinstance(line, Failure) else _listed(line[0], json_of(*line), numbered=False)
        return
    data = file.json(MAX_BYTES)
    if not isinstance(data, Failure) and listed(data) and all(map(_is_comment, listed(data))):
        yield from _commented(file.origin, listed(data))
        return
    if not isinstance(data, Failure) and not any(map(_is_titled, listed(data))) and listed(data):
        # One failure, not one an entry: most JSON of a folder is something else.
        data = Failure(origin=file.origin, reason=f"{NEITHER} (of issues: gh issue list --json title,body,comments,…)")
    yield from _listed(file.origin, data, numbered=True)


def _listed(origin: str, data: Any, *, numbered: bool) -> Iterator[Item]:
    """What one JSON value lists. ``numbered``: the place of an item in it is part of its origin even if it is alone."""
    if isinstance(data, Failure):
        yield data
        return
    items = listed(data)
    for number, item in enumerate(items, start=1):
        name = f"{origin}#{number}" if numbered or len(items) > 1 else origin
        if isinstance(item, Mapping) and {"text", "messages", "resolution"} & item.keys():
            yield _record(name, item)
        else:
            yield from discussions(item, name)


def _is_comment(item: object) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("body"), str) and isinstance(item.get("issue_url"), str)


def _commented(origin: str, comments: Sequence[Any]) -> Iterator[Discussion]:
    """The comments on each issue, of which nothing else is known: the first words stand for its title."""
    of_issue: dict[str, list[Mapping[str, Any]]] = {}
    for comment in comments:
        of_issue.setdefault(comment["issue_url"], []).append(comment)
    for number, (issue, told) in enumerate(of_issue.items(), start=1):
        said = [message for comment in told for message in _messages(comment, "")]
        if not said:
            continue
        place = "/".join(issue.rstrip("/").rsplit("/", 4)[-4:]).replace("/issues/", "#")
        title = f"{place}: {shortened(said[0].text.splitlines()[0], LONGEST_TITLE)}"
        # Apart from the issue, which another file may hold.
        url = str(told[0].get("html_url") or issue).partition("#")[0]
        yield Discussion(
            origin=f"{origin}#{number}",
            key=f"{url}#comments",
            title=title,
            messages=(Message(text=title, role="reporter"), *said),
            url=url,
            updated=max(str(comment.get("updated_at") or "") for comment in told),
        )


def _is_titled(item: object) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("title"), str)


def _record(origin: str, data: Mapping[str, Any]) -> Raw | Discussion | Failure:
    title, text, key = (_string(data, name) for name in ("title", "text", "id"))
    url, updated = _string(data, "url"), _string(data, "updated")
    listed = data.get("messages")
    given = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    messages = [
        Message(
            text=_string(item, "text"),
            role=_ROLES.get(_string(item, "role"), "other"),
            accepted=item.get("accepted") is True,
        )
        for item in given
    ]
    if resolution := _string(data, "resolution"):
        messages.append(Message(text=resolution, role="maintainer", accepted=True))
    if not (title and (text or messages)):
        return Failure(origin=origin, reason='a "title", and a "text" or "messages" are needed')
    if not messages:
        return Raw(origin=origin, content=f"# {title}\n\n{text}", format="markdown", url=url, key=key, updated=updated)
    if text:
        messages.insert(0, Message(text=text, role="reporter"))
    resolved = bool(data.get("resolved")) or any(message.accepted for message in messages)
    return Discussion(
        origin=origin,
        key=key or url or origin,
        title=title,
        messages=tuple(messages),
        url=url,
        resolved=resolved,
        updated=updated,
    )


def _string(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return str(value).strip() if isinstance(value, str | int) else ""


def listed(data: object) -> Sequence[object]:
    """The items of a response, unwrapped."""
    while isinstance(data, Mapping):
        if "title" in data and ("body" in data or "comments" in data):
            return [data]
        inner = next((data[name] for name in _LISTS if isinstance(data.get(name), Mapping | list)), None)
        if inner is None:
            return [data]
        data = inner
    return data if isinstance(data, list) else [data]


def discussions(item: object, origin: str) -> Iterator[Discussion | Failure]:
    """The item as a discussion; nothing for a pull request."""
    if not (isinstance(item, Mapping) and _is_titled(item) and {"body", "comments"} & item.keys()):
        yield Failure(origin=origin, reason=NEITHER)
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
        yield from (reply for reply in nodes if isinstance(reply, Mapping)) if isinstance(nodes, list) else ()
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
