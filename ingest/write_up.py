"""A resolved discussion as a write-up, so that it can become a draft. Pure.

Nothing is reworded: the first message is the problem, the message that resolved it the cause and the solution.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainmedic.ingest.document import Discussion, Message, Raw
from trainmedic.ingest.summary import CAUSE_WORDS, RESOLVED_WORDS, answer_of, prose, sentences, weight
from trainmedic.kb.fences import fence_after

LEAST_REPLY = 20
"""Letters and digits of a reply that says something of its own."""
# Shorter than what counts as a line that the write-ups of a batch have in common.
PROBLEM, REPLIES, CAUSE, SOLUTION, CONFIRMED = "Problem", "Replies", "Root cause", "Solution", "Confirmed"


def write_up(discussion: Discussion) -> Raw | None:
    """The discussion as Markdown; None if it is not resolved or nobody says by what."""
    number = answer_of(discussion) if discussion.resolved else None
    if number is None:
        return None
    messages = discussion.messages
    cause, solution = _cause_and_solution(messages[number].text)
    before, after = (
        "\n\n".join(reply.text for reply in replies if _tells(reply))
        for replies in (messages[1:number], messages[number + 1 :])
    )
    sections = {
        PROBLEM: messages[0].text,
        REPLIES: before,
        CAUSE: cause,
        SOLUTION: solution,
        CONFIRMED: after,
    }
    parts = [f"# {discussion.title}", *(f"## {heading}\n\n{text}" for heading, text in sections.items() if text)]
    return Raw(
        origin=discussion.origin,
        content="\n\n".join(parts) + "\n",
        format="markdown",
        url=discussion.url,
        key=discussion.key,
        updated=discussion.updated,
    )


def _tells(reply: Message) -> bool:
    """Whether a reply adds something: no "same here", no bare question or thanks."""
    return "```" in reply.text or (
        weight(reply, resolved=False) > -1 and sum(map(str.isalnum, prose(reply.text))) >= LEAST_REPLY
    )


def _cause_and_solution(text: str) -> tuple[str, str]:
    """What a message says of the cause, all of it if it names none as such, and what it says of the remedy."""
    causes: list[str] = []
    solutions: list[str] = []
    for part in _parts(text):
        folded = part.casefold()
        explains = any(cue in folded for cue in CAUSE_WORDS)
        if explains:
            causes.append(part)
        if not explains or any(cue in folded for cue in RESOLVED_WORDS):
            solutions.append(part)
    if not causes:
        return text, text if any(cue in text.casefold() for cue in RESOLVED_WORDS) else ""
    return "\n\n".join(causes), "\n\n".join(solutions)


def _parts(text: str) -> Iterator[str]:
    """The sentences of a message, and its fenced blocks whole."""
    block: list[str] = []
    fence = ""
    for line in text.splitlines():
        before, fence = fence, fence_after(line, fence)
        if before or fence:
            block.append(line)
            if not fence:
                yield "\n".join(block)
                block = []
        else:
            yield from sentences(line, 1)
    if block:
        yield "\n".join((*block, fence))
