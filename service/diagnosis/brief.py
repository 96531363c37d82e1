"""The brief that a model gets for one question: numbered lines of the user's, computed facts, and candidates. Pure.

Lines and facts have ids (``L3``, ``F2``) by which the model's answer refers to them, candidates too (``C5``). They are
in an order that says nothing about what the program believes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.audit.lock_comparison import compare
from trainmedic.kb.engine.values import show
from trainmedic.kb.engine.version_ranges import version_text, within
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.parse.logs.signal_kinds import KINDS
from trainmedic.service.answer import layout
from trainmedic.service.answer.citations import Citations, plain_text
from trainmedic.service.answer.differential import Reasons
from trainmedic.service.answer.error_messages import message_view
from trainmedic.service.answer.horizon import of_draft, sentence
from trainmedic.service.answer.raised import marked
from trainmedic.service.answer.run_diff import two_runs_view
from trainmedic.service.answer.text import split
from trainmedic.service.answer.views import in_words, settings_used
from trainmedic.service.answer.what_if import settled
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.diagnose import relevant
from trainmedic.service.ranking.features import finding_weight
from trainmedic.service.ranking.inference import Cause

MAX_LINE, MAX_TELLING, MAX_WORDS = 240, 700, 4_000
"""Code points of a line, of one that something was read from, and of one of the user's words."""
WHOLE = 60
"""Lines up to which a text is shown whole."""
AROUND, HEAD, TAIL = 3, 10, 14
"""Lines of a longer text: on either side of a place that something was read at, at its beginning, at its end."""
MAX_PLACE = 24
"""Lines of one place, the first and the last of them: a traceback may have hundreds."""
CANDIDATES = 20
CAUSE_WORDS, FIX_WORDS = 70, 45
MAX_FACTS = 60
QUIET = "checked, not so here"
MAX_DIFFERENCES = 15
MAX_RAISED = 2
MAX_LOST, MAX_CHANGED, MAX_OPTIONS = 6, 6, 14
NAMING = 5
"""The candidates whose texts may name an option."""
BYTES_PER_TOKEN = 3
"""A cautious estimate: Chinese has about three bytes a token, English four."""


_OPTION = regex(r"--(?P<flag>[A-Za-z][\w.-]*)|`(?P<code>[A-Za-z][\w.]*)[`=]|(?P<word>[A-Za-z]\w*[_.]\w[\w.]*\w)")
_MARKER = regex(r"\s?\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    id: str
    source: str | None  # None: the question
    number: int
    text: str

    @property
    def span(self) -> Span:
        end = len(self.text) + 1
        return Span(
            attachment=self.source, line=self.number, column=1, end_line=self.number, end_column=end, text=self.text
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that the program computed, with the places that it rests on."""

    id: str
    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    id: str
    cause: Cause
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    lines: tuple[Line, ...]
    facts: tuple[Fact, ...]
    candidates: tuple[Candidate, ...]

    @property
    def by_id(self) -> Mapping[str, Line | Fact]:
        items: Sequence[Line | Fact] = (*self.lines, *self.facts)
        return {item.id: item for item in items}

    @property
    def text(self) -> str:
        """All that the model is told, to look a name up in."""
        items: Sequence[Line | Fact | Candidate] = (*self.lines, *self.facts, *self.candidates)
        return "\n".join(item.text for item in items)


def brief_of(draft: Draft, tokens: int) -> Brief:
    """The brief of a draft within about ``tokens``: half of them for lines, the rest for facts and candidates."""
    lines = _lines(draft, tokens // 2)
    told: dict[str, tuple[Span, ...]] = {}
    for text, spans in _facts(draft):
        told[text] = (*told.get(text, ()), *spans)
    facts = tuple(Fact(id=f"F{n}", text=text, spans=spans) for n, (text, spans) in enumerate(told.items(), start=1))
    facts = facts[:MAX_FACTS]
    shown = "\n".join((*(line.text for line in lines), *(fact.text for fact in facts)))
    room = max(0, tokens - cost(shown) - 4 * (len(lines) + len(facts)))
    return Brief(lines=lines, facts=facts, candidates=_candidates(draft, room))


def cost(text: str) -> int:
    """The tokens of a line of a prompt, estimated."""
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 4


def _lines(draft: Draft, tokens: int) -> tuple[Line, ...]:
    """The files, which stay from turn to turn, then the words: of a file first what something was read from."""
    evidence = draft.context.evidence
    own = Source(name=None, text=evidence.question, byte_count=0)
    sources = [*(source for source in evidence.sources if source.name is not None and source.text.strip()), own]
    spans = list(_spans(evidence, draft))
    ranked: list[tuple[int, int, int, str]] = []
    for order, source in enumerate(sources):
        texts = source.text.split("\n")
        ranks = _ranks(len(texts), [span for span in spans if span.attachment == source.name])
        for number, rank in ranks.items():
            most = MAX_WORDS if source.name is None else MAX_TELLING if rank == 1 else MAX_LINE
            ranked.append((rank if source.name is not None else 0, order, number, texts[number - 1].strip()[:most]))
    taken = []
    for rank, order, number, text in sorted(ranked, key=lambda item: item[:3]):
        if not text:
            continue
        tokens -= cost(text)
        if tokens < 0 and rank:
            break
        taken.append((order, number, text))
    taken.sort(key=lambda item: item[:2])
    return tuple(
        Line(id=f"L{n}", source=sources[order].name, number=number, text=text)
        for n, (order, number, text) in enumerate(taken, start=1)
    )


def _ranks(count: int, spans: Sequence[Span]) -> Mapping[int, int]:
    """Line numbers with how soon each is worth showing: 1 a place, 2 around it, the beginning and the end, 3 others."""
    ranks = dict.fromkeys(range(1, count + 1), 3) if count <= WHOLE else {}
    for number in (*range(1, min(HEAD, count) + 1), *range(max(1, count - TAIL + 1), count + 1)):
        ranks[number] = 2
    for span in spans:
        first, last = max(1, span.line), min(span.end_line, count)
        for number in range(max(1, first - AROUND), min(last + AROUND, count) + 1):
            ranks[number] = min(ranks.get(number, 2), 2)
        for number in range(first, last + 1):
            shown = number < first + MAX_PLACE // 3 or number > last - MAX_PLACE
            ranks[number] = 1 if shown else ranks.get(number, 3)
    return ranks


def _spans(evidence: Evidence, draft: Draft) -> Iterator[Span]:
    report = draft.context.report
    yield from (span for finding in report.findings for span in finding.evidence if not span.default)
    yield from (signal.span for signal in evidence.signals)
    yield from (trace.span for trace in evidence.tracebacks)
    yield from (match.span for match in draft.printed)
    yield from (option.span for run in evidence.runs for option in run.options)
    yield from (fact.span for fact in evidence.versions.values() if fact.span is not None)


Texts = Iterator[tuple[str, tuple[Span, ...]]]


def _facts(draft: Draft) -> Texts:
    """Facts known to the program, the surest first."""
    yield from _of_the_inquiry(draft)
    yield from what_was_read(draft)
    yield from _of_the_source(draft)
    yield from _of_changed_code(draft)
    yield from _of_changed_options(draft)
    yield from _of_the_conversation(draft)
    yield from _of_settings(draft)
    yield from _of_quiet_checks(draft)
    yield from _of_options(draft)
    yield from _of_others(draft)


def what_was_read(draft: Draft) -> Texts:
    """Texts on this run: findings, the run itself, defects, the log."""
    yield from _of_findings(draft)
    yield from _of_the_run(draft)
    yield from _of_defects(draft)
    yield from _of_the_log(draft)


def _of_the_inquiry(draft: Draft) -> Texts:
    """What is known of the subject of a question that is not an incident."""
    if draft.inquiry is not None and draft.inquiry.resolved:
        for section in layout.composed(draft, Citations(draft.language)):
            if section.kind != "receipt":
                yield " ".join(_MARKER.sub("", plain_text(section.body)).split()), ()


def _of_findings(draft: Draft) -> Texts:
    language, context = draft.language, draft.context
    for finding in draft.diagnosis.findings:
        fix = in_words(finding.fixes, language)
        about = "about what was asked" if relevant(finding, context) else "perhaps another matter"
        text = f"check fired ({finding.severity.value}, {about}): {finding.title.get(language)}. "
        text += " ".join(finding.message.get(language).split()) + (f" Change: {fix}" if fix else "")
        yield text, tuple(span for span in finding.evidence if not span.default)
    for finding in context.report.cannot_tell:
        if finding_weight(finding, context) > 0 and finding.missing:
            needs = "; ".join(item.ask.get(language) for item in finding.missing[:2])
            yield f"check cannot tell: {finding.title.get(language)}. Needs: {needs}", ()


def _of_the_source(draft: Draft) -> Texts:
    """The code that the tracebacks end in, at the user's release."""
    for each in draft.raised[:MAX_RAISED]:
        place = f"{each.code.package} {each.code.version} {each.code.path}:{each.line} {each.code.symbol}"
        what = f"{each.exception or 'the exception'} is raised" if each.innermost else "what raised was called"
        when = f" if {each.condition}" if each.condition else ""
        yield f"source {place}: {what} here{when}\n{marked(each)}", (each.span,)


def _of_changed_code(draft: Draft) -> Texts:
    """What the functions of the traceback do otherwise than in the release that worked."""
    for change in draft.changed_code:
        place = f"{change.package} {change.path}:{change.line} {change.name}"
        yield f"source {place} changed since the release that worked:\n{change.text}", ()


def _of_changed_options(draft: Draft) -> Texts:
    """What the releases that worked did otherwise with the options in use."""
    evidence = draft.context.evidence
    good = {name: fact for name, fact in evidence.known_good.items() if name in evidence.versions}
    for option in [each for each in compare(good, evidence, ()).options if each.concerns][:MAX_DIFFERENCES]:
        change = {"removed": "is gone", "renamed": f"is now {option.after}"}.get(
            option.kind, f"has the default {option.after} instead of {option.before}"
        )
        yield f"since the release that worked, option {option.option} of {option.framework} {change}", ()


def _of_the_run(draft: Draft) -> Texts:
    evidence = draft.context.evidence
    for name in ("framework", "algorithm", "stage", "model", "model_family"):
        fact = getattr(evidence.run, name)
        if fact is not None:
            yield f"{name.replace('_', ' ')}: {fact.value} ({fact.reason})", _only(fact.span)
    for package, version in sorted(evidence.versions.items()):
        if version.span is not None or version.exact is None:
            yield f"version: {package} {version_text(version)} ({version.reason})", _only(version.span)
    for beyond in of_draft(draft):
        yield sentence(beyond, draft.language), _only(beyond.fact.span)
    for package, version in sorted(evidence.known_good.items()):
        yield f"worked with {package} {version_text(version)}", _only(version.span)


def _of_defects(draft: Draft) -> Texts:
    language = draft.language
    for match in draft.defects:
        defect = match.defect
        sure = "its condition holds" if match.certain else f"not certain ({', '.join(match.doubts)})"
        fixed = f"; fixed in {defect.fixed}" if defect.fixed else ""
        workaround = defect.workaround.get(language) if defect.workaround is not None else ""
        text = f"known defect of {defect.package} {version_text(match.version)}, {sure}: {defect.title.get(language)}"
        yield f"{text}{fixed}{f'; workaround: {workaround}' if workaround else ''}", match.spans


def _of_the_log(draft: Draft) -> Texts:
    language, evidence = draft.language, draft.context.evidence
    for signal in evidence.signals:
        kind = KINDS.get(signal.kind)
        meaning = kind.get(language) if kind is not None else signal.kind
        seen = "said" if signal.stated else "seen"
        at = f" at step {signal.step}" if signal.step is not None else ""
        more = f": {signal.observed.get(language)}" if signal.observed is not None else ""
        yield f"{seen}{at}: {meaning}{more}", _only(signal.span)
    for match in draft.printed:
        view = message_view(match, language)
        advice = f" {view.advice.meaning}" if view.advice is not None else ""
        yield f"printed by {view.package}: {view.text}{advice}", (match.span,)


def _of_the_conversation(draft: Draft) -> Texts:
    language, evidence = draft.language, draft.context.evidence
    outcome = {True: "it helped", False: "it did not help", None: "outcome not said"}
    for remedy in evidence.remedies:
        yield f"tried: {remedy.text} ({outcome[remedy.helped]})", _only(remedy.span)
    if draft.changes is not None:
        for name in ("cleared", "new", "left"):
            for finding in getattr(draft.changes, name):
                yield f"since the previous answer, {name}: {finding.title.get(language)}", ()
    if draft.supposed is not None:
        for text in settled(draft.supposed, next(iter(draft.diagnosis.causes), None)):
            yield text.strip(), ()
    if draft.runs is not None:
        view = two_runs_view(draft)
        for item in view.differences[:MAX_DIFFERENCES] if view is not None else ():
            yield f"differs from the run that works: {item.name}: works with {item.good}, fails with {item.bad}", ()


def _of_settings(draft: Draft) -> Texts:
    """Defaults and values in effect that a check or a candidate turns on."""
    context = draft.context
    named = {name for cause in draft.diagnosis.differential.causes[:CANDIDATES] for name in cause.case.settings}
    wanted = named | settings_used(context.report)
    for name, setting in sorted(context.evidence.run.settings.items()):
        if name in wanted:
            written = " (not written)" if setting.is_default else ""
            yield f"in effect: {name} = {show(setting.value)}{written}, {setting.source}", _only(setting.place)


def _of_options(draft: Draft) -> Texts:
    """What has no effect, values other than were written, and those of options that the user, an error or the first
    candidates name."""
    found = draft.effective
    if found is None:
        return
    for lost in found.lost[:MAX_LOST]:
        yield f"without effect: {lost.name} = {show(lost.value)} ({lost.kind}): {lost.reason}", _only(lost.span)
    rows = {row.name: row for row in reversed(found.rows)}
    told = settings_used(draft.context.report)
    named = dict.fromkeys(name for text in _naming(draft) for name in option_words(text))
    changed = [row for row in found.rows if row.span is not None and row.kind == "derived"]
    asked = [row for name in named if (row := rows.get(name)) is not None and row not in changed]
    wanted = [row for row in (*changed[:MAX_CHANGED], *asked) if row.setting not in told]
    for row in wanted[:MAX_OPTIONS]:
        yield f"in effect: {row.name} = {show(row.value)}, {row.origin}", _only(row.span)


def _naming(draft: Draft) -> Iterator[str]:
    """Texts that may name an option, the most telling first."""
    evidence = draft.context.evidence
    yield evidence.question
    yield from (trace.message for trace in evidence.tracebacks)
    for cause in draft.diagnosis.differential.causes[:NAMING]:
        yield cause.case.title.get(draft.language)
        yield from (cause.case.section(part, draft.language) for part in ("cause", "fix"))


def option_words(text: str) -> Iterator[str]:
    """Words that can only be names of options: with an underscore or a dot inside, or written as code or a flag."""
    for match in _OPTION.finditer(text):
        yield (match["flag"] or match["code"] or match["word"]).replace("-", "_")


def _of_quiet_checks(draft: Draft) -> Texts:
    """Checks of the candidates that looked and found nothing."""
    causes = draft.diagnosis.differential.causes[:CANDIDATES]
    rules = {rule.id: rule for rule in draft.knowledge.rules.rules}
    quiet = dict.fromkeys(id for cause in causes for id in cause.case.rules)
    for id in sorted(quiet.keys() & draft.context.report.ruled_out):
        yield f"{QUIET}: {rules[id].title.get(draft.language)}", ()


def _of_others(draft: Draft) -> Texts:
    for thread in draft.similar:
        resolved = next((quote.text for quote in thread.thread.resolution), "")
        yield f"a report of somebody else like this: {thread.thread.title}" + (f"; {resolved}" if resolved else ""), ()


def _only(span: Span | None) -> tuple[Span, ...]:
    return (span,) if span is not None and not span.default else ()


def _candidates(draft: Draft, tokens: int) -> tuple[Candidate, ...]:
    """The first causes, as many as fit, in the order of their ids."""
    taken = []
    for cause in draft.diagnosis.differential.causes[:CANDIDATES]:
        text = _told(cause, draft)
        tokens -= cost(text)
        if tokens < 0:
            break
        taken.append((cause, text))
    taken.sort(key=lambda item: item[0].case.id)
    return tuple(Candidate(id=f"C{n}", cause=cause, text=text) for n, (cause, text) in enumerate(taken, start=1))


def _told(cause: Cause, draft: Draft) -> str:
    """A candidate: what it says, for which versions, and what on the evidence speaks for and against it."""
    language, case = draft.language, cause.case
    belief = draft.diagnosis.differential.belief(cause)
    parts = [case.title.get(language)]
    if belief is not None and belief.id != case.id:
        parts.append(f"mechanism: {belief.weighed.mechanism.title.get(language)}")
    parts.append(
        f"cause: {short_of(case.section('cause', language), CAUSE_WORDS).removeprefix(parts[0]).lstrip('.:：。 ')}"
    )
    if fix := case.section("fix", language):
        parts.append(f"fix: {short_of(fix, FIX_WORDS)}")
    for package, affected in sorted(case.affected.items()):
        parts.append(f"affects {package} {affected} ({_relation(package, affected, draft.context.evidence)})")
    reasons = Reasons(cause, draft.context, language)
    parts += [f"against: {statement.text}" for statement in reasons.contradicts()]
    return " | ".join(parts)


def _relation(package: str, affected: str, evidence: Evidence) -> str:
    fact = evidence.versions.get(package)
    inside = within(fact, affected) if fact is not None else None
    if fact is None or inside is None:
        return "version here unknown"
    return f"here {version_text(fact)}: {'inside' if inside else 'outside'}"


def short_of(text: str, words: int) -> str:
    return " ".join(plain_text(split(text, words)[0]).split())
