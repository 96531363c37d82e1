"""One text → its stretches: fenced blocks, commands, YAML, JSON, Python, logs, metrics, listings, prose. Never raises.

Line by line and in linear time. A stretch's kind is what most decides how it is read; readers that find facts
anywhere (versions, log rows, tracebacks) run over every stretch regardless of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.source import Piece
from trainmedic.kb.parse.text import key_value_lines, kinds, stretches

_FENCE = regex(r"(?P<indent>[ \t>]*+)(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)(?P<rest>.*)")
_INLINE = regex(r"(?<!`)`(?P<body>[^`]{12,})`(?!`)")
_INFO_FILE = regex(r"(?:^|[\s\"'=(:`])(?P<name>[\w./-]+\.(?:ya?ml|json|jsonl|py|sh|bash|toml|ini|cfg|log|txt|csv))\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One stretch. ``kind`` as in `kb.model.run.Region`; ``name`` is the file it is said to be; ``closed`` is False
    for a fence that never ends."""

    kind: str
    piece: Piece
    name: str = ""
    closed: bool = True


def segment(piece: Piece, *, name: str | None = None) -> tuple[Block, ...]:
    """The stretches of a question (``name`` None) or of an attachment, in order. Blank ones are left out."""
    if name is not None:
        kind = kinds.by_name(name, piece.text)
        if kind not in ("", "log", "markdown"):
            return (Block(kind=kind, piece=piece, name=name),)
        blocks = tuple(_blocks(piece, plain="log" if kind == "log" else "prose"))
        return tuple(Block(kind=b.kind, piece=b.piece, name=b.name or name, closed=b.closed) for b in blocks)
    return tuple(_blocks(piece, plain="prose"))


def _blocks(piece: Piece, *, plain: str) -> Iterator[Block]:
    """Fences first; the text between them line by line."""
    text = piece.text
    if "```" not in text and "~~~" not in text:
        yield from _unfenced(piece, plain, logged=plain == "log")
        return
    lines = text.split("\n")
    starts = [*piece.index.starts, len(text) + 1]
    at = done = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at]) if "```" in lines[at] or "~~~" in lines[at] else None
        if fence is None or (fence["rest"] and fence["mark"][0] == "`"):
            at += 1
            continue
        if done < at:
            between = piece.cut(starts[done], max(starts[done], starts[at] - 1))
            yield from _unfenced(between, plain, logged=plain == "log")
        end = _fence_end(lines, at, fence["mark"])
        closed = end < len(lines)
        body = _fence_body(piece, lines, starts, at, end, fence)
        info = fence["info"].strip()
        yield from _fenced(body, info, _mentioned(lines, at, done), closed=closed)
        at = done = end + 1
    if done < len(lines):
        yield from _unfenced(piece.cut(starts[done], len(text)), plain, logged=plain == "log")


def _fence_end(lines: list[str], at: int, mark: str) -> int:
    for number in range(at + 1, len(lines)):
        stripped = lines[number].lstrip(" \t>").rstrip()
        if stripped.startswith(mark) and not stripped.strip(mark[0]):
            return number
        if stripped.endswith(mark) and len(stripped) > len(mark) and mark not in stripped[: -len(mark)]:
            return number  # closed at the end of its last line: handled by the caller as if the line were the fence
    return len(lines)


def _fence_body(piece: Piece, lines: list[str], starts: list[int], at: int, end: int, fence: re.Match[str]) -> Piece:
    """The lines inside, without the quote marks or indentation that stand before the fence itself.

    Text on the opening line that is not a language name, and text before a closing mark, belong to the body.
    """
    first = at + 1
    start = starts[first] if first < len(starts) else len(piece.text)
    if not kinds.is_info(fence["info"]):
        start = starts[at] + fence.start("info")
        first = at
    stop = min(starts[end] - 1, len(piece.text)) if end < len(starts) else len(piece.text)
    if end < len(lines) and lines[end].lstrip(" \t>").rstrip(" \t").strip(fence["mark"][0]):
        stop = starts[end] + len(lines[end].rstrip().removesuffix(fence["mark"]))
    body = piece.cut(start, max(start, stop))
    return _unindent(body, len(fence["indent"])) if fence["indent"] and first != at else body


def _unindent(piece: Piece, width: int) -> Piece:
    """``piece`` without up to ``width`` leading blanks or quote marks on each line."""
    taken = [min(width, len(line) - len(line.lstrip(" \t>"))) for line in piece.text.split("\n")]
    return piece.without(taken) if any(taken) else piece


def _mentioned(lines: list[str], at: int, since: int) -> str:
    """A file name on the line above a fence (``train.yaml:``), below the fence before."""
    above = next((line for line in reversed(lines[max(since, at - 2) : at]) if line.strip()), "")
    if len(above) > 80:
        return ""
    match = _INFO_FILE.search(above)
    return match["name"] if match else ""


def _fenced(body: Piece, info: str, above: str, *, closed: bool) -> Iterator[Block]:
    if not body.text.strip():
        return
    match = _INFO_FILE.search(info)
    name = match["name"] if match else above
    kind, body = kinds.of_fence(info, name, body)
    if kind in ("", "log"):
        for block in _unfenced(body, "log", logged=kind == "log"):
            yield Block(kind=block.kind, piece=block.piece, name=name, closed=closed)
    else:
        yield Block(kind=kind, piece=body, name=name, closed=closed)


def _unfenced(piece: Piece, plain: str, *, logged: bool) -> Iterator[Block]:
    """Lines outside fences: runs of the same kind. Inline code that is a command counts as one.

    In a log (``logged``), and behind one in an unlabelled fence, a few lines ``word: text`` are no YAML.
    """
    text = piece.text
    lines = text.split("\n")
    starts = [*piece.index.starts, len(text) + 1]

    def block(kind: str, first: int, last: int, start: int = -1) -> Block:
        begin = starts[first] if start < 0 else start
        cut = piece.cut(begin, max(begin, starts[last] - 1))
        if kind == "command":
            cut = _unticked(kinds.unprompt(cut))
        elif kind == "yaml":
            cut = _unindent(cut, len(lines[first]) - len(lines[first].lstrip()))
        return Block(kind=kind, piece=cut)

    brackets = stretches.Brackets(lines)
    at = done = 0
    while at < len(lines):
        found = stretches.start(lines, at, brackets) if lines[at] and not lines[at].isspace() else None
        if found is None:
            at += 1
            continue
        kind, offset, end = found
        logged = logged or (plain == "log" and kind == "log")
        if logged and kind == "yaml" and not key_value_lines.configures(text[starts[at] : starts[end] - 1]):
            at = end
            continue
        begin = starts[at] + offset
        if text[starts[done] : begin].strip():
            yield from _plain(piece, starts[done], begin, plain)
        yield block(kind, at, end, begin if offset and kind != "yaml" else -1)
        at = done = end
    if done < len(lines) and text[starts[done] :].strip():
        yield from _plain(piece, starts[done], len(text), plain)


def _unticked(piece: Piece) -> Piece:
    """Drop the mark that closes inline code after a command of several lines; the opening mark is gone already."""
    bare = piece.text.rstrip()
    return piece.cut(0, len(bare) - 1) if bare.endswith("`") and bare.count("`") % 2 else piece


def _plain(piece: Piece, start: int, end: int, plain: str) -> Iterator[Block]:
    rest = piece.cut(start, max(start, end - 1 if piece.text[end - 1 : end] == "\n" else end))
    for match in _INLINE.finditer(rest.text):
        if kinds.is_command(match["body"]):
            yield Block(kind="command", piece=kinds.unprompt(rest.cut(match.start("body"), match.end("body"))))
    yield Block(kind=plain, piece=rest)
