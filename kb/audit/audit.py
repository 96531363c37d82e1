"""Which known defects the packages of an environment have, by their versions and, where pasted, the configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from packaging.version import Version

from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.engine.expressions import Expression, compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import Haystack, find
from trainmedic.kb.engine.values import UNKNOWN
from trainmedic.kb.engine.version_ranges import in_range
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.frameworks.horizon import Kind, Standing, standing
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.versions import parse_version

MANY_MINORS = 2
"""Releases ``x.y`` between a version and a fix, above which a defect of unknown origin need not be there yet."""
MESSAGE = 3
"""Words from which on a text of a log is a message and not a name."""
LEAST_LETTERS, MOST_LETTERS, MOST_SENTENCES = 8, 300, 30
"""Bounds of the user's sentences that are compared with symptoms."""


class Doubt(StrEnum):
    """Why it cannot be told whether a defect is there."""

    CONDITION = "condition"  # its condition needs a configuration that was not pasted
    NAMED = "named"  # only names in the log fulfil its condition, and healthy runs print names as well
    VERSION = "version"  # the version is known in part only
    DISTANT = "distant"  # not known since when, and the version is not shortly before the fix
    NEWER = "newer"  # the version is newer than the defects are known of, and may have the fix
    FRAMEWORK = "framework"  # the run is another framework's, which uses at most parts of this trainer


@dataclass(frozen=True, slots=True, kw_only=True)
class DefectMatch:
    """A defect that an installed package has, for certain where there are no ``doubts``.

    ``missing`` are the facts that would decide its condition; ``spans`` are where a condition that holds was read.
    """

    defect: Defect
    version: VersionFact
    doubts: tuple[Doubt, ...] = ()
    missing: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def certain(self) -> bool:
        return not self.doubts


def audit(
    defects: Iterable[Defect], evidence: Evidence, releases: Mapping[str, Sequence[Version]] | None = None
) -> tuple[DefectMatch, ...]:
    """The defects that the versions of the evidence have or may have, the most harmful first.

    Among equals certain ones come first, then those with the newest fix. ``releases`` are the known releases of a
    package, to see how far before its fix a version is.
    """
    runs = [Facts(evidence, run) for run in evidence.runs] or [Facts(evidence)]
    known = releases or {}
    matches = (_match(defect, evidence, runs, known.get(defect.package, ())) for defect in defects)
    return tuple(sorted((match for match in matches if match is not None), key=_order))


def _match(
    defect: Defect, evidence: Evidence, runs: Sequence[Facts], releases: Sequence[Version]
) -> DefectMatch | None:
    version = evidence.versions.get(defect.package)
    if version is None:
        return None
    affected = in_range(version, defect.versions) if defect.versions else True
    if affected is False:
        return None
    doubts = [] if affected else [Doubt.VERSION]
    missing: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    if defect.when:
        state, missing, spans = condition_state(defect, runs)
        if state is False:
            return None
        if state is None:
            doubts.append(Doubt.NAMED if spans else Doubt.CONDITION)
    elif defect.links:
        doubts.append(Doubt.CONDITION)  # a page without a check of its own says in words alone where it applies
    if defect.introduced is None and _is_distant(version, defect, releases):
        doubts.append(Doubt.DISTANT)
    if defect.fixed is None and standing(version, Kind.DEFECTS) is Standing.NEWER:
        doubts.append(Doubt.NEWER)
    if defect.framework and _is_of_others(defect.framework, runs):
        doubts.append(Doubt.FRAMEWORK)
    return DefectMatch(defect=defect, version=version, doubts=tuple(doubts), missing=missing, spans=spans)


def condition_state(defect: Defect, runs: Iterable[Facts]) -> tuple[bool | None, tuple[str, ...], tuple[Span, ...]]:
    """Whether the condition holds in any run (None: cannot be told), what would decide it, and where it was read.

    A name in a log alone decides nothing; a message does.
    """
    expression = _compiled(defect.when)
    if expression is None:
        return None, (), ()
    missing: list[str] = []
    for facts in runs:
        value = expression.holds(facts)
        if value is True:
            spans = tuple(span for span in expression.explain(facts).evidence if not span.default)
            return (None if _is_only_named(defect, expression, facts) else True), (), spans
        if value is UNKNOWN:
            missing += expression.explain(facts).missing or ("configuration",)
    return (None, tuple(dict.fromkeys(missing)), ()) if missing else (False, (), ())


class _Messages(Haystack):
    """A log in which nothing but messages is found."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Haystack) -> None:  # which has read the text
        self._whole = whole

    @property
    def words(self) -> frozenset[str]:
        return self._whole.words

    def find(self, text: str) -> Span | None:
        return self._whole.find(text) if len(text.split()) >= MESSAGE else None


def _is_only_named(defect: Defect, expression: Expression, facts: Facts) -> bool:
    """Whether a condition that holds does so by names in the log."""
    if "log_says(" not in defect.when or (defect.message and facts.haystack.find(defect.message) is not None):
        return False
    messages = Facts(facts.evidence, facts.run, facts.concepts, _Messages(facts.haystack))
    return expression.holds(messages) is not True


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Expression | None:
    """None if the text is not a condition: the linter says so, and an audit must not fail on it."""
    try:
        return compile_expression(text, vocabulary())
    except InvalidPage:
        return None


def _is_distant(version: VersionFact, defect: Defect, releases: Sequence[Version]) -> bool:
    at, fixed = parse_version(version.exact or version.high), parse_version(defect.fixed)
    if at is None or fixed is None:
        return False
    return len({release.release[:2] for release in releases if at < release < fixed}) > MANY_MINORS


def _is_of_others(framework: str, runs: Sequence[Facts]) -> bool:
    """Whether frameworks of the runs are known, and this is none of them."""
    running = {facts.run.framework.value for facts in runs if facts.run.framework is not None}
    return bool(running) and framework not in running


def _order(match: DefectMatch) -> tuple[int, bool, tuple[bool, tuple[int, ...]], str]:
    defect = match.defect
    fixed = parse_version(defect.fixed)
    newest = (fixed is not None, tuple(-number for number in fixed.release) if fixed is not None else ())
    return defect.effect.rank, not match.certain, newest, defect.id


def wordings(evidence: Evidence) -> tuple[str, ...]:
    """The user's own sentences, to be compared with symptoms."""
    pasted = {
        number
        for region in evidence.regions
        if region.source is None and region.kind != "prose"
        for number in range(region.start_line, region.end_line + 1)
    }
    sentences = (
        part.strip()
        for number, line in enumerate(evidence.question.split("\n"), start=1)
        if number not in pasted
        for part in line.replace("。", ". ").replace("，", ". ").replace("？", ". ").split(". ")
    )
    return tuple(sentence[:MOST_LETTERS] for sentence in sentences if len(sentence) >= LEAST_LETTERS)[:MOST_SENTENCES]


def closeness(defect: Defect, evidence: Evidence, sentences: Collection[str] = ()) -> float:
    """How much the pasted text speaks of this defect, 0 to 1.

    Its message is 1. Otherwise the names that it touches count, and the likeness of its symptoms to the user's
    ``sentences``.
    """
    if defect.message and find(evidence, defect.message) is not None:
        return 1.0
    texts = [source.text for source in evidence.sources]
    named = sum(any(name in text for text in texts) for name in defect.touches if len(name) > 3)
    alike = max(_likenesses(defect, sentences), default=0.0)
    return min(0.95, 0.6 * alike + (0.3 if named else 0.0) + (0.05 if named > 1 else 0.0))


def _likenesses(defect: Defect, sentences: Collection[str]) -> Iterator[float]:
    if not sentences:
        return
    from rapidfuzz import fuzz

    for symptoms in (*defect.symptoms.values(), (defect.title.en, defect.title.zh)):
        for symptom in symptoms:
            for sentence in sentences:
                yield fuzz.token_set_ratio(symptom.lower(), sentence.lower()) / 100
