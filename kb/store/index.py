"""The index on disk, opened read-only: what it was made of, its texts, their words and their vectors.

`kb.store.build` makes it. That of the shipped pages is in `kb.store.shipped.index()`, so that a new installation starts
without embedding anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.glossary.terms import Concept, Glossary
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store import lexical
from trainmedic.kb.store.chunks import Chunk
from trainmedic.kb.store.embedder import Embedder, Identity
from trainmedic.kb.store.lexical import Lexical
from trainmedic.kb.store.manifest import FORMAT, Manifest, require_embedder, verify
from trainmedic.kb.store.passages import Chunks, Passages, read_passages
from trainmedic.kb.store.vectors import VECTORS, Vectors

INDEXING_CODE = ("store", "glossary", "pages", "model")
"""The packages of `kb` whose code an index depends on."""
CONCEPTS = "concepts.json"
PAGES = "pages"
"""The folder with the words of whole pages."""
Concepts = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An opened index. Chunk ``n``, its passage, vector ``n`` and lexical chunk ``n`` belong together.

    ``pages`` holds whole pages: all chunks of ``passages.page_ids[n]`` as one text. ``concepts`` maps a cause to the
    glossary concepts of its text, ``titles`` to those of its title alone.
    """

    manifest: Manifest
    chunks: Sequence[Chunk]
    passages: Passages
    vectors: Vectors
    lexical: Lexical
    pages: Lexical
    concepts: Concepts = field(default_factory=lambda: MappingProxyType({}))
    titles: Concepts = field(default_factory=lambda: MappingProxyType({}))

    @property
    def words_only(self) -> bool:
        """Whether the texts are not embedded yet, so that no search by meaning finds anything."""
        return self.vectors.size < len(self.chunks)


def identity_of(cases: CaseSet, rules: RuleSet, glossary: Glossary, embedder: Identity) -> str:
    """The id of the index for these inputs."""
    parts = (
        str(FORMAT),
        code_version(),
        cases.version,
        rules.version,
        glossary_version(glossary),
        embedder.name,
        embedder.digest,
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def code_version() -> str:
    """Changes with the code that pages are read, cut and indexed by."""
    digest = hashlib.sha256()
    for package in INDEXING_CODE:
        for path in sorted((Path(__file__).parent.parent / package).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=4)
def glossary_version(glossary: Glossary) -> str:
    """Changes with any concept, because chunks are embedded with their glossary gist."""
    names = [field.name for field in fields(Concept)]
    concepts = [[getattr(concept, name) for name in names] for _, concept in sorted(glossary.concepts.items())]
    return hashlib.sha256(json.dumps(concepts, ensure_ascii=False).encode()).hexdigest()[:12]


def open_index(folder: Path, embedder: Embedder) -> Index:
    """The index in a folder. Raises `StoreError` if it is damaged or was built with another embedder."""
    return open_verified(folder, verify(folder), embedder)


def open_verified(folder: Path, manifest: Manifest, embedder: Embedder) -> Index:
    """As `open_index`, of an index that `verify` returned this manifest for."""
    require_embedder(manifest, embedder)
    concepts = json.loads((folder / CONCEPTS).read_text(encoding="utf-8"))
    dimension = manifest.embedder.dimension
    embedded = VECTORS in manifest.files
    return Index(
        manifest=manifest,
        chunks=Chunks(folder, manifest.chunks),
        passages=read_passages(folder),
        vectors=Vectors.load(folder / VECTORS, dimension, manifest.chunks) if embedded else Vectors(dimension),
        lexical=lexical.load(folder),
        pages=lexical.load(folder / PAGES),
        concepts=_frozen(concepts["all"]),
        titles=_frozen(concepts["titles"]),
    )


def _frozen(concepts: Mapping[str, Sequence[str]]) -> Concepts:
    return MappingProxyType({cause: frozenset(names) for cause, names in concepts.items()})
