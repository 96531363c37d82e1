"""The passages that the sections of an answer consist of. Markers are assigned in the order of the text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trainmedic.kb.engine.mechanism import origin_id
from trainmedic.kb.fences import fence_around
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Receipt
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Fix, Severity
from trainmedic.kb.model.report_view import FindingView, MissingView
from trainmedic.kb.parse.logs.signal_kinds import KINDS
from trainmedic.kb.parse.text.pictures import MARK
from trainmedic.kb.projection import project
from trainmedic.service.answer.citations import Citations, place, quote, shown_name
from trainmedic.service.answer.differential import Reasons, Tree
from trainmedic.service.answer.fix_text import concerning, on_a_line, without_diffs
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.option_names import in_dialect
from trainmedic.service.answer.refutations import refutations_of
from trainmedic.service.answer.schema import Section, StatementView
from trainmedic.service.answer.text import split, without_tables, word_count
from trainmedic.service.answer.views import finding_view, grouped, in_words, joined, merged_evidence
from trainmedic.service.dialogue.what_if import WhatIf
from trainmedic.service.ranking.diagnose import Diagnosis, complaint, nothing_readable, unread_log
from trainmedic.service.ranking.features import Context
from trainmedic.service.ranking.inference import Cause, MechanismBelief

MAX_EVIDENCE = 3
"""Places quoted for one finding."""
MAX_ORIGINS = 5
MAX_OBSERVED = 2
"""Kinds of failure that are named where no finding says more."""
MAX_INPUTS = 5
"""Inputs named in the receipt's line, besides those that were cut."""
SAID_OF_INPUTS = frozenset({"binary", "truncated"})
"""Problems that the line of the inputs says already."""
MAX_REASONS = 2
"""Reasons named on a cause's line."""
MAX_INLINE, MAX_INLINE_QUOTE = 2, 60
"""Places within a sentence, and the code points of each."""
CAUSE_WORDS, FOUND_WORDS, FIX_WORDS, CHANGE_WORDS, VERIFY_WORDS, BOLD_WORDS = 36, 20, 36, 20, 30, 8
"""Words of the short form of a cause, of what a rule says of it, of a case's fix, a change, a verification and the
change that a problem begins with; one sentence may have more."""
Sections = tuple[Section, ...]


def receipt_lines(receipt: Receipt, language: str) -> list[str]:
    """Lines on what was read, and if any, what was masked and what could not be read."""
    inputs = []
    for item in receipt.inputs:
        if item.name is None and not item.bytes and len(receipt.inputs) > 1:
            continue
        if item.kind == "archive" and any((other.name or "").startswith(f"{item.name}/") for other in receipt.inputs):
            continue  # its members are named
        name = shown_name(item.name) if item.name else messages("question", language)
        cut = messages("cut", language) if item.truncated else ""
        kind = messages(f"kinds.{item.kind}", language) if f"kinds.{item.kind}" in messages else item.kind
        form = "lines" if item.read else "unread"
        text = messages(form, language, name=name, kind=kind, count=item.lines, cut=cut) if item.name else name + cut
        inputs.append((item.truncated, text))
    joiner = "、" if language == "zh" else ", "
    named = [text for number, (cut, text) in enumerate(inputs) if cut or number < MAX_INPUTS]
    names = joiner.join(named)
    if len(named) < len(inputs):
        names = messages("and_more", language, names=names, count=len(inputs) - len(named))
    lines = [messages("receipt", language, inputs=names)] if inputs else []
    if receipt.masked:
        masked = joiner.join(f"{count} × {kind}" for kind, count in receipt.masked)
        lines.append(messages("masked", language, masked=masked))
    unclear = [problem for problem in receipt.problems if problem.code not in SAID_OF_INPUTS]
    if unclear:
        problems = joiner.join(
            f"{place(p.span, language)} {p.code}" if p.span else p.code for p in unclear[:MAX_EVIDENCE]
        )
        lines.append(messages("problems", language, problems=problems))
    return lines


def about_files(receipt: Receipt, language: str) -> Iterator[str]:
    """Which files could not be read and what to send instead, a kind of file each; and what was read from pictures."""
    files = [(item.name, item.kind) for item in receipt.inputs if item.name is not None and not item.read]
    files += [(item.name, "ocr") for item in receipt.inputs if item.name is not None and item.name.endswith(MARK)]
    for kind in dict.fromkeys(kind for _, kind in files if f"file.{kind}" in messages):
        names = ("、" if language == "zh" else ", ").join(shown_name(name) for name, other in files if other == kind)
        yield messages(f"file.{kind}", language, names=names.replace(MARK, ""))


def without_cause(diagnosis: Diagnosis, context: Context, language: str) -> str:
    receipt = context.evidence.receipt
    if nothing_readable(context.evidence) and not diagnosis.causes:
        names = [shown_name(item.name) for item in receipt.inputs if item.name is not None]
        return messages("lead.unreadable", language, names=("、" if language == "zh" else ", ").join(names))
    unread = unread_log(context.evidence)
    if unread is not None and unread.name is not None and diagnosis.verdict == "need_input" and not diagnosis.causes:
        return messages("lead.unread", language, name=shown_name(unread.name))
    wrong = any(f.severity is Severity.ERROR and f.concludes == "fault" for f in context.report.fired)
    if diagnosis.verdict == "not_in_kb" and wrong:
        return messages("lead.not_in_kb_found", language)
    if diagnosis.verdict == "need_input" and not diagnosis.missing:
        return messages("lead.open" if diagnosis.causes else "lead.not_in_kb", language)
    if diagnosis.verdict != "no_fault":
        return messages(f"lead.{diagnosis.verdict}", language)
    return messages(f"lead.{'healthy' if context.evidence.rows else 'healthy_config'}", language)


def because(
    case: Case, proofs: Sequence[Finding], citations: Citations
) -> tuple[Sections, Sections, Sections, list[Finding]]:
    """The cause in one or two sentences: what a rule says of the user's own values, else the beginning of the case's
    text. Then the places of these values, the text that explains it, and the findings that it says."""
    language, marker = citations.language, citations.case(case)
    text = case.section("cause", language)
    first = next(iter(grouped(proofs)), ())
    if not first:
        head, rest = split(text, CAUSE_WORDS)
        return cited("because", head, marker), (), cited("cause", rest, marker), []
    rule = citations.rule(first[0])
    head, rest = split(first[0].message.get(language), FOUND_WORDS)
    places, markers = _inline_places(first, citations)
    where = messages("places_inline", language, places=places).strip() if places else ""
    why = (*cited("cause", rest, rule), *cited("cause", text, marker))
    return cited("because", head, rule), plain("places", where, *markers), why, list(first)


def _inline_places(findings: Sequence[Finding], citations: Citations) -> tuple[str, list[int]]:
    """The first places of findings, cited, within a sentence; the number of files if there are several."""
    language = citations.language
    parts, markers = [], []
    for span in _telling(findings)[:MAX_INLINE]:
        if span.default:
            parts.append(messages("default", language, place=place(span, language)))
        else:
            markers.append(citations.place(span))
            quoted = quote(span, MAX_INLINE_QUOTE).replace("`", "'")
            parts.append(f"{place(span, language)} `{quoted}` [{markers[-1]}]")
    if more := _files(findings, language):
        parts.append(more)
    return ("、" if language == "zh" else ", ").join(parts), markers


def _telling(findings: Sequence[Finding]) -> Sequence[Span]:
    """The places of findings; that of a default, which shows nothing of it, only where there is no other."""
    places = merged_evidence(findings)
    return [span for span in places if not span.default] or places


def _files(findings: Sequence[Finding], language: str) -> str:
    """``in 20 files``, if it is more than one."""
    names = {finding.evidence[0].attachment for finding in findings if finding.evidence}
    return messages("in_files", language, count=len(names)) if len(names) > 1 else ""


def verify(text: str, marker: int, language: str) -> tuple[Sections, Sections]:
    """How to confirm a cause on one line, and the text after it."""
    head, rest = split(text, VERIFY_WORDS)
    body = messages("verify", language, text=head, marker=f"[{marker}]") if head else ""
    return plain("verify", body, marker), cited("confirm", rest, marker)


def going_on(cause: Cause, diagnosis: Diagnosis, citations: Citations) -> Sections:
    """The mechanism behind a cause on one line, unless the cause's title says as much."""
    belief = diagnosis.differential.belief(cause)
    if belief is None or belief.weighed.excluded_by or cause.case.level == "mechanism":
        return ()
    language, mechanism = citations.language, belief.weighed.mechanism
    title = mechanism.title.get(language)
    if repeats_title(title, cause.case.title.get(language)):
        return ()
    marker = citations.mechanism(mechanism)
    return plain("mechanism", messages("going_on", language, title=title, marker=f"[{marker}]"), marker)


def repeats_title(title: str, other: str) -> bool:
    """Whether at least half of the words of a title (characters, in Chinese) are in another."""
    words, others = (set(text.casefold().split() if text.isascii() else text.casefold()) for text in (title, other))
    return len(words & others) * 2 >= len(words)


def origins(belief: MechanismBelief, diagnosis: Diagnosis, context: Context, citations: Citations) -> Sections:
    """The origins that are not ruled out, each with what speaks for it and the smallest change."""
    language, mechanism = citations.language, belief.weighed.mechanism
    origins = {origin_id(mechanism, origin): origin for origin in mechanism.origins}
    cases = {cause.case.id: cause.case for teller in belief.causes for cause in (teller, *teller.members)}
    items: list[str] = []
    markers: list[int] = []
    nodes = Tree(diagnosis, context, language).mechanism(belief).nodes
    for node in sorted(nodes, key=lambda node: node.state != "holds"):  # what the run has before what only fits
        if node.state == "does_not_hold" or len(items) == MAX_ORIGINS:
            continue
        known = cases.get(next((inner.id for inner in node.nodes), node.id))
        if node.id in origins:
            markers.append(citations.mechanism(mechanism, origins[node.id]))
            change = split(origins[node.id].fix.get(language), CHANGE_WORDS)[0]
        else:
            markers.append(citations.case(cases[node.id]))
            change = _change(cases[node.id], context, language)
        supports = node.supports or tuple(statement for inner in node.nodes for statement in inner.supports)
        item = f"**{node.title}** [{markers[-1]}]{_basis(supports[:1], language)}"
        item += messages("change", language, change=change) if change else ""
        if known is not None and known.level == "case" and known.id != node.id:
            markers.append(citations.case(known))
            title, cited = known.title.get(language), f"[{markers[-1]}]"
            same = repeats_title(title, node.title)
            item += f" {cited}" if same else messages("known_case", language, title=title, marker=cited)
        items.append(item)
    body = "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))
    return listing("origins", items, markers, body)


def _basis(statements: Sequence[StatementView], language: str) -> str:
    """Evidence for a cause, appended to its line."""
    texts = tuple(dict.fromkeys(statement.text for statement in statements))[:MAX_REASONS]
    return (
        messages("because", language, reasons=joined(texts, language)) if texts else "。" if language == "zh" else "."
    )


def config_faults(diagnosis: Diagnosis, context: Context) -> tuple[Finding, ...]:
    """Faults found in a configuration that no one complained about; they are what such an answer is about."""
    if diagnosis.verdict == "no_fault" or complaint(context):
        return ()
    if diagnosis.lead is not None and context.evidence.question.strip():
        return ()
    return tuple(f for f in diagnosis.findings if f.severity is not Severity.INFO and f.concludes == "fault")


def urgent(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """The faults in the input of an answer that names no cause: findings about the question, or errors."""
    if diagnosis.verdict == "no_fault":
        return ()
    faults = [f for f in diagnosis.findings if f.severity is not Severity.INFO and f.concludes == "fault"]
    related = [f for f in faults if f in diagnosis.related]
    return tuple(related or (f for f in faults if f.severity is Severity.ERROR))


def confidence(cause: Cause, language: str, *, answered: bool = False) -> str:
    grade = messages(f"grade.{cause.case.evidence}", language)
    if answered and cause.confidence == "low":
        return messages("not_sure", language, grade=grade)
    confidence = messages(f"confidence.{cause.confidence}", language)
    return messages("sure", language, confidence=confidence, grade=grade)


def refuted(case: Case, fired: Sequence[Finding], marker: int, language: str) -> Sections:
    """The remedies that do not help, unless a rule that fired recommends the same."""
    stop = "。" if language == "zh" else "."
    items = [
        f"**{r.claim.get(language).rstrip('.。')}{stop}** {r.why.get(language)} [{marker}]"
        for r in refutations_of(case, fired)
    ]
    return listing("refuted", items, [marker])


def _marked(text: str, marker: int) -> str:
    """A text with its marker: after the last word, but never on the line that closes a code block."""
    text = text.rstrip()
    if not text:
        return ""
    return f"{text}\n\n[{marker}]" if text.endswith("```") else f"{text} [{marker}]"


def fix(
    case: Case, change: Sections, diffs: Sections, context: Context, marker: int, citations: Citations
) -> tuple[Sections, Sections]:
    """The ``change`` of the rules that fired, else ``diffs`` and the beginning of the case's text; then its rest.

    What the case says for other releases and frameworks than the run's comes last.
    """
    language = citations.language
    whole = in_dialect(case.section("fix", language), case, context.evidence, language)
    text, elsewhere = concerning(whole, case, context.evidence)
    other = cited("fix", elsewhere, marker)
    if any(section.kind == "diff" for section in (*change, *diffs)):
        text = without_diffs(text)
    if change:
        return (*diffs, *change), (*cited("fix", text, marker), *other)
    head, rest = split(text, FIX_WORDS)
    return (*diffs, *cited("fix", head, marker)), (*cited("fix", rest, marker), *other)


def _change(case: Case, context: Context, language: str) -> str:
    """The beginning of a case's fix in the words of the user's framework, without what it says for other releases."""
    text = in_dialect(case.section("fix", language), case, context.evidence, language)
    return split(on_a_line(concerning(text, case, context.evidence)[0], language), CHANGE_WORDS)[0]


def patch(own: Sequence[Finding], context: Context, citations: Citations) -> Sections:
    """The first repair of a cause, one that edits the user's own text before others: its diff, then what it is."""
    finding = next(iter(_repairing(own)), None)
    if finding is None:
        return ()
    change = plain("change", _in_words(finding.fixes, citations.language))
    return (*patches((finding,), context, citations, "patch"), *change)


def patches(fired: Sequence[Finding], context: Context, citations: Citations, note: str, most: int = 1) -> Sections:
    """The diffs of the first repairs, each with what the rules say then (``note``)."""
    views = [finding_view(finding, citations.language) for finding in _repairing(fired)[:most]]
    made = (diff(view.patch, cleared(note, view, citations), view.appears, context, citations) for view in views)
    return tuple(section for sections in made for section in sections)


def _repairing(fired: Sequence[Finding]) -> list[Finding]:
    return sorted((f for f in fired if f.fixes and all(fix.repairs for fix in f.fixes)), key=lambda f: not has_patch(f))


def _in_words(fixes: Sequence[Fix], language: str, most: int = CHANGE_WORDS) -> str:
    """The fixes in words as far as they are short, always with one that has a patch, and then without alternatives."""
    texts = [fix.text.get(language) for fix in fixes]
    patched = any(fix.patch for fix in fixes)
    needed = next((number for number, fix in enumerate(fixes) if fix.patch), 0)
    chosen: list[int] = []
    for number, text in enumerate(texts):
        if number != needed and patched and fixes[number].alternative:
            continue
        if number == needed or word_count(" ".join((*(texts[each] for each in chosen), text, texts[needed]))) <= most:
            chosen.append(number)
    return in_words([fixes[number] for number in chosen], language)


def also_patched(finding: Finding, context: Context, citations: Citations) -> Sections:
    """The patch of a finding that the answer is not about, behind what it changes."""
    view, marker = finding_view(finding, citations.language), citations.rule(finding)
    note = cleared("patch_aside", view, citations)
    parts = (
        *cited("change", _in_words(finding.fixes, citations.language), marker),
        *diff(view.patch, note, view.appears, context, citations),
    )
    body = "\n\n".join(part.body for part in parts)
    return plain("aside", body, *dict.fromkeys(marker for part in parts for marker in part.markers))


def has_patch(finding: Finding) -> bool:
    return any(fix.patch for fix in finding.fixes)


def cleared(name: str, fixed: FindingView | Fix | WhatIf, citations: Citations) -> str:
    return messages(name, citations.language, count=len(fixed.clears)) if fixed.clears else ""


def proposed(effects: WhatIf, context: Context, citations: Citations) -> Sections:
    """The fix of a cause in the user's own files, with which the rules find nothing new."""
    note = cleared("patch_aside", effects, citations) or messages("proposed", citations.language)
    return diff(effects.patch, note, (), context, citations)


def diff(patch: str | None, note: str, appears: Sequence[str], context: Context, citations: Citations) -> Sections:
    """A fenced diff, and what the rules say once it is applied."""
    if not patch:
        return ()
    language, titles = citations.language, context.report.titles
    markers = {rule: citations.rule_page(rule, titles[rule]) for rule in appears if rule in titles}
    if markers:
        named = [f"{titles[rule].get(language)} [{marker}]" for rule, marker in markers.items()]
        note += messages("appears", language, count=len(named), titles=joined(named, language))
    fence, text = fence_around(patch), patch.rstrip("\n")  # a blank at its end is a line of it
    return plain("diff", f"{fence}diff\n{text}\n{fence}\n{note}".rstrip(), *markers.values())


def seen(kind: str, findings: Sequence[Finding], citations: Citations, *, fixes: bool = False) -> Sections:
    """One entry for findings that say the same, with their places; with ``fixes`` each begins with its change."""
    language = citations.language
    lines, items, markers = [], [], []
    for group in grouped(findings):
        finding = group[0]
        markers.append(citations.rule(finding))
        message = finding.message.get(language)
        if fixes and finding.fixes:
            message = f"**{_in_words(finding.fixes, language, BOLD_WORDS)}** {split(message, CHANGE_WORDS)[0]}"
        items.append(f"{message} [{markers[-1]}]" + (f" ({more})" if (more := _files(group, language)) else ""))
        lines.append(f"- {items[-1]}")
        for span in _telling(group)[:MAX_EVIDENCE]:
            where = place(span, language)
            if span.default:
                lines.append("  - " + messages("default", language, place=where))
            else:
                markers.append(citations.place(span))
                quoted = messages("at", language, place=where, text=quote(span).replace("`", "'"))
                lines.append(f"  - {quoted} [{markers[-1]}]")
    return listing(kind, items, markers, "\n".join(lines))


def observed(context: Context, citations: Citations) -> Sections:
    """The first failing line of each kind in a log or traceback, for an answer that can say no more of it."""
    language = citations.language
    shown = [signal for signal in context.evidence.signals if not signal.stated and signal.kind in context.observed]
    items, markers = [], []
    for signal in list({signal.kind: signal for signal in reversed(shown)}.values())[::-1][:MAX_OBSERVED]:
        markers.append(citations.place(signal.span))
        at = messages("at", language, place=place(signal.span, language), text=quote(signal.span).replace("`", "'"))
        meaning = KINDS[signal.kind].get(language) if signal.kind in KINDS else signal.kind
        items.append(f"{meaning}: {at} [{markers[-1]}]")
    return listing("observed", items, markers)


def others(diagnosis: Diagnosis, context: Context, lead: Cause | None, citations: Citations) -> Sections:
    """The other causes; where the answer asks back, each with what speaks for it and its change.

    After a mechanism its own causes are listed already.
    """
    language, belief = citations.language, diagnosis.mechanism
    items, markers = [], []
    for cause in diagnosis.causes:
        if cause is lead or (belief is not None and cause in belief.causes):
            continue
        markers.append(citations.case(cause.case))
        confidence = messages(f"confidence.{cause.confidence}", language)
        title, marker = cause.case.title.get(language), f"[{markers[-1]}]"
        item = messages("candidate", language, title=title, confidence=confidence, marker=marker)
        if diagnosis.verdict == "need_input":
            item += _basis(tuple(Reasons(cause, context, language).supports()), language)
            item += messages("change", language, change=_change(cause.case, context, language))
        items.append(item)
    named = lead is not None or belief is not None or diagnosis.verdict != "need_input"
    return headed("other" if named else "candidates", listing("other", items, markers), language)


def asks(diagnosis: Diagnosis, language: str) -> Sections:
    views = [project(MissingView, item, language) for item in diagnosis.missing]
    items = [f"{view.ask} {view.why}" for view in views]
    body = "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))
    name = "decide" if diagnosis.verdict == "need_input" else "ask"
    return headed(name, listing("ask", items, (), body), language)


def command_for(fact: str) -> str:
    """A command whose output answers a question; empty if there is none."""
    kind, _, name = fact.partition(":")
    return {
        "version": f"pip list | grep -i {name}",
        "framework": "pip list",
        "log": "tail -n 300 train.log",
        "stacks": "for p in $(pgrep -f python); do py-spy dump --pid $p; done",
        "card": "nvidia-smi",
    }.get(kind, "")


def listed(diagnosis: Diagnosis, context: Context, citations: Citations, shown: Sequence[Finding] = ()) -> Sections:
    """The findings that no section before shows, and the patch of each that has one."""
    others = [f for f in diagnosis.findings or context.report.fired if f not in shown]
    patched = [group[0] for group in grouped(others) if has_patch(group[0])]
    patches = (section for finding in patched for section in also_patched(finding, context, citations))
    return headed("listed", (*seen("listed", others, citations), *patches), citations.language)


def hidden(sections: Iterable[Section]) -> Sections:
    return tuple(replace(section, folded=True) for section in sections)


def plain(kind: str, body: str, *markers: int) -> Sections:
    return (Section(kind=kind, body=body, markers=markers),) if body.strip() else ()


def cited(kind: str, text: str, marker: int) -> Sections:
    return plain(kind, _marked(without_tables(text), marker), marker)


def listing(kind: str, items: Sequence[str], markers: Sequence[int], body: str = "") -> Sections:
    if not items:
        return ()
    body = body or "\n".join(f"- {item}" for item in items)
    return (Section(kind=kind, body=body, items=tuple(items), markers=tuple(dict.fromkeys(markers))),)


def headed(name: str, sections: Sections, language: str) -> Sections:
    if not sections:
        return ()
    return (replace(sections[0], heading=messages(f"headings.{name}", language)), *sections[1:])
