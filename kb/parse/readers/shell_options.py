"""The words of a command → options: flags with their values, Hydra overrides, environment assignments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, Unresolved, Value
from trainmedic.kb.parse.readers import hydra
from trainmedic.kb.parse.readers.hydra import typed
from trainmedic.kb.parse.readers.shell_expand import Arg
from trainmedic.kb.parse.source import Piece

DASHES = "-‐‑–—―−－﹣"
"""The ASCII hyphen and the dashes that chat programs and word processors put in its place."""
DOTTED = regex(r"(?:\+{1,2}|~)?[A-Za-z_]\w*(?:\.[\w\-]+)+=")
"""The start of an override of a nested setting, such as ``trainer.lr=``."""
ASSIGNMENT = regex(r"([A-Za-z_]\w*)(\+?)=")
_FLAG = regex(
    rf"(?:--|[{DASHES[1:]}]|[{DASHES}]{{2}}|-(?=[A-Za-z]))[{DASHES}]?(?P<key>[A-Za-z_][\w.\-/@\[\]]*)(?P<value>=.*)?",
    re.DOTALL,
)
_CONFIG_FILE = regex(r"[^\s=]+\.(?:ya?ml|json|toml)")
_QUOTES = "'\"“”‘’"


@dataclass(slots=True)
class Arguments:
    """The options, values and further words of a command.

    ``unknown``: variables without a value in the text; each may stand for any number of flags. ``dash``: the first flag
    that is written with a typographic dash.
    """

    options: list[Option] = field(default_factory=list)
    positional: list[Arg] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    dash: Arg | None = None

    def config_files(self) -> tuple[str, ...]:
        """The configuration files that a positional word or a flag's value names."""
        words = [arg.text for arg in self.positional]
        words += [option.value for option in self.options if isinstance(option.value, str)]
        return tuple(dict.fromkeys(word for word in words if _CONFIG_FILE.fullmatch(word)))


def read_arguments(args: list[Arg], piece: Piece, *, scope: str = "", overrides: bool = False) -> Arguments:
    """``overrides``: the program takes Hydra overrides, so ``key=value`` is never the value of a flag before it."""
    arguments = Arguments()
    at = 0
    while at < len(args):
        arg = args[at]
        at += 1
        flag = _flag(arg)
        if flag is None:
            override = hydra.read(arg, piece)
            if override is not None:
                arguments.options.append(override)
            elif _is_variable(arg):
                arguments.unknown.append(arg.text)
            else:
                arguments.positional.append(arg)
            continue
        if arg.text[:1] in DASHES[1:] and arguments.dash is None:
            arguments.dash = arg
        values: list[Arg] = []
        if flag["value"] is None:
            while at < len(args) and _is_value(args[at], values, overrides=overrides):
                values.append(args[at])
                at += 1
        arguments.options.append(_flag_option(piece, arg, flag, values, scope))
    return arguments


def is_flag(text: str) -> bool:
    """Whether a word as written is a flag or an override; ``-x`` alone is too short to be sure."""
    flag = _FLAG.match(text)
    if flag is not None:
        return len(flag["key"]) > 1 or text[1:2] in DASHES
    return DOTTED.match(text) is not None


def environment_option(arg: Arg, piece: Piece) -> Option | None:
    """``NAME=value`` behind a wrapper such as ``srun env``."""
    assignment = ASSIGNMENT.match(arg.text)
    if assignment is None:
        return None
    raw = arg.text[assignment.end() :]
    return Option(
        key=assignment[1],
        value=typed(raw) if arg.resolved else Unresolved(raw),
        raw=raw,
        span=piece.span(arg.start, arg.end),
        key_span=piece.span(arg.start, arg.start + len(assignment[1])),
        value_span=piece.span(arg.start + assignment.end(), arg.end),
        origin=Origin.ENV,
        scope="env",
        quoted=arg.quoted,
    )


def unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] in _QUOTES and text[-1] in _QUOTES else text


def _flag(arg: Arg) -> re.Match[str] | None:
    return _FLAG.fullmatch(arg.text) if arg.text[:1] in DASHES and arg.text else None


def _is_variable(arg: Arg) -> bool:
    return not arg.resolved and not arg.quoted and arg.text.startswith("$")


def _is_value(arg: Arg, before: list[Arg], *, overrides: bool) -> bool:
    if _flag(arg) is not None or DOTTED.match(arg.text):
        return False
    if overrides and hydra.is_override(arg):
        return False
    return not (before and _is_variable(arg))  # an unknown $EXTRA after a complete flag may hold any flags


def _flag_option(piece: Piece, arg: Arg, flag: re.Match[str], values: list[Arg], scope: str) -> Option:
    written = piece.text[arg.start : arg.end]
    key_at = arg.start + max(written.find(flag["key"]), 0)
    option = Option(
        key=flag["key"],
        value=True,
        raw=None,
        span=piece.span(arg.start, arg.end),
        key_span=piece.span(key_at, key_at + len(flag["key"])),
        value_span=None,
        origin=Origin.FLAG,
        scope=scope,
    )
    if flag["value"] is not None:
        value_at = arg.start + written.find("=") + 1
        raw = unquoted(piece.text[value_at : arg.end])
        value: Value = typed(flag["value"][1:]) if arg.resolved else Unresolved(raw)
        return replace(option, value=value, raw=raw, value_span=piece.span(value_at, arg.end), quoted=arg.quoted)
    if not values:
        return option
    raws = [unquoted(piece.text[word.start : word.end]) for word in values]
    typed_values: list[Value] = [
        typed(word.text) if word.resolved else Unresolved(raw) for word, raw in zip(values, raws, strict=True)
    ]
    start, end = values[0].start, values[-1].end
    if end < start:  # words from different places: the end of an array, and what follows its use
        start, end = values[0].start, values[0].end
    return replace(
        option,
        value=typed_values[0] if len(typed_values) == 1 else tuple(typed_values),
        raw=" ".join(raws),
        span=piece.span(arg.start, end) if arg.start < start else option.span,
        value_span=piece.span(start, end),
        quoted=len(values) == 1 and values[0].quoted,
    )
