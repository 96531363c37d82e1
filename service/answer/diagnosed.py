"""An answer that a model decided: composed from its form, each part with what the program proved of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rapidfuzz import fuzz
from rapidfuzz.utils import default_process

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.report import Status
from trainmedic.kb.projection import project
from trainmedic.service.answer import layout, passages
from trainmedic.service.answer.citations import Citations, code, harmless, place, plain_text, quote
from trainmedic.service.answer.error_messages import messages_section
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.passages import Sections, headed, listing, plain
from trainmedic.service.answer.raised import raised_section
from trainmedic.service.answer.refutations import refutations_of
from trainmedic.service.answer.run_diff import differences
from trainmedic.service.answer.schema import CauseView, RefutationView, Section
from trainmedic.service.answer.similar import similar_section
from trainmedic.service.answer.text import fold
from trainmedic.service.answer.what_if import cited_titles
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.judgement import Hypothesis, Judgement, Point

MAX_POINTS = 3
"""Places quoted for one hypothesis before the fold."""
SAME_TITLE = 70
"""Similarity, in percent, from which two titles name one cause: a model rewords its own in each turn."""
OWN = "model-{rank}"
"""The id of a cause that no page has."""


def hypothesis_view(hypothesis: Hypothesis, rank: int, draft: Draft) -> CauseView:
    """A hypothesis as a cause of the answer."""
    language, cause = draft.language, hypothesis.cause
    case = cause.case if cause is not None else None
    spans = [span for point in hypothesis.points for span in point.spans]
    fired = [finding for finding in cause.findings if finding.status is Status.FIRED] if cause is not None else []
    refuted = refutations_of(case, draft.diagnosis.findings) if case is not None else ()
    return CauseView(
        rank=rank,
        case_id=case.id if case is not None else OWN.format(rank=rank),
        title=hypothesis.title or (case.title.get(language) if case is not None else ""),
        cause=hypothesis.because,
        fix="\n".join(part for part in (hypothesis.change, hypothesis.command) if part),
        confidence=hypothesis.confidence,
        score=round(hypothesis.probability, 4),
        evidence_grade=case.evidence if case is not None else "",
        cases=(case.id, *case.related) if case is not None else (),
        findings=tuple(sorted({finding.rule_id for finding in fired})),
        refutations=tuple(project(RefutationView, item, language) for item in refuted),
        level=case.level if case is not None else "case",
        origin="known" if case is not None else "model",
        support=hypothesis.support,
        lines=tuple(dict.fromkeys(spans)),
    )


def judged(draft: Draft, judgement: Judgement, citations: Citations) -> Sections:
    """Verdict and cause, what shows it, the change with its diff, how to verify; then what else is possible."""
    page = layout.Page(draft, citations, judgement.first.cause if judgement.first is not None else None)
    language, first = citations.language, judgement.first
    reply = plain("reply", harmless_text(judgement.reply))
    if judgement.verdict == "explained" and draft.inquiry is not None and draft.inquiry.resolved:
        return (*reply, *layout.composed(draft, citations))
    # A direct reply comes first and covers what was supposed; the checks' own words on that stay behind the fold.
    supposed = layout.supposed(page)
    sections: list[Section] = [*layout.receipt(page), *reply, *(() if reply else supposed), *layout.changes(page)]
    shown, more_differences = differences(draft, language)
    if judgement.verdict == "explained":
        return fold((*sections, *passages.hidden(supposed if reply else ())))
    kept: list[Section] = []
    if first is None or judgement.verdict == "not_in_kb":
        lead = "not_in_kb" if judgement.verdict == "not_in_kb" else "need_input"
        sections += plain("lead", messages(f"lead.{lead}", language))
    elif reply and _stands(first, draft):
        sections += _standing(first, judgement, citations)
        parts = tuple(_first(first, judgement, citations, page))
        asks_for_it = draft.message.relation is Relation.PLACE
        sections += (part for part in parts if asks_for_it and part.kind in ("diff", "checked"))
        kept = [*supposed, *(part for part in parts if part not in sections)]
    else:
        sections += _first(first, judgement, citations, page)
        kept = list(supposed if reply else ())
    sections += shown
    if judgement.question:
        sections += headed("decide", plain("ask", harmless_text(judgement.question)), language)
    details: list[Section] = [
        *kept,
        *_others(judgement, citations),
        *_doubts(first, citations),
        *_details(page, judgement),
    ]
    details += messages_section(draft.printed, draft.knowledge.published, citations, language)
    details += raised_section(draft.raised, draft.changed_code, draft.printed, citations)
    details += more_differences
    details += similar_section(draft.similar, language)
    return fold((*sections, *passages.hidden(tuple(details))))


def _stands(first: Hypothesis, draft: Draft) -> bool:
    """Whether the answer before named the same cause, and the run shows no new symptom."""
    before = next((turn for turn in reversed(draft.message.spoken) if turn.causes), None)
    if before is None or draft.message.relation is Relation.NEW_SYMPTOM:
        return False
    if first.cause is not None and first.cause.case.id == before.causes[0]:
        return True
    title = before.said.partition("\n")[0]
    return fuzz.token_set_ratio(title, first.title, processor=default_process) >= SAME_TITLE


def _standing(first: Hypothesis, judgement: Judgement, citations: Citations) -> Sections:
    text, markers = _named(first, judgement, citations)
    return plain("unchanged", messages("unchanged", citations.language, text=text), *markers)


def _named(first: Hypothesis, judgement: Judgement, citations: Citations) -> tuple[str, tuple[int, ...]]:
    """The first cause under the verdict, with its marker."""
    markers = (citations.case(first.cause.case),) if first.cause is not None else ()
    marker = f"[{markers[0]}]" if markers else ""
    name = {"need_input": "likely", "no_fault": "no_fault"}.get(judgement.verdict, "answered")
    text = messages(f"judged.{name}", citations.language, title=harmless(first.title), marker=marker)
    return text.rstrip(), markers


def _first(first: Hypothesis, judgement: Judgement, citations: Citations, page: layout.Page) -> Iterator[Section]:
    language = citations.language
    lead, markers = _named(first, judgement, citations)
    yield Section(kind="lead", body=lead, markers=markers)
    yield Section(kind="confidence", body=_label(first, language))
    yield from _because(first, citations)
    yield from headed("fix", _fix(first, page), language)
    if first.verify:
        body = messages("verify", language, text=harmless_text(first.verify), marker="").rstrip()
        yield from plain("verify", body)
    if first.named:
        joiner = "、" if language == "zh" else ", "
        places = (f"{code(n.name)} ({n.package} {n.version}, {code(f'{n.path}:{n.line}')})" for n in first.named)
        yield from plain("named", messages("judged.named", language, places=joiner.join(places)))


def _label(hypothesis: Hypothesis, language: str) -> str:
    """What the statement rests on, and how sure it is, on one line."""
    known = "known" if hypothesis.cause is not None else "own"
    basis = messages(f"judged.{hypothesis.support}.{known}", language)
    return messages(
        "judged.sure", language, basis=basis, confidence=messages(f"confidence.{hypothesis.confidence}", language)
    )


def _because(hypothesis: Hypothesis, citations: Citations) -> Sections:
    """Why it happens, with the places that show it."""
    language = citations.language
    shown, markers = [], []
    spans = dict.fromkeys(span for point in hypothesis.points for span in point.spans if not span.default)
    for span in list(spans)[:MAX_POINTS]:
        markers.append(citations.place(span))
        shown.append(f"{place(span, language)} {code(quote(span, 60))} [{markers[-1]}]")
    joiner = "、" if language == "zh" else ", "
    places = messages("places_inline", language, places=joiner.join(shown)) if shown else ""
    return plain("because", f"{harmless_text(hypothesis.because)}{places}", *markers)


def _fix(hypothesis: Hypothesis, page: layout.Page) -> Sections:
    """The diff of the user's own files with what the checks say of it, then the change in words."""
    sections: list[Section] = []
    trial = hypothesis.trial
    if trial is not None and trial.patch:
        sections += passages.diff(trial.patch, "", (), page.context, page.citations)
        if not (trial.clears or trial.appears):
            sections += plain("checked", messages("judged.clean", page.language))
        for name in ("clears", "appears"):
            if effects := getattr(trial, name):
                titles, markers = cited_titles(effects, page.citations.effect, page.language)
                said = messages("judged.checked", page.language)
                said += messages(f"supposed_effects.{name}", page.language, titles=titles)
                sections += plain("checked", said, *markers)
    if hypothesis.change:
        sections += plain("change" if sections else "fix", harmless_text(hypothesis.change))
    if hypothesis.command:
        sections += plain("command", f"```bash\n{hypothesis.command.replace('```', '')}\n```")
    return tuple(sections)


def _others(judgement: Judgement, citations: Citations) -> Sections:
    """The other hypotheses, one line each."""
    language, items, markers = citations.language, [], []
    for other in judgement.hypotheses[1:]:
        marker = ""
        if other.cause is not None:
            markers.append(citations.case(other.cause.case))
            marker = f" [{markers[-1]}]"
        change = f" {harmless_text(other.change)}" if other.change else ""
        items.append(f"**{harmless(other.title)}**{marker}: {harmless_text(other.because)}{change}")
    return headed("judged_others", listing("others", items, markers), language)


def _doubts(first: Hypothesis | None, citations: Citations) -> Sections:
    """What speaks against the first hypothesis, edits that cannot be made, and names that nothing knows."""
    if first is None:
        return ()
    language = citations.language
    items, markers = [], []
    for point in first.against:
        markers += [citations.place(span) for span in point.spans[:1] if not span.default]
        items.append(_quoted(point, language))
    items += [messages("judged.refused", language, name=code(name), why=why) for name, why in first.refused]
    joiner = "、" if language == "zh" else ", "
    names = messages("flagged", language, names=joiner.join(map(code, first.unknown))) if first.unknown else ""
    return (*headed("judged_against", listing("against", items, markers), language), *plain("unchecked", names))


def _quoted(point: Point, language: str) -> str:
    where = f"{place(point.spans[0], language)}: " if point.spans else ""
    return f"{where}{harmless(point.text)}"


def _details(page: layout.Page, judgement: Judgement) -> Iterator[Section]:
    """What the program itself has to say: all findings, and what the elected page says does not help."""
    first = judgement.first
    # What a page rules out holds for its own case: a model that elected it may see another side of it.
    if first is not None and first.support == "proven" and first.cause is not None and judgement.verdict == "answered":
        yield from layout.refuted(page)
    yield from layout.listed(page)


def harmless_text(text: str) -> str:
    """A model's prose: its own marks, links and tags become plain characters; names in backticks stay code.

    What has brackets and is not a citation, a special token and ``**kwargs`` become code: `labels[0]` and `</s>` must
    be the same when they are copied.
    """
    parts = plain_text("\ue000".join(_in_code(text))).split("\ue000")
    return "".join(
        code(part.replace("\ue001", "*")) if number % 2 and part.strip() else part.translate(_PLAIN)
        for number, part in enumerate(parts)
    )


def _in_code(text: str) -> Iterator[str]:
    """Prose and code in turns; a star in code does not emphasise."""
    parts = text.split("`")
    marked = (p if n % 2 else _MARKED.sub(r"`\g<0>`", _INDEXED.sub(_as_code, p)) for n, p in enumerate(parts))
    for number, part in enumerate("`".join(marked).split("`")):
        yield part.replace("*", "\ue001") if number % 2 else part


def _as_code(match: re.Match[str]) -> str:
    return match[0] if match["inside"].isdigit() and len(match[0]) == len(match["inside"]) + 2 else f"`{match[0]}`"


_INDEXED = regex(r"[\w.]*\[(?P<inside>[^\[\]`<>\n]{1,60})\](?!\()[\w.]*")
# Not bold text, nor a tag or link with an address in it.
_MARKED = regex(r"<(?:\|[\w ]{1,40}\||/?\w{1,40})>|(?<![\w*`])\*{1,2}[A-Za-z_]\w*(?![\w*`])")
_PLAIN = str.maketrans("[]<>", "［］‹›")
