"""The prompt of a diagnosis. Its beginning is the same for all questions, and the rest grows from turn to turn, so that
the server has most of it cached. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from trainmedic.kb.identities import Identities, identities_of, mask_identities
from trainmedic.service.answer.messages import messages
from trainmedic.service.diagnosis.brief import Brief, Line
from trainmedic.service.llm.chat_client import Message
from trainmedic.service.pipeline import Draft

LANGUAGES = {"en": "English", "zh": "Simplified Chinese (简体中文)"}
MAX_EARLIER = 1_200
"""Code points of an earlier message."""
MOST_EARLIER = 6


@cache
def instructions() -> str:
    return files("trainmedic.service.diagnosis").joinpath("instructions.md").read_text(encoding="utf-8").strip()


def prompt_of(draft: Draft, brief: Brief) -> tuple[Message, ...]:
    """Without the names of people and machines that anything in the conversation tells."""
    text = mask_identities(_told(draft, brief), identities_in(draft))
    return (Message(role="system", content=instructions()), Message(role="user", content=text))


def identities_in(draft: Draft) -> Identities:
    """The names of people and machines in the conversation."""
    evidence = draft.context.evidence
    return identities_of((evidence.question, *(source.text for source in evidence.sources)))


def _told(draft: Draft, brief: Brief) -> str:
    mark = data_mark([*(turn.question for turn in draft.earlier), draft.context.evidence.question, brief.text])
    parts = []
    for name in dict.fromkeys(line.source for line in brief.lines):
        shown = [line for line in brief.lines if line.source == name]
        heading = messages("question", "en") if name is None else name
        if name is None:
            parts.append(_earlier(draft, mark))
        parts.append(f"# {delimited(mark, heading)}\n{delimited(mark, _numbered(shown))}")
    facts = "\n".join(f"{fact.id} {fact.text}" for fact in brief.facts)
    parts.append(f"# Facts\n{delimited(mark, facts)}" if facts else "# Facts\nnone")
    candidates = "\n".join(f"{candidate.id} {candidate.text}" for candidate in brief.candidates)
    parts.append(f"# Candidates\n{candidates or 'none'}")
    parts.append(f"Write in {LANGUAGES[draft.language]}.")
    return "\n\n".join(part for part in parts if part)


def _earlier(draft: Draft, mark: str) -> str:
    """The earlier turns with what was answered, the latest last."""
    lines = []
    for turn in draft.message.spoken[-MOST_EARLIER:]:
        lines.append(f"user: {delimited(mark, turn.question[:MAX_EARLIER])}")
        if turn.said:
            lines.append(f"answered ({turn.verdict}): {' '.join(turn.said.split())}")
    return "# Conversation so far\n" + "\n".join(lines) if lines else ""


def _numbered(lines: Sequence[Line]) -> str:
    """The lines of one text, with an ellipsis where some are left out."""
    shown, last = [], 0
    for line in lines:
        if line.number != last + 1 and last:
            shown.append("…")
        shown.append(f"{line.id} {line.number}: {line.text}")
        last = line.number
    return "\n".join(shown)


def data_mark(texts: Sequence[str]) -> str:
    """A mark that none of the texts contains, so that pasted text cannot close its own delimiter.

    A digest of the first text rather than a random number: all turns of a conversation then begin alike, and the server
    has that cached.
    """
    joined = "\0".join(texts)
    mark = blake2b(texts[0].encode("utf-8", "replace"), digest_size=6).hexdigest()
    while mark in joined:
        mark = blake2b(mark.encode(), digest_size=6).hexdigest()
    return mark


def delimited(mark: str, text: str) -> str:
    return f"<data-{mark}>{text}</data-{mark}>"
