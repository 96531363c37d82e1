"""A request as a channel hands it in: the question, the attachments, and how to answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment

Mode = Literal["auto", "deterministic", "investigate"]
MAX_ATTACHMENTS = 40
"""The most in one request."""
MAX_NAME = 255
"""Code points of an attachment's name; the rest is cut."""
_HARMLESS = str.maketrans("`<>", "'‹›")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question with its attachments. ``language`` auto follows the question.

    ``earlier`` are the user's earlier messages, for callers that keep the conversation themselves. ``owner`` is whose
    conversation it is: the same ``conversation_id`` of another owner is another conversation.
    """

    question: str
    attachments: tuple[Attachment, ...] = ()
    conversation_id: str | None = None
    language: Literal["auto", "en", "zh"] = "auto"
    top_k: int = 5
    mode: Mode = "auto"
    earlier: tuple[str, ...] = ()
    owner: str = ""

    def validated(self) -> Ask:
        """The request with safe attachment names. Raises `InvalidRequest` if it is empty."""
        if not self.question.strip() and not self.attachments:
            raise InvalidRequest("nothing was asked: send a question or an attachment")
        return replace(self, attachments=safely_named(self.attachments))


def safely_named(attachments: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """The attachments under names that are safe to show and to store, and all different.

    Names appear in Markdown: unprintable characters become blanks, and characters that would begin code, HTML or a link
    are replaced. Secrets become asterisks, an empty name ``attachment``; a second ``train.sh`` is ``train-2.sh``.
    """
    names: set[str] = set()
    renamed = []
    for attachment in attachments:
        plain = "".join(c if c.isprintable() else " " for c in attachment.name[:MAX_NAME]).translate(_HARMLESS)
        name = first = mask(plain.replace("](", "] (").strip()).text or "attachment"
        stem, dot, ending = first.rpartition(".") if "." in first.rpartition("/")[2][1:] else (first, "", "")
        number = 1
        while name in names:
            number += 1
            name = f"{stem}-{number}{dot}{ending}"
        names.add(name)
        renamed.append(attachment if name == attachment.name else replace(attachment, name=name))
    return tuple(renamed)
