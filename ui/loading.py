"""Loading the knowledge: the pages with the index that fits them, and the ingested threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from trainmedic.kb.audit.defect import DefectSet
from trainmedic.kb.engine.mechanism import MechanismSet
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.glossary.terms import Glossary, load_glossary
from trainmedic.kb.model.page import PageProblem
from trainmedic.kb.pages.case import CaseSet, load_cases
from trainmedic.kb.pages.defect import load_defects
from trainmedic.kb.pages.defect_causes import with_defects
from trainmedic.kb.pages.mechanism import load_mechanisms, with_mechanisms
from trainmedic.kb.pages.page import KNOWLEDGE
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.store import build, index, shipped
from trainmedic.kb.store.embedder import Embedder, Identity, OnnxEmbedder, make_embedder
from trainmedic.kb.store.manifest import Manifest
from trainmedic.kb.threads.store import FILE, ThreadStore
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.settings import Settings
from trainmedic.ui.garbage import all_stays
from trainmedic.ui.progress import bar

INDEX = "index"
"""The folder of the indexes in the data folder."""
THREADS = "threads"
"""The folder of ingested threads in the data folder."""


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
    """The knowledge of the pages as they are; ``at_once`` as in `knowledge_of`."""
    embedder = embedder or embedder_of(settings)
    if isinstance(embedder, OnnxEmbedder):
        Thread(target=embedder.load).start()  # 0.2 s, most of it outside the GIL: in parallel with the pages
    with all_stays():
        return knowledge_of(settings, read_pages(settings.extra_pages), embedder, at_once=at_once)


def knowledge_of(settings: Settings, pages: Pages, embedder: Embedder, *, at_once: bool = False) -> Knowledge:
    """These pages with their index, which is built if neither the package nor the data folder has it.

    ``at_once``: with an index of words only, if embedding its texts would take more than some seconds.
    """
    inputs = (pages.cases, pages.rules, pages.glossary, embedder, index_root(settings), shipped.index())
    opened = build.at_once(*inputs) if at_once else None
    if opened is None:
        with bar("building the search index") as progress:
            opened = build.ensure(*inputs, progress=progress)
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
    return ThreadStore(settings.data_dir / THREADS, f"{identity.name} {identity.digest}", identity.dimension)


def prebuild() -> Manifest:
    """Make the index of trainmedic-data, unless it fits already: shipped pages, default embedder."""
    pages = read_pages()
    with bar("building the package's search index") as progress:
        return build.prebuild(
            pages.cases, pages.rules, pages.glossary, OnnxEmbedder(), shipped.index(), progress=progress
        )


def embedder_of(settings: Settings) -> Embedder:
    """Raises `InvalidSettings` or `StoreError`."""
    return make_embedder(
        settings.embedder.name,
        base_url=settings.embedder.base_url,
        api_key=settings.embedder.api_key.get_secret_value(),
    )
