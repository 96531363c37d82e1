"""Everything that answers draw on, loaded once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType

from trainmedic.kb.audit.defect import Defect, DefectSet
from trainmedic.kb.engine.mechanism import MechanismSet, origin_id
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.engine.version_ranges import in_range
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.pages.fixed_causes import defects_told, with_pages
from trainmedic.kb.store.embedder import Embedder
from trainmedic.kb.store.index import Index
from trainmedic.kb.threads.store import ThreadStore
from trainmedic.service.ranking.features import Place
from trainmedic.service.ranking.weights import Weights, shipped


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """Causes (cases, known defects, and mechanisms with their origins), rules, glossary, index and weights; and the
    ingested threads, if there are any.

    ``concepts`` maps a cause to the glossary concepts of its text, ``titles`` to those of its title alone.
    """

    cases: CaseSet
    rules: RuleSet
    glossary: Glossary
    index: Index
    embedder: Embedder
    weights: Weights = field(default_factory=shipped)
    concepts: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    titles: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    mechanisms: MechanismSet = field(default_factory=MechanismSet)
    defects: DefectSet = field(default_factory=DefectSet)
    threads: ThreadStore | None = None

    @cached_property
    def places(self) -> Mapping[str, tuple[Place, ...]]:
        """Where each cause belongs, by its id. A known defect whose fix a case of the same mechanism cites is counted
        with this case, at the same origin."""
        places: dict[str, list[Place]] = defaultdict(list)
        for mechanism in self.mechanisms.mechanisms:
            places[mechanism.id].append(Place(mechanism=mechanism.id))
            for case in mechanism.cases:
                places[case].append(Place(mechanism=mechanism.id))
            for origin in mechanism.origins:
                place = Place(mechanism=mechanism.id, origin=origin.id)
                for cause in (origin_id(mechanism, origin), *origin.cases):
                    places[cause].append(place)
        for defect in self.defect_of.values():
            citing = [case_id for case_id in self.sources.get(defect.link, ()) if case_id in self.case_pages]
            of_cases = [place for case_id in citing for place in places[case_id]]
            alike = tuple(dict.fromkeys(place for place in of_cases if place.mechanism == defect.mechanism))
            places[defect.id] += alike or ((Place(mechanism=defect.mechanism),) if defect.mechanism else ())
        return MappingProxyType({cause: tuple(listed) for cause, listed in places.items()})

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """The causes that name a page of the web as a source, by its address."""
        cited: dict[str, list[str]] = defaultdict(list)
        for cause in self.published.values():
            for url in {source.url.partition("#")[0] for source in cause.sources}:
                cited[url].append(cause.id)
        return MappingProxyType({url: tuple(causes) for url, causes in cited.items()})

    @cached_property
    def published(self) -> Mapping[str, Case]:
        """Causes that users may see, by id."""
        return {case.id: case for case in self.cases.cases if case.status == "published"}

    @cached_property
    def case_pages(self) -> Mapping[str, Case]:
        """The published cases alone, by id."""
        return {cause_id: cause for cause_id, cause in self.published.items() if cause.level == "case"}

    @cached_property
    def defect_of(self) -> Mapping[str, Defect]:
        """The known defects by their ids."""
        return MappingProxyType({defect.id: defect for defect in self.defects.all})

    @cached_property
    def audited(self) -> DefectSet:
        """Defects that an audit looks for: the known ones, and the causes that a release ended."""
        rules = {rule.id: rule for rule in self.rules.rules}
        return with_pages(self.defects, defects_told(self.cases.cases, rules))

    @cached_property
    def outside(self) -> Callable[[str, str | None, str | None, str | None], frozenset[str]]:
        """The known defects of a package that a version, or none between two, has."""

        @lru_cache(maxsize=1024)  # the same few versions come again and again
        def outside(package: str, exact: str | None, low: str | None, high: str | None) -> frozenset[str]:
            fact = VersionFact(package=package, exact=exact, reason="", low=low, high=high)
            defects = self.defects.by_package.get(package, ())
            return frozenset(d.id for d in defects if d.versions and in_range(fact, d.versions) is False)

        return outside

    @cached_property
    def concept_counts(self) -> Mapping[str, int]:
        """How many causes name each concept."""
        return MappingProxyType(Counter(concept for names in self.concepts.values() for concept in names))
