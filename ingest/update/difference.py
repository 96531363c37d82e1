"""Candidates for defects where there is no history: functions of training code of which a release changed little."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from trainmedic.ingest.update.harvest import MAX_DIFF, DefectCandidate
from trainmedic.kb.sources.changes import Function, functions_of
from trainmedic.kb.sources.tree import SourceTree

MOST_REMOVED, MOST_ADDED = 12, 24
"""Lines of a function; a larger change is work on it, of which nothing can be told from here."""


def drafts(functions: Sequence[Function], trees: Sequence[SourceTree]) -> Iterator[DefectCandidate]:
    """Candidates among functions that differ between the last two releases; all, lowest first, bound where it began.

    The lines that a change removed were there since the first release with all of them; if that is the first of
    ``trees``, it is not known when they came.
    """
    *earlier, before, after = trees
    for function in functions:
        if function.before is None or function.before != function.after:
            continue
        old, new = (_lines(tree, function) for tree in (before, after))
        diff = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
        removed = [line[1:].strip() for line in diff if line.startswith("-") and _says(line[1:])]
        added = [line for line in diff if line.startswith("+") and _says(line[1:])]
        if not 0 < len(removed) <= MOST_REMOVED or not 0 < len(added) <= MOST_ADDED:
            continue
        yield DefectCandidate(
            package=after.package,
            commit="",
            pull="",
            date=after.released or "",
            subject=f"{function.path}: {function.name} of {after.version}",
            body="",
            files=(function.path,),
            introduced=_introduced(removed, function, [*earlier, before]),
            how="difference",
            fixed=after.version,
            diff="\n".join((f"--- {function.path}", *diff))[:MAX_DIFF],
        )


def _introduced(removed: Sequence[str], function: Function, trees: Sequence[SourceTree]) -> str:
    first = len(trees)
    while first and set(removed) <= {line.strip() for line in _lines(trees[first - 1], function)}:
        first -= 1
    return trees[first].version if 0 < first < len(trees) else ""


def _lines(tree: SourceTree, function: Function) -> list[str]:
    text = tree.text(function.path) if function.path in tree else ""
    found = functions_of(text).get(function.name)
    return text.splitlines()[found.lineno - 1 : found.end_lineno] if found is not None else []


def _says(line: str) -> bool:
    """Whether a line is neither empty nor a comment."""
    bare = line.strip()
    return len(bare) > 2 and not bare.startswith("#")
