"""A resolved discussion as a write-up, so that it can become a draft. Pure.

Nothing is reworded: the first message is the problem, the message that resolved it the cause and the solution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainmedic.ingest.items import Block, Discussion, Message
from trainmedic.ingest.read.blocks import markdown_blocks
from trainmedic.ingest.threads.summary import CAUSE_WORDS, RESOLVED_WORDS, answer_of, prose, sentences, weight

LEAST_REPLY = 20
"""Letters and digits of a reply that says something of its own."""
# Shorter than what counts as a line that the write-ups of a batch have in common.
PROBLEM, REPLIES, CAUSE, SOLUTION, CONFIRMED = "Problem", "Replies", "Root cause", "Solution", "Confirmed"


def write_up(discussion: Discussion) -> tuple[Block, ...]:
    """The blocks of a write-up, the title first; none if it is not resolved or no one says by what."""
    number = answer_of(discussion) if discussion.resolved else None
    if number is None:
        return ()
    messages = discussion.messages
    cause, solution = _cause_and_solution(messages[number].text)
    sections = {
        REPLIES: _told(messages[1:number]),
        CAUSE: cause,
        SOLUTION: solution,
        CONFIRMED: _told(messages[number + 1 :]),
    }
    return (
        *problem(replace(discussion, messages=messages[:1])),
        *(block for heading, told in sections.items() if told for block in (_heading(heading), *told)),
    )


def problem(discussion: Discussion) -> tuple[Block, ...]:
    """The blocks of a discussion that is all problem, the title first."""
    title = Block(kind="heading", text=discussion.title, level=1)
    told = (block for message in discussion.messages for block in markdown_blocks(message.text))
    return (title, _heading(PROBLEM), *told)


def _heading(text: str) -> Block:
    return Block(kind="heading", text=text, level=2)


def _told(replies: tuple[Message, ...]) -> tuple[Block, ...]:
    """What the replies add: no "same here", no bare question or thanks."""
    telling = (
        reply
        for reply in replies
        if "```" in reply.text
        or (weight(reply, resolved=False) > -1 and sum(map(str.isalnum, prose(reply.text))) >= LEAST_REPLY)
    )
    return tuple(block for reply in telling for block in markdown_blocks(reply.text))


def _cause_and_solution(text: str) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """What a message says of the cause, all of it if it names none as such, and what it says of the remedy."""
    causes: list[Block] = []
    solutions: list[Block] = []
    blocks = tuple(markdown_blocks(text))
    for part in _parts(blocks):
        folded = part.text.casefold()
        explains = any(cue in folded for cue in CAUSE_WORDS)
        if explains:
            causes.append(part)
        if not explains or any(cue in folded for cue in RESOLVED_WORDS):
            solutions.append(part)
    if not causes:
        return blocks, blocks if any(cue in text.casefold() for cue in RESOLVED_WORDS) else ()
    return tuple(causes), tuple(solutions)


def _parts(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """The sentences of the blocks, and code whole."""
    for block in blocks:
        if block.kind == "code":
            yield block
        else:
            yield from (replace(block, text=sentence) for sentence in sentences(block.text, 1))
