"""Files that wait to be sent: what each is recognised as, and whether a message is worth sending."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from cachetools import LRUCache

from trainmedic.kb.model.evidence import Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.text.compressed import start_of
from trainmedic.kb.parse.text.opening import foreign_kind
from trainmedic.service.answering import Executor
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS, safely_named
from trainmedic.ui.chat import evidence
from trainmedic.ui.chat.sender import Sender
from trainmedic.ui.chat.session import Session
from trainmedic.ui.chat.texts import Language, words
from trainmedic.ui.chat.uploads import WaitingFile, lines_of
from trainmedic.ui.context import AppContext

PEEK = 200_000
"""Bytes of a file that are used to recognise it before it is sent."""
MOST_KNOWN = 4_096
"""Recognised files that are remembered."""


class Recogniser:
    """Says what waiting files are. Each is read once, however often it is named: uploads never change."""

    def __init__(self, read: Callable[[], Read], most: int = MOST_KNOWN) -> None:
        """``read``: within the bounds of the service, as these are texts that anyone may send."""
        self._read = read
        self._known: LRUCache[str, WaitingFile] = LRUCache(most)

    def unknown(self, paths: Sequence[str]) -> bool:
        """Whether any of these files has to be read."""
        return any(path not in self._known and os.path.exists(path) for path in paths)

    async def recognised(self, paths: Sequence[str], run: Executor, within_s: float) -> list[WaitingFile]:
        """The files that are still there, as many as ``within_s`` is enough for; a slot is held for one at a time."""
        end, found = time.monotonic() + within_s, list[WaitingFile]()
        for index, path in enumerate(paths):
            if path not in self._known:
                if time.monotonic() > end:
                    break
                file = await run(partial(recognise, path, self._read()))
                if file is None:
                    continue
                self._known[path] = file
            if os.path.exists(path):
                found.append(replace(self._known[path], index=index))
        return found


def recognise(path: str, read: Read) -> WaitingFile | None:
    """One waiting file as recognised; None if it is gone."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    return recognised(Path(path).name, content, read)


def recognised(name: str, content: bytes, read: Read) -> WaitingFile:
    """A waiting file by its content, or by the beginning of it."""
    (safe,) = safely_named((Attachment(name=name, content=b""),))
    kind, can_be_read = foreign_kind(content)
    if kind:
        return WaitingFile(name=safe.name, kind=kind, lines=None, read=can_be_read)
    unpacked = start_of(content, PEEK + 1)
    known = content if unpacked is None else unpacked
    name = safe.name
    start = known[:PEEK]
    head = start[: start.rfind(b"\n") + 1] if len(known) > PEEK and b"\n" in start else start
    (receipt,) = (item for item in read("", (Attachment(name=name, content=head),)).receipt.inputs if item.name == name)
    counted = unpacked is None or len(unpacked) <= PEEK
    return WaitingFile(name=name, kind=receipt.kind, lines=lines_of(known) if counted else None, read=receipt.read)


class WaitingFiles:
    """The waiting files of all tabs of a page."""

    def __init__(self, context: AppContext, language: Language) -> None:
        self._context = context
        self._language = language
        self._recogniser = Recogniser(lambda: context.advisor.read)

    async def chips(self, paths: Sequence[str], session: Session, sender: Sender) -> str | None:
        """The chips of the waiting files; None if a later event of this tab was answered meanwhile."""
        session.chips_asked = number = session.chips_asked + 1
        files = await self._recognised(paths, sender)
        if session.chips_drawn > number:
            return None
        session.chips_drawn = number
        return evidence.chips(files, self._language)

    async def refusal(self, text: str, paths: Sequence[str], sender: Sender) -> str:
        """Why a message is not worth sending; empty if it is."""
        t, limit = words(self._language), MAX_ATTACHMENTS
        if len(paths) > limit:
            return str(t["too_many_files"].format(count=limit))
        if text.strip():
            return ""
        files = await self._recognised(paths, sender)
        if not files:
            return str(t["files_gone"].format(count=len(paths)) if paths else t["empty"])
        if any(file.read and file.lines != 0 for file in files):
            return ""
        return str(t["nothing_readable"].format(names=t["reasons_joiner"].join(file.name for file in files)))

    async def _recognised(self, paths: Sequence[str], sender: Sender) -> list[WaitingFile]:
        """Nothing if the sender has had too many read."""
        if self._recogniser.unknown(paths) and not await sender.metered("attach on the page"):
            return []
        return await self._recogniser.recognised(paths, sender.run, self._context.settings.request_timeout_s)
