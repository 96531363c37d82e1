"""Answers to messages that follow others: thanks, questions about the answer, and what a change made of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainmedic.kb.engine.values import show
from trainmedic.kb.model.report import Finding, Status
from trainmedic.kb.parse.logs.signal_kinds import KINDS
from trainmedic.service.answer.asked import alternative, releases, where
from trainmedic.service.answer.checkup import still_falls
from trainmedic.service.answer.citations import Citations, code, plain_text, shown_name
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.passages import VERIFY_WORDS
from trainmedic.service.answer.ranks import guilty
from trainmedic.service.answer.schema import ChangesView, ChangeView, Section
from trainmedic.service.answer.text import split
from trainmedic.service.answer.views import joined
from trainmedic.service.answer.what_if import changes_in_words, cited_titles, wished
from trainmedic.service.dialogue.change import setting_called
from trainmedic.service.dialogue.difference import Difference, Failures
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.statements import IT
from trainmedic.service.dialogue.vocabulary import phrases
from trainmedic.service.dialogue.what_if import ALREADY
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.inference import Cause

MAX_REASONS = 4
MAX_KINDS = 2
FOUND_WORDS = 20

Sections = tuple[Section, ...]


def short_reply(draft: Draft, citations: Citations) -> Sections:
    """The whole answer to a message that adds nothing to what is known of the run; empty for other messages."""
    message, diagnosis, language = draft.message, draft.diagnosis, citations.language
    first = diagnosis.causes[0] if diagnosis.causes else None
    relation = message.relation
    if not message.turns:
        greeting = relation is Relation.ACKNOWLEDGEMENT
        intent = draft.context.intent
        foreign = not (intent.domain_score or draft.request.attachments)
        general = (intent.general or foreign) and diagnosis.verdict == "not_in_kb" and first is None
        name = "welcome" if greeting else "general" if general else ""
        return (Section(kind="reply", body=messages(f"reply.{name}", language)),) if name else ()
    if relation is Relation.EXPLANATION and first is not None:
        return tuple(_explanation(first, diagnosis, citations))
    if relation is Relation.ALTERNATIVE:
        return alternative(draft, citations)
    if relation is Relation.PLACE:
        return where(draft, citations)
    if message.wish is not None:
        return (wished(message.wish, diagnosis, draft.context, citations), *held(draft, citations))
    asked = draft.request.question
    if draft.changes is None and phrases("asks_rank").search(asked) and (told := guilty(draft.context, citations)):
        return told
    if draft.changes is None and phrases("asks_release").search(asked) and (told := releases(draft, citations)):
        return told
    if phrases("asks_stop").search(asked) and (text := still_falls(draft.context.evidence, language)):
        return (Section(kind="reply", body=text), *held(draft, citations))
    silent = draft.changes is None and draft.supposed is None and holds(draft)
    asks = silent and phrases("asks").search(asked) is not None
    if relation in (Relation.QUESTION, Relation.EXPLANATION) or (relation is Relation.FOLLOW_UP and asks):
        return (Section(kind="reply", body=messages("cannot", language)), *held(draft, citations))
    if relation is Relation.SOLVED:
        return (_solved(draft, citations),)
    if relation is not Relation.ACKNOWLEDGEMENT:
        return ()
    body = messages("reply.welcome_back", language)
    if first is None or diagnosis.verdict == "not_in_kb":
        return (Section(kind="reply", body=body),)
    title, marker = _first(diagnosis, citations)
    state = "cause" if diagnosis.verdict == "answered" else diagnosis.verdict
    body += " " + messages(f"reply.{state}", language, title=title, marker=f"[{marker}]")
    return (Section(kind="reply", body=body, markers=(marker,)),)


def _solved(draft: Draft, citations: Citations) -> Section:
    """That it works, what helped, and the cause that this confirms."""
    language, markers = citations.language, []
    parts = [messages("reply.solved", language)]
    helped = draft.supposed.changed if draft.supposed is not None else ()
    if helped:
        parts.append(messages("reply.helped", language, changes=changes_in_words(helped, language, made=True)))
    if draft.helped is not None:
        markers.append(citations.case(draft.helped))
        name = "confirmed" if helped else "cause"
        title = draft.helped.title.get(language)
        parts.append(messages(f"reply.{name}", language, title=title, marker=f"[{markers[-1]}]"))
    return Section(kind="reply", body=" ".join(parts), markers=tuple(markers))


def holds(draft: Draft) -> bool:
    """Whether verdict and first cause are those of the answer before: then they are named and not told again."""
    message, diagnosis = draft.message, draft.diagnosis
    if not message.turns or message.relation is Relation.NEW_SYMPTOM:
        return False
    previous = message.turns[-1]
    return previous.verdict == diagnosis.verdict and previous.causes[:1] == tuple(
        cause.case.id for cause in diagnosis.causes[:1]
    )


def _first(diagnosis: Diagnosis, citations: Citations) -> tuple[str, int]:
    """The title and the marker of what the answer is about: the mechanism where its origin is not certain."""
    if (belief := diagnosis.mechanism) is not None:
        return belief.weighed.mechanism.title.get(citations.language), citations.mechanism(belief.weighed.mechanism)
    case = diagnosis.causes[0].case
    return case.title.get(citations.language), citations.case(case)


def held(draft: Draft, citations: Citations) -> Sections:
    """The verdict and the first cause in one line, and what would decide."""
    language, diagnosis = citations.language, draft.diagnosis
    named = bool(diagnosis.causes) and diagnosis.verdict in ("answered", "need_input")
    title, marker = _first(diagnosis, citations) if named else ("", 0)
    lines = []
    if named or diagnosis.verdict in ("no_fault", "not_in_kb"):
        text = messages(f"standing.{diagnosis.verdict}", language, title=title, marker=f"[{marker}]")
        name = "unchanged" if draft.supposed is None and holds(draft) else "as_sent"
        lines.append(messages(name, language, text=text))
    if diagnosis.missing:
        lines.append(messages("still_needed", language, ask=diagnosis.missing[0].ask.get(language)))
    markers = (marker,) if marker else ()
    return (Section(kind="unchanged", body="\n\n".join(lines), markers=markers),) if lines else ()


def _explanation(cause: Cause, diagnosis: Diagnosis, citations: Citations) -> Iterator[Section]:
    """What is going on, what of it was seen, and how to confirm it."""
    language, case = citations.language, cause.case
    title, marker = _first(diagnosis, citations)
    cited = f"[{marker}]"
    lead = messages("reply.explained", language, title=title, marker=cited)
    yield Section(kind="lead", body=lead, markers=(marker,))
    belief = diagnosis.differential.belief(cause)
    texts = [case.section("cause", language)] if diagnosis.mechanism is None else []
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
    confirm = case.section("confirm", language) if diagnosis.mechanism is None else ""
    if not confirm and belief is not None:
        confirm = belief.weighed.mechanism.section("confirm", language)
    if confirm.strip():
        heading = messages("headings.confirm", language)
        yield Section(kind="confirm", heading=heading, body=f"{confirm.rstrip()} {cited}", markers=(marker,))


def differing(draft: Draft) -> Difference | None:
    """The changes against the previous answer. Where a model has read the message, what was tried and what that rules
    out is the model's to say."""
    if draft.changes is None or draft.judgement is None:
        return draft.changes
    return replace(draft.changes, ruled_out=(), refuted=(), attempts=(), unknown=())


def changes_section(draft: Draft, citations: Citations) -> Sections:
    """A section on what the message said, and what it changed against the previous answer."""
    changes, language = differing(draft), citations.language
    if changes is None:
        return ()
    markers: list[int] = []
    items = list(_facts(changes, draft, citations, markers))
    for name, cases in (("ruled_out", changes.ruled_out), ("refuted", changes.refuted)):
        if cases:
            titles = joined([case.title.get(language) for case in cases], language)
            items.append(messages(f"changes.{name}", language, titles=titles))
    if changes.attempts:
        names = ("、" if language == "zh" else ", ").join(code(name) for name in changes.attempts)
        items.append(messages("changes.attempts", language, names=names))
    if changes.shown is not None:
        items.append(_shown(changes.shown, language))
    for name, findings in (("cleared", changes.cleared), ("new", changes.new), ("left", changes.left)):
        if findings and not (name == "left" and changes.differs):
            line, cited = cited_titles(findings, citations.rule, language)
            markers += cited
            items.append(messages(f"changes.{name}", language, titles=line))
    if changes.facts and not (changes.cleared or changes.new or changes.differs or changes.left):
        items.append(messages("changes.nothing", language))
    if changes.unstarted:
        items.append(messages("changes.unstarted", language))
    if not items:
        return ()
    body = "\n".join(f"- {item}" for item in items)
    heading = messages("changes.heading", language)
    return (Section(kind="changes", heading=heading, body=body, items=tuple(items), markers=tuple(markers)),)


def _facts(changes: Difference, draft: Draft, citations: Citations, markers: list[int]) -> Iterator[str]:
    """What was taken from the message for a fact and what was not, and findings that say something else since."""
    language, message = citations.language, draft.message
    for change in changes.facts:
        markers.append(citations.place((message.made.get(change.wording) or message.made[IT]).place))
        said = changes_in_words((change,), language, made=True)
        yield messages("changes.fact", language, change=said, marker=f"[{markers[-1]}]")
    for refused in changes.unknown:
        setting = draft.context.evidence.run.settings.get(setting_called(refused.name, draft.context.evidence.run))
        if refused.why == ALREADY and setting is not None and setting.span is not None and not setting.span.attachment:
            markers.append(citations.place(setting.span))
            said = f"{code(setting.name)} = {code(show(setting.value))}"
            yield messages("changes.fact", language, change=said, marker=f"[{markers[-1]}]")
            continue
        name = "already" if refused.why == ALREADY else "unknown"
        yield messages(f"changes.{name}", language, name=plain_text(refused.name), why=refused.why.get(language))
    if draft.judgement is None and message.corrects and not (changes.facts or changes.unknown):
        yield messages("changes.words", language)
        yield from _deciding(draft, citations, markers)
    for finding in changes.differs:
        markers.append(citations.rule(finding))
        text = split(finding.message.get(language), FOUND_WORDS)[0]
        yield messages("changes.differs", language, text=text, marker=f"[{markers[-1]}]")


def _deciding(draft: Draft, citations: Citations, markers: list[int]) -> Iterator[str]:
    """How the user can tell whether the first cause is it."""
    for cause in draft.diagnosis.causes[:1]:
        if text := split(cause.case.section("confirm", citations.language), VERIFY_WORDS)[0]:
            markers.append(citations.case(cause.case))
            yield messages("changes.decides", citations.language, text=text, marker=f"[{markers[-1]}]")


def _shown(shown: Failures, language: str) -> str:
    """Whether a new log shows the same failure as what was sent before, another one or none."""
    before, now = (_kinds(kinds, language) for kinds in (shown.before, shown.now))
    files = ("、" if language == "zh" else ", ").join(shown_name(name) for name in shown.files)
    name = "healthy" if not shown.now else "none_before" if not shown.before else "other_failure"
    before = before or messages("changes.no_failure", language)
    return messages(f"changes.{'same_failure' if shown.same else name}", language, files=files, before=before, now=now)


def _kinds(kinds: Sequence[str], language: str) -> str:
    names = [KINDS[kind].get(language) if kind in KINDS else f"`{kind}`" for kind in kinds[:MAX_KINDS]]
    return joined(names, language)


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
