"""Code changes between two set-ups, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmedic.kb.model.environment import SourceChange, SourceComparison
from trainmedic.ui.present.messages import messages

MOST_LINES = 40
MOST_NAMES = 4


def source_blocks(comparisons: Sequence[SourceComparison], language: str) -> Iterator[str]:
    """The changes that matter most within some lines, then in one line what could not be read."""
    left = MOST_LINES
    hidden = 0
    for comparison in comparisons:
        lines: list[str] = []
        for change in comparison.changes:
            shown = list(_lines(change, language))
            if len(lines) + len(shown) > left:
                hidden += 1
            elif not hidden:
                lines += shown
        if lines:
            names = {"package": comparison.package, "good": comparison.good, "bad": comparison.bad}
            yield "\n".join((messages("source.changed", language, **names), *lines))
        left -= len(lines)
    if hidden:
        yield messages("source.more", language, count=hidden)
    missing = [
        f"{each.package}=={version}" for each in comparisons if not each.read for version in (each.good, each.bad)
    ]
    if missing:
        yield messages("source.missing", language, releases=" ".join(missing))


def _lines(change: SourceChange, language: str) -> Iterator[str]:
    path = change.because == ("traceback",)
    names = ", ".join(change.because[:MOST_NAMES])
    why = messages("source.path", language) if path else messages("source.names", language, names=names)
    yield f"  {change.path}:{change.line} {change.name} ({why})"
    yield from (f"    {line}" for line in change.text.split("\n"))
