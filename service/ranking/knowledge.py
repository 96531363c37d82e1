"""Everything that answers draw on, loaded once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.case import Case
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store.embedder import Embedder
from trainmedic.kb.store.index import Index
from trainmedic.service.ranking.weights import Weights, shipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Cases, rules, glossary, index and weights.

    ``concepts`` maps a case to the glossary concepts of its text, ``titles`` to those of its title alone.
    """

    cases: CaseSet
    rules: RuleSet
    glossary: Glossary
    index: Index
    embedder: Embedder
    weights: Weights = field(default_factory=shipped)
    concepts: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    titles: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def published(self) -> Mapping[str, Case]:
        """Cases that users may see, by id."""
        return {case.id: case for case in self.cases.cases if case.status == "published"}
