"""A committed table of messages with further releases."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.error_messages.packages import Package
from trainmedic.kb.error_messages.tables import MessageTable
from trainmedic.kb.error_messages.template import skeleton
from trainmedic.kb.sources.messages import Entry, collected, is_general, table
from trainmedic.kb.sources.statements import Message
from trainmedic.kb.sources.tree import SourceTree


def with_releases(known: str, about: Package, trees: Sequence[SourceTree], dropped: int = 0) -> str:
    """The text of a table with further releases, lowest first, and without the first ``dropped`` ones.

    Of a package of which only the newest release is kept (`Package.newest`), that is all.
    """
    if about.newest:
        return table(about, *collected(trees[-1:], about))
    releases, entries = _read(known)
    added, new = collected(trees, about, general=False)
    for key, entry in new.items():
        entry.first, entry.last = entry.first + len(releases), entry.last + len(releases)
        if key in entries:
            entries[key].last, entries[key].places = entry.last, entry.places
        elif is_general(entry):
            entries[key] = entry
    for entry in entries.values():
        entry.first, entry.last = max(0, entry.first - dropped), entry.last - dropped
    kept = {key: entry for key, entry in entries.items() if entry.last >= 0}
    return table(about, [*releases, *added][dropped:], kept)


def _read(text: str) -> tuple[Sequence[str], dict[tuple[str, str], Entry]]:
    """The releases of a table, and its messages by skeleton and kind."""
    known = MessageTable(lambda: text)
    number = {release: place for place, release in enumerate(known.releases)}
    entries: dict[tuple[str, str], Entry] = {}
    for each in map(known.entry, range(len(known))):
        places = [
            (
                place.file,
                Message(
                    template=each.template,
                    kind=each.kind,
                    line=place.line,
                    function=place.function,
                    condition=place.condition,
                ),
            )
            for place in each.places
        ]
        key = (skeleton(each.template), each.kind)
        entries[key] = Entry(number[each.first], number[each.last], places)
    return known.releases, entries
