"""Arguments printed into logs → options: ``Namespace(a=1)``, ``TrainingArguments(…)``, ``Qwen2Config {…}``,
ms-swift's ``args: RLHFArguments(…)``, verl's pretty-printed dict.

``scope`` is the printed class (none for Namespace and plain dicts). Such a dump lists defaults too: every option in it
is known, none need have been written by hand. Logger prefixes in front of a dump's lines are stepped over.
"""

from __future__ import annotations

import re

from kb.model.run import Origin
from kb.parse.readers.literal import Scanner
from kb.parse.readers.nodes import Entries, Flattener, Node
from kb.parse.source import Piece, Reading

_PRINTED = re.compile(
    r"(?P<name>\b[A-Z]\w*(?:Config|Arguments|Args|Namespace|Params)|\bNamespace)[ \t]*(?P<open>\(|\{)"
)
_DICT = re.compile(r"(?:^|[\s:=])(?P<open>\{)[ \t\n]*(?=['\"][\w.\-/]+['\"][ \t]*:)", re.MULTILINE)
_PREFIX = re.compile(
    r"^[ \t]*(?:\([A-Za-z_]\w*(?:[ \t]+pid=\d+)?[^)\n]{0,80}\)|\[?(?:rank|RANK)[ \t]?\d+\]?:?|\[\d+\]:)[ \t]?",
    re.MULTILINE,
)
_ROW = re.compile(r"\{[ \t\n]*['\"](?:loss|train_loss|eval_loss|train_runtime|eval_runtime)['\"]")


def read(piece: Piece) -> Reading:
    """All dumps in ``piece``, in order. Log rows (``{'loss': …}``) are not dumps."""
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
    for code, message, at, end in scanner.flaws:
        flattener.problem(code, message, at, end)
    return Reading(
        options=tuple(flattener.options), problems=tuple(flattener.problems), partial=scanner.partial or flattener.full
    )
