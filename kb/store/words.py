"""The half of an index that needs no vectors: its chunks, their words, and what it holds of the pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

from trainmedic.kb.engine.mechanism import page_of
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store import lexical
from trainmedic.kb.store.chunks import Chunk, chunks
from trainmedic.kb.store.concepts import concepts_of, titles_of
from trainmedic.kb.store.earlier import CONCEPTS, ENTRIES, Earlier
from trainmedic.kb.store.lexical import Postings
from trainmedic.kb.store.passages import page_ids, write_passages
from trainmedic.kb.store.sources import SOURCES, PageEntry, Sources, pack, page_entries
from trainmedic.kb.store.tokens import tokens

PAGES = "pages"
Concepts = Callable[[str], tuple[str, ...]]
"""The ids of the concepts in a text."""
READABLE_FOLDER = 0o755
"""Temporary folders are private by default, but an index built in an image is read by another user."""


def write_half(
    folder: Path, cases: CaseSet, rules: RuleSet, glossary: Glossary, sources: Sources, earlier: Earlier
) -> tuple[Chunk, ...]:
    """Write it into ``folder``; texts that ``earlier`` has are not read again. Returns the chunks."""
    concepts = cache(glossary.ids)
    pieces = chunks(cases.cases, rules, glossary, earlier.embedded, concepts)
    _write_words(folder, pieces, concepts, earlier)
    _write_pages(folder, cases, rules, glossary, sources, earlier)
    return pieces


def _write_words(folder: Path, pieces: Sequence[Chunk], concepts: Concepts, earlier: Earlier) -> None:
    write_passages(pieces, folder)
    postings = earlier.postings_of(pieces, lambda piece: (*tokens(piece.text), *_terms(concepts(piece.text))))
    postings.weighted().save(folder)
    lexical.save_counts(postings, folder)
    (folder / PAGES).mkdir()
    (folder / PAGES).chmod(READABLE_FOLDER)
    _by_page(pieces, postings).weighted().save(folder / PAGES)


def _by_page(pieces: Sequence[Chunk], postings: Postings) -> Postings:
    """The words of all chunks of each page, in the order of `page_ids`."""
    ids = page_ids([piece.cases for piece in pieces])
    numbers = {page_id: number for number, page_id in enumerate(ids)}
    pairs = [(n, numbers[page_of(case)]) for n, piece in enumerate(pieces) for case in piece.cases]
    return lexical.assemble([(postings, [n for n, _ in pairs], [page for _, page in pairs])], len(ids))


def _terms(concepts: Iterable[str]) -> Iterator[str]:
    return (f"g:{concept}" for concept in concepts)


def _write_pages(
    folder: Path, cases: CaseSet, rules: RuleSet, glossary: Glossary, sources: Sources, earlier: Earlier
) -> None:
    entries = page_entries(cases, rules)
    changed = earlier.changed(cases.published, entries)
    names = {
        "all": {**earlier.concepts, **concepts_of(changed, glossary)},
        "titles": {**earlier.titles, **titles_of(changed, glossary)},
    }
    concepts = {kind: {cause.id: of[cause.id] for cause in cases.published} for kind, of in names.items()}
    (folder / CONCEPTS).write_text(json.dumps(concepts), encoding="utf-8")
    names_of = [field.name for field in fields(PageEntry)]  # `asdict` takes ten times as long
    listed = [{name: getattr(entry, name) for name in names_of} for entry in entries]
    (folder / ENTRIES).write_text(json.dumps(listed, ensure_ascii=False), encoding="utf-8")
    pack(sources, folder / SOURCES)
