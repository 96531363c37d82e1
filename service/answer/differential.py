"""The differential of an answer as a tree: what was considered, and what speaks for and against each cause. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trainmedic.kb.engine.mechanism import COMMONNESS, OriginState, Statement, origin_id
from trainmedic.kb.engine.version_ranges import within
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Status
from trainmedic.kb.model.report_view import MissingView
from trainmedic.kb.model.run import Recognised
from trainmedic.kb.parse.logs.signal_kinds import KINDS
from trainmedic.kb.projection import project
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import DifferentialNode, DifferentialView, ExcludedView, State, StatementView
from trainmedic.service.ranking.candidates import REPORTED
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.features import ENOUGH, Context, remedies_for
from trainmedic.service.ranking.fix_values import fix_values, plain_name
from trainmedic.service.ranking.inference import Cause, Differential, MechanismBelief
from trainmedic.service.ranking.questions import deciding_facts

MOST_NODES = 5
"""Mechanisms, and causes without a mechanism, each."""
MOST_INNER = 6
"""Origins of a mechanism, and cases of an origin."""
MOST_EXCLUDED = 5
MOST_SPANS = 3
"""Places of one statement."""
MOST_MISSING = 3
LEAST = 0.02
"""The least probability of a mechanism or cause that is listed without being one of the answer's causes."""
LEAST_INNER = 0.005
MOST_REPORTS = 2
FITTING_WORDS = 0.4
"""The least overlap with the question's concepts that counts as a reason."""


def differential_view(diagnosis: Diagnosis, context: Context, language: str) -> DifferentialView:
    """The tree of a diagnosis in ``language``."""
    tree = Tree(diagnosis, context, language)
    return DifferentialView(
        nodes=tree.nodes(), other=round(diagnosis.differential.other, 4), excluded=tuple(tree.excluded())
    )


@dataclass(frozen=True, slots=True)
class Tree:
    """The nodes of one differential."""

    diagnosis: Diagnosis
    context: Context
    language: str

    @property
    def _differential(self) -> Differential:
        return self.diagnosis.differential

    def nodes(self) -> tuple[DifferentialNode, ...]:
        """The mechanisms and the causes that belong to none, most probable first, ties by id."""
        answered = {cause.case.id for cause in self.diagnosis.causes}
        beliefs = [
            belief
            for belief in self._differential.mechanisms
            if belief.probability >= LEAST
            or belief.weighed.support >= max(ENOUGH, belief.weighed.contradiction)
            or answered & {cause.case.id for cause in belief.causes}
        ]
        loose = [
            cause
            for cause in self._differential.causes
            if self._differential.belief(cause) is None and (cause.probability >= LEAST or cause.case.id in answered)
        ]
        nodes = [
            *(self.mechanism(belief) for belief in beliefs[:MOST_NODES]),
            *(self.cause(cause) for cause in loose[:MOST_NODES]),
        ]
        return tuple(sorted(nodes, key=lambda node: (-node.probability, node.id)))

    def mechanism(self, belief: MechanismBelief) -> DifferentialNode:
        """A mechanism with its origins, and the cases that belong to none of them."""
        weighed = belief.weighed
        direct = [
            self.cause(cause)
            for cause in belief.causes
            if cause.place is not None and not cause.place.origin and cause.case.level == "case"
        ]
        origins = [node for state in weighed.origins if (node := self._origin(belief, state)) is not None]
        # Equally probable origins: one that holds before the others, then the commoner one.
        common = {origin_id(weighed.mechanism, o.origin): COMMONNESS[o.origin.common] for o in weighed.origins}
        inner = sorted(
            (*origins, *direct),
            key=lambda node: (-node.probability, node.state != "holds", -common.get(node.id, 0.0), node.id),
        )
        return DifferentialNode(
            id=belief.id,
            level="mechanism",
            title=weighed.mechanism.title.get(self.language),
            probability=round(belief.probability, 4),
            supports=self._statements(weighed.supports),
            contradicts=self._statements(weighed.contradicts),
            excluded_by=self._statements(weighed.excluded_by),
            nodes=tuple(inner[:MOST_INNER]),
        )

    def cause(self, cause: Cause) -> DifferentialNode:
        """A cause by itself; the causes that are counted with it are nodes of their own."""
        reasons = Reasons(cause, self.context, self.language)
        missing = deciding_facts(cause, self._differential, self.context)[:MOST_MISSING]
        return DifferentialNode(
            id=cause.case.id,
            level=cause.case.level,
            title=cause.case.title.get(self.language),
            probability=round(cause.probability - sum(member.probability for member in cause.members), 4),
            supports=tuple(reasons.supports()),
            contradicts=tuple(reasons.contradicts()),
            missing=tuple(project(MissingView, item, self.language) for item in missing),
        )

    def excluded(self) -> Iterator[ExcludedView]:
        """Mechanisms that predict an observed symptom, but cannot be."""
        symptoms = self.context.symptoms
        weighed = [
            item
            for item in self.context.weighed.values()
            if item.excluded_by and symptoms & set(item.mechanism.predicts)
        ]
        weighed.sort(key=lambda item: (-len(symptoms & set(item.mechanism.predicts)), item.mechanism.id))
        for item in weighed[:MOST_EXCLUDED]:
            title = item.mechanism.title.get(self.language)
            yield ExcludedView(id=item.mechanism.id, title=title, excluded_by=self._statements(item.excluded_by))

    def _origin(self, belief: MechanismBelief, state: OriginState) -> DifferentialNode | None:
        """An origin with its cases; None if nothing speaks of it."""
        id = origin_id(belief.weighed.mechanism, state.origin)
        members = _members(belief, state)
        probability = sum(cause.probability for cause in belief.causes if _is_of(cause, state))
        if probability < LEAST_INNER and state.value is not True:
            return None
        supports, contradicts = self._of_condition(state)
        own = next((cause for cause in members if cause.case.id == id), None)
        if own is not None:
            reasons = Reasons(own, self.context, self.language)
            supports, contradicts = (*supports, *reasons.supports()), (*contradicts, *reasons.contradicts())
        cases = [cause for cause in members if cause.case.level == "case"]
        asking = own or next(iter(members), None)
        missing = deciding_facts(asking, self._differential, self.context)[:MOST_MISSING] if asking is not None else ()
        return DifferentialNode(
            id=id,
            level="origin",
            title=state.origin.title.get(self.language),
            probability=round(probability, 4),
            supports=supports,
            contradicts=contradicts,
            state=_state(state),
            missing=tuple(project(MissingView, item, self.language) for item in missing),
            nodes=tuple(self.cause(case) for case in cases[:MOST_INNER]),
        )

    def _of_condition(self, state: OriginState) -> tuple[tuple[StatementView, ...], tuple[StatementView, ...]]:
        if state.value is True:
            read = "、" if self.language == "zh" else ", "
            quoted = read.join(f"`{_short(span.text)}`" for span in _places(state.spans))
            name = "reason.origin_holds" if quoted else "reason.origin_default"
            text = messages(name, self.language, quoted=quoted, condition=state.origin.text)
            return (StatementView(text=text, evidence=_places(state.spans)),), ()
        if state.value is False:
            text = messages("reason.origin_fails", self.language, condition=state.origin.text)
            return (), (StatementView(text=text),)
        return (), ()

    def _statements(self, statements: Iterable[Statement]) -> tuple[StatementView, ...]:
        return tuple(
            StatementView(text=statement.says.get(self.language), evidence=_places(statement.spans))
            for statement in statements
        )


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons for and against one cause by itself, in words, the weightiest first."""

    cause: Cause
    context: Context
    language: str

    def supports(self) -> Iterator[StatementView]:
        """Checks that fired, versions, remedies, the symptom, the run, the settings, the words."""
        features = self.cause.features
        for finding in self.cause.findings:
            if finding.status is Status.FIRED:
                yield self._of_rule(finding)
        if features["version_inside"]:
            yield from self._of_versions(inside=True)
        if features["helped"]:
            yield from self._of_remedies(helped=True)
        if features["symptom"]:
            yield self._of_symptom()
        if matched := [fact for fact in self._facts("match") if fact is not None]:
            names = self._joined(fact.value for fact in matched)
            yield self._say("match", [fact.span for fact in matched], names=names)
        if features["settings"] >= 1.0:
            options = [
                s.option for name in self.cause.case.settings if (s := self.context.evidence.run.settings.get(name))
            ]
            yield self._say("settings", [option.span for option in options if option is not None])
        if (report := self.context.reported(self.cause.case.id)) is not None and report.weight >= REPORTED:
            titles = [f"`{_short(thread.title)}`" for thread in report.threads[:MOST_REPORTS]]
            yield self._say("reported", titles=self._joined(titles))
        if features["focus"] >= FITTING_WORDS:
            yield self._say("words")

    def contradicts(self) -> Iterator[StatementView]:
        """Denied symptoms and tried remedies, checks that stayed quiet, and differences from the cause's run."""
        features = self.cause.features
        if features["tried"]:
            yield from self._of_remedies(helped=False)
        if features["already_so"]:
            names = {name for name, _ in fix_values(self.cause.case)}
            options = [o for o in self.context.evidence.run.options if plain_name(o.key) in names]
            yield self._say("already_so", [option.span for option in options])
        if features["version_outside"]:
            yield from self._of_versions(inside=False)
        if features["worked_before"]:
            yield self._say("worked_before", [fact.span for fact in self.context.evidence.known_good.values()])
        for clash, known in zip(self._facts("clash"), self._known(), strict=True):
            if clash is not None:
                yield self._say("clash", [clash.span], here=clash.value, there=self._joined(known))
        for name in ("rule_clear", "denied", "healthy_log"):
            # A log without trouble is not a reason against an explanation of why nothing is wrong.
            if features[name] and not (name == "healthy_log" and self.cause.case.kind == "artefact"):
                yield self._say(name)
        if features["symptom_missed"]:
            kinds = self._joined(self._meaning(kind) for kind in self.cause.case.signals[:1])
            yield self._say("symptom_missed", symptom=kinds)

    def _of_rule(self, finding: Finding) -> StatementView:
        return self._say("rule_fired", finding.evidence, title=finding.title.get(self.language))

    def _of_versions(self, *, inside: bool) -> Iterator[StatementView]:
        for package, affected in self.cause.case.affected.items():
            fact = self.context.evidence.versions.get(package)
            if fact is not None and within(fact, affected) is inside:
                version = fact.exact or "–".join(bound for bound in (fact.low, fact.high) if bound)
                name = "version_inside" if inside else "version_outside"
                yield self._say(name, [fact.span], package=package, version=version, affected=affected)

    def _of_remedies(self, *, helped: bool) -> Iterator[StatementView]:
        for remedy in remedies_for(self.cause.case, self.context):
            if remedy.helped is helped:
                yield self._say("helped" if helped else "tried", [remedy.span], remedy=_short(remedy.text))

    def _of_symptom(self) -> StatementView:
        """The symptom in common: a seen one before one that is only said."""
        signals = [s for s in self.context.evidence.signals if s.kind in self.cause.case.signals]
        signals.sort(key=lambda signal: signal.stated)
        if signals:
            seen = signals[0]
            if any(map(str.isalpha, seen.span.text)):
                return self._say("symptom_seen", [seen.span], quoted=_short(seen.span.text))
            meaning = seen.observed.get(self.language) if seen.observed is not None else self._meaning(seen.kind)
            return self._say("symptom_meant", [seen.span], meaning=meaning)
        return self._say("symptom")

    def _facts(self, feature: str) -> Iterator[Recognised | None]:
        """What was recognised of the run where the feature is set: framework, algorithm, model family."""
        run = self.context.evidence.run
        for name, fact in (("framework", run.framework), ("algorithm", run.algorithm), ("family", run.model_family)):
            yield fact if self.cause.features[f"{name}_{feature}"] else None

    def _known(self) -> tuple[Sequence[str], ...]:
        case = self.cause.case
        return case.frameworks, case.algorithms, case.model_families

    def _meaning(self, kind: str) -> str:
        meaning = KINDS.get(kind)
        return meaning.get(self.language) if meaning is not None else kind

    def _joined(self, names: Iterable[str]) -> str:
        return ("、" if self.language == "zh" else ", ").join(names)

    def _say(self, name: str, spans: Iterable[Span | None] = (), **values: str) -> StatementView:
        text = messages(f"reason.{name}", self.language, **values)
        return StatementView(text=text, evidence=_places(span for span in spans if span is not None))


def _members(belief: MechanismBelief, state: OriginState) -> list[Cause]:
    """The causes of an origin: the one that speaks for them, then the others."""
    return [member for cause in belief.causes if _is_of(cause, state) for member in (cause, *cause.members)]


def _is_of(cause: Cause, state: OriginState) -> bool:
    return cause.place is not None and cause.place.origin == state.origin.id


def _state(state: OriginState) -> State:
    if state.value is None:
        return "open"
    return "holds" if state.value else "does_not_hold"


def _places(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(dict.fromkeys(span for span in spans if not span.default))[:MOST_SPANS]


def _short(text: str) -> str:
    """A pasted text on one line, shortened, safe between backticks."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= 80 else f"{line[:79]}…"
