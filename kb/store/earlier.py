"""What an earlier index holds of texts and pages that have not changed: read from it instead of computed again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from trainmedic.kb.engine.mechanism import page_of
from trainmedic.kb.model.case import Case
from trainmedic.kb.store.chunks import Chunk
from trainmedic.kb.store.lexical import COUNTS, Postings, assemble, count, load_postings
from trainmedic.kb.store.sources import PageEntry

CHUNKS = "chunks.json"
CONCEPTS = "concepts.json"
ENTRIES = "entries.json"
FILES = (CHUNKS, CONCEPTS, ENTRIES, COUNTS, "documents.npy", "starts.npy", "terms.json")
"""The files that are read."""
Names = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """Texts with what is embedded of them and their numbers in ``postings``; the causes' concepts, by their ids; and
    the digests of the pages. ``texts`` is what is embedded of each chunk, by the folder of the index."""

    embedded: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    numbers: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    postings: Postings = field(default_factory=lambda: count(()))
    concepts: Names = field(default_factory=lambda: MappingProxyType({}))
    titles: Names = field(default_factory=lambda: MappingProxyType({}))
    digests: Collection[tuple[str, str]] = frozenset()
    texts: Mapping[Path, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))

    def postings_of(self, pieces: Sequence[Chunk], words: Callable[[Chunk], Sequence[str]]) -> Postings:
        """The postings of chunks; ``words`` is called for those whose text is new."""
        known = [(self.numbers[piece.text], n) for n, piece in enumerate(pieces) if piece.text in self.numbers]
        new = [n for n, piece in enumerate(pieces) if piece.text not in self.numbers]
        added = count(words(pieces[n]) for n in new)
        if not known:
            return added
        parts = [
            (self.postings, [number for number, _ in known], [n for _, n in known]),
            (added, range(len(new)), new),
        ]
        return assemble(parts, len(pieces))

    def changed(self, causes: Sequence[Case], entries: Sequence[PageEntry]) -> list[Case]:
        """The causes whose pages are not as they were."""
        same = {entry.id for entry in entries if (entry.id, entry.digest) in self.digests}
        return [cause for cause in causes if page_of(cause.id) not in same or cause.id not in self.concepts]


def read_earlier(folder: Path) -> Earlier:
    """From an index whose `FILES` are verified, and which today's code made with today's glossary."""
    data = json.loads((folder / CHUNKS).read_text(encoding="utf-8"))
    concepts = json.loads((folder / CONCEPTS).read_text(encoding="utf-8"))
    entries = json.loads((folder / ENTRIES).read_text(encoding="utf-8"))
    return Earlier(
        # Of the others their English counterpart is embedded.
        embedded={item["text"]: item["embedded"] for item in data if item["embedded"].endswith(item["text"])},
        numbers={item["text"]: number for number, item in enumerate(data)},
        postings=load_postings(folder),
        concepts=concepts["all"],
        titles=concepts["titles"],
        digests=frozenset((entry["id"], entry["digest"]) for entry in entries if entry["kind"] != "rule"),
        texts={folder: [item["embedded"] for item in data]},
    )
