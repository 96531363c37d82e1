"""YAML text → options with positions, values as PyYAML's YAML 1.1 reads them (``1e-6`` is text, ``off`` is False).

Only parse events are used: no tag is ever constructed. What a broken or cut-off document still says is kept: everything
before the error from the events, everything after it line by line.
Values: PyYAML 6 `yaml.resolver.Resolver` and `yaml.constructor.SafeConstructor` (bool, int, float,
null; a date stays text).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

import yaml

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Origin, Scalar, Unresolved
from trainmedic.kb.parse.readers.nodes import (
    DEEPEST,
    LONGEST_INTEGER,
    MOST_NODES,
    Entries,
    Flattener,
    Flaw,
    Items,
    Leaf,
    Node,
    Pair,
)
from trainmedic.kb.parse.source import Piece, Reading, numbered

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WIDE_COLON = regex(r"^(?P<key>[ \t]*(?:-[ \t]+)?[\w.\-/]+)[ \t]*：[ \t]*", re.MULTILINE)
_WIDE_QUOTED = regex(r"(?<=: )[“”](?P<text>[^“”\"\n]*)[“”](?=[ \t]*(?:#.*)?$)", re.MULTILINE)
_WIDE_LIST = regex(r"(?<=: )\[[^\]\n]*，[^\]\n]*\]")
_TABS = regex(r"^[ ]*+\t[ \t]*+(?=[^\s#])", re.MULTILINE)
_LINE = regex(
    r"(?P<indent>[ \t]*)(?P<dash>(?:-[ \t]+)*)(?P<key>\"[^\"\n]+\"|'[^'\n]+'|[\w.\-/]+)"
    r"[ \t]*(?::(?=\s|$)|：)[ \t]*(?P<rest>.*)"
)
_PROPERTIES = regex(r"(?:[&!]\S*(?:\s+|$))*")
_COMMENT = regex(r"(?:^|[ \t])#.*$")
_MOST_LINES = 4000
_TOO_LARGE = 10**LONGEST_INTEGER
_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = yaml.resolver.Resolver.yaml_implicit_resolvers
_TAG = "tag:yaml.org,2002:"
_TAGS = frozenset(["!", "str", "int", "float", "bool", "null", "map", "seq", "set", "omap", "binary", "timestamp"])
_CONSTRUCT = yaml.constructor.SafeConstructor()


def read(piece: Piece) -> Reading:
    """All options of all documents in ``piece``; ``partial`` if some of it could not be read."""
    text, inserted, flaws = _prepared(piece.text)
    flattener = Flattener(piece, Origin.YAML, place=lambda offset: offset - bisect_left(inserted, offset))
    builder = _Builder(text)
    builder.run()
    flattener.flaws((*flaws, *builder.flaws))
    for document in builder.documents:
        flattener.add(document)
    if builder.failed_at is not None:
        flattener.add(_by_line(text, builder.read_up_to()))
    return flattener.reading(partial=builder.failed_at is not None)


def scalar(text: str) -> Scalar:
    """The value that PyYAML gives an unquoted scalar."""
    for tag, pattern in (*_RESOLVERS.get(text[:1], ()), *_RESOLVERS.get("*", ())):
        if pattern.match(text):
            return _tagged(tag, text)
    return text


def _tagged(tag: str, text: str) -> Scalar:
    node = yaml.ScalarNode(tag, text)
    try:
        if tag == _TAG + "null":
            return None
        if tag == _TAG + "bool":
            return _CONSTRUCT.bool_values[text.lower()]
        if tag == _TAG + "int":
            number = int(_CONSTRUCT.construct_yaml_int(node))
            return number if abs(number) < _TOO_LARGE else text
        if tag == _TAG + "float":
            return float(_CONSTRUCT.construct_yaml_float(node))
    except (ValueError, KeyError, OverflowError, IndexError):
        pass  # `!!int x`, or an integer of thousands of digits: PyYAML raises, here it stays text
    return text


def _prepared(text: str) -> tuple[str, list[int], list[Flaw]]:
    """The text with common slips repaired, the offsets (in the new text) of inserted blanks, and flaws."""
    flaws: list[Flaw] = []
    text = yaml.reader.Reader.NON_PRINTABLE.sub("\ufffd", text).replace("\ufeff", "\ufffd")
    if "\t" in text and (tabs := _TABS.search(text)):
        flaws.append(("yaml_error", "a tab in the indentation: YAML refuses it; read as a blank", *tabs.span()))
        text = _TABS.sub(lambda match: match[0].replace("\t", " "), text)
    inserted: list[int] = []
    if "：" in text:
        parts: list[str] = []
        done = length = 0
        for match in _WIDE_COLON.finditer(text):
            colon = text.index("：", match.end("key"), match.end())
            parts.append(text[done:colon] + ":")
            length += colon - done + 1
            done = colon + 1
            if not match[0].endswith((" ", "\t")) and text[done : done + 1] not in ("", "\n"):
                parts.append(" ")
                inserted.append(length)
                length += 1
            at = length - (1 if inserted and inserted[-1] == length - 1 else 0)
            flaws.append(("yaml_error", "a full-width colon: YAML does not take it for one; read as ':'", at - 1, at))
        text = "".join([*parts, text[done:]])
    if "“" in text or "”" in text:
        text = _WIDE_QUOTED.sub(lambda match: f'"{match["text"]}"', text)
    if "，" in text:
        text = _WIDE_LIST.sub(lambda match: match[0].replace("，", ","), text)
    return text, inserted, flaws


@dataclass(slots=True)
class _Frame:
    node: Entries | Items
    anchor: str | None
    key: tuple[str, int, int] | None = None


@dataclass(slots=True)
class _Builder:
    """Parse events → node trees. Containers still open at an error are closed there and kept."""

    text: str
    documents: list[Node] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    failed_at: int | None = None
    complete: int = 0
    _stack: list[_Frame] = field(default_factory=list)
    _anchors: dict[str, Node] = field(default_factory=dict)
    _last: tuple[Entries, Pair, int] | None = None
    _merged: int = 0

    def run(self) -> None:
        try:
            for event in yaml.parse(self.text, Loader=_LOADER):
                self._event(event)
                if len(self._stack) > DEEPEST:
                    self._fail(self.complete, "nested too deeply")
                    break
        except yaml.YAMLError as error:  # a `MarkedYAMLError`: what a `ReaderError` is for was taken out before
            context = getattr(error, "context", None) or ""
            mark = getattr(error, "context_mark" if "quoted scalar" in context else "problem_mark", None)
            self._fail(mark.index if mark else 0, str(getattr(error, "problem", None) or context or "not YAML"))

    def _fail(self, at: int, message: str) -> None:
        self.failed_at = min(at, len(self.text))
        self._drop_swallowed()
        end = self.text.find("\n", self.failed_at)
        self.flaws.append(("yaml_error", message, self.failed_at, len(self.text) if end < 0 else end))
        while self._stack:
            frame = self._stack.pop()
            frame.node.end = self.failed_at
            self._place(frame.node)

    def _drop_swallowed(self) -> None:
        """Take back a plain value that ran over its line's end just before the error: it swallowed the next key."""
        if self._last is None:
            return
        entries, pair, before = self._last
        if not entries.pairs or entries.pairs[-1] is not pair:
            return  # a merge key: it is resolved and gone
        value = pair.value
        if isinstance(value, Leaf) and not value.quoted and "\n" in self.text[value.start : value.end]:
            entries.pairs.pop()
            self.complete = before

    def read_up_to(self) -> int:
        """Where reading line by line takes over: the line after the last complete entry."""
        return self.text.find("\n", max(self.complete - 1, 0)) + 1 if self.complete else 0

    def _event(self, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, start, end)
            if event.anchor:
                self._anchors[event.anchor] = node
            self._place(node)
        elif isinstance(event, yaml.AliasEvent):
            self._place(self._alias(str(event.anchor), start, end))
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._tag(event.tag, start, end)
            container = Entries if isinstance(event, yaml.MappingStartEvent) else Items
            self._stack.append(_Frame(container(start=start, end=start), event.anchor))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            frame = self._stack.pop()
            frame.node.end = len(self.text[:end].rstrip()) if end > start else self.complete
            frame.node.end = max(frame.node.end, frame.node.start)
            if isinstance(frame.node, Entries):
                self._merge(frame.node)
            if frame.anchor:
                self._anchors[frame.anchor] = frame.node
            self._place(frame.node)

    def _place(self, node: Node) -> None:
        if not self._stack:
            self.documents.append(node)
            return
        frame = self._stack[-1]
        if isinstance(frame.node, Items):
            frame.node.items.append(node)
        elif frame.key is None:
            key = node.raw if isinstance(node, Leaf) else self.text[node.start : node.end]
            frame.key = (key, node.start, node.end)
            return
        else:
            key, start, end = frame.key
            frame.key = None
            if isinstance(node, Leaf) and node.start == node.end:  # an empty value: stands after the colon
                colon = self.text.find(":", end)
                node.start = node.end = colon + 1 if colon >= 0 else end
            pair = Pair(key=key, start=start, end=end, value=node)
            frame.node.pairs.append(pair)
            self._last = (frame.node, pair, self.complete)
        self.complete = max(self.complete, node.end)

    def _scalar(self, event: Any, start: int, end: int) -> Leaf:
        raw: str = event.value
        plain = not event.style
        value: Scalar = scalar(raw) if plain else raw
        if event.tag and event.tag != "!":
            self._tag(event.tag, start, end)
            value = _tagged(event.tag, raw)
        if event.anchor or event.tag:
            start += _PROPERTIES.match(self.text[start:end]).end()  # type: ignore[union-attr]  # matches the empty text
        if event.style in ("|", ">"):
            end = start + len(self.text[start:end].rstrip())
        return Leaf(start=start, end=end, value=value, raw=raw, quoted=not plain)

    def _tag(self, tag: str | None, start: int, end: int) -> None:
        name = (tag or "").removeprefix(_TAG)
        if name and name not in _TAGS:
            message = f"the tag {name[:80]} is not constructed; its content is read as text"
            self.flaws.append(("yaml_tag", message, start, end))

    def _alias(self, name: str, start: int, end: int) -> Node:
        target = self._anchors.get(name)
        written = self.text[start:end]
        if target is None:
            self.flaws.append(("yaml_error", f"the anchor of {written[:80]} is not defined before it", start, end))
            return Leaf(start=start, end=end, value=Unresolved(written), raw=written)
        if isinstance(target, Leaf):
            return Leaf(start=start, end=end, value=target.value, raw=written)
        return target

    def _merge(self, node: Entries) -> None:
        """Resolve ``<<``: what it brings stands first, and own entries win. Bounded, as chains of merges grow."""
        merges = [pair for pair in node.pairs if pair.key == "<<"]
        if not merges:
            return
        own = [pair for pair in node.pairs if pair.key != "<<"]
        taken = {pair.key for pair in own}
        brought: list[Pair] = []
        for merge in merges:
            sources = merge.value.items if isinstance(merge.value, Items) else [merge.value]
            for source in sources:
                for pair in source.pairs if isinstance(source, Entries) else ():
                    self._merged += 1
                    if pair.key not in taken and self._merged < MOST_NODES:
                        taken.add(pair.key)
                        brought.append(pair)
        node.pairs = brought + own


def _by_line(text: str, start: int) -> Entries:
    """``key: value`` lines from ``start`` on, with dotted keys by indentation (all earlier lines count for that)."""
    found = Entries(start=start, end=len(text))
    parents: list[tuple[int, str]] = []
    numbers: dict[str, int] = {}
    for offset, line in numbered(text):
        if (match := _LINE.match(line)) is not None:
            _line(text, offset, start, match, parents, numbers, found)
        if len(found.pairs) > _MOST_LINES:
            break
    return found


def _line(
    text: str,
    offset: int,
    start: int,
    match: re.Match[str],
    parents: list[tuple[int, str]],
    numbers: dict[str, int],
    found: Entries,
) -> None:
    indent = len(match["indent"])
    dashes = match["dash"]
    key = match["key"].strip("\"'")
    while parents and (
        parents[-1][0] > indent or (parents[-1][0] == indent and not (dashes and parents[-1][1][-1:] != "]"))
    ):
        parents.pop()
    prefix = "".join(f"{name.rstrip(']')}." for _, name in parents)
    if dashes:
        numbers[prefix] = numbers.get(prefix, -1) + 1
        parents.append((indent, f"{numbers[prefix]}]"))
        prefix += f"{numbers[prefix]}."
        indent += len(dashes)
    rest = match["rest"]
    value = rest if rest[:1] in "\"'" else _COMMENT.sub("", rest)
    value = value.rstrip()
    if not value:
        if len(parents) <= DEEPEST:
            parents.append((indent, key))
        return
    if offset < start:
        return
    at = offset + match.start("rest")
    begin, end = match.span("key")
    found.pairs.append(Pair(key=prefix + key, start=offset + begin, end=offset + end, value=_value(text, at, value)))


def _value(text: str, start: int, written: str) -> Node:
    """One value as YAML, or as plain text if it is not valid."""
    builder = _Builder(written)
    builder.run()
    if builder.failed_at is None and len(builder.documents) == 1:
        node = builder.documents[0]
        if not isinstance(node, Entries):
            _shift(node, start)
            return node
    return Leaf(start=start, end=start + len(written), value=written, raw=text[start : start + len(written)])


def _shift(node: Node, by: int) -> None:
    node.start += by
    node.end += by
    if isinstance(node, Items):
        for item in node.items:
            _shift(item, by)
    elif isinstance(node, Entries):
        for pair in node.pairs:
            pair.start += by
            pair.end += by
            _shift(pair.value, by)
