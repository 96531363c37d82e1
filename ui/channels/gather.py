"""A question with its evidence: what was said before it, and the files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from trainmedic.kb.model.place import Attachment
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS
from trainmedic.service.dialogue.turn import Turn
from trainmedic.ui.channels.channel import Evidence, File, NotRead, Said
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.question import has_words, is_repeated, prose_language

Fetch = Callable[[File], Awaitable[Attachment]]


async def gathered(
    message: Said, earlier: Sequence[Said], turns: Sequence[Turn], fetch: Fetch, *, note: str = ""
) -> Evidence:
    """The question in ``message``; at most `MAX_ATTACHMENTS`. ``turns`` are those of this conversation.

    The first of the ``earlier`` messages belongs to the question: "why?" under a pasted log is about the log. Later
    ones, by others, are evidence, but not part of the question.
    """
    questions = [turn.question for turn in turns]
    parts, replies = [], []
    for number, item in enumerate(earlier, start=1):
        if item.skipped or not item.text or is_repeated(item.text, questions):
            continue
        if number == 1:
            parts.append(item.text)
        else:
            replies.append(Attachment(name=f"thread-{number}", content=item.text))
    parts.append(message.text)
    language = prose_language(message.text)
    files = [*message.files, *(file for item in earlier if not item.skipped for file in item.files)]
    read, not_read = await _fetched(files, fetch, language)
    room = MAX_ATTACHMENTS - len(read)
    many = messages("not_read.many", language, limit=MAX_ATTACHMENTS)
    return Evidence(
        question="\n\n".join(part for part in parts if part),
        attachments=(*read, *replies[:room]),
        not_read=(*not_read, *(f"{item.name} ({many})" for item in replies[room:])),
        note=note,
        language=_language(parts),
    )


async def _fetched(files: Sequence[File], fetch: Fetch, language: str) -> tuple[Sequence[Attachment], Sequence[str]]:
    """The text files, each fetched once, and the name of every other file with the reason."""
    read: list[Attachment] = []
    not_read: list[str] = []
    seen: set[str] = set()
    for file in files:
        if file.id and file.id in seen:
            continue
        seen.add(file.id)
        try:
            if len(read) >= MAX_ATTACHMENTS:
                raise NotRead("many", limit=MAX_ATTACHMENTS)
            read.append(await fetch(file))
        except NotRead as reason:
            why = messages(f"not_read.{reason.reason}", language, **reason.values)
            not_read.append(f"{reason.name or file.name} ({why})")
    return read, not_read


def _language(parts: Sequence[str]) -> Literal["auto", "en", "zh"]:
    """The language of the last part that contains prose."""
    prose = [part for part in parts if has_words(part)]
    if not prose:
        return "auto"
    return "zh" if prose_language(prose[-1]) == "zh" else "en"
