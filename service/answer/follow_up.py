"""Answers to messages that follow others: thanks, questions about the answer, and what a change made of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Finding, Status
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import ChangesView, ChangeView, Section
from trainmedic.service.answer.views import joined
from trainmedic.service.answer.what_if import cited_titles
from trainmedic.service.dialogue.conversation import Message
from trainmedic.service.dialogue.difference import Difference
from trainmedic.service.dialogue.intent import Intent, Relation
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.inference import Cause

MAX_REASONS = 4

Sections = tuple[Section, ...]
Cite = Callable[[Case], int]


def short_reply(message: Message, diagnosis: Diagnosis, intent: Intent, cite: Cite, language: str) -> Sections:
    """The whole answer to thanks, a greeting, or a question about the previous answer; empty for other messages."""
    first = diagnosis.causes[0] if diagnosis.causes else None
    if not message.turns:
        greeting = message.relation is Relation.ACKNOWLEDGEMENT
        general = intent.general and diagnosis.verdict == "not_in_kb" and first is None
        name = "welcome" if greeting else "general" if general else ""
        return (Section(kind="reply", body=messages(f"reply.{name}", language)),) if name else ()
    if message.relation is Relation.EXPLANATION and first is not None:
        return tuple(_explanation(first, diagnosis, cite, language))
    if message.relation not in (Relation.ACKNOWLEDGEMENT, Relation.SOLVED):
        return ()
    name = "solved" if message.relation is Relation.SOLVED else "welcome_back"
    body = messages(f"reply.{name}", language)
    if first is None or diagnosis.verdict == "not_in_kb":
        return (Section(kind="reply", body=body),)
    marker = cite(first.case)
    state = "cause" if diagnosis.verdict == "answered" else diagnosis.verdict
    title = first.case.title.get(language)
    body += " " + messages(f"reply.{state}", language, title=title, marker=f"[{marker}]")
    return (Section(kind="reply", body=body, markers=(marker,)),)


def _explanation(cause: Cause, diagnosis: Diagnosis, cite: Cite, language: str) -> Iterator[Section]:
    """What is going on, what of it was seen, and how to confirm it."""
    case, marker = cause.case, cite(cause.case)
    cited = f"[{marker}]"
    lead = messages("reply.explained", language, title=case.title.get(language), marker=cited)
    yield Section(kind="lead", body=lead, markers=(marker,))
    belief = diagnosis.differential.belief(cause)
    texts = [case.section("cause", language)]
    if belief is not None:
        texts.insert(0, belief.weighed.mechanism.section("cause", language))
    body = "\n\n".join(f"{text.rstrip()} {cited}" for text in dict.fromkeys(texts) if text.strip())
    if body:
        yield Section(kind="cause", heading=messages("headings.cause", language), body=body, markers=(marker,))
    reasons = [statement.says.get(language) for statement in belief.weighed.supports] if belief is not None else []
    reasons += [finding.message.get(language) for finding in cause.findings if finding.status is Status.FIRED]
    items = tuple(dict.fromkeys(reasons))[:MAX_REASONS]
    if items:
        heading = messages("headings.seen", language)
        yield Section(kind="seen", heading=heading, body="\n".join(f"- {item}" for item in items), items=items)
    confirm = case.section("confirm", language)
    if not confirm and belief is not None:
        confirm = belief.weighed.mechanism.section("confirm", language)
    if confirm.strip():
        heading = messages("headings.confirm", language)
        yield Section(kind="confirm", heading=heading, body=f"{confirm.rstrip()} {cited}", markers=(marker,))


def changes_section(changes: Difference, cite: Callable[[Finding], int], language: str) -> Sections:
    """What cleared, what is new, what is left, and what is ruled out against the previous answer."""
    markers: list[int] = []
    items = []
    for name, findings in (("cleared", changes.cleared), ("new", changes.new), ("left", changes.left)):
        if findings:
            line, cited = cited_titles(findings, cite, language)
            markers += cited
            items.append(messages(f"changes.{name}", language, titles=line))
    titles = joined([case.title.get(language) for case in changes.ruled_out], language)
    if titles:
        items.insert(0, messages("changes.ruled_out", language, titles=titles))
    if changes.unstarted:
        items.append(messages("changes.unstarted", language))
    if not items:
        return ()
    body = "\n".join(f"- {item}" for item in items)
    heading = messages("changes.heading", language)
    return (Section(kind="changes", heading=heading, body=body, items=tuple(items), markers=tuple(markers)),)


def changes_view(changes: Difference | None, language: str) -> ChangesView | None:
    if changes is None:
        return None

    def views(findings: Sequence[Finding]) -> tuple[ChangeView, ...]:
        return tuple(ChangeView(id=finding.rule_id, title=finding.title.get(language)) for finding in findings)

    return ChangesView(
        cleared=views(changes.cleared),
        new=views(changes.new),
        left=views(changes.left),
        ruled_out=tuple(ChangeView(id=case.id, title=case.title.get(language)) for case in changes.ruled_out),
    )
