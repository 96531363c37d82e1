"""Which sections an answer has, and in which order: a table of slots for each kind of answer. Pure.

A slot makes the sections at one place and knows nothing of those before and after it. Markers are assigned as the slots
are filled, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from trainmedic.kb.engine.values import show
from trainmedic.kb.model.report import Finding
from trainmedic.service.answer import explanation, passages
from trainmedic.service.answer import ranks as ranks_of_run
from trainmedic.service.answer.checkup import checkup
from trainmedic.service.answer.citations import Citations, code
from trainmedic.service.answer.error_messages import messages_section
from trainmedic.service.answer.follow_up import changes_section, held, holds, short_reply
from trainmedic.service.answer.horizon import of_draft, sentence
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.passages import CAUSE_WORDS, Sections, cited, headed, hidden, listing, plain
from trainmedic.service.answer.raised import raised_section
from trainmedic.service.answer.run_diff import differences
from trainmedic.service.answer.schema import Section
from trainmedic.service.answer.similar import similar_section
from trainmedic.service.answer.text import fold, part, split
from trainmedic.service.answer.views import grouped
from trainmedic.service.answer.what_if import supposition
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.inference import Cause
from trainmedic.service.ranking.instructed import Instruction
from trainmedic.service.ranking.refused import Refusal

MAX_ASKS = 1
"""Questions before the fold: the one that tells most."""
GROUNDED = ("answered", "no_fault")
"""Verdicts that rest on a cause, so that the messages of frameworks are only a detail."""


class Told(NamedTuple):
    """A cause or a mechanism, in short and in full. ``said`` are the findings that ``because`` says already, ``places``
    where they are."""

    title: str
    marker: int
    because: Sections
    places: Sections
    why: Sections
    said: Sequence[Finding]
    fix: Sections
    more_fix: Sections
    verify: Sections
    confirm: Sections


class Page:
    """The context that the slots of one text share: the cause that it is about, if any, and the ``urgent`` findings,
    which its first sections show."""

    def __init__(
        self, draft: Draft, citations: Citations, subject: Cause | None = None, urgent: Sequence[Finding] = ()
    ) -> None:
        self.draft, self.citations, self.urgent = draft, citations, urgent
        self.diagnosis, self.context, self.language = draft.diagnosis, draft.context, citations.language
        self.subject = subject
        self.proofs = [f for f in self.context.report.fired if subject is not None and f in subject.findings]
        own = self.diagnosis.own(subject)
        self.own = tuple(dict.fromkeys((*self.proofs, *(f for f in self.context.report.fired if f in own))))
        related = [f for f in self.diagnosis.related if f in self.own or (f.symptoms and not passages.has_patch(f))]
        self.told_of = tuple(dict.fromkeys((*self.proofs, *related)))

    @property
    def cause(self) -> Cause:
        assert self.subject is not None
        return self.subject

    @cached_property
    def told(self) -> Told:
        language, citations, belief = self.language, self.citations, self.diagnosis.mechanism
        if belief is not None:
            mechanism = belief.weighed.mechanism
            marker = citations.mechanism(mechanism)
            head, rest = split(mechanism.section("cause", language), CAUSE_WORDS)
            verified = passages.verify(mechanism.section("confirm", language), marker, language)
            because, why = cited("because", head, marker), cited("cause", rest, marker)
            return Told(mechanism.title.get(language), marker, because, (), why, (), (), (), *verified)
        case = self.cause.case
        marker = citations.case(case)
        because, places, why, said = passages.because(case, self.proofs, citations)
        change = passages.patch(self.own, self.context, citations)
        fixed = passages.fix(case, change, self.proposed, self.context, marker, citations)
        verified = passages.verify(case.section("confirm", language), marker, language)
        return Told(case.title.get(language), marker, because, places, why, said, *fixed, *verified)

    @property
    def patched(self) -> bool:
        """Whether the fix begins with a patch: only the cause stands before it."""
        return any(section.kind == "diff" for section in self.told.fix)

    @cached_property
    def proposed(self) -> Sections:
        """The fix of the cause in the user's own files, if it can be made there."""
        proposal, subject = self.draft.proposal, self.subject
        if proposal is None or subject is None or proposal.case != subject.case.id:
            return ()
        return passages.proposed(proposal.effects, self.context, self.citations)

    @cached_property
    def others(self) -> Sections:
        return passages.others(self.diagnosis, self.context, self.subject, self.citations)

    @cached_property
    def asks(self) -> tuple[Sequence[Section], Sequence[Section]]:
        """The questions before and behind the fold of an answer that asks back."""
        return part(passages.asks(self.diagnosis, self.language), MAX_ASKS)

    def says(self, name: str, /, **values: object) -> str:
        return messages(name, self.language, **values)

    def headed(self, name: str, sections: Sections) -> Sections:
        return headed(name, sections, self.language)

    def seen(self, findings: Sequence[Finding], *, fixes: bool = False) -> Sections:
        return self.headed("seen", passages.seen("seen", findings, self.citations, fixes=fixes))


Slot = Callable[[Page], Sections]


def receipt(page: Page) -> Sections:
    """A section on what was read, and of which files nothing was. Those who read the text alone are told here where
    knowledge ends: others have the notice."""
    lines = passages.receipt_lines(page.context.evidence.receipt, page.language)
    told = page.draft.inquiry is not None or page.diagnosis.verdict == "no_fault"
    beyond = () if told else (sentence(each, page.language) for each in of_draft(page.draft))
    body = "\n".join(f"> {line}" for line in (*lines, *beyond))
    files = "\n\n".join(passages.about_files(page.context.evidence.receipt, page.language))
    return (
        *((Section(kind="receipt", body=body, items=tuple(lines)),) if lines else ()),
        *((Section(kind="files", body=files),) if files else ()),
    )


def supposed(page: Page) -> Sections:
    effects = page.draft.supposed
    if effects is None or page.draft.helped is not None:
        return ()
    section = supposition(effects, page.diagnosis, page.context, page.citations)
    return (section,) if section.body else ()


def changes(page: Page) -> Sections:
    return changes_section(page.draft, page.citations)


def lead(page: Page) -> Sections:
    told, name = page.told, "mechanism" if page.diagnosis.mechanism is not None else page.diagnosis.verdict
    body = page.says(f"lead.{name}", title=told.title, marker=f"[{told.marker}]")
    return (Section(kind="lead", body=" ".join((body, *_beyond(page))), markers=(told.marker,)),)


def _beyond(page: Page) -> Iterator[str]:
    """What keeps a word of health from being one: that the releases are not known."""
    if page.diagnosis.verdict == "no_fault":
        yield from (sentence(each, page.language) for each in of_draft(page.draft))


def lead_faults(page: Page) -> Sections:
    return (Section(kind="lead", body=page.says("lead.config_faults", count=len(grouped(page.urgent)))),)


def lead_open(page: Page) -> Sections:
    body = passages.without_cause(page.diagnosis, page.context, page.language)
    return (Section(kind="lead", body=" ".join((body, *_beyond(page)))),)


def instruction(page: Page) -> Sections:
    """The instruction of the exception, in its own words and in the user's file."""
    told = page.draft.instruction
    assert isinstance(told, Instruction)
    marker = page.citations.place(told.span)
    body = page.says("lead.instructed", sentence=code(told.sentence), marker=f"[{marker}]")
    change = page.headed("fix", passages.proposed(told.effects, page.context, page.citations))
    return (*plain("lead", body, marker), *change)


def refusal(page: Page) -> Sections:
    """The settings that the framework refuses together, in the user's file."""
    told, citations = page.draft.instruction, page.citations
    assert isinstance(told, Refusal)
    markers = [citations.place(option.span) for option in told.options]
    named = [
        f"{code(f'{option.key} = {show(option.value)}')} [{marker}]"
        for option, marker in zip(told.options, markers, strict=True)
    ]
    options = ("、" if page.language == "zh" else ", ").join(named)
    body = page.says("lead.refused", package=told.match.entry.package, count=len(named), options=options)
    change = passages.proposed(told.effects, page.context, citations) if told.effects is not None else ()
    return (*plain("lead", body, *markers), *page.headed("fix", change))


def confidence(page: Page) -> Sections:
    return (Section(kind="confidence", body=passages.confidence(page.cause, page.language, answered=True)),)


def grade(page: Page) -> Sections:
    """How well an explanation of a healthy run is established.

    "Nothing is wrong" rests on the log; how likely this explanation of it is would read as a doubt about that.
    """
    return (Section(kind="grade", body=page.says("graded", grade=page.says(f"grade.{page.cause.case.evidence}"))),)


def likely(page: Page) -> Sections:
    """The best candidate of an answer that asks back."""
    told = page.told
    body = f"**{told.title}** [{told.marker}]\n\n{passages.confidence(page.cause, page.language)}"
    return page.headed("likely", plain("likely", body, told.marker))


def because(page: Page) -> Sections:
    return (*page.told.because, *(() if page.patched else page.told.places))


def fix(page: Page) -> Sections:
    """The fix; after a patch, which shows the lines itself, also their places."""
    return (*page.headed("fix", page.told.fix), *(page.told.places if page.patched else ()))


def verify(page: Page) -> Sections:
    return page.told.verify


def origins(page: Page) -> Sections:
    belief = page.diagnosis.mechanism
    assert belief is not None
    return page.headed("origins", passages.origins(belief, page.diagnosis, page.context, page.citations))


def cause(page: Page) -> Sections:
    return page.headed("cause", (*passages.going_on(page.cause, page.diagnosis, page.citations), *page.told.why))


def cause_alone(page: Page) -> Sections:
    """The cause without the mechanism behind it."""
    return page.headed("cause", page.told.why)


def seen(page: Page) -> Sections:
    return page.seen([f for f in page.told_of if f not in page.told.said])


def seen_urgent(page: Page) -> Sections:
    return page.seen(page.urgent, fixes=True)


def observed(page: Page) -> Sections:
    """The failing lines of the log, where no finding about them is shown."""
    return () if page.urgent else page.headed("seen", passages.observed(page.context, page.citations))


def problems(page: Page) -> Sections:
    return passages.seen("problems", page.urgent, page.citations, fixes=True)


def full_fix(page: Page) -> Sections:
    return page.headed("fix_full", page.told.more_fix)


def whole_fix(page: Page) -> Sections:
    """The whole fix, where its beginning is not among the first sections."""
    return page.headed("fix_full", (*page.told.fix, *page.told.more_fix))


def patch_own(page: Page) -> Sections:
    sections = (*page.proposed, *passages.patch(page.own, page.context, page.citations))
    return page.headed("patch" if any(section.kind == "diff" for section in sections) else "fix", sections)


def patch_urgent(page: Page) -> Sections:
    """No cause is named, so what the patch clears is a finding and not the problem."""
    return page.headed("patch", passages.patches(page.urgent, page.context, page.citations, "patch_aside"))


def patch_faults(page: Page) -> Sections:
    """One patch for all faults, where there is one."""
    repair = page.context.report.repair
    if repair is None or not repair.patch:
        patches = passages.patches(page.urgent, page.context, page.citations, "patch", len(page.urgent))
        return page.headed("patch", patches)
    note = page.says("one_patch", count=len(grouped(page.urgent)))
    cleared = passages.cleared("patch", repair, page.citations)
    diff = passages.diff(repair.patch, cleared, repair.appears, page.context, page.citations)
    return page.headed("patch", (*plain("change", note), *diff))


def refuted(page: Page) -> Sections:
    return page.headed(
        "refuted", passages.refuted(page.cause.case, page.diagnosis.findings, page.told.marker, page.language)
    )


def confirm(page: Page) -> Sections:
    return page.headed("confirm", page.told.confirm)


def whole_confirm(page: Page) -> Sections:
    return page.headed("confirm", (*page.told.verify, *page.told.confirm))


def checked(page: Page) -> Sections:
    return page.headed("checkup", listing("checkup", list(checkup(page.context, page.language)), ()))


def first_asks(page: Page) -> Sections:
    """The question that tells most, with a command that shows the answer."""
    missing = page.diagnosis.missing
    command = passages.command_for(missing[0].fact) if missing else ""
    return (*page.asks[0], *(plain("command", f"```bash\n{command}\n```") if command and page.asks[0] else ()))


def more_asks(page: Page) -> Sections:
    return tuple(page.asks[1])


def asks(page: Page) -> Sections:
    return passages.asks(page.diagnosis, page.language)


def others(page: Page) -> Sections:
    return page.others


def listed(page: Page) -> Sections:
    about = page.subject is not None or page.diagnosis.mechanism is not None
    shown = (*page.urgent, *(page.told_of if about else ()))
    return passages.listed(page.diagnosis, page.context, page.citations, shown)


def ranks(page: Page) -> Sections:
    """The collective that each rank of a run that hangs waits for."""
    return ranks_of_run.sections(page.context, page.citations)


def folded(page: Page) -> Sections:
    """Nothing: the slots after it are folded."""
    return ()


BEGINNING: Sequence[Slot] = (receipt, supposed)
LAYOUT: Mapping[str, Sequence[Slot]] = {
    "cause": (
        *(lead, confidence, because, ranks, fix, verify),
        *(folded, cause, seen, full_fix, refuted, confirm),
    ),
    "healthy": (lead, grade, because, folded, cause, seen, whole_fix, refuted, whole_confirm),
    "likely": (
        *(lead_open, likely, because, ranks, fix, verify),
        *(folded, cause_alone, seen, full_fix, confirm, refuted),
    ),
    "mechanism": (lead, because, ranks, origins, patch_own, verify, folded, cause_alone, seen, confirm),
    "faults": (lead_faults, problems, patch_faults),
    "explained": (
        *(explanation.lead, explanation.ranges, explanation.cards, explanation.differing),
        *(explanation.versions, explanation.problems, explanation.pitfalls),
    ),
    "instructed": (instruction,),
    "refused": (refusal,),
    "unexplained": (explanation.lead_unexplained, explanation.nearest),
    "open": (lead_open, seen_urgent, observed, ranks, patch_urgent),
}
"""By `kind_of`, between the beginning and the end."""
ASKING: Sequence[Slot] = (first_asks, others, folded, more_asks, listed)
ENDING: Sequence[Slot] = (folded, others, asks, listed)


def kind_of(draft: Draft, faults: Sequence[Finding]) -> str:
    """The row of `LAYOUT`. ``faults`` are those of a configuration that no one complained about."""
    diagnosis = draft.diagnosis
    if draft.inquiry is not None:
        return "explained" if diagnosis.verdict == "explained" else "unexplained"
    if draft.instruction is not None:
        return "refused" if isinstance(draft.instruction, Refusal) else "instructed"
    if faults:
        return "faults"
    if diagnosis.mechanism is not None:
        return "mechanism"
    if diagnosis.lead is None:
        return "likely" if diagnosis.likely is not None else "open"
    return "healthy" if diagnosis.verdict == "no_fault" else "cause"


def composed(draft: Draft, citations: Citations) -> Sections:
    """The text without a model."""
    diagnosis, language = draft.diagnosis, citations.language
    sections: Sections = ()
    if draft.inquiry is None:
        sections = short_reply(draft, citations)
        shown = draft.changes.shown if draft.changes is not None else None
        over = shown is not None and not shown.now
        if not sections and (over or holds(draft)):
            page, read = Page(draft, citations), draft.context.evidence.receipt
            first: Sequence[Slot] = BEGINNING if draft.request.attachments or read.masked else (supposed,)
            told = tuple(_filled(page, (*first, changes)))
            if all(section.kind in ("receipt", "files") for section in told):
                told = (*told, Section(kind="reply", body=page.says("nothing_new")))
            return (*told, *(() if over else held(draft, citations)))
    if not sections:
        faults = passages.config_faults(diagnosis, draft.context)
        kind = kind_of(draft, faults)
        subject = diagnosis.likely if faults else diagnosis.lead or diagnosis.likely
        page = Page(draft, citations, subject, passages.urgent(diagnosis) if kind == "open" else faults)
        asking = diagnosis.verdict == "need_input" and not faults
        ending = ASKING if asking else (checked, *ENDING) if diagnosis.verdict == "no_fault" else ENDING
        ending = () if draft.inquiry is not None else ending
        slots = (*_filled(page, (*BEGINNING, changes)), *_filled(page, LAYOUT[kind]))
        sections = fold((*slots, *_filled(page, ending)))
    if any(section.kind == "lead" for section in sections):
        sections = _with_messages(sections, draft, citations)
        sections = (*sections, *similar_section(draft.similar, language))
    return _with_differences(sections, draft, language)


def _filled(page: Page, slots: Sequence[Slot]) -> Iterator[Section]:
    behind = False
    for slot in slots:
        behind = behind or slot is folded
        sections = slot(page)
        yield from hidden(sections) if behind else sections


def _with_messages(sections: Sections, draft: Draft, citations: Citations) -> Sections:
    """With what the messages of frameworks say and the code that raised: last if the answer rests on a cause, else
    behind its first words."""
    explained = messages_section(draft.printed, draft.knowledge.published, citations, citations.language)
    printed = (*explained, *raised_section(draft.raised, draft.changed_code, draft.printed, citations))
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
