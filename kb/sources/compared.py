"""Code changes between the releases of a working and a failing set-up, where they matter:
on the path of the traceback, and where the options in use are read or checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from trainmedic.kb.errors import NotFound, TrainmedicError
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.environment import SourceChange, SourceComparison
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.sources.changes import function_changes, message_changes
from trainmedic.kb.sources.library import Library, changed_alone, trained_with
from trainmedic.kb.sources.raised import Frame, frames_in
from trainmedic.kb.sources.search import Difference, diff
from trainmedic.kb.sources.tree import SourceTree

MOST_CHANGES = 10
"""Changes of one package."""
MOST_LINES = 24
"""Lines of one difference."""
MOST_FILES = 20
"""Changed files that are looked through for the options in use."""
_SHORTEST = 4
_HUNK = regex(r"^(?=@@ )", re.MULTILINE)
_HEAD = regex(r"@@ -\d+,\d+ \+(\d+),(\d+) @@")
_WORD = regex(r"[A-Za-z_]\w+")


def compared(good: Mapping[str, VersionFact], evidence: Evidence, library: Library) -> tuple[SourceComparison, ...]:
    """Of each package that trains models and differs; ``evidence`` is that of what fails."""
    frames = frames_in(evidence, library)
    options = in_use(evidence)
    found = []
    for package in sorted(good.keys() & evidence.versions.keys() & trained_with()):
        before, after = good[package].exact, evidence.versions[package].exact
        if before is None or after is None or before == after:
            continue
        own = [frame for frame in frames if frame.package == package]
        try:
            changes = changes_of(library.tree(package, before), library.tree(package, after), own, options)
        except TrainmedicError:
            found.append(SourceComparison(package=package, good=before, bad=after, read=False))
        else:
            found.append(SourceComparison(package=package, good=before, bad=after, changes=changes))
    return tuple(found)


def on_the_path(good: Mapping[str, VersionFact], evidence: Evidence, library: Library) -> Iterator[SourceChange]:
    """The functions of the tracebacks that are written otherwise in the release that worked, if both are at hand."""
    for frame in frames_in(evidence, library):
        fact = good.get(frame.package)
        old = library.here(frame.package, fact.exact) if fact is not None and fact.exact is not None else None
        if old is not None:
            yield from _of_frames(old, frame.tree, [frame])


def in_use(evidence: Evidence) -> frozenset[str]:
    """The names of the options that are written, as code has them."""
    keys = {option.key.rpartition(".")[2].replace("-", "_") for run in evidence.runs for option in run.options}
    return frozenset(key for key in keys if len(key) >= _SHORTEST)


def changes_of(
    old: SourceTree, new: SourceTree, frames: Sequence[Frame], options: Set[str]
) -> tuple[SourceChange, ...]:
    """The most relevant first: the path of the traceback, checks of options in use, functions that read them."""
    found: dict[tuple[str, str, str], SourceChange] = {}
    sides = _naming(old, new, options)
    for change in (*_of_frames(old, new, frames), *_checks(*sides, options), *_readers(*sides, options)):
        found.setdefault((change.kind, change.path, change.name if change.kind == "code" else change.text), change)
    return tuple(list(found.values())[:MOST_CHANGES])


def _of_frames(old: SourceTree, new: SourceTree, frames: Sequence[Frame]) -> Iterator[SourceChange]:
    for frame in frames:
        try:
            difference = diff(old, new, frame.path, frame.symbol) if frame.symbol else None
        except NotFound:
            continue
        if difference is not None and difference.text:
            yield _code(new, frame.path, frame.symbol, ("traceback",), difference, near=frame.line)


def _naming(old: SourceTree, new: SourceTree, options: Set[str]) -> tuple[SourceTree, SourceTree]:
    """Both releases with the files that changed and name an option in use, those with the most of them first."""
    sides = changed_alone(old, new)
    counts: dict[str, int] = {}
    for tree in sides:
        for path in tree.files:
            if path.endswith(".py") and (named := len(options & set(_WORD.findall(tree.text(path))))):
                counts[path] = max(counts.get(path, 0), named)
    chosen = set(sorted(counts, key=lambda path: (-counts[path], path))[:MOST_FILES])
    first, second = (
        replace(tree, files={path: digest for path, digest in tree.files.items() if path in chosen}) for tree in sides
    )
    return first, second


def _checks(old: SourceTree, new: SourceTree, options: Set[str]) -> Iterator[SourceChange]:
    """What the failing release says of options in use and the other does not."""
    if not new.files:
        return
    found = []
    for placed in message_changes(old, new).new:
        message = placed.message
        named = sorted(options & set(_WORD.findall(f"{message.condition} {message.template}")))
        if named:
            when = f" if {message.condition}" if message.condition else ""
            found.append(
                SourceChange(
                    package=new.package,
                    kind="check",
                    path=placed.path,
                    line=message.line,
                    name=message.function,
                    because=tuple(named),
                    text=f"{message.kind}{when}: {message.template}",
                )
            )
    ends = ("warning", "error", "print")
    yield from sorted(found, key=lambda change: change.text.startswith(ends))


def _readers(old: SourceTree, new: SourceTree, options: Set[str]) -> Iterator[SourceChange]:
    """Functions that changed and name options in use; first those where a changed line does."""
    found = []
    for function in function_changes(old, new):
        difference = diff(old, new, function.path, function.name)
        sides = (difference.before, difference.after)
        named = options & {word for side in sides if side is not None for word in _WORD.findall(side.text)}
        changed = [line for line in difference.text.splitlines()[2:] if line[:1] in "+-"]
        touched = options & set(_WORD.findall("\n".join(changed)))
        if named:
            because = (*sorted(touched), *sorted(named - touched))
            change = _code(new, function.path, function.name, because, difference, touched)
            found.append(((-len(touched), -len(named), len(changed), function.path), change))
    found.sort(key=lambda pair: pair[0])
    yield from (change for _, change in found)


def _code(
    tree: SourceTree,
    path: str,
    name: str,
    because: tuple[str, ...],
    difference: Difference,
    words: Set[str] = frozenset(),
    near: int = 0,
) -> SourceChange:
    """The hunks that name ``words``, or are nearest to the line ``near``, before the others."""
    side = difference.after or difference.before
    hunks = list(_hunks(difference.text))
    hunks.sort(key=lambda hunk: (not words & set(_WORD.findall(hunk[1])), abs(hunk[0] - near) if near else 0))
    lines = [line for _, text in hunks for line in text.split("\n")]
    cut = (*lines[:MOST_LINES], *((f"… (+{len(lines) - MOST_LINES})",) if len(lines) > MOST_LINES else ()))
    return SourceChange(
        package=tree.package,
        kind="code",
        path=path,
        line=side.first if side is not None else 0,
        name=name,
        because=because,
        text="\n".join(cut),
    )


def _hunks(text: str) -> Iterator[tuple[int, str]]:
    """Each with the middle of its lines in the later release."""
    for part in _HUNK.split(text)[1:]:
        found = _HEAD.match(part)
        if found is not None:
            yield int(found[1]) + int(found[2]) // 2, part.rstrip("\n")
