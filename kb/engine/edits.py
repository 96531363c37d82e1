"""Changes to a user's own text: take an option out, write another value, add an option, each as its format needs it.

Works on one text (a `Document`) and gives `kb.model.report.Edit` values. What cannot be done cleanly gives None: a fix
is then described, not applied. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.model.report import Edit
from trainmedic.kb.model.run import CAST, Option, Origin

_SHELL = (Origin.FLAG, Origin.HYDRA, Origin.ENV)
_LISTED = (Origin.JSON, Origin.PYTHON)
_LINED = (Origin.YAML, Origin.TOML, Origin.INI)
_BARE = regex(r"[\w@%+=:,./-]+")
_YAML_BARE = regex(r"[A-Za-z0-9_./+-][\w./+ -]*")


class Document:
    """One text with its lines. Offsets are code points."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.text = source.text
        self.starts = [0, *(match.end() for match in re.finditer("\n", source.text))]

    def offset(self, line: int, column: int) -> int | None:
        """The offset of a 1-based position, None where there is no such place."""
        if not 1 <= line <= len(self.starts):
            return None
        at = self.starts[line - 1] + column - 1
        return at if self.starts[line - 1] <= at <= self.line_end(line) else None

    def range(self, span: Span | None) -> tuple[int, int] | None:
        """Offsets of a span; None where the text there is not the span's (a truncated or quoted source)."""
        if span is None or span.default:
            return None
        start, end = self.offset(span.line, span.column), self.offset(span.end_line, span.end_column)
        if start is None or end is None or self.text[start:end] != span.text:
            return None
        return start, end

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    def line_end(self, line: int) -> int:
        return self.starts[line] - 1 if line < len(self.starts) else len(self.text)

    def line(self, line: int) -> str:
        return self.text[self.starts[line - 1] : self.line_end(line)]

    def edit(self, start: int, end: int, replacement: str) -> Edit:
        line, last = self.line_of(start), self.line_of(end)
        span = Span(
            attachment=self.name,
            line=line,
            column=start - self.starts[line - 1] + 1,
            end_line=last,
            end_column=end - self.starts[last - 1] + 1,
            text=self.text[start:end],
        )
        return Edit(span=span, replacement=replacement)


def render(origin: Origin, key: str, raw: str | None, like: Option | None = None) -> str | None:
    """An option as it is written (``like``: in that option's manner). None where the format cannot hold it."""
    if origin is Origin.FLAG:
        if raw is None:
            return f"--{key}"
        joined = "=" if like is not None and like.raw is not None and f"{like.key}=" in like.span.text else " "
        return f"--{key}{joined}{quoted(raw, origin)}"
    value = "true" if raw is None else raw
    if origin in (Origin.HYDRA, Origin.ENV):
        return f"{key}={quoted(value, origin)}"
    if origin is Origin.YAML:
        return None if "." in key else f"{key}: {quoted(value, origin)}"
    if origin is Origin.JSON:
        return None if "." in key else f'"{key}": {value}'
    if origin is Origin.PYTHON:
        value = "True" if raw is None else raw
        positional = like is not None and like.span == like.value_span  # a call's first argument is not a dict entry
        entry = like is not None and like.span.text[:1] in "'\"" and not positional
        call, _, inner = key.partition(".")
        written = f'"{call}": ' if entry else f"{call}="
        return None if "." in inner else written + (f'{{"{inner}": {value}}}' if inner else value)
    return None if origin is Origin.DUMP or "." in key else f"{key} = {value}"


def quoted(raw: str, origin: Origin) -> str:
    """A value's text, quoted where the format would otherwise read it differently."""
    if origin in _SHELL:
        return raw if _BARE.fullmatch(raw) else "'" + raw.replace("'", "'\\''") + "'"
    if origin is Origin.YAML and not _YAML_BARE.fullmatch(raw):
        return '"' + raw.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return raw


def replace_value(document: Document, option: Option, raw: str | None) -> Edit | None:
    """Give a written option another value (None: make it a bare flag)."""
    whole, value = document.range(option.span), document.range(option.value_span)
    if option.origin is Origin.DUMP or whole is None:
        return None
    if raw is None and option.origin is Origin.FLAG:
        return document.edit(*whole, f"--{option.key}")
    text = quoted("true" if raw is None else raw, option.origin)
    if value is None:
        return document.edit(whole[1], whole[1], f" {text}") if option.origin is Origin.FLAG else None
    if option.scope == CAST:
        return _recast(document, option, *value, text)
    start, end = value
    mark = document.text[start - 1 : start]
    if mark and mark in "'\"" and document.text[end : end + 1] == mark:
        start, end = start - 1, end + 1
    return document.edit(start, end, text)


def _recast(document: Document, option: Option, start: int, end: int, text: str) -> Edit | None:
    """Another dtype in a cast: ``half()`` becomes ``to(torch.bfloat16)``; only a dtype can stand there."""
    if not text.startswith("torch."):
        return None
    method = option.span == option.value_span and option.span.text.endswith(")")
    return document.edit(start, end, f"to({text})" if method else text)


def replace_option(document: Document, option: Option, key: str, raw: str | None) -> Edit | None:
    """Write another option in the place of this one."""
    whole, text = document.range(option.span), render(option.origin, key, raw, option)
    return None if whole is None or text is None else document.edit(*whole, text)


def rename(document: Document, option: Option, key: str) -> Edit | None:
    """Another name for an option, which keeps its value. Not for a switch: the new one may want a value."""
    whole = document.range(option.span)
    (branch, _, old), (other, _, new) = option.key.rpartition("."), key.rpartition(".")
    named = re.match(rf"([-+'\"]*(?:{re.escape(branch)}\.)?){re.escape(old)}(?![\w.-])", option.span.text)
    kept = option.raw is not None and option.origin is not Origin.DUMP and branch == other and new.isidentifier()
    if whole is None or named is None or not kept:
        return None
    start = whole[0] + named.end(1)
    return document.edit(start, start + len(old), new)


def remove(document: Document, options: Sequence[Option]) -> tuple[Edit, ...] | None:
    """Take options out of one text, together, so that what stays is still a valid command, mapping or call."""
    ranges: list[tuple[int, int, Option]] = []
    for option in options:
        place = document.range(option.span)
        if place is None or option.origin is Origin.DUMP or option.scope == CAST:
            return None
        ranges.append((*place, option))
    ranges.sort(key=lambda item: item[:2])
    edits: list[Edit] = []
    shell = [(start, end) for start, end, option in ranges if option.origin in _SHELL]
    if shell:
        edits += _remove_words(document, shell)
    for start, end, option in ranges:
        if option.origin in _LISTED or (option.origin in _LINED and _in_flow(document, start)):
            edits.append(_remove_entry(document, start, end))
        elif option.origin in _LINED:
            edits.append(_remove_lines(document, start, end))
    return tuple(edits)


def _remove_words(document: Document, ranges: Sequence[tuple[int, int]]) -> list[Edit]:
    """Words of commands: whole lines where nothing else stands on them, and no continuation left hanging at the end."""
    edits: list[Edit] = []
    gone: set[int] = set()
    by_line: dict[int, list[tuple[int, int]]] = {}
    for start, end in ranges:
        by_line.setdefault(document.line_of(start), []).append((start, end))
    for first, group in sorted(by_line.items()):
        last = document.line_of(group[-1][1])
        rest, at = "", document.starts[first - 1]
        for start, end in group:
            rest, at = rest + document.text[at:start], end
        if (rest + document.text[at : document.line_end(last)]).strip() in ("", "\\", "export"):
            gone.update(range(first, last + 1))
        else:
            edits += [_remove_word(document, start, end) for start, end in group]
    for first, last in _groups(gone):
        edits.append(_remove_command_lines(document, first, last))
    return _merged(document, edits)


def _merged(document: Document, deletions: Iterable[Edit]) -> list[Edit]:
    """Deletions that meet as one, and none that leaves blanks at the end of its line."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted(place for option in deletions if (place := document.range(option.span)) is not None):
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
        else:
            ranges.append((start, end))
    merged = []
    for start, end in ranges:
        head = document.text[document.starts[document.line_of(start) - 1] : start]
        if head.strip() and document.text[end : end + 1] in ("", "\n"):
            start -= len(head) - len(head.rstrip(" \t"))
        merged.append(document.edit(start, end, ""))
    return merged


def _remove_word(document: Document, start: int, end: int) -> Edit:
    tail = document.text[end : document.line_end(document.line_of(end))]
    return document.edit(start, end + len(tail) - len(tail.lstrip(" \t")), "")


def _remove_command_lines(document: Document, first: int, last: int) -> Edit:
    """Whole lines of a command. Where they end it, the line before must no longer say that it goes on."""
    continued = document.line(last).rstrip().endswith("\\")
    before = document.line(first - 1) if first > 1 else ""
    if not continued and before.rstrip().endswith("\\"):
        length = len(before.rstrip()[:-1].rstrip())
        return document.edit(document.starts[first - 2] + length, document.line_end(last), "")
    return _whole_lines(document, first, last)


def _whole_lines(document: Document, first: int, last: int) -> Edit:
    start = document.starts[first - 1]
    if last < len(document.starts):
        return document.edit(start, document.starts[last], "")
    return document.edit(max(start - 1, 0), len(document.text), "")


def _groups(lines: Iterable[int]) -> list[tuple[int, int]]:
    groups: list[tuple[int, int]] = []
    for line in sorted(lines):
        if groups and groups[-1][1] == line - 1:
            groups[-1] = (groups[-1][0], line)
        else:
            groups.append((line, line))
    return groups


def _in_flow(document: Document, start: int) -> bool:
    """Whether an option stands inside ``{a: 1, b: 2}`` on its line."""
    line = document.line_of(start)
    return "{" in document.text[document.starts[line - 1] : start]


def _remove_lines(document: Document, start: int, end: int) -> Edit:
    """An option of a line-wise format, with its comment and its list lines."""
    last = document.line_of(end - 1 if document.text[end - 1 : end] == "\n" else end)
    return _whole_lines(document, document.line_of(start), last)


def _remove_entry(document: Document, start: int, end: int) -> Edit:
    """One entry of ``{…}`` or ``f(…)`` with one of the commas beside it, and its line if nothing else is on it."""
    text = document.text
    after = re.compile(r"[ \t]*,").match(text, end)
    if after is not None:
        end = after.end()
    else:
        before = re.search(r",\s*\Z", text[:start])
        if before is not None:
            return document.edit(before.start(), end, "")
    first, last = document.line_of(start), document.line_of(end)
    head, tail = text[document.starts[first - 1] : start], text[end : document.line_end(last)]
    if not head.strip() and re.fullmatch(r"\s*(#.*)?", tail):
        return _whole_lines(document, first, last)
    return document.edit(start, end + len(tail) - len(tail.lstrip(" \t")), "")


def insert(document: Document, after: Option, key: str, raw: str | None) -> Edit | None:
    """Add an option behind the last one of its command, mapping or call."""
    place, text = document.range(after.span), render(after.origin, key, raw, after)
    if place is None or text is None:
        return None
    start, end = place
    if after.origin is Origin.PYTHON and "." in key and re.search(rf"\b{key.partition('.')[0]}\b", document.text):
        return None  # a second one would hide the first, or be refused
    first = document.line_of(start)
    head = document.text[document.starts[first - 1] : start]
    if after.origin in _SHELL:
        if head.strip() or first == 1:
            return document.edit(end, end, f" {text}")
        joint = " \\\n" if document.line(first - 1).rstrip().endswith("\\") else "\n"
        return document.edit(end, end, joint + head + text)
    if after.origin in _LISTED or _in_flow(document, start):
        between = f",\n{head}" if not head.strip() and first > 1 else ", "
        return document.edit(end, end, between + text)
    last = document.line_of(end - 1 if document.text[end - 1 : end] == "\n" else end)
    at = document.line_end(last)
    return document.edit(at, at, f"\n{head}{text}")


def resolve(edits: Iterable[Edit]) -> tuple[tuple[Edit, ...], tuple[Edit, ...]]:
    """Edits that can be made together, in order of place, and those left out: the earlier given wins where two meet."""
    accepted: list[Edit] = []
    dropped: list[Edit] = []
    for edit in dict.fromkeys(edits):
        (dropped if any(_meet(edit, other) for other in accepted) else accepted).append(edit)
    return tuple(sorted(accepted, key=lambda edit: edit.span.order)), tuple(dropped)


def _meet(one: Edit, other: Edit) -> bool:
    if one.span.attachment != other.span.attachment:
        return False
    first, second = sorted((edit.span.order[1:3], edit.span.order[3:]) for edit in (one, other))
    return second[0] < first[1] or first == second or (second[0] == first[1] and first[0] == first[1])


def apply(edits: Iterable[Edit], text: str) -> str:
    """The text after edits of this text that do not meet (see `resolve`); those out of its bounds are skipped."""
    document = Document(Source(name=None, text=text, byte_count=0))
    for edit in sorted(edits, key=lambda item: item.span.order, reverse=True):
        place = document.range(edit.span)
        if place is not None:
            text = text[: place[0]] + edit.replacement + text[place[1] :]
    return text
