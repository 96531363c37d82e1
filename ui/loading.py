"""Loading the knowledge: the pages as they are, or those of an earlier version, with the index that fits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from trainmedic.kb.audit.defect import DefectSet
from trainmedic.kb.engine.mechanism import MechanismSet
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.error_messages.advice import load_advice
from trainmedic.kb.error_messages.index import load_index
from trainmedic.kb.errors import StoreError
from trainmedic.kb.glossary.terms import Glossary, load_glossary
from trainmedic.kb.model.page import PageProblem
from trainmedic.kb.pages.case import CaseSet, load_cases
from trainmedic.kb.pages.defect import load_defects
from trainmedic.kb.pages.defect_causes import with_defects
from trainmedic.kb.pages.mechanism import load_mechanisms, with_mechanisms
from trainmedic.kb.pages.page import KNOWLEDGE
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.store import index
from trainmedic.kb.store.embedder import Embedder, Identity, OnnxEmbedder, make_embedder
from trainmedic.kb.store.index import Index
from trainmedic.kb.store.manifest import Manifest
from trainmedic.kb.store.sources import SOURCES, collect, restore
from trainmedic.kb.threads.store import FILE, ThreadStore
from trainmedic.service.question.vocabulary import switches
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.settings import Settings
from trainmedic.ui.garbage import all_stays
from trainmedic.ui.progress import bar

INDEX = "index"
"""The folder of the indexes in the data folder."""
THREADS = "threads"
"""The folder of ingested threads in the data folder."""
_RESTORED: dict[str, tuple[TemporaryDirectory[str], Path, tuple[Path, ...]]] = {}
"""The unpacked pages of earlier versions by id; rules load their modules from there when they first run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The causes (cases, with mechanisms and known defects beside them), the rules and the glossary."""

    cases: CaseSet
    mechanisms: MechanismSet
    defects: DefectSet
    rules: RuleSet
    glossary: Glossary

    @property
    def failures(self) -> tuple[PageProblem, ...]:
        return tuple(dict.fromkeys((*self.rules.failures, *self.cases.failures)))

    def index_id(self, embedder: Identity) -> str:
        """The id of the index that fits these pages."""
        return index.identity_of(self.cases, self.rules, self.glossary, embedder)


def read_pages(folders: Sequence[Path] = (), builtin: Path = KNOWLEDGE) -> Pages:
    """The built-in pages and those of further folders."""
    mechanisms = load_mechanisms(folders, builtin)
    defects = load_defects(folders=folders, builtin=None if builtin == KNOWLEDGE else builtin / "defects")
    return Pages(
        cases=with_defects(with_mechanisms(load_cases(folders, builtin), mechanisms), defects),
        mechanisms=mechanisms,
        defects=defects,
        rules=load_rules(folders, builtin=builtin),
        glossary=load_glossary() if builtin == KNOWLEDGE else load_glossary(builtin / "glossary" / "glossary.yaml"),
    )


def load_knowledge(settings: Settings, embedder: Embedder | None = None, *, at_once: bool = False) -> Knowledge:
    """The knowledge of the pinned version or, without one, of the pages as they are.

    An index is built if neither the package nor the data folder has a fitting one; ``at_once`` as in `knowledge_of`.
    """
    embedder = embedder or embedder_of(settings)
    if isinstance(embedder, OnnxEmbedder):
        Thread(target=embedder.load).start()  # 0.2 s, most of it outside the GIL: in parallel with the pages
    pinned = index.pinned(index_root(settings))
    if pinned is not None:
        return load_version(settings, pinned, embedder)
    with all_stays():
        return knowledge_of(settings, read_pages(settings.extra_pages), embedder, at_once=at_once)


def knowledge_of(settings: Settings, pages: Pages, embedder: Embedder, *, at_once: bool = False) -> Knowledge:
    """These pages with their index, which is built if there is none.

    ``at_once``: with an index of words only, if embedding its texts would take more than some seconds.
    """
    root, sources = index_root(settings), partial(collect, settings.extra_pages)
    if at_once:
        opened = index.at_once(
            root, pages.cases, pages.rules, pages.glossary, embedder, index.PREBUILT, sources=sources
        )
        if opened is not None:
            return _together(settings, pages, opened, embedder)
    with bar("building the search index") as progress:
        opened = index.ensure(
            root,
            pages.cases,
            pages.rules,
            pages.glossary,
            embedder,
            index.PREBUILT,
            sources=sources,
            progress=progress,
        )
    return _together(settings, pages, opened, embedder)


def load_version(settings: Settings, name: str, embedder: Embedder | None = None) -> Knowledge:
    """The knowledge of a version that is kept. Raises `NotFound`, or `StoreError` if it cannot be served any more."""
    embedder = embedder or embedder_of(settings)
    folder = index.version_folder(index_root(settings), name, index.PREBUILT)
    opened = index.open_version(folder, embedder)
    with all_stays():
        pages = _restored(folder, opened.manifest.id, settings.extra_pages)
    if pages.index_id(embedder.identity) != opened.manifest.id:
        raise StoreError(
            f"the version {opened.manifest.id} was made by another release of trainmedic or with other rule modules",
            hint="trainmedic index rollback --release",
        )
    return _together(settings, pages, opened, embedder)


def _restored(folder: Path, id: str, folders: Sequence[Path]) -> Pages:
    if id not in _RESTORED:
        unpacked = TemporaryDirectory(prefix="trainmedic-pages-")
        _RESTORED[id] = (unpacked, *restore(folder / SOURCES, Path(unpacked.name), folders))
    _, builtin, own = _RESTORED[id]
    return read_pages(own, builtin)


def _together(settings: Settings, pages: Pages, opened: Index, embedder: Embedder) -> Knowledge:
    return Knowledge(
        cases=pages.cases,
        rules=pages.rules,
        glossary=pages.glossary,
        index=opened,
        embedder=embedder,
        concepts=opened.concepts,
        titles=opened.titles,
        mechanisms=pages.mechanisms,
        defects=pages.defects,
        threads=threads_of(settings, embedder) if (settings.data_dir / THREADS / FILE).exists() else None,
    )


def index_root(settings: Settings) -> Path:
    return settings.data_dir / INDEX


def threads_of(settings: Settings, embedder: Embedder) -> ThreadStore:
    """The store of ingested threads, made if there is none yet."""
    identity = embedder.identity
    return ThreadStore(
        settings.data_dir / THREADS,
        f"{identity.name} {identity.digest}",
        identity.dimension,
        settings.vector_store.get_secret_value(),
    )


def prebuild() -> Manifest:
    """Make the index that the package brings along, unless it fits already: shipped pages, default embedder."""
    pages = read_pages()
    # Kept beside their sources like the pages: an installed package may be read-only for those who run it.
    for load in (load_index, load_advice, switches):
        load()
    with bar("building the package's search index") as progress:
        return index.prebuild(
            pages.cases,
            pages.rules,
            pages.glossary,
            OnnxEmbedder(),
            sources=partial(collect, ()),
            progress=progress,
        )


def embedder_of(settings: Settings) -> Embedder:
    """Raises `InvalidSettings` or `StoreError`."""
    return make_embedder(
        settings.embedder,
        base_url=settings.embedder_base_url,
        api_key=settings.embedder_api_key.get_secret_value(),
        query_prefix=settings.embedder_query_prefix,
        document_prefix=settings.embedder_document_prefix,
    )
