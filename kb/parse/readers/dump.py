"""Arguments printed into logs → options: ``Namespace(a=1)``, ``TrainingArguments(…)``, ``Qwen2Config {…}``,
ms-swift's ``args: RLHFArguments(…)``, verl's pretty-printed dict, the overrides that Hydra repeats when a job fails,
Megatron's list of arguments (``bf16 ........ True``).

``scope`` is the printed class (none for Namespace and plain dicts). Such a dump lists defaults too: every option in it
is known, none need have been written by hand. Logger prefixes in front of a dump's lines are stepped over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin
from trainmedic.kb.parse.readers import hydra
from trainmedic.kb.parse.readers.hydra import typed
from trainmedic.kb.parse.readers.literal import Scanner
from trainmedic.kb.parse.readers.nodes import Entries, Flattener, Node
from trainmedic.kb.parse.readers.shell_expand import Arg
from trainmedic.kb.parse.source import Piece, Reading

_PRINTED = re.compile(
    r"(?P<name>\b[A-Z]\w*(?:Config|Arguments|Args|Namespace|Params)|\bNamespace)[ \t]*(?P<open>\(|\{)"
)
_DICT = regex(r"(?:^|[\s:=])(?P<open>\{)[ \t\n]*(?=['\"][\w.\-/]+['\"][ \t]*:)", re.MULTILINE)
_PREFIX = regex(
    r"^[ \t]*(?:\([A-Za-z_]\w*(?:[ \t]+pid=\d+)?[^)\n]{0,80}\)|\[?(?:rank|RANK)[ \t]?\d+\]?:?|\[\d+\]:)[ \t]?",
    re.MULTILINE,
)
_ROW = regex(r"\{[ \t\n]*['\"](?:loss|train_loss|eval_loss|train_runtime|eval_runtime)['\"]")
_OVERRIDES = regex(r"Error executing job with overrides: \[(?P<items>[^\n]*)\]")
_LIST = "-------- arguments --------"
_LIST_ITEM = regex(r"[ \t](?P<key>[A-Za-z_]\w*) \.{2,} (?P<value>[^\n]*?)[ \t]*$", re.MULTILINE)
_ITEM = regex(r"'(?P<single>(?:[^'\\\n]|\\.)*)'|\"(?P<double>(?:[^\"\\\n]|\\.)*)\"")


def read(piece: Piece) -> Reading:
    flattener = Flattener(piece, Origin.DUMP)
    text = _PREFIX.sub(lambda match: " " * len(match[0]), piece.text)
    scanner = Scanner(text, code="dump_error")
    starts = [(m.start("name"), m) for m in _PRINTED.finditer(text)]
    starts += [(m.start("open"), m) for m in _DICT.finditer(text) if not _ROW.match(text, m.start("open"))]
    for start, match in sorted(starts, key=lambda item: item[0]):
        if start < scanner.at:
            continue
        name = match["name"] if match.re is _PRINTED else ""
        scanner.at = start if match["open"] == "(" else match.start("open")
        node: Node = scanner.call(match, 0) if match["open"] == "(" else scanner.entries(0)
        if isinstance(node, Entries):
            flattener.add(node, "" if name == "Namespace" else name)
    flattener.flaws(scanner.flaws)
    return flattener.reading(partial=scanner.partial)


def overrides(piece: Piece) -> tuple[Piece, Reading] | None:
    """The command line that Hydra repeats under "Error executing job with overrides", and its place."""
    found = _OVERRIDES.search(piece.text)
    if found is None:
        return None
    place = piece.cut(*found.span())
    options = tuple(_items(place))
    return (place, Reading(options=options)) if options else None


def _items(piece: Piece) -> Iterator[Option]:
    for item in _ITEM.finditer(piece.text):
        group = "double" if item["single"] is None else "single"
        option = hydra.read(Arg(item[group], *item.span(group), resolved=True, quoted=False), piece)
        if option is not None:
            yield replace(option, origin=Origin.DUMP)


def arguments(piece: Piece) -> tuple[Piece, Reading] | None:
    """The arguments that Megatron prints when it starts, and their place; named as on its command line."""
    title = piece.text.find(_LIST)
    if title < 0:
        return None
    end = piece.text.find("end of arguments", title + len(_LIST))
    place = piece.cut(title, end if end >= 0 else len(piece.text))
    options = tuple(_listed(place, item) for item in _LIST_ITEM.finditer(place.text))
    return (place, Reading(options=options, partial=end < 0)) if options else None


def _listed(piece: Piece, item: re.Match[str]) -> Option:
    launched = item["key"] == "world_size"  # no one writes it: the launcher sets it
    return Option(
        key="num_processes" if launched else item["key"].replace("_", "-"),
        value=typed(item["value"]),
        raw=item["value"],
        span=piece.span(item.start("key"), item.end("value")),
        key_span=piece.span(*item.span("key")),
        value_span=piece.span(*item.span("value")),
        origin=Origin.DUMP,
        scope="launcher" if launched else "",
    )
