"""Explains error messages and warnings in the evidence: which code printed them, and under which condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from trainmedic.kb.engine.log_text import in_code
from trainmedic.kb.error_messages.advice import Advice, AdviceBook, load_advice
from trainmedic.kb.error_messages.index import MOST_LINES, MessageIndex, Occurrence, load_index, read_index
from trainmedic.kb.error_messages.packages import names, package
from trainmedic.kb.error_messages.tables import LOGGED, Entry, Place
from trainmedic.kb.error_messages.template import skeleton
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence, Traceback
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.model.run import RunConfig
from trainmedic.kb.parse.logs.tracebacks import process_prefix

MOST_MATCHES = 8
_HARDWARE = frozenset({"tpu", "xla", "hpu", "gaudi", "neuron", "npu", "mlu", "musa", "xpu"})
_WORDS = regex(r"[a-z]+")
_NAME_CHARACTERS = frozenset("_.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionValue:
    """The value of a name in the condition: printed in the message (``span`` is None), or an option of the run."""

    name: str
    value: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageMatch:
    """A message of the index in the evidence.

    ``others`` are messages of the same wording in other packages. ``version`` is the package's version in the evidence;
    ``in_version`` says whether the releases with the message include it, None if it is not known.
    """

    entry: Entry
    span: Span
    place: Place
    url: str | None
    conditions: tuple[ConditionValue, ...] = ()
    advice: Advice | None = None
    version: str | None = None
    in_version: bool | None = None
    others: tuple[Entry, ...] = ()
    is_whole: bool = True
    values: Mapping[str, str] = field(default_factory=dict)


def explain(
    evidence: Evidence,
    question: str = "",
    index: MessageIndex | None = None,
    advice: AdviceBook | None = None,
) -> tuple[MessageMatch, ...]:
    """The messages in the evidence, those that end a run first, at most `MOST_MATCHES`.

    ``question`` is further text to read, such as a message on its own; its places have no attachment.
    """
    releases = tuple(_of_releases(evidence))
    indexes = (*releases, index or load_index())
    sources = evidence.sources or (Source(name=None, text=evidence.question, byte_count=0),)
    if question and question != evidence.question:
        sources = (*sources, Source(name=None, text=question, byte_count=len(question)))
    occurrences = [
        (found, _span(found, text, lines))
        for text in sources
        for each in indexes
        for found, lines in _occurrences(text, each)
    ]
    occurrences = [(found, span) for found, span in occurrences if not in_code(evidence, span.attachment, span.line)]
    occurrences.sort(key=lambda pair: pair[1].order)
    matches = [_match(group, evidence, advice or load_advice()) for group in _groups(occurrences)]
    matches = [match for match in matches if not _of_other_hardware(match, evidence)]
    matches += _by_line(releases, matches, evidence)
    unique: dict[tuple[str, str], MessageMatch] = {}
    for match in matches:
        unique.setdefault((match.entry.package, match.entry.template), match)
    ranked = sorted(unique.values(), key=lambda match: (_importance(match, evidence), match.span.order))
    return tuple(ranked[:MOST_MATCHES])


def _of_releases(evidence: Evidence) -> Iterator[MessageIndex]:
    frames = tuple(dict.fromkeys(frame for each in evidence.tracebacks for frame in each.frames))
    for name, version in releases_in_use(evidence):
        found = read_index(name, version, frames)
        if found is not None:
            yield found


def releases_in_use(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """The releases whose messages may be in the evidence: of the packages in tracebacks and of what runs."""
    frames = (frame for each in evidence.tracebacks for frame in each.frames)
    folders = {folder for frame in frames for folder in frame.replace("\\", "/").split("/")[:-1]}
    framework = evidence.run.framework
    for name in names():
        runs = framework is not None and framework.value == name
        if (version := _version(name, evidence)) and (runs or folders & {*package(name).modules}):
            yield name, version


Line = tuple[int, str]
"""0-based number in the source, and the line."""


def _occurrences(source: Source, index: MessageIndex) -> Iterator[tuple[Occurrence, list[Line]]]:
    """The messages in a source; its lines once each, of a long one the beginning and the end."""
    lines: dict[str, int] = {}
    for number, line in enumerate(source.text.split("\n")):
        lines.setdefault(line, number)
    numbered = [(number, line) for line, number in lines.items() if line]
    if len(numbered) > MOST_LINES:
        numbered = numbered[: MOST_LINES // 2] + numbered[-MOST_LINES // 2 :]
    starts = [process_prefix(line)[2] for _, line in numbered]
    for occurrence in index.find([line for _, line in numbered], starts):
        yield occurrence, numbered


def _span(occurrence: Occurrence, source: Source, lines: Sequence[Line]) -> Span:
    (first, column), (last, end) = occurrence.first, occurrence.last
    texts = [line for _, line in lines[first : last + 1]]
    texts[-1] = texts[-1][:end]
    texts[0] = texts[0][column:]
    return Span(
        attachment=source.name,
        line=lines[first][0] + 1,
        column=column + 1,
        end_line=lines[last][0] + 1,
        end_column=end + 1,
        text="\n".join(texts),
    )


def _groups(occurrences: Iterable[tuple[Occurrence, Span]]) -> Iterator[list[tuple[Occurrence, Span]]]:
    """Occurrences that share a stretch of text."""
    group: list[tuple[Occurrence, Span]] = []
    end = ("", 0, 0)
    for occurrence, span in occurrences:
        if group and (span.attachment or "", span.line, span.column) >= end:
            yield group
            group, end = [], ("", 0, 0)
        group.append((occurrence, span))
        end = max(end, (span.attachment or "", span.end_line, span.end_column))
    if group:
        yield group


def _match(group: Sequence[tuple[Occurrence, Span]], evidence: Evidence, advice: AdviceBook) -> MessageMatch:
    """The likeliest of the messages that one stretch of text may be."""
    traceback = _traceback_at(group[0][1], evidence.tracebacks)
    (best, span), *others = sorted(group, key=lambda pair: _fit(pair[0], traceback, evidence))
    entry = best.entry
    version = _version(entry.package, evidence)
    place = _place(entry, traceback)
    about = package(entry.package)
    return MessageMatch(
        entry=entry,
        span=span,
        place=place,
        url=about.url(entry.last, place.file, place.line),
        conditions=tuple(_conditions(place.condition, best.values, evidence.run)),
        advice=advice.of(entry),
        version=version,
        in_version=entry.includes(version) if version is not None else None,
        others=tuple(other.entry for other, _ in others if other.entry.literal == entry.literal),
        is_whole=best.is_whole,
        values=best.values,
    )


def _of_other_hardware(match: MessageMatch, evidence: Evidence) -> bool:
    """Whether a notice is known from code for hardware that nothing speaks of, and of another release.

    The place is that of the last release with the message; here it was printed elsewhere, under another condition.
    """
    if match.entry.kind not in LOGGED or match.version in (None, match.entry.last):
        return False
    parts = [set(_WORDS.findall(place.file.lower())) & _HARDWARE for place in match.entry.places]
    if not all(parts):
        return False  # before the words of a whole log are looked through
    named = set().union(*(_WORDS.findall(source.text.lower()) for source in evidence.sources))
    return all(found.isdisjoint(named) for found in parts)


def _by_line(
    releases: Sequence[MessageIndex], matches: Sequence[MessageMatch], evidence: Evidence
) -> Iterator[MessageMatch]:
    """What raised the exceptions whose text says nothing that can be looked up: the statement in the last frame."""
    known = {id(_traceback_at(match.span, evidence.tracebacks)) for match in matches}
    for traceback in evidence.tracebacks:
        frame = traceback.frames[-1] if traceback.frames and id(traceback) not in known else ""
        found = next(filter(None, (each.at(_line(frame), partial(_is_in, frame=frame)) for each in releases)), None)
        if found is not None and found[0].exception == traceback.exception.rpartition(".")[2]:
            entry, place = found
            yield MessageMatch(
                entry=entry,
                span=traceback.span,
                place=place,
                url=package(entry.package).url(entry.last, place.file, place.line),
                conditions=tuple(_conditions(place.condition, {}, evidence.run)),
                version=entry.last,
                in_version=True,
            )


def _line(frame: str) -> int:
    """The number in ``path:line function``; 0 without one."""
    number = frame.partition(".py:")[2].partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def _traceback_at(span: Span, tracebacks: Sequence[Traceback]) -> Traceback | None:
    """The traceback whose text holds the place."""
    for traceback in tracebacks:
        around = traceback.span
        if around.attachment == span.attachment and around.line <= span.line <= around.end_line:
            return traceback
    return None


def _fit(occurrence: Occurrence, traceback: Traceback | None, evidence: Evidence) -> tuple[object, ...]:
    """What speaks for a message, best first: whole, raised where the traceback ends, of the packages that run, in the
    pasted version, of the pasted exception, with the most literal text, of the newest release."""
    entry = occurrence.entry
    frames = traceback.frames if traceback is not None else ()
    version = _version(entry.package, evidence)
    wrong_kind = traceback is not None and entry.exception != traceback.exception.rpartition(".")[2]
    return (
        not occurrence.is_whole,
        _from_end(entry, frames),
        -occurrence.literal // 16,
        _distance(entry.package, frames),
        wrong_kind,
        evidence.run.framework is None or evidence.run.framework.value != entry.package,
        version is not None and entry.includes(version) is False,
        version is None,
        not entry.is_newest,
        {entry.first, entry.last} != {version},
        -occurrence.literal,
        names().index(entry.package),
        skeleton(entry.template),
        entry.kind,
    )


def _from_end(entry: Entry, frames: Sequence[str]) -> int:
    """How far from the innermost frame one is in a file that prints the message; 3 if none of the last three is."""
    last = enumerate(reversed(frames[-3:]))
    return next((n for n, frame in last if any(_is_in(place.file, frame) for place in entry.places)), 3)


def _is_in(file: str, frame: str) -> bool:
    """Whether a frame (``path:line function``) is in a file of the repository, wherever it is installed."""
    module = file.removeprefix("src/").removeprefix("python/")
    return f"/{module}:" in frame.replace("\\", "/")


def _distance(name: str, frames: Sequence[str]) -> int:
    """How many frames from the innermost a package is; 99 if it is in none."""
    modules = [f"/{folder.removeprefix('src/').removeprefix('python/')}" for folder in package(name).code]
    for distance, frame in enumerate(reversed(frames)):
        if any(module in frame.replace("\\", "/") for module in modules):
            return distance
    return 99


def _version(name: str, evidence: Evidence) -> str | None:
    fact = evidence.versions.get(name)
    return fact.exact if fact is not None else None


def _place(entry: Entry, traceback: Traceback | None) -> Place:
    """The place that a frame names by file and line, else by file, the innermost first; else the first of all."""
    frames = traceback.frames[-3:][::-1] if traceback is not None else ()
    there = [(place, frame) for frame in frames for place in entry.places if _is_in(place.file, frame)]
    named = (place for place, frame in there if place.line == _line(frame))
    return next(named, there[0][0] if there else entry.places[0])


def _importance(match: MessageMatch, evidence: Evidence) -> tuple[object, ...]:
    """Errors before warnings, the root of a traceback before the rest, those with advice, the longest."""
    traceback = _traceback_at(match.span, evidence.tracebacks)
    return (
        match.entry.kind in LOGGED,
        traceback is None or not traceback.root,
        match.entry.kind != "error",
        match.advice is None,
        not match.is_whole,
        -len(match.entry.literal),
    )


def _conditions(condition: str, values: Mapping[str, str], run: RunConfig) -> Iterator[ConditionValue]:
    """The names in a condition whose values are known."""
    for name in _names(condition):
        if name in values:
            yield ConditionValue(name=name, value=values[name])
            continue
        last = name.rpartition(".")[2]
        option = next((option for option in run.options if option.key.rpartition(".")[2] == last), None)
        if option is not None and len(last) > 2:
            yield ConditionValue(name=name, value=str(option.value), span=option.span)


def _names(condition: str) -> tuple[str, ...]:
    """The dotted names in an expression, in order."""
    spaced = "".join(char if char.isalnum() or char in _NAME_CHARACTERS else " " for char in condition)
    words = (word.strip(".") for word in spaced.split())
    return tuple(dict.fromkeys(word for word in words if word and not word[0].isdigit()))
