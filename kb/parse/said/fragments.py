"""Options that a sentence quotes: ``with a.b.c=v``, and inline code that holds several flags of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from trainmedic.kb.frameworks.profiles import select
from trainmedic.kb.frameworks.tables import table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option
from trainmedic.kb.negation import SETUP
from trainmedic.kb.parse.readers import hydra, shell
from trainmedic.kb.parse.readers.shell_expand import Arg
from trainmedic.kb.parse.said.clauses import located
from trainmedic.kb.parse.source import Piece

_QUOTED = regex(
    r"(?<![\w./=\-])(?P<override>(?:\+{1,2}|~)?(?P<key>[A-Za-z_]\w*(?:\.[\w\-]++){1,20})=[^\s`，。；]++)"
    r"|`(?P<flags>--?[A-Za-z][^`\n]{8,400}+)`"
    r"|`(?P<call>[A-Za-z_][\w.]*\([^`\n]{1,400}\)|[\w.]+\.\w+ = [\w\"'.-]+)`"
)


def read(piece: Piece) -> tuple[Option, ...]:
    """The options that are quoted as in use: not denied, and not only considered or tried."""
    text = piece.text
    if "=" not in text and "`-" not in text:
        return ()
    options: list[Option] = []
    for match in _in_use(text):
        if match["flags"]:
            commands = shell.read(piece.cut(*match.span("flags"))).commands
            flags = [option for command in commands for option in command.options]
            options += flags if len(flags) > 1 else []
        elif match["key"] and match["key"] in _dotted_names():
            end = match.start() + len(match["override"].rstrip(",;:.)\"'*"))
            word = text[match.start() : end]
            option = hydra.read(Arg(word, match.start(), end, "$" not in word, False), piece)
            options += [option] if option is not None else []
    return tuple(options)


def inline_calls(piece: Piece) -> Iterator[Piece]:
    """The inline code that is a Python call with arguments or sets an attribute."""
    if "`" in piece.text:
        yield from (piece.cut(*match.span("call")) for match in _in_use(piece.text) if match["call"])


def _in_use(text: str) -> Iterator[re.Match[str]]:
    for match, clause in located(text, _QUOTED.finditer(text)):
        if not clause.is_hedged(text, match.start()) and not SETUP.precedes(text, match.start()):
            yield match


@cache
def _dotted_names() -> frozenset[str]:
    """The dotted options of all frameworks."""
    tables = (table(name) for name in select("trainer"))
    return frozenset(name for options in tables if options is not None for name in options.names if "." in name)
