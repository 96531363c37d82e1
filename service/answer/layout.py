"""Which sections an answer has, and in which order: a table of slots for each kind of answer. Pure.

A slot makes the sections at one place and knows nothing of those before and after it. Markers are assigned as the slots
are filled, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trainmedic.kb.model.report import Finding
from trainmedic.service.answer import passages
from trainmedic.service.answer.checkup import checkup
from trainmedic.service.answer.citations import Citations, with_markers
from trainmedic.service.answer.error_messages import messages_section
from trainmedic.service.answer.follow_up import changes_section, short_reply
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.passages import CAUSE_WORDS, Sections, cited, headed, hidden, listing, plain
from trainmedic.service.answer.run_diff import differences
from trainmedic.service.answer.schema import Citation, Section
from trainmedic.service.answer.similar import similar_section
from trainmedic.service.answer.text import fold, part, split
from trainmedic.service.answer.views import grouped
from trainmedic.service.answer.what_if import supposition
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.inference import Cause, MechanismBelief

MAX_ASKS = 2
"""Questions before the fold if there are causes to show."""
GROUNDED = ("answered", "no_fault")
"""Verdicts that rest on a cause, so that the messages of frameworks are only a detail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The cause that a text is about, in short and in full. ``said`` are the findings that ``because`` says."""

    marker: int
    because: Sections
    why: Sections
    said: Sequence[Finding]
    fix: Sections
    more_fix: Sections
    verify: Sections
    confirm: Sections
    proofs: Sequence[Finding]
    others: Sequence[Finding]


class Page:
    """What the slots of one text share: the cause that it is about, if any, and the ``urgent`` findings, which its
    first sections show."""

    def __init__(
        self, draft: Draft, citations: Citations, subject: Cause | None = None, urgent: Sequence[Finding] = ()
    ) -> None:
        self.draft, self.citations, self.subject, self.urgent = draft, citations, subject, urgent
        self.diagnosis, self.context, self.language = draft.diagnosis, draft.context, citations.language

    @property
    def proofs(self) -> list[Finding]:
        subject = self.subject
        return [f for f in self.context.report.fired if subject is not None and f in subject.findings]

    @cached_property
    def told(self) -> Told:
        assert self.subject is not None
        case, citations, proofs = self.subject.case, self.citations, self.proofs
        marker = citations.case(case)
        because, why, said = passages.because(case, proofs, citations)
        fix, more_fix = passages.fix(case, proofs, self.context, marker, citations)
        verify, confirm = passages.verify(case.section("confirm", self.language), marker, self.language)
        return Told(
            marker=marker,
            because=because,
            why=why,
            said=said,
            fix=fix,
            more_fix=more_fix,
            verify=verify,
            confirm=confirm,
            proofs=proofs,
            others=[f for f in self.diagnosis.related if f not in proofs],
        )

    @property
    def belief(self) -> MechanismBelief:
        assert self.diagnosis.mechanism is not None
        return self.diagnosis.mechanism

    @cached_property
    def others(self) -> Sections:
        return passages.others(self.diagnosis, self.context, self.subject, self.citations)

    @cached_property
    def asks(self) -> tuple[Sequence[Section], Sequence[Section]]:
        """The questions before and behind the fold of an answer that asks back."""
        asks = passages.asks(self.diagnosis, self.language)
        return part(asks, MAX_ASKS if self.others else len(self.diagnosis.missing))

    def says(self, name: str, **values: object) -> str:
        return messages(name, self.language, **values)

    def headed(self, name: str, sections: Sections) -> Sections:
        return headed(name, sections, self.language)

    def patch(self, findings: Sequence[Finding], most: int = 1, *, words: bool = True) -> Sections:
        return self.headed("patch", passages.patch(findings, self.context, self.citations, most, words=words))

    def seen(self, findings: Sequence[Finding], *, fixes: bool = False) -> Sections:
        return self.headed("seen", passages.seen("seen", findings, self.citations, fixes=fixes))


Slot = Callable[[Page], Sections]


def receipt(page: Page) -> Sections:
    lines = passages.receipt_lines(page.context.evidence.receipt, page.language)
    body = "\n".join(f"> {line}" for line in lines)
    return (Section(kind="receipt", body=body, items=tuple(lines)),) if lines else ()


def supposed(page: Page) -> Sections:
    effects, causes = page.draft.supposed, page.diagnosis.causes
    if effects is None:
        return ()
    section = supposition(effects, causes[0] if causes else None, page.citations.effect, page.language)
    return (section,) if section.body else ()


def changes(page: Page) -> Sections:
    made = page.draft.changes
    return changes_section(made, page.citations.rule, page.language) if made is not None else ()


def unchanged(page: Page) -> Sections:
    name = "unchanged" if page.draft.supposed is None else "unchanged_as_is"
    return (Section(kind="unchanged", body=page.says(name)),) if repeats(page.draft) else ()


def lead_cause(page: Page) -> Sections:
    assert page.subject is not None
    marker, title = page.told.marker, page.subject.case.title.get(page.language)
    body = page.says(f"lead.{page.diagnosis.verdict}", title=title, marker=f"[{marker}]")
    return (Section(kind="lead", body=body, markers=(marker,)),)


def lead_mechanism(page: Page) -> Sections:
    mechanism = page.belief.weighed.mechanism
    marker = page.citations.mechanism(mechanism)
    body = page.says("lead.mechanism", title=mechanism.title.get(page.language), marker=f"[{marker}]")
    return (Section(kind="lead", body=body, markers=(marker,)),)


def lead_faults(page: Page) -> Sections:
    return (Section(kind="lead", body=page.says("lead.config_faults", count=len(grouped(page.urgent)))),)


def lead_open(page: Page) -> Sections:
    return (Section(kind="lead", body=passages.without_cause(page.diagnosis, page.context, page.language)),)


def confidence(page: Page) -> Sections:
    assert page.subject is not None
    return (Section(kind="confidence", body=passages.confidence(page.subject, page.language, answered=True)),)


def grade(page: Page) -> Sections:
    """How well an explanation of a healthy run is established.

    "Nothing is wrong" rests on the log; how likely this explanation of it is would read as a doubt about that.
    """
    assert page.subject is not None
    return (Section(kind="grade", body=page.says("graded", grade=page.says(f"grade.{page.subject.case.evidence}"))),)


def likely(page: Page) -> Sections:
    """The best candidate of an answer that asks back."""
    assert page.subject is not None
    marker, title = page.told.marker, page.subject.case.title.get(page.language)
    body = f"**{title}** [{marker}]\n\n{passages.confidence(page.subject, page.language)}"
    return page.headed("likely", plain("likely", body, marker))


def because(page: Page) -> Sections:
    return page.told.because


def because_mechanism(page: Page) -> Sections:
    mechanism = page.belief.weighed.mechanism
    head, _ = split(mechanism.section("cause", page.language), CAUSE_WORDS)
    return cited("because", head, page.citations.mechanism(mechanism))


def fix(page: Page) -> Sections:
    return page.headed("fix", page.told.fix)


def verify(page: Page) -> Sections:
    return page.told.verify


def verify_mechanism(page: Page) -> Sections:
    return _confirmed_mechanism(page)[0]


def origins(page: Page) -> Sections:
    return page.headed("origins", passages.origins(page.belief, page.diagnosis, page.context, page.citations))


def cause(page: Page) -> Sections:
    assert page.subject is not None
    return page.headed("cause", (*passages.going_on(page.subject, page.diagnosis, page.citations), *page.told.why))


def cause_alone(page: Page) -> Sections:
    """The cause without the mechanism behind it."""
    return page.headed("cause", page.told.why)


def cause_mechanism(page: Page) -> Sections:
    mechanism = page.belief.weighed.mechanism
    _, rest = split(mechanism.section("cause", page.language), CAUSE_WORDS)
    return page.headed("cause", cited("cause", rest, page.citations.mechanism(mechanism)))


def seen(page: Page) -> Sections:
    told = page.told
    return page.seen([f for f in (*told.proofs, *told.others) if f not in told.said])


def seen_related(page: Page) -> Sections:
    return page.seen(page.diagnosis.related)


def seen_urgent(page: Page) -> Sections:
    return page.seen(page.urgent, fixes=True)


def problems(page: Page) -> Sections:
    return passages.seen("problems", page.urgent, page.citations, fixes=True)


def full_fix(page: Page) -> Sections:
    return page.headed("fix_full", page.told.more_fix)


def whole_fix(page: Page) -> Sections:
    """The whole fix, where its beginning is not among the first sections."""
    return page.headed("fix_full", (*page.told.fix, *page.told.more_fix))


def patch_others(page: Page) -> Sections:
    return page.patch(page.told.others)


def patch_related(page: Page) -> Sections:
    return page.patch(page.diagnosis.related)


def patch_urgent(page: Page) -> Sections:
    return page.patch(page.urgent, words=False)


def patch_proofs(page: Page) -> Sections:
    return page.patch(page.proofs)


def patch_unproven(page: Page) -> Sections:
    proofs = page.proofs
    return page.patch([f for f in page.diagnosis.related if page.subject is not None and f not in proofs])


def patch_faults(page: Page) -> Sections:
    """One patch for all faults, where there is one."""
    repair = page.context.report.repair
    if repair is None or not repair.patch:
        return page.patch(page.urgent, len(page.urgent), words=False)
    note = page.says("one_patch", count=len(grouped(page.urgent)))
    diff = passages.diff(repair.patch, repair.clears, repair.appears, page.context, page.citations)
    return page.headed("patch", (*plain("change", note), *diff))


def names(page: Page) -> Sections:
    return passages.names(page.subject.case, page.context, page.language) if page.subject is not None else ()


def refuted(page: Page) -> Sections:
    assert page.subject is not None
    return page.headed("refuted", passages.refuted(page.subject.case, page.told.marker, page.language))


def confirm(page: Page) -> Sections:
    return page.headed("confirm", page.told.confirm)


def whole_confirm(page: Page) -> Sections:
    return page.headed("confirm", (*page.told.verify, *page.told.confirm))


def confirm_mechanism(page: Page) -> Sections:
    return page.headed("confirm", _confirmed_mechanism(page)[1])


def checked(page: Page) -> Sections:
    return page.headed("checkup", listing("checkup", list(checkup(page.context, page.language)), ()))


def first_asks(page: Page) -> Sections:
    return tuple(page.asks[0])


def more_asks(page: Page) -> Sections:
    return tuple(page.asks[1])


def asks(page: Page) -> Sections:
    return passages.asks(page.diagnosis, page.language)


def others(page: Page) -> Sections:
    return page.others


def listed(page: Page) -> Sections:
    return passages.listed(page.diagnosis, page.context, page.subject, page.citations, page.urgent)


def folded(page: Page) -> Sections:
    """Nothing: the slots after it are folded."""
    return ()


BEGINNING: Sequence[Slot] = (receipt, supposed)
LAYOUT: Mapping[str, Sequence[Slot]] = {
    "cause": (
        *(lead_cause, confidence, because, fix, verify),
        *(folded, cause, seen, full_fix, patch_others, refuted, confirm),
    ),
    "healthy": (lead_cause, grade, because, folded, cause, seen, whole_fix, patch_others, refuted, whole_confirm),
    "brief_cause": (lead_cause, confidence, fix),
    "brief_healthy": (lead_cause, grade),
    "likely": (
        *(lead_open, likely, because, fix, verify),
        *(folded, cause_alone, seen, full_fix, patch_others, confirm, refuted),
    ),
    "mechanism": (
        *(lead_mechanism, because_mechanism, origins, patch_related, verify_mechanism),
        *(folded, cause_mechanism, seen_related, confirm_mechanism),
    ),
    "faults": (lead_faults, problems, patch_faults),
    "open": (lead_open, seen_urgent, patch_urgent),
}
"""By `kind_of`, between the beginning and the end."""
ASKING: Sequence[Slot] = (first_asks, others, folded, more_asks, listed)
ENDING: Sequence[Slot] = (folded, others, asks, listed)
WRITTEN: Sequence[Slot] = (names, patch_proofs, folded, patch_unproven, others, asks, listed)
"""After a model's explanation of the first cause."""


def kind_of(draft: Draft, faults: Sequence[Finding]) -> str:
    """The row of `LAYOUT`. ``faults`` are those of a configuration that nobody complained about."""
    diagnosis = draft.diagnosis
    if faults:
        return "faults"
    if diagnosis.mechanism is not None:
        return "mechanism"
    if diagnosis.lead is None:
        return "likely" if diagnosis.likely is not None else "open"
    kind = "healthy" if diagnosis.verdict == "no_fault" else "cause"
    return f"brief_{kind}" if draft.supposed is not None and repeats(draft) else kind


def composed(draft: Draft, citations: Citations) -> Sections:
    """The text without a model."""
    diagnosis, language = draft.diagnosis, citations.language
    sections = short_reply(draft.message, diagnosis, draft.context.intent, citations.case, language)
    if not sections:
        faults = passages.config_faults(diagnosis, draft.context)
        kind = kind_of(draft, faults)
        subject = diagnosis.likely if faults else diagnosis.lead or diagnosis.likely
        page = Page(draft, citations, subject, passages.urgent(diagnosis) if kind == "open" else faults)
        asking = diagnosis.verdict == "need_input" and not faults
        ending = ASKING if asking else (checked, *ENDING) if diagnosis.verdict == "no_fault" else ENDING
        slots = (*_filled(page, (*BEGINNING, changes, unchanged)), *_filled(page, LAYOUT[kind]))
        sections = fold((*slots, *_filled(page, ending)))
    if any(section.kind == "lead" for section in sections):
        sections = _with_messages(sections, draft, citations)
        sections = (*sections, *similar_section(draft.similar, language))
    return _with_differences(sections, draft, language)


def written(draft: Draft, citations: Citations, text: Section) -> Sections:
    """A model's text between the program's own sections."""
    page = Page(draft, citations, next(iter(draft.diagnosis.causes), None))
    before = beginning(draft, citations)
    citations.use(text.markers)
    printed = messages_section(draft.printed, draft.knowledge.published, citations, citations.language)
    _, more = differences(draft, citations.language)
    after = (*_filled(page, WRITTEN), *printed, *similar_section(draft.similar, citations.language), *more)
    return (*before, text, *sorted(after, key=lambda section: section.folded))


def appended(draft: Draft, citations: Citations, text: Section, sources: Sequence[Citation]) -> Sections:
    """A model's text after the program's own, which names no cause; its sources are numbered anew."""
    sections = composed(draft, citations)
    cited = {source.marker: source for source in sources}
    numbers = {marker: citations.cite(cited[marker]) for marker in text.markers}
    body = with_markers(text.body, {marker: f"[{number}]" for marker, number in numbers.items()})
    added = Section(kind="added", body=messages("added", citations.language))
    return (*sections, added, replace(text, body=body, markers=tuple(numbers.values())))


def beginning(draft: Draft, citations: Citations) -> Sections:
    """The sections before a text that a model writes."""
    page = Page(draft, citations)
    return (*_filled(page, BEGINNING), *differences(draft, citations.language)[0])


def repeats(draft: Draft) -> bool:
    """Whether the previous answer had the same verdict and first cause, and this message adds no new evidence."""
    turns, diagnosis, evidence = draft.message.turns, draft.diagnosis, draft.context.evidence
    if draft.changes is not None or not turns or not diagnosis.causes:
        return False
    spans = [option.span for option in evidence.run.options]
    spans += [row.span for row in evidence.rows]
    spans += [trace.span for trace in evidence.tracebacks]
    if any(span.attachment is None for span in spans):
        return False
    previous = turns[-1]
    return previous.verdict == diagnosis.verdict and previous.causes[:1] == (diagnosis.causes[0].case.id,)


def _filled(page: Page, slots: Sequence[Slot]) -> Iterator[Section]:
    behind = False
    for slot in slots:
        behind = behind or slot is folded
        sections = slot(page)
        yield from hidden(sections) if behind else sections


def _confirmed_mechanism(page: Page) -> tuple[Sections, Sections]:
    mechanism = page.belief.weighed.mechanism
    marker = page.citations.mechanism(mechanism)
    return passages.verify(mechanism.section("confirm", page.language), marker, page.language)


def _with_messages(sections: Sections, draft: Draft, citations: Citations) -> Sections:
    """With what the messages of frameworks say: last if the answer rests on a cause, else behind its first words."""
    printed = messages_section(draft.printed, draft.knowledge.published, citations, citations.language)
    if draft.diagnosis.verdict in GROUNDED:
        return fold((*sections, *hidden(printed)))
    at = _first_heading(sections)
    return fold((*sections[:at], *printed, *sections[at:]))


def _with_differences(sections: Sections, draft: Draft, language: str) -> Sections:
    """With what differs from the run that works, behind the first words."""
    shown, more = differences(draft, language)
    at = _first_heading(sections)
    end = max(at, next((n for n, section in enumerate(sections) if section.folded), len(sections)))
    return (*sections[:at], *shown, *sections[at:end], *more, *sections[end:])


def _first_heading(sections: Sections) -> int:
    return next((number for number, section in enumerate(sections) if section.heading), len(sections))
