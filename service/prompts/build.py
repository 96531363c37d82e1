"""The prompt of one answer, within a budget of real tokens. Pure but for the counting, which is handed in.

The order keeps a long common beginning: the fixed text, then the cases by id. What is pasted comes last, between marks
that its own text cannot close, and is the first to be left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from kb.model.place import Source as Pasted
from service import phrases
from service.advisor import Prepared
from service.model import Message
from service.prompts.sources import Source, sources_of

Count = Callable[[Sequence[str]], Awaitable[list[int]]]
MARGIN = 96
"""Tokens kept free for what a chat template adds."""
AROUND = 4
"""Lines shown on either side of a place."""
HEAD, TAIL = 24, 16
"""Lines of a pasted text in which no place is known."""
MAX_LINE = 240
EARLIER = 3
"""Turns of the conversation that are repeated."""
LANGUAGES = {"en": "English", "zh": "Simplified Chinese (简体中文)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Messages, the sources that they number, what was left out for lack of room, and how many tokens it takes."""

    messages: tuple[Message, ...]
    sources: tuple[Source, ...]
    left_out: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the prompt: ``rank`` 0 is never left out, the highest goes first; ``name`` is what users read."""

    rank: int
    name: str
    text: str


@cache
def system_text() -> str:
    """The fixed instructions, the same for every question."""
    return files("service.prompts").joinpath("system.md").read_text(encoding="utf-8").strip()


async def build(prepared: Prepared, count: Count, *, context_tokens: int, max_tokens: int) -> Prompt:
    """The prompt that leaves ``max_tokens`` of ``context_tokens`` for the answer."""
    sources = sources_of(prepared)
    parts = _parts(prepared, sources)
    system = system_text()
    sizes = await count([system, *(part.text for part in parts)])
    room = context_tokens - max_tokens - MARGIN - sizes[0]
    total = sum(sizes[1:])
    dropped: set[int] = set()
    for number in sorted(range(len(parts)), key=lambda n: (-parts[n].rank, -n)):
        if total <= room or parts[number].rank == 0:
            break
        dropped.add(number)
        total -= sizes[number + 1]
    kept = [part.text for number, part in enumerate(parts) if number not in dropped]
    left_out = tuple(dict.fromkeys(parts[number].name for number in sorted(dropped)))
    return Prompt(
        messages=(Message(role="system", content=system), Message(role="user", content="\n\n".join(kept))),
        sources=sources,
        left_out=left_out,
        tokens=total + sizes[0],
    )


def _parts(prepared: Prepared, sources: Sequence[Source]) -> list[_Part]:
    """Everything there is to say, in the order in which it is said."""
    language = prepared.answer.language
    first = prepared.diagnosis.causes[0].case.id if prepared.diagnosis.causes else ""
    evidence = prepared.context.evidence
    mark = _mark([evidence.question, *(source.text for source in evidence.sources)])
    parts = [_Part(0, "", "# Sources")]
    for source in sources:
        if source.kind == "input":
            continue
        rank = 1 if source.id == first or source.kind == "rule" else 4
        parts.append(
            _Part(rank, source.id, f"[{source.marker}] {source.kind} {source.id}: {source.title}\n{source.text}")
        )
    places = [source for source in sources if source.kind == "input"]
    if places:
        lines = "\n".join(
            f"[{source.marker}] pasted at {source.title}: {_data(mark, source.text)}" for source in places
        )
        parts.append(_Part(2, phrases.PLACES.get(language), lines))
    parts.append(_Part(0, "", _decided(prepared, sources)))
    for turn in prepared.earlier[-EARLIER:]:
        parts.append(_Part(5, phrases.EARLIER.get(language), f"# Asked before\n{_data(mark, turn.question[:600])}"))
    for pasted in evidence.sources:
        if pasted.name is not None and pasted.text.strip():
            text = f"# Pasted: {_data(mark, pasted.name)}\n{_data(mark, excerpt(pasted, prepared))}"
            parts.append(_Part(3, pasted.name, text))
    parts.append(_Part(0, "", f"# Question\n{_data(mark, evidence.question.strip()[:4000])}"))
    parts.append(_Part(0, "", f"Write the answer in {LANGUAGES[language]}, every sentence with its marker."))
    return parts


def _decided(prepared: Prepared, sources: Sequence[Source]) -> str:
    """What the program has settled."""
    markers = {source.id: source.marker for source in sources if source.kind == "case"}
    causes = [f"[{markers[cause.case.id]}] confidence {cause.confidence}" for cause in prepared.diagnosis.causes]
    lines = [
        "# Settled",
        f"verdict: {prepared.answer.verdict}",
        f"causes, likeliest first: {'; '.join(causes) or 'none'}",
    ]
    lines += [f"missing fact: {view.ask} {view.why}" for view in prepared.answer.missing]
    return "\n".join(lines)


def excerpt(pasted: Pasted, prepared: Prepared) -> str:
    """The lines around what the program saw in a pasted text, numbered; else its beginning and end."""
    report, evidence = prepared.context.report, prepared.context.evidence
    spans = [span for finding in report.findings for span in finding.evidence if not span.default]
    spans += [signal.span for signal in evidence.signals]
    spans += [trace.span for trace in evidence.tracebacks]
    lines = pasted.text.split("\n")
    wanted: set[int] = set()
    for span in spans:
        if span.attachment == pasted.name:
            wanted.update(range(span.line - AROUND, min(span.end_line, span.line + 2 * AROUND) + AROUND + 1))
    if not wanted:
        wanted = {*range(1, HEAD + 1), *range(len(lines) - TAIL + 1, len(lines) + 1)}
    shown: list[str] = []
    last = 0
    for number in sorted(n for n in wanted if 1 <= n <= len(lines)):
        if number != last + 1 and shown:
            shown.append("…")
        shown.append(f"{number}: {lines[number - 1][:MAX_LINE]}")
        last = number
    return "\n".join(shown)


def _mark(texts: Sequence[str]) -> str:
    """A mark that stands in none of the texts: a digest of all of them, so the same question has the same prompt."""
    joined = "\0".join(texts)
    mark = blake2b(joined.encode("utf-8", "replace"), digest_size=6).hexdigest()
    while mark in joined:
        mark = blake2b(mark.encode(), digest_size=6).hexdigest()
    return mark


def _data(mark: str, text: str) -> str:
    return f"<data-{mark}>{text}</data-{mark}>"
