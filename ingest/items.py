"""A write-up as fetched, and as cleaned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmedic.kb.mask import mask
from trainmedic.kb.threads.thread import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The request to a source. ``since`` is the last `Checkpoint` of its former run, empty for everything;
    ``internal``: public pages may lead to hosts of this network."""

    location: str
    since: str = ""
    internal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """One write-up as fetched. ``format`` is text, markdown or html; ``origin`` names it in messages, ``key`` (else its
    address, else its origin) identifies it at its source; ``updated`` is an ISO 8601 time or empty."""

    origin: str
    content: str
    format: str
    url: str = ""
    key: str = ""
    updated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a discussion, as Markdown. ``accepted``: it was marked as the answer."""

    text: str
    role: Role = "other"
    accepted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Discussion:
    """An issue, a discussion or a chat thread, the reporter's message first. ``key`` identifies it at its source,
    ``resolved`` says that it was closed as done; ``updated`` is an ISO 8601 time or empty; ``team``: it is a team's
    own, not of a public tracker."""

    origin: str
    key: str
    title: str
    messages: tuple[Message, ...]
    url: str = ""
    resolved: bool = False
    updated: str = ""
    team: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that a source could not read."""

    origin: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """An item that a source knows to be deleted, by its key."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Everything before it is read: where the next run of this source goes on."""

    value: str


Item = Raw | Discussion | Failure | Gone | Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a write-up. ``kind`` is heading, item, code or text; ``level`` is a heading's (1 to 6)."""

    kind: str
    text: str
    level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One write-up without the site's boilerplate. ``removed`` are the lines left out, for review."""

    origin: str
    title: str
    blocks: tuple[Block, ...]
    language: str
    url: str = ""
    removed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole article as plain lines."""
        return "\n".join(block.text for block in self.blocks)


_NAMES = ("origin", "key", "url", "updated", "reason")


def printable(item: Item) -> Item:
    """The item with half surrogate pairs in what names it written out (``\\udcff``): no database takes them. The name
    of a file in another encoding has some, and JSON may hold them."""
    texts = {name: getattr(item, name, "") for name in _NAMES}
    odd: dict[str, Any] = {name: _written_out(text) for name, text in texts.items() if not _is_text(text)}
    return replace(item, **odd) if odd else item


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _written_out(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def masked(item: Raw | Discussion) -> Raw | Discussion:
    """The item without secrets and e-mail addresses, and without what is not text."""
    if isinstance(item, Raw):
        return replace(item, content=_masked_text(item.content))
    title, *texts = masked_texts((item.title, *(message.text for message in item.messages)))
    messages = tuple(replace(message, text=text) for message, text in zip(item.messages, texts, strict=True))
    return replace(item, title=title, messages=messages)


def masked_texts(texts: Sequence[str]) -> Iterator[str]:
    """The texts without secrets; together, because each search for them has its price."""
    whole = _masked_text("\n".join(texts))
    start = 0
    for text in texts:
        yield whole[start : start + len(text)]
        start += len(text) + 1


def _masked_text(text: str) -> str:
    # Half a surrogate pair, as JSON may hold, is refused by tokenisers and databases and would end the run.
    return mask(text.encode("utf-8", "replace").decode("utf-8")).text
