"""The prompt of one answer, within a token budget. Pure, except for the token counter that is passed in.

Prompts share a long prefix, which the server caches: the instructions, then the cases by id. Pasted text comes last,
between marks that it cannot contain. What does not fit is left out: earlier turns first, then the less likely cases,
then pasted texts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from trainmedic.kb.identities import Identities, identities_of, mask_identities
from trainmedic.kb.model.place import Source as Pasted
from trainmedic.service.answer.differential import Reasons
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.what_if import settled
from trainmedic.service.llm.chat import Message
from trainmedic.service.llm.prompts.data_marks import data_mark, delimited
from trainmedic.service.llm.prompts.sources import Source, case_text, considered, more_text, seen_at, sources_of
from trainmedic.service.pipeline import Draft

FEWEST_BYTES = 2
"""The fewest bytes a token: no tokenizer in use makes more tokens, except of long rows of digits."""
Count = Callable[[Sequence[str]], Awaitable[list[int]]]
MARGIN = 96
"""Tokens left free for the chat template."""
AROUND = 4
"""Lines shown on either side of a place."""
MAX_EXCERPT = 60
"""Lines shown of one pasted text."""
HEAD, TAIL = 24, 16
"""Lines shown of a pasted text without any evidence."""
MAX_LINE = 240
MAX_QUESTION = 4_000
MAX_EARLIER = 600
"""Code points of a line, of the question and of an earlier one."""
EARLIER = 3
"""Earlier turns of the conversation in the prompt."""
LANGUAGES = {"en": "English", "zh": "Simplified Chinese (简体中文)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The messages with their sources, their token count, and the names of what was left out."""

    messages: tuple[Message, ...]
    sources: tuple[Source, ...]
    left_out: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class _PromptPart:
    """A part of the prompt, left out by descending ``rank`` (0: never); ``markers`` are the sources in it."""

    rank: float
    name: str
    text: str
    markers: tuple[int, ...] = ()


@cache
def system_text() -> str:
    return files("trainmedic.service.llm.prompts").joinpath("system.md").read_text(encoding="utf-8").strip()


async def build(prepared: Draft, count: Count, *, context_tokens: int, max_tokens: int) -> Prompt:
    """The prompt that leaves ``max_tokens`` of ``context_tokens`` for the answer.

    Tokens are counted only if the number of bytes does not already show that everything fits.
    """
    sources, language = sources_of(prepared), prepared.language
    # Before they are counted, which the endpoint may do.
    known = identities_in(prepared)
    parts = [replace(part, text=mask_identities(part.text, known)) for part in _parts(prepared, sources)]
    system, everything = system_text(), "\n\n".join(part.text for part in parts)
    free = context_tokens - max_tokens - MARGIN
    # An upper bound that needs no call: most prompts fit, and counting costs a round trip.
    total = sum(-(-len(text.encode("utf-8", "replace")) // FEWEST_BYTES) for text in (system, everything))
    sizes = [0] * (len(parts) + 1)
    if total > free:
        total = sum(await count([system, everything]))
    if total > free:
        sizes = await count([system, *(f"{part.text}\n\n" for part in parts)])
        total = sum(sizes)
    dropped: set[int] = set()
    # Highest rank first, and of equal ranks the last, so that what is kept stays a prefix.
    for number in sorted(range(len(parts)), key=lambda n: (-parts[n].rank, -n)):
        if total <= free or parts[number].rank == 0:
            break
        dropped.add(number)
        total -= sizes[number + 1]
    included = [part.text for number, part in enumerate(parts) if number not in dropped]
    left_out = [parts[number].name for number in sorted(dropped)]
    if len(prepared.context.evidence.question.strip()) > MAX_QUESTION:
        left_out.append(messages("question", language) + messages("cut", language))
    omitted = {marker for number in dropped for marker in parts[number].markers}
    return Prompt(
        messages=(Message(role="system", content=system), Message(role="user", content="\n\n".join(included))),
        sources=tuple(source for source in sources if source.marker not in omitted),
        left_out=tuple(dict.fromkeys(left_out)),
        tokens=total,
    )


def without_identities(text: str, prepared: Draft) -> str:
    """``text`` without the names of people and machines that anything in the conversation tells.

    `llm.chat_client` masks each request once more; it sees less of the conversation.
    """
    return mask_identities(text, identities_in(prepared))


def identities_in(prepared: Draft) -> Identities:
    evidence = prepared.context.evidence
    return identities_of((evidence.question, *(source.text for source in evidence.sources)))


def _parts(prepared: Draft, sources: Sequence[Source]) -> list[_PromptPart]:
    language = prepared.language
    evidence = prepared.context.evidence
    texts = [evidence.question, *(turn.question for turn in prepared.earlier)]
    mark = data_mark([*texts, *(f"{source.name}\0{source.text}" for source in evidence.sources)])
    parts = [_PromptPart(0, "", "# Sources"), *_cases(prepared, sources)]
    seen = seen_at(prepared, sources)
    for source in sources:
        if source.kind == "rule":
            where = "".join(f"[{marker}]" for marker in seen[source.id])
            # The sentence is ours, but it contains pasted values.
            text = f"[{source.marker}] rule {source.id}:\n{delimited(mark, f'{source.title}{chr(10)}{source.text}')}"
            text += f"\nseen at: {where}" if where else ""
            parts.append(_PromptPart(1, source.id, text, (source.marker,)))
    places = [source for source in sources if source.kind == "input"]
    if places:
        lines = "\n".join(
            f"[{place.marker}] pasted at {delimited(mark, place.title)}: {delimited(mark, place.quote or place.text)}"
            for place in places
        )
        parts.append(_PromptPart(2, messages("places", language), lines, tuple(source.marker for source in places)))
    parts.append(_PromptPart(0, "", _decided(prepared, sources, mark)))
    for age, turn in enumerate(prepared.earlier[: -EARLIER - 1 : -1]):
        text = f"# Asked before\n{delimited(mark, turn.question[:MAX_EARLIER])}"
        parts.insert(len(parts) - age, _PromptPart(5 + age / 100, messages("earlier", language), text))
    for number, pasted in enumerate(_pasted(prepared)):
        text = f"# Pasted: {delimited(mark, pasted.name or '')}\n{delimited(mark, excerpt(pasted, prepared))}"
        parts.append(_PromptPart(3 + number / 1000, pasted.name or "", text))
    parts.append(_PromptPart(0, "", f"# Question\n{delimited(mark, evidence.question.strip()[:MAX_QUESTION])}"))
    parts.append(_PromptPart(0, "", f"Write the answer in {LANGUAGES[language]}, every sentence with its marker."))
    return parts


def _cases(prepared: Draft, sources: Sequence[Source]) -> Iterator[_PromptPart]:
    """The cases by id, worded the same whichever is most likely; then the rest of the most likely one."""
    language = prepared.language
    by_id = {source.id: source for source in sources if source.kind == "case"}
    places = {cause.case.id: place for place, cause in enumerate(prepared.diagnosis.causes)}
    # By id and not by rank: two questions with the same candidates then share the cached prefix.
    for case in considered(prepared):
        place = places.get(case.id, 0)
        source = by_id[case.id]
        text = f"{_heading(source)}\n{case_text(case, language)}"
        yield _PromptPart(4 + place / 100 if place else 1, case.id, text, (source.marker,))
    for cause in prepared.diagnosis.causes[:1]:
        marker = by_id[cause.case.id].marker
        yield _PromptPart(1, cause.case.id, f"More of [{marker}]:\n{more_text(cause.case, language)}")


def _heading(source: Source) -> str:
    return f"[{source.marker}] {source.kind} {source.id}: {source.title}"


def _pasted(prepared: Draft) -> Iterator[Pasted]:
    """The attachments, without earlier questions, which are sources too."""
    attached = {attachment.name for attachment in prepared.request.attachments}
    earlier = {turn.question for turn in prepared.earlier}
    for pasted in prepared.context.evidence.sources:
        is_question = pasted.name not in attached and pasted.text in earlier
        if pasted.name is not None and pasted.text.strip() and not is_question:
            yield pasted


def _decided(prepared: Draft, sources: Sequence[Source], mark: str) -> str:
    """The verdict and the differential: each cause with what speaks for and against it."""
    diagnosis, language = prepared.diagnosis, prepared.language
    markers = {source.id: source.marker for source in sources if source.kind == "case"}
    lines = ["# Settled", f"verdict: {prepared.diagnosis.verdict}"]
    if diagnosis.mechanism is not None:
        lines.append(f"what is going on: [{markers[diagnosis.mechanism.id]}]; where it comes from is not certain")
    lines.append("causes, likeliest first:" if diagnosis.causes else "causes, likeliest first: none")
    for cause in diagnosis.causes:
        lines.append(f"- [{markers[cause.case.id]}] {cause.case.id} (confidence {cause.confidence})")
        reasons = Reasons(cause, prepared.context, language)
        for name, statements in (("for", reasons.supports()), ("against", reasons.contradicts())):
            lines += [f"  {name}: {delimited(mark, statement.text)}" for statement in statements]
    lines += [
        f"missing fact: {delimited(mark, f'{item.ask.get(language)} {item.why.get(language)}')}"
        for item in prepared.diagnosis.missing
    ]
    if prepared.supposed is not None:
        changes, *effects = settled(prepared.supposed, next(iter(prepared.diagnosis.causes), None))
        lines += [delimited(mark, changes), *effects]  # its values are the user's words
    return "\n".join(lines)


def excerpt(pasted: Pasted, prepared: Draft) -> str:
    """The numbered lines around the evidence in a pasted text; without evidence, its beginning and end."""
    report, evidence = prepared.context.report, prepared.context.evidence
    spans = [span for finding in report.findings for span in finding.evidence if not span.default]
    spans += [signal.span for signal in evidence.signals]
    spans += [trace.span for trace in evidence.tracebacks]
    lines = pasted.text.split("\n")
    numbers: set[int] = set()
    for span in spans:
        # A traceback of hundreds of lines would otherwise fill the excerpt alone.
        if span.attachment == pasted.name and len(numbers) < MAX_EXCERPT:
            last = min(span.end_line, span.line + 2 * AROUND) + AROUND
            numbers.update(range(max(1, span.line - AROUND), min(last, len(lines)) + 1))
    if not numbers:
        numbers = {*range(1, HEAD + 1), *range(len(lines) - TAIL + 1, len(lines) + 1)}
    excerpt_lines: list[str] = []
    last = 0
    for number in sorted(n for n in numbers if 1 <= n <= len(lines)):
        if number != last + 1 and excerpt_lines:
            excerpt_lines.append("…")
        # The numbers let the model name lines; they are checked against the user's text afterwards.
        excerpt_lines.append(f"{number}: {lines[number - 1][:MAX_LINE]}")
        last = number
    return "\n".join(excerpt_lines)
