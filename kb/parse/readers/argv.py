"""The command that a launcher printed into its log, as a command → `kb.parse.readers.shell`. Never raises.

DeepSpeed prints ``cmd = python -m …`` and, for each process, Python's list of its words; accelerate and torchrun name
that list when the program fails. All processes get the same words except for their rank: the first list is read.
"""

from __future__ import annotations

from dataclasses import replace

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.readers import shell
from trainmedic.kb.parse.readers.shell import Command
from trainmedic.kb.parse.source import Piece

_CUES = ("cmd = ", "['", '["')
_PROGRAM = r"[^'\"\n ]{0,300}?(?:python[0-9.]{0,5}|torchrun|deepspeed|accelerate)(?:\.exe)?"
_LINE = regex(rf"\bcmd = (?P<words>{_PROGRAM} [^\n]{{1,20000}})")
_ITEM = r"'[^'\n]{0,4000}+'|\"[^\"\n]{0,4000}+\""
_LIST = regex(rf"\[(?P<words>['\"]{_PROGRAM}['\"](?:, ?(?:{_ITEM})){{1,1000}})(?P<closed>\])?")
_BETWEEN = regex(rf"({_ITEM})|,")


def read(piece: Piece) -> tuple[Command, ...]:
    """The first command in a launcher's log."""
    text = piece.text
    if not any(cue in text for cue in _CUES):
        return ()
    line, listed = _LINE.search(text), _LIST.search(text)
    if listed is not None and (line is None or listed.start() < line.start()):
        found = _listed(piece.cut(*listed.span("words")), closed=listed["closed"] is not None)
    else:
        found = shell.read(piece.cut(*line.span("words"))).commands if line is not None else ()
    return tuple(command for command in found if any(option.scope == "" for option in command.options))[:1]


def _listed(piece: Piece, *, closed: bool) -> tuple[Command, ...]:
    """The words of a list read as a shell's: the commas between them become blanks, so every place stays."""
    words = _BETWEEN.sub(lambda found: found[1] or " ", piece.text)
    return tuple(
        _restored(command, piece, closed=closed) for command in shell.read(replace(piece, text=words)).commands
    )


def _restored(command: Command, piece: Piece, *, closed: bool) -> Command:
    """The same command with the text at its places as it was printed."""

    def printed(span: Span) -> Span:
        start = span.column - piece.column
        return replace(span, text=piece.text[start : start + span.end_column - span.column])

    options = tuple(
        replace(
            option,
            span=printed(option.span),
            key_span=printed(option.key_span),
            value_span=printed(option.value_span) if option.value_span is not None else None,
        )
        for option in command.options
    )
    entry = command.entry and replace(command.entry, span=command.entry.span and printed(command.entry.span))
    return replace(
        command, span=printed(command.span), options=options, entry=entry, partial=command.partial or not closed
    )
