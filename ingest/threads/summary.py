"""Symptom and resolution, in the words of a write-up or discussion. Pure.

Extractive: every passage is quoted as it is written, with who wrote it; nothing is put together or reworded. Where
no one says what resolved a discussion, it has no resolution.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from trainmedic.ingest.drafts.sections import by_section
from trainmedic.ingest.items import Discussion, Document, Message, shortened
from trainmedic.ingest.read.markdown import tokens
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.threads.thread import Quote, Role

_ENDS = regex(r"[。！？]|[.!?](?= |$)")
MOST_QUOTES = 3
LONGEST_QUOTE = 400
"""Code points of one passage."""
LONGEST_PROSE = 12_000
"""Code points of one message."""
LEAST_SENTENCE = 8
ENOUGH = 2.0
"""The least weight of a message that resolves a discussion."""
RESOLVED_WORDS = (
    *("fixed by", "fixed in", "fixed it", "fixes it", "fix it", "fixes the", "fixes this", "solved"),
    *("resolved", "works now", "works for me", "it works after", "worked for me", "helped", "the fix is"),
    *("the solution", "workaround", "upgrade to", "upgrading to", "downgrad", "please use"),
    *("please upgrade", "please update", "you need to", "you have to", "you should", "should be set"),
    *("must be set", "instead of", "已修复", "修复了", "已解决", "解决了", "解决方法", "解决办法"),
    *("升级到", "降级到", "改成", "改为", "换成", "设置为", "设为", "加上", "去掉", "就好了", "就可以了"),
    *("就行了", "可以了", "更新到最新"),
)
CAUSE_WORDS = (
    *("the cause", "root cause", "caused by", "because", "the reason", "the problem is", "the issue is"),
    *("turns out", "turned out", "due to", "expected behavior", "expected behaviour", "by design"),
    *("not a bug", "is not supported", "原因是", "原因在于", "因为", "由于", "是因为", "根本原因"),
    *("问题出在", "不支持", "预期行为", "不是 bug"),
)
_AGREES = (
    *("same issue", "same problem", "same error", "same here", "any update", "any progress"),
    *("any solution", "+1", "also encounter", "me too", "inactive", "stale", "同样的问题", "一样的问题"),
    *("同问", "遇到了同样", "请问解决了吗", "有进展吗"),
)
_ASKS = (
    *("can you share", "could you share", "could you provide", "can you provide", "could you try"),
    *("can you try", "please provide", "please share", "what version", "which version", "please try"),
    *("请提供", "麻烦提供", "能否提供", "试一下", "什么版本"),
)
"""Words that say that something helped, what the cause is, that someone has it too, and that ask back."""


def of_discussion(
    discussion: Discussion, evidence: Evidence, end: int
) -> tuple[tuple[Quote, ...], tuple[Quote, ...], Role | None]:
    """(symptom, resolution, who resolved it); ``end`` is the last line of the problem in what ``evidence`` is of."""
    first = discussion.messages[0]
    symptom = (Quote(text=_cut(discussion.title), role="reporter"), *_failure(first, evidence, end))
    number = answer_of(discussion)
    if number is None:
        return symptom, (), None
    message = discussion.messages[number]
    quotes = tuple(Quote(text=text, role=message.role, message=number + 1) for text in telling(message.text))
    return symptom, quotes, message.role if quotes else None


def answer_of(discussion: Discussion) -> int | None:
    """The index of the message that most speaks for telling what resolved the discussion; None if none does."""
    weighed = [
        (weight(message, discussion.resolved), -number)
        for number, message in enumerate(discussion.messages)
        if number > 0
    ]
    most, number = max(weighed, default=(0.0, 0))
    return -number if most >= ENOUGH else None


def of_document(document: Document) -> tuple[tuple[Quote, ...], tuple[Quote, ...], Role | None]:
    """(symptom, resolution, who resolved it) of a write-up, by its headings."""
    title = Quote(text=_cut(document.title), role="author")
    seen, causes, fixes = (_quotes(document, section) for section in ("symptom", "cause", "fix"))
    resolution = (*causes[:1], *fixes[:2])
    return (title, *seen[:2]), resolution, "author" if resolution else None


def weight(message: Message, resolved: bool) -> float:
    """How much speaks for a message telling what resolved the discussion."""
    said = prose(message.text).casefold()
    total = 4.0 * message.accepted
    total += 1.5 * (message.role == "maintainer") + 0.5 * resolved
    total += min(2, sum(cue in said for cue in RESOLVED_WORDS)) * 1.5
    total += min(1, sum(cue in said for cue in CAUSE_WORDS)) * 1.0
    total -= 2.5 * any(cue in said for cue in _AGREES)
    total -= 1.5 * (said.rstrip().endswith(("?", "？")) or any(cue in said for cue in _ASKS))
    # A pasted log or a stack of configurations is one more report.
    return total - 1.5 * (len(message.text) > 4 * max(80, len(said)))


def telling(text: str) -> tuple[str, ...]:
    """The sentences of a message that say what the cause is or what helped, each with the one after it, which tells
    what to do; else its first ones."""
    listed = list(sentences(prose(text)))
    marked = {
        n
        for n, sentence in enumerate(listed)
        if any(cue in sentence.casefold() for cue in (*RESOLVED_WORDS, *CAUSE_WORDS))
    }
    chosen = sorted(marked | {n + 1 for n in marked}) or range(len(listed))
    return tuple(_cut(listed[n]) for n in chosen if n < len(listed))[:MOST_QUOTES]


@lru_cache(maxsize=64)  # each message is weighed before one is quoted
def prose(text: str) -> str:
    """The start of a text without its fenced blocks, marks and code spans as they are written."""
    return "\n".join(token.content for token in tokens(text[:LONGEST_PROSE]) if token.type == "inline")


def sentences(text: str, least: int = LEAST_SENTENCE) -> Iterator[str]:
    """The sentences of prose with at least ``least`` letters and digits, one by one; a line break ends one."""
    for line in text.splitlines():
        start = 0
        for end in _ENDS.finditer(line):
            yield from _said(line[start : end.end()], least)
            start = end.end()
        yield from _said(line[start:], least)


def _said(sentence: str, least: int) -> Iterator[str]:
    sentence = " ".join(sentence.split())
    if sum(map(str.isalnum, sentence)) >= least:
        yield sentence


def _failure(message: Message, evidence: Evidence, end: int) -> tuple[Quote, ...]:
    """The line of the first message, up to line ``end`` of what was read, that shows what failed, else its first
    sentence."""
    traces = [trace for trace in evidence.tracebacks if trace.span.line <= end]
    root = next((trace for trace in traces if trace.root), next(iter(traces), None))
    if root is not None:
        return (Quote(text=_cut(f"{root.exception}: {root.message.strip()}"), role="reporter"),)
    signals = (signal for signal in evidence.signals if signal.span.line <= end and not signal.stated)
    line = next((signal.span.text for signal in signals if signal.span.text), "")
    text = line or next(sentences(prose(message.text)), "")
    return (Quote(text=_cut(" ".join(text.split())), role="reporter"),) if text.strip() else ()


def _quotes(document: Document, section: str) -> tuple[Quote, ...]:
    """The first sentences below the headings of a section."""
    told = (b.text for named, b in by_section(document.blocks) if named == section and b.kind in ("text", "item"))
    listed = (Quote(text=_cut(sentence), role="author") for text in told for sentence in sentences(text))
    return tuple(islice(listed, MOST_QUOTES))


def _cut(text: str) -> str:
    return shortened(text, LONGEST_QUOTE)
