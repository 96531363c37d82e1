"""Issues and discussions as the REST API, GraphQL or ``gh … --json`` returns them, as discussions. Pure.

Of people only the role is read, never the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmedic.ingest.items import Discussion, Failure, Message
from trainmedic.kb.threads.thread import Role

_MAINTAINERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_LISTS = ("nodes", "items", "issues", "discussions", "data", "repository", "search")
"""Keys under which responses wrap what they list."""
_BOTS = ("[bot]", "-bot", "github-actions")


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
