"""Incidents from outside asked on: the questions of an answer are replied to with what the reporter said later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.evaluation.causes import share
from trainmedic.ui.evaluation.outside import GIVEN, Incident, Result, Scorer, mentions

REPLIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "setting:weights_dtype": ("dtype",),
        "setting:num_gpus": ("n_gpus",),
        "setting": ("config", "command"),
        "option": ("config", "command"),
        "metric": ("log",),
        "version": ("pip",),
    }
)
"""As `GIVEN`, for what a reporter can still say (`Incident.later`): a fact, or all facts of a kind."""
MESSAGES = 4
"""Replies after which a replayed conversation ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """An incident that was not answered rightly at once, and what replying to the questions of the answers led to.

    ``asked`` and ``supplied`` are facts, each once; ``messages`` counts the replies. ``before`` is the first answer's
    result, ``after`` the last one's.
    """

    before: Result
    after: Result
    asked: tuple[str, ...]
    supplied: tuple[str, ...]
    messages: int


def replay(
    incidents: Iterable[Incident], answer: Callable[[Ask], Answer], scorer: Scorer, languages: Sequence[str] = ("",)
) -> tuple[Conversation, ...]:
    """The incidents with a cause that are not answered rightly, asked on: every fact that an answer asks for and that
    came up later in the thread is sent as the next message of the conversation.

    ``answer`` must keep conversations by their id.
    """
    conversations = []
    for incident in incidents:
        for language in languages if incident.expect == "cause" else ():
            first = answer(incident.ask(language))
            before = scorer.result(incident, language or incident.language, first)
            if not before.answered:
                conversations.append(_asked_on(before, first, answer, scorer))
    return tuple(conversations)


def _asked_on(before: Result, first: Answer, answer: Callable[[Ask], Answer], scorer: Scorer) -> Conversation:
    incident, latest, after = before.incident, first, before
    asked: dict[str, tuple[str, ...]] = {}
    sent: set[str] = set()
    messages = 0
    while messages < MESSAGES and not after.answered:
        asked.update((item.fact, replies(item.fact, incident)) for item in latest.missing)
        names = sorted({name for item in latest.missing for name in asked[item.fact]} - sent)
        if not names:
            break
        sent.update(names)
        messages += 1
        text = "\n".join(_said(name, incident) for name in names)
        latest = answer(Ask(question=text, conversation_id=first.conversation_id))
        after = scorer.result(incident, before.language, latest)
    supplied = tuple(fact for fact, names in asked.items() if names)
    return Conversation(before=before, after=after, asked=tuple(asked), supplied=supplied, messages=messages)


def replies(fact: str, incident: Incident) -> tuple[str, ...]:
    """The names of what a reporter can send when asked for a fact (keys of `Incident.later`)."""
    kind, _, name = fact.partition(":")
    names = {fact, *GIVEN.get(fact, ()), *REPLIES.get(fact, REPLIES.get(kind, ()))}
    if fact == f"version:{incident.family}":
        names.add("framework_version")
    if kind == "version" and not mentions(incident.later.get("pip", ""), ((name,),)):
        names.discard("pip")
    return tuple(sorted(names & incident.later.keys()))


def _said(name: str, incident: Incident) -> str:
    """One fact as a reporter writes it: a version with its package."""
    value = incident.later[name]
    package = incident.family if name == "framework_version" else name.removesuffix("_version")
    return value if not name.endswith("_version") or package in value.lower() else f"{package} {value}"


def replay_table(conversations: Sequence[Conversation]) -> str:
    """How many turn right, after how many messages, and how many of the facts asked for could be sent."""
    replied = [one for one in conversations if one.messages]
    turned = Counter(one.messages for one in conversations if one.after.answered)
    facts = [fact in one.supplied for one in conversations for fact in one.asked]
    lines = [
        f"not answered rightly at once      {len(conversations)}",
        f"the reporter could reply          {share(bool(one.messages) for one in conversations)}",
        f"facts asked for that came up      {share(facts)}",
        f"turned right                      {share(one.after.answered for one in conversations)}",
        f"turned right, of those replied to {share(one.after.answered for one in replied)}",
        *(f"  after {messages} message{'s' * (messages > 1)}: {turned[messages]}" for messages in sorted(turned)),
        f"right cause first, of those replied to: {share(one.before.first for one in replied)} before, "
        f"{share(one.after.first for one in replied)} after",
    ]
    return "\n".join(lines) + "\n"
