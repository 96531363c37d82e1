"""Proof of a model's diagnosis by the program: lines, names, exclusions, and what the checks say of its edits.

Nothing is dropped for want of a proof: it is labelled.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmedic.kb.engine.edits import Document
from trainmedic.kb.error_messages import packages
from trainmedic.kb.errors import SourceError
from trainmedic.kb.frameworks.catalogue import is_option
from trainmedic.kb.identities import mask_identities
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Edit, Severity, Status
from trainmedic.kb.sources.library import NamedAt
from trainmedic.service.answer.messages import messages
from trainmedic.service.diagnosis.brief import QUIET, Brief, Candidate, Line
from trainmedic.service.diagnosis.confidence import Calibration
from trainmedic.service.diagnosis.form import VERDICTS, DiagnosisForm, EditForm, HypothesisForm
from trainmedic.service.diagnosis.names import decimals, is_rounded, names, occurs, visible
from trainmedic.service.diagnosis.prompt import identities_in
from trainmedic.service.dialogue.supposition import UNSET
from trainmedic.service.dialogue.what_if import ALREADY, WhatIf, what_if
from trainmedic.service.pipeline import Draft, Pipeline
from trainmedic.service.ranking.inference import Cause, contradicted
from trainmedic.service.ranking.judgement import Hypothesis, Judgement, Point, Support

MOST_OBJECTIONS = 6
LIKELY = 60
"""How sure, in percent, a model must be of a cause that lines alone are to support: they speak for much."""
MOST_RELEASES = 6
"""Releases whose names are looked up."""
MOST_NAMED = 6
"""Names of a hypothesis that are shown with their place."""
_WRITTEN = frozenset(("command", "yaml", "json", "python", "toml", "ini"))
"""Kinds of what people edit, not programs print."""
_ENVIRONMENT = regex(r"(?:export\s+)?[A-Z][A-Z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A judgement, and what speaks against it so strongly that the model is asked once more."""

    judgement: Judgement
    objections: tuple[str, ...] = ()


def prove(form: DiagnosisForm, brief: Brief, draft: Draft, pipeline: Pipeline, calibration: Calibration) -> Proof:
    """Check a diagnosis against the evidence. Applies its edits in memory and runs all checks again."""
    prover = _Prover(brief, draft, pipeline)
    hypotheses = [prover.hypothesis(each, form.sure) for each in form.hypotheses]
    graded = calibration.graded(hypotheses, form.sure)
    verdict = VERDICTS[form.verdict]
    if verdict in ("answered", "no_fault") and not hypotheses:
        verdict = "need_input"
    judgement = Judgement(
        model=calibration.model,
        verdict=verdict,
        said=form.sure,
        hypotheses=graded,
        reading=visible(form.reading).strip(),
        reply=visible(form.reply).strip(),
        question=visible(form.question).strip(),
    )
    return Proof(judgement=judgement, objections=tuple(prover.objections[:MOST_OBJECTIONS]))


class _Prover:
    def __init__(self, brief: Brief, draft: Draft, pipeline: Pipeline) -> None:
        self.draft, self.pipeline = draft, pipeline
        self.items = brief.by_id
        self.candidates: dict[str, Candidate] = {candidate.id: candidate for candidate in brief.candidates}
        sources = draft.context.evidence.sources
        self.identities = identities_in(draft)
        self.source, self.releases = pipeline.source, _releases(draft.context.evidence)
        algorithm = draft.context.evidence.run.algorithm
        self.near = algorithm.value if algorithm is not None else ""
        self.known = "\n".join((brief.text, *(f"{source.name or ''}\n{source.text}" for source in sources))).casefold()
        self.numbers = frozenset(decimals(self.known))
        self.objections: list[str] = []

    def hypothesis(self, form: HypothesisForm, sure: int) -> Hypothesis:
        candidate = self.candidates.get(form.candidate.strip().upper())
        cause = candidate.cause if candidate is not None else None
        if candidate is not None and (why := self._excluded(candidate.cause)):
            self.objections.append(f"{candidate.id} is excluded by the evidence: {why}")
            cause = None
        points = self._points(form.lines_for)
        # A check that is silent, or cannot see, is nothing that a reader could hold against a cause.
        against = tuple(point for point in self._points(form.lines_against) if not point.text.startswith(QUIET))
        trial, refused = self._trial(form.edits)
        title, because, change, command, verify = (
            visible(text).strip() for text in (form.title, form.because, form.change, form.command, form.verify)
        )
        told, advised = names(f"{title}\n{because}"), names(f"{change}\n{verify}")
        places = {name: self._named(name) for name in dict.fromkeys((*told, *advised))}
        # A value that is recommended need not have been seen; the name of an option must exist.
        unknown = [
            n for n in (*told, *(n for n in advised if not n[:1].isdigit())) if not (places[n] or self._is_known(n))
        ]
        hypothesis = Hypothesis(
            title=title,
            because=because,
            change=change,
            command=command,
            verify=verify,
            cause=cause,
            points=points,
            against=against,
            trial=trial,
            refused=refused,
            unknown=tuple(dict.fromkeys(unknown)),
            named=tuple(place for place in places.values() if place is not None and place.path)[:MOST_NAMED],
        )
        return replace(hypothesis, support=self._support(hypothesis, sure))

    def _points(self, ids: Sequence[str]) -> tuple[Point, ...]:
        """What exists of the lines and facts named; an id that does not exist proves nothing."""
        found = (self.items.get(id.strip().upper()) for id in dict.fromkeys(ids))
        return tuple(
            Point(id=item.id, text=item.text, spans=(item.span,) if isinstance(item, Line) else item.spans)
            for item in found
            if item is not None
        )

    def _excluded(self, cause: Cause) -> str:
        """Why the evidence rules a candidate out; empty if it does not."""
        features, language = cause.features, self.draft.language
        for package, affected in cause.case.affected.items():
            fact = self.draft.context.evidence.versions.get(package)
            if features["version_outside"] and fact is not None and fact.exact is not None:
                return f"{package} {fact.exact} is outside {affected}"
        if contradicted(features):
            return "its own check looked and is clear"
        belief = self.draft.diagnosis.differential.belief(cause)
        if belief is not None and belief.weighed.excluded_by:
            return "; ".join(statement.says.get(language) for statement in belief.weighed.excluded_by)
        return ""

    def _trial(self, edits: Sequence[EditForm]) -> tuple[WhatIf | None, tuple[tuple[str, str], ...]]:
        """The checks after the edits; None if none can be made. Edits that the framework would refuse are none."""
        changes = {edit.setting.strip(): edit.value.strip() or UNSET for edit in edits if edit.setting.strip()}
        context, language = self.draft.context, self.draft.language
        rewritten, refused = self._rewritten([edit for edit in edits if edit.line.strip() and not edit.setting.strip()])
        if not changes and not rewritten:
            return None, tuple(refused)
        rules, read = self.pipeline.knowledge.rules, self.pipeline.read
        trial = what_if(context.evidence, changes, rules, read, edits=rewritten)
        refused += [(change.name, change.why.get(language)) for change in trial.unknown if change.why != ALREADY]
        broken = [effect.title.get(language) for effect in trial.appears if effect.severity is Severity.ERROR]
        if broken:
            names = ", ".join((*changes, *(edit.span.text for edit in rewritten)))
            refused += [(names, messages("judged.brings_up", language, title=title)) for title in broken]
        # Without a configuration there is nothing to edit: the change in words still stands, as does one of the
        # environment, which is not a setting of a framework.
        if context.evidence.run.options and context.evidence.run.framework is not None:
            made = [(name, why) for name, why in refused if not _ENVIRONMENT.fullmatch(name)]
            self.objections += [f"the edit of {name} cannot be made: {why}" for name, why in made]
        return (None if broken or not (trial.changed or trial.patch) else trial), tuple(refused)

    def _rewritten(self, edits: Sequence[EditForm]) -> tuple[list[Edit], list[tuple[str, str]]]:
        """Edits of whole lines, and those that cannot be made, with the reason."""
        made: list[Edit] = []
        refused: list[tuple[str, str]] = []
        documents = {source.name: Document(source) for source in self.draft.context.evidence.sources}
        for edit in edits:
            line = self.items.get(edit.line.strip().upper())
            document = documents.get(line.source) if isinstance(line, Line) else None
            if not isinstance(line, Line) or document is None or not self._is_edited(line):
                name = line.text if line is not None else edit.line
                refused.append((name, messages("judged.no_line", self.draft.language)))
            elif (
                document.line(line.number).strip() != line.text
                or mask_identities(line.text, self.identities) != line.text
            ):
                refused.append((line.text, messages("judged.not_whole", self.draft.language)))
            else:
                made.append(_in_place(document, line.number, edit.value))
        return made, refused

    def _is_edited(self, line: Line) -> bool:
        """Whether a line belongs to a configuration, a command or a program, which people edit."""
        regions = [region for region in self.draft.context.evidence.regions if region.source == line.source]
        kinds = {region.kind for region in regions if region.start_line <= line.number <= region.end_line}
        if kinds or line.source is None:
            return bool(kinds & _WRITTEN)
        return line.source.endswith(".py") or any(region.kind in _WRITTEN for region in regions)

    def _support(self, hypothesis: Hypothesis, sure: int) -> Support:
        if any(self._proofs(hypothesis)):
            return "proven"
        doubtful = any(name[:1].isdigit() or name.startswith("--") for name in hypothesis.unknown)
        return "supported" if hypothesis.points and not doubtful and sure >= LIKELY else "unproven"

    def _proofs(self, hypothesis: Hypothesis) -> Iterator[bool]:
        cause, trial = hypothesis.cause, hypothesis.trial
        if cause is not None:
            yield any(finding.status is Status.FIRED for finding in cause.findings)
            yield any(match.certain and match.defect.id == cause.case.id for match in self.draft.defects)
        cited = {span for point in hypothesis.points for span in point.spans}
        # A change that clears a finding about the very lines that the hypothesis rests on.
        clears = {effect.rule_id for effect in trial.clears} if trial is not None else set()
        yield any(
            finding.rule_id in clears
            and (not cited.isdisjoint(finding.evidence) or finding in self.draft.diagnosis.related)
            for finding in self.draft.context.report.fired
        )

    def _named(self, name: str) -> NamedAt | None:
        """Where the user's releases have a name."""
        if self.source is None or not name.lstrip("-")[:1].isalpha():
            return None
        try:
            return self.source.named(name, self.releases, self.near)
        except SourceError:
            return None

    def _is_known(self, name: str) -> bool:
        return occurs(name, self.known) or is_option(name.lstrip("-")) or is_rounded(name, self.numbers)


def _releases(evidence: Evidence) -> Mapping[str, str]:
    """The releases in use whose names are looked up, that of the framework first."""
    framework = evidence.run.framework.value if evidence.run.framework is not None else ""
    exact = {name: fact.exact for name, fact in evidence.versions.items() if fact.exact is not None}
    order = [name for name in (framework, *packages.names()) if name in exact]
    return {name: exact[name] for name in dict.fromkeys(order[:MOST_RELEASES])}


def _in_place(document: Document, number: int, value: str) -> Edit:
    """The edit that puts ``value`` in the place of a line, at its indentation; without a value the line goes."""
    whole, start = document.line(number), document.starts[number - 1]
    if not value.strip():
        return document.edit(
            start, document.starts[number] if number < len(document.starts) else len(document.text), ""
        )
    indent = whole[: len(whole) - len(whole.lstrip())]
    text = textwrap.indent(textwrap.dedent(value.strip("\n")), indent)
    return document.edit(start, document.line_end(number), text)
