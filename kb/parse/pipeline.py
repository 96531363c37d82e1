"""From inputs to `Evidence`: mask, decode, segment, read, join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.canonical import CHECKPOINT
from trainmedic.kb.frameworks.mentions import Line, framework_of, framework_of_log
from trainmedic.kb.frameworks.profiles import BESIDE, FOREIGN
from trainmedic.kb.language import is_sentence
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Call, CodeFlaw, Evidence, InputReceipt, Problem, Receipt, Row, Traceback
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import Region, RunConfig, VersionFact
from trainmedic.kb.parse import runs
from trainmedic.kb.parse.logs import error_lines, rows, signals, tracebacks
from trainmedic.kb.parse.readers import argv, dump, lock_files, shell, versions
from trainmedic.kb.parse.said import device_counts, fragments, settings
from trainmedic.kb.parse.source import Limits, Piece, Reading
from trainmedic.kb.parse.text import archives, completeness
from trainmedic.kb.parse.text.intake import Loaded, load
from trainmedic.kb.parse.text.pictures import MOST_WRITING
from trainmedic.kb.parse.text.segment import Block, segment

if TYPE_CHECKING:
    from trainmedic.kb.parse.said.prose import ProseFacts

_READERS = {
    "yaml": "yaml_file",
    "json": "json_file",
    "python": "python_script",
    "toml": "toml_file",
    "ini": "ini_file",
    "dump": "dump",
}
_CONFIGURING = ("command", "yaml", "json", "python", "toml", "ini")
_QUOTED_IN_SENTENCES = ("log", "command", "python")
_ERROR_NAME = regex(r"\b[A-Za-z_.]{0,80}(?:Error|Exception|Warning)\b")
_LOGGED = ("log", "metrics", "dump")
_HOLD_ROWS = (*_LOGGED, "prose", "json")
_WRITTEN = (".txt", ".md", ".markdown", ".rst", ".docx", ".html")
_MOST_PROBLEMS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What a stretch of text says. ``traced``: where exceptions are looked for, and whether only quoted ones are."""

    units: tuple[runs.Unit, ...] = ()
    regions: tuple[Region, ...] = ()
    rows: tuple[Row, ...] = ()
    traced: tuple[tuple[Piece, bool], ...] = ()
    listed: tuple[VersionFact, ...] = ()
    prose: tuple[ProseFacts, ...] = ()
    comments: tuple[ProseFacts, ...] = ()
    said: tuple[Line, ...] = ()
    logs: tuple[Piece, ...] = ()
    problems: tuple[Problem, ...] = ()
    calls: tuple[Call, ...] = ()
    flaws: tuple[CodeFlaw, ...] = ()


def _joined(parts: Sequence[_Facts]) -> _Facts:
    names = [each.name for each in fields(_Facts)]
    return _Facts(**{name: tuple(chain.from_iterable(getattr(part, name) for part in parts)) for name in names})


def parse(question: str, attachments: Sequence[Attachment] = (), *, limits: Limits | None = None) -> Evidence:
    """Everything that a question and its attachments prove. Never raises on user text.

    Every input is masked before anything else reads it, and bounded by ``limits``. Nothing is dropped silently: the
    receipt lists what was not read.
    """
    limits = limits or Limits()
    parts: list[_Facts] = []
    loads: list[Loaded] = []
    receipts: list[InputReceipt] = []
    budget, writing = limits.total, MOST_WRITING
    inputs: list[Attachment] = []
    archived: list[InputReceipt] = []
    for each in attachments:
        if isinstance(each.content, str) or not archives.is_archive(each.content):
            inputs.append(each)
            continue
        archive = archives.open_archive(each.name, each.content, max(0, limits.attachments - len(inputs)))
        inputs += archive.files
        parts.append(_Facts(problems=archive.problems))
        archived.append(archive.receipt)
    for file in (None, *inputs[: limits.attachments]):
        name, content, left_out = (None, question, 0) if file is None else (file.name, file.content, file.left_out)
        loaded = load(name, content, limits, budget, left_out, writing)
        writing -= loaded.writing
        budget = max(0, budget - len(loaded.piece.text))
        kinds: Counter[str] = Counter()
        if loaded.piece.text:
            parts += _part(loaded.piece, name, kinds)
        parts.append(_Facts(problems=loaded.problems))
        loads.append(loaded)
        receipts.append(_receipt(loaded, kinds))
    for left in inputs[limits.attachments :]:
        note = f"only the first {limits.attachments} attachments are read"
        problem = Problem(code="too_many", message=f"{left.name} was not read: {note}")
        parts.append(_Facts(problems=(problem,)))
        receipts.append(
            InputReceipt(
                name=left.name, kind="unread", bytes=len(left.content), lines=0, read=False, truncated=True, note=note
            )
        )
    masked: Counter[str] = Counter()
    for loaded in loads:
        masked.update(dict(loaded.masked))
    facts = _joined(parts)
    receipts[1:1] = archived
    receipt = Receipt(
        inputs=tuple(receipts), masked=tuple(sorted(masked.items())), problems=facts.problems[:_MOST_PROBLEMS]
    )
    return _evidence(facts, loads, receipt)


def _evidence(facts: _Facts, loads: Sequence[Loaded], receipt: Receipt) -> Evidence:
    question = loads[0].source.text
    raised = _tracebacks(facts.traced)
    known_good = {fact.package: fact for one in reversed(facts.prose) for fact in one.known_good}
    stated = _versions(facts, known_good)
    catalogue.read_releases(stated)
    printed = framework_of(raised) or framework_of_log(facts.rows)
    words = runs.Words(_words(question, facts.regions), facts.said, printed)
    first, *others = runs.join(facts.units, words, stated)
    stated = _with_inferred(stated, first)
    first = _with_said(_with_devices(first, facts), facts)
    return Evidence(
        question=question,
        runs=(first, *others),
        rows=facts.rows,
        tracebacks=tuple(raised),
        signals=signals.signals(
            facts.rows,
            raised,
            facts.logs,
            [signal for one in facts.prose for signal in one.signals],
            peak_learning_rate=_peak(first),
        ),
        versions=stated,
        regions=facts.regions,
        sources=tuple(loaded.source for loaded in loads),
        receipt=receipt,
        calls=facts.calls,
        flaws=facts.flaws,
        remedies=tuple(remedy for one in facts.prose for remedy in one.remedies),
        known_good=MappingProxyType(dict(sorted(known_good.items()))),
    )


def _part(part: Piece, name: str | None, kinds: Counter[str]) -> Iterator[_Facts]:
    """What a part of an input says; counts the characters of each kind of text."""
    yield _Facts(listed=lock_files.read(part) or versions.read(part), traced=((part, False),))
    for block in segment(part, name=name):
        kinds[block.kind] += len(block.piece.text)
        yield from _block(block, log=name is not None and block.kind == "log")
        if name is None and (sentence := around(block)) is not None:
            yield _Facts(prose=(_lazy("said.prose").read(sentence),))


def around(block: Block) -> Piece | None:
    """The user's own words on a line that counts as something else, because it quotes an error, a call or a command.

    Of an error only what stands before its name: what it prints is not what the user says.
    """
    if block.kind not in _QUOTED_IN_SENTENCES or "\n" in block.piece.text.strip():
        return None
    piece = block.piece
    if block.kind == "log" and (error := _ERROR_NAME.search(piece.text)) is not None:
        piece = piece.cut(0, error.start())
    return piece if is_sentence(piece.text) else None


def _lazy(name: str) -> Any:
    """A module below this package, loaded when the first text for it comes: most checks need few of them."""
    return import_module(f"trainmedic.kb.parse.{name}")


def _read(kind: str, piece: Piece) -> Reading:
    reading: Reading = _lazy(f"readers.{_READERS[kind]}").read(piece)
    return reading


def _comments_tell(text: str) -> bool:
    """A cheap test of whether any comment names a package with a version, or the number of devices."""
    comments = [line[line.find("#") :].lower() for line in text.split("\n") if "#" in line]
    numbered = "\n".join(comment for comment in comments if any(map(str.isdigit, comment)))
    return any(name in numbered for name in ("gpu", *versions.PACKAGES))


def _block(block: Block, *, log: bool) -> Iterator[_Facts]:
    piece, kind = block.piece, block.kind
    if not block.closed:
        message = "a code block is opened and never closed; read to the end"
        yield _Facts(problems=(Problem(code="unclosed_fence", message=message, span=piece.span(0, 0)),))
    if kind in _HOLD_ROWS:
        logged, problems = rows.read(piece)
        yield _Facts(rows=logged, problems=problems, logs=(piece,) if kind in _LOGGED else ())
    if kind == "prose":
        yield from _prose(piece)
    elif kind in _CONFIGURING and _comments_tell(piece.text):
        yield _Facts(comments=(_lazy("said.prose").comments(piece),))
    if kind in ("log", "prose"):
        yield _Facts(traced=((piece, True),))
        # what Hydra and Megatron repeat is often the only trace of the command
        if (repeated := dump.overrides(piece) or dump.arguments(piece)) is not None:
            yield _unit(replace(block, kind="dump", piece=repeated[0]), repeated[1])
    if kind == "command":
        yield from _commands(block)
    elif kind in _READERS:
        reading = _read(kind, piece)
        yield _Facts(problems=reading.problems, calls=reading.calls, flaws=reading.flaws)
        yield _unit(block, reading)
    else:
        if log and (reading := dump.read(piece)).options:
            yield _unit(replace(block, kind="dump"), reading)
        if kind == "log":
            yield from _started(block, argv.read(piece), from_log=True)
        yield _Facts(regions=(_region(kind, piece),))


def _prose(piece: Piece) -> Iterator[_Facts]:
    # A name without an ending is that of an earlier message.
    written = piece.source is not None and (piece.source.lower().endswith(_WRITTEN) or "." not in piece.source)
    facts: ProseFacts = _lazy("said.prose").read(piece)
    if piece.source is not None and not written:
        facts = replace(facts, settings=())  # what a log or a script prints between its lines, no one says
    yield _Facts(prose=(facts,), said=tuple(_lines(piece)) if written else ())
    options = fragments.read(piece)
    for code in fragments.inline_calls(piece):
        reading = _read("python", code)
        yield _Facts(calls=reading.calls)
        options = options or reading.options  # Python in inline code counts only if nothing else is quoted
    if options:
        quoted = replace(_region("prose", piece), options=options)
        anchor = replace(options[0].key_span, default=True)
        yield _Facts(units=(runs.Unit(region=quoted, anchor=anchor, role="fragment"),))


def _lines(piece: Piece) -> Iterator[Line]:
    """The lines of prose as the user's source has them, so that columns are right."""
    lines = piece.text.split("\n")
    taken = piece.prefixes or (" " * (piece.column - 1), *([""] * (len(lines) - 1)))
    for index, (before, line) in enumerate(zip(taken, lines, strict=False)):
        yield piece.source, piece.number(index), before + line


def _region(kind: str, piece: Piece, reading: Reading | None = None) -> Region:
    reading = reading or Reading()
    return Region(
        kind=kind,
        source=piece.source,
        start_line=piece.line,
        end_line=piece.position(len(piece.text.rstrip()))[0],
        options=reading.options,
        partial=reading.partial,
    )


def _unit(block: Block, reading: Reading) -> _Facts:
    """The region of a configuration, and the unit that it is of a run if it holds any options."""
    region = _region(block.kind, block.piece, reading)
    role = runs.role_of(block.kind, reading.options)
    if role in (*BESIDE, CHECKPOINT):
        options = tuple(o if o.scope else replace(o, scope=role) for o in region.options)
        region = replace(region, options=options)
    if not block.closed:
        region = replace(region, partial=True)
    if not role:
        return _Facts(regions=(region,))
    anchor, elided = replace(reading.options[0].key_span, default=True), completeness.elided(block.piece)
    logged = _is_log(block.name)
    unit = runs.Unit(region=region, anchor=anchor, role=role, name=block.name, from_log=logged, elided=elided)
    return _Facts(regions=(region,), units=(unit,))


def _is_log(name: str) -> bool:
    """Whether what configures a run in this file is what the run printed of it."""
    return name.lower().endswith((".log", ".out", ".err"))


def _commands(block: Block) -> Iterator[_Facts]:
    script = shell.read(block.piece)
    yield _Facts(problems=script.problems)
    for name, content in script.files:
        for inner in segment(content, name=name):
            yield from _block(inner, log=False)
    yield from _started(block, script.commands, from_log=_is_log(block.name))
    if not script.commands:
        region = replace(_region("command", block.piece), options=script.exports)
        yield _Facts(regions=(region,))
        if script.exports:
            place = replace(script.exports[0].key_span, default=True)
            yield _Facts(units=(runs.Unit(region=region, anchor=place, role="env", name=block.name),))


def _started(block: Block, commands: Iterable[shell.Command], *, from_log: bool) -> Iterator[_Facts]:
    """The runs that commands start."""
    elided = completeness.elided(block.piece)
    for command in commands:
        region = Region(
            kind="command",
            source=block.piece.source,
            start_line=command.lines[0],
            end_line=command.lines[1],
            options=command.options,
            entry=command.entry,
            launcher=command.launcher,
            partial=command.partial or not block.closed,
        )
        unit = runs.Unit(
            region=region,
            anchor=replace(command.entry.span if command.entry and command.entry.span else command.span, default=True),
            role=runs.role_of("command", command.options, entry=command.entry, launcher=command.launcher),
            name=block.name,
            files=command.config_files,
            from_log=from_log,
            elided=elided,
        )
        yield _Facts(regions=(region,), units=(unit,))


def _tracebacks(traced: Iterable[tuple[Piece, bool]]) -> list[Traceback]:
    found: list[Traceback] = []
    for piece, only_quoted in traced:
        found += list(error_lines.read(piece, found)) if only_quoted else tracebacks.read(piece)
    return found


def _words(question: str, regions: Iterable[Region]) -> str:
    """The question with all but the user's own words blanked; line numbers do not change."""
    lines = question.split("\n")
    for region in regions:
        if region.source is None and region.kind != "prose":
            for number in range(region.start_line - 1, min(region.end_line, len(lines))):
                lines[number] = ""
    return "\n".join(lines)


def _receipt(loaded: Loaded, kinds: Counter[str]) -> InputReceipt:
    source = loaded.source
    kind = "question" if source.name is None else kinds.most_common(1)[0][0] if kinds else "text"
    return InputReceipt(
        name=source.name,
        kind=kind if loaded.read else loaded.kind,
        bytes=source.byte_count,
        lines=loaded.lines,
        read=loaded.read,
        truncated=source.truncated,
        note=loaded.note,
    )


def _versions(found: _Facts, known_good: Mapping[str, VersionFact]) -> dict[str, VersionFact]:
    """Listings before prose before comments, exact before a range; among equals the first one read.

    A pin in a sentence that says that this version worked (``x==0.6 is fine``) is not a listing.
    """
    facts: dict[str, VersionFact] = {}
    said: Iterable[VersionFact] = (fact for one in found.prose for fact in one.versions)
    commented = (fact for one in found.comments for fact in one.versions)
    for fact in (*(fact for fact in found.listed if not _is_good(fact, known_good)), *said, *commented):
        before = facts.get(fact.package)
        if before is None or (before.exact is None and fact.exact is not None):
            facts[fact.package] = fact
    return dict(sorted(facts.items()))


def _is_good(fact: VersionFact, known_good: Mapping[str, VersionFact]) -> bool:
    good = known_good.get(fact.package)
    if good is None or good.span is None or fact.span is None or fact.exact not in (good.exact, good.low):
        return False
    return (good.span.attachment, good.span.line) == (fact.span.attachment, fact.span.line)


def _with_inferred(facts: dict[str, VersionFact], run: RunConfig) -> dict[str, VersionFact]:
    """Adds the range of framework versions in which all options exist, if no version is stated."""
    if run.framework is None or run.framework.value in facts:
        return facts
    own = [o.key for o in run.options if o.scope not in FOREIGN]
    low, high, reason = catalogue.infer_versions(run.framework.value, own)
    if low is None and high is None:
        return facts
    name = run.framework.value
    return dict(
        sorted({**facts, name: VersionFact(package=name, exact=None, reason=reason, low=low, high=high)}.items())
    )


def _with_devices(run: RunConfig, found: _Facts) -> RunConfig:
    counts = [count for one in (*found.prose, *found.comments) for count in one.devices]
    counts += [
        count for piece in found.logs if "orld" in piece.text for count in device_counts.read(piece, logged=True)
    ]
    return replace(run, settings=MappingProxyType(device_counts.settings(counts, run))) if counts else run


def _with_said(run: RunConfig, found: _Facts) -> RunConfig:
    stated = [one for prose in found.prose for one in prose.settings]
    return replace(run, settings=MappingProxyType(settings.in_effect(stated, run))) if stated else run


def _peak(run: RunConfig) -> float | None:
    setting = run.settings.get("learning_rate")
    value = setting.value if setting else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
