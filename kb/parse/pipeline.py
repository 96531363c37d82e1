"""From inputs to `Evidence`: mask, decode, segment, read, join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.mentions import Line, framework_of, framework_of_log
from trainmedic.kb.language import is_sentence
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Call, Evidence, InputReceipt, Problem, Receipt, Row, Traceback
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.model.run import Option, Region, RunConfig, VersionFact
from trainmedic.kb.parse import completeness, device_counts, runs, signals
from trainmedic.kb.parse.intake import Loaded, load
from trainmedic.kb.parse.readers import (
    argv,
    dump,
    error_lines,
    fragments,
    lock_files,
    rows,
    shell,
    traceback_,
    versions,
)
from trainmedic.kb.parse.segment import Block, segment
from trainmedic.kb.parse.source import Limits, Piece, Reading

if TYPE_CHECKING:
    from trainmedic.kb.parse.prose import ProseFacts

_READERS = ("yaml", "json", "python", "toml", "ini", "dump")
_CONFIGURING = ("command", "yaml", "json", "python", "toml", "ini")
_QUOTED_IN_SENTENCES = ("log", "command", "python")
_ERROR_NAME = regex(r"\b[A-Za-z_.]{0,80}(?:Error|Exception|Warning)\b")
_LOGGED = ("log", "metrics", "prose", "dump")
_WRITTEN = (".txt", ".md", ".markdown", ".rst", ".docx", ".html")
_MOST_PROBLEMS = 200


@dataclass(slots=True)
class _Facts:
    units: list[runs.Unit] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    tracebacks: list[Traceback] = field(default_factory=list)
    listed: list[VersionFact] = field(default_factory=list)
    prose: list[ProseFacts] = field(default_factory=list)
    said: list[Line] = field(default_factory=list)
    logs: list[Piece] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    comments: list[ProseFacts] = field(default_factory=list)


def parse(question: str, attachments: Sequence[Attachment] = (), *, limits: Limits | None = None) -> Evidence:
    """Everything that a question and its attachments prove. Never raises on user text.

    Every input is masked before anything else reads it, and bounded by ``limits``. Nothing is dropped silently: the
    receipt lists what was not read.
    """
    limits = limits or Limits()
    found = _Facts()
    receipts: list[InputReceipt] = []
    sources: list[Source] = []
    masked: Counter[str] = Counter()
    budget = limits.total
    for name, content in ((None, question), *((a.name, a.content) for a in attachments[: limits.attachments])):
        loaded = load(name, content, limits, budget)
        budget = max(0, budget - sum(len(part.text) for part in loaded.parts))
        kind = _read(loaded, name, found)
        masked.update(dict(loaded.masked))
        found.problems.extend(loaded.problems)
        sources.append(loaded.source)
        receipts.append(_receipt(loaded, kind))
    for left in attachments[limits.attachments :]:
        receipts.append(_unread(left, limits, found))
    known_good = {fact.package: fact for one in reversed(found.prose) for fact in one.known_good}
    facts = _versions(found, known_good)
    printed = framework_of(found.tracebacks) or framework_of_log(found.rows)
    words = runs.Words(_words(sources[0].text, found.regions), found.said, printed)
    configured = runs.join(found.units, words, facts)
    facts = _with_inferred(facts, configured[0])
    configured = (_with_devices(configured[0], found), *configured[1:])
    return Evidence(
        question=sources[0].text,
        runs=configured,
        rows=tuple(found.rows),
        tracebacks=tuple(found.tracebacks),
        signals=signals.signals(
            found.rows,
            found.tracebacks,
            found.logs,
            [signal for facts in found.prose for signal in facts.signals],
            peak_learning_rate=_peak(configured[0]),
        ),
        versions=facts,
        regions=tuple(found.regions),
        sources=tuple(sources),
        receipt=Receipt(
            inputs=tuple(receipts),
            masked=tuple(sorted(masked.items())),
            problems=tuple(found.problems[:_MOST_PROBLEMS]),
        ),
        calls=tuple(found.calls),
        remedies=tuple(remedy for one in found.prose for remedy in one.remedies),
        comparisons=tuple(change for one in found.prose for change in one.comparisons),
        known_good=MappingProxyType(dict(sorted(known_good.items()))),
    )


def _read(loaded: Loaded, name: str | None, found: _Facts) -> str:
    """Read one input's parts; returns its kind for the receipt."""
    kinds: Counter[str] = Counter()
    for part in loaded.parts:
        blocks = segment(part, name=name)
        found.listed.extend(lock_files.read(part) or versions.read(part))
        found.tracebacks.extend(traceback_.read(part))
        for block in blocks:
            kinds[block.kind] += len(block.piece.text)
            _block(block, found, log=name is not None and block.kind == "log")
            if name is None and (sentence := around(block)) is not None:
                found.prose.append(_prose_reader().read(sentence))
    if name is None:
        return "question"
    return kinds.most_common(1)[0][0] if kinds else "text"


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


def _reader(kind: str) -> Callable[[Piece], Reading]:
    """The reader of one format, loaded when the first text of it comes: a check of one script has no use for the rest.

    Each reader is a module of `kb.parse.readers`; one named like a module of Python has a ``_`` behind its name.
    """
    name = kind if kind == "dump" else f"{kind}_"
    read: Callable[[Piece], Reading] = import_module(f"trainmedic.kb.parse.readers.{name}").read
    return read


def _prose_reader() -> ModuleType:
    # Loaded on first use, like the readers: a check of one script must not compile its patterns.
    return import_module("trainmedic.kb.parse.prose")


def _comments_tell(text: str) -> bool:
    """A cheap test of whether any comment names a package with a version, or the number of devices."""
    comments = [line[line.find("#") :].lower() for line in text.split("\n") if "#" in line]
    numbered = "\n".join(comment for comment in comments if any(map(str.isdigit, comment)))
    return any(name in numbered for name in ("gpu", *versions.PACKAGES))


def _block(block: Block, found: _Facts, *, log: bool) -> None:
    piece, kind = block.piece, block.kind
    if not block.closed:
        message = "a code block is opened and never closed; read to the end"
        found.problems.append(Problem(code="unclosed_fence", message=message, span=piece.span(0, 0)))
    if kind in _LOGGED or kind == "json":
        read, problems = rows.read(piece)
        found.rows.extend(read)
        found.problems.extend(problems)
    if kind == "prose":
        found.prose.append(_prose_reader().read(piece))
        # A name without an ending is that of an earlier message.
        if piece.source is not None and (piece.source.lower().endswith(_WRITTEN) or "." not in piece.source):
            found.said += _lines(piece)
    elif kind in _CONFIGURING and _comments_tell(piece.text):
        found.comments.append(_prose_reader().comments(piece))
    if kind in ("log", "dump", "metrics"):
        found.logs.append(piece)
    if kind == "prose" and (options := _quoted(piece, found)):
        quoted = replace(_region(kind, piece), options=options)
        anchor = replace(options[0].key_span, default=True)
        found.units.append(runs.Unit(region=quoted, anchor=anchor, role="fragment"))
    if kind in ("log", "prose"):
        found.tracebacks.extend(error_lines.read(piece, found.tracebacks))
        _repeated(block, found)
    if kind == "command":
        _commands(block, found)
    elif kind in _READERS:
        reading = _reader(kind)(piece)
        found.problems.extend(reading.problems)
        found.calls.extend(reading.calls)
        _unit(block, reading, found)
    else:
        if log and kind == "log":
            _logged_config(block, found)
        if kind == "log":
            _started(block, argv.read(piece), found, from_log=True)
        found.regions.append(_region(kind, piece))


def _quoted(piece: Piece, found: _Facts) -> tuple[Option, ...]:
    """The options that a sentence quotes; Python in inline code counts only if nothing else is quoted."""
    options = fragments.read(piece)
    for code in fragments.inline_calls(piece):
        reading = _reader("python")(code)
        found.calls.extend(reading.calls)
        options = options or reading.options
    return options


def _lines(piece: Piece) -> list[Line]:
    """The lines of prose as the user's source has them, so that columns are right."""
    lines = piece.text.split("\n")
    taken = piece.prefixes or (" " * (piece.column - 1), *([""] * (len(lines) - 1)))
    return [
        (piece.source, number, before + line)
        for number, (before, line) in enumerate(zip(taken, lines, strict=False), piece.line)
    ]


def _logged_config(block: Block, found: _Facts) -> None:
    reading = dump.read(block.piece)
    if reading.options:
        _unit(replace(block, kind="dump"), reading, found)


def _repeated(block: Block, found: _Facts) -> None:
    """The overrides that Hydra repeats when a job fails, the arguments that Megatron prints: often the only trace of
    the command."""
    repeated = dump.overrides(block.piece) or dump.arguments(block.piece)
    if repeated is not None:
        place, reading = repeated
        _unit(replace(block, kind="dump", piece=place), reading, found)


def _region(kind: str, piece: Piece, reading: Reading | None = None) -> Region:
    reading = reading or Reading()
    last = piece.position(len(piece.text.rstrip()))[0]
    return Region(
        kind=kind,
        source=piece.source,
        start_line=piece.line,
        end_line=last,
        options=reading.options,
        partial=reading.partial,
    )


def _unit(block: Block, reading: Reading, found: _Facts) -> None:
    region = _region(block.kind, block.piece, reading)
    role = runs.role_of(block.kind, reading.options)
    if role in ("deepspeed", "accelerate", "checkpoint"):
        options = tuple(o if o.scope else replace(o, scope=role) for o in region.options)
        region = replace(region, options=options)
    if not block.closed:
        region = replace(region, partial=True)
    found.regions.append(region)
    if role:
        place = reading.options[0].key_span
        anchor, elided = replace(place, default=True), completeness.elided(block.piece)
        found.units.append(runs.Unit(region=region, anchor=anchor, role=role, name=block.name, elided=elided))


def _commands(block: Block, found: _Facts) -> None:
    script = shell.read(block.piece)
    found.problems.extend(script.problems)
    for name, content in script.files:
        for inner in segment(content, name=name):
            _block(inner, found, log=False)
    _started(block, script.commands, found, from_log=block.name.lower().endswith((".log", ".out", ".err")))
    if not script.commands:
        region = replace(_region("command", block.piece), options=script.exports)
        found.regions.append(region)
        if script.exports:
            place = replace(script.exports[0].key_span, default=True)
            found.units.append(runs.Unit(region=region, anchor=place, role="env", name=block.name))


def _started(block: Block, commands: Iterable[shell.Command], found: _Facts, *, from_log: bool) -> None:
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
        found.regions.append(region)
        unit = runs.Unit(
            region=region,
            anchor=replace(command.entry.span if command.entry and command.entry.span else command.span, default=True),
            role=runs.role_of("command", command.options, entry=command.entry, launcher=command.launcher),
            name=block.name,
            files=command.config_files,
            from_log=from_log,
            elided=elided,
        )
        found.units.append(unit)


def _words(question: str, regions: Iterable[Region]) -> str:
    """The question with all but the user's own words blanked; line numbers do not change."""
    lines = question.split("\n")
    for region in regions:
        if region.source is None and region.kind != "prose":
            for number in range(region.start_line - 1, min(region.end_line, len(lines))):
                lines[number] = ""
    return "\n".join(lines)


def _receipt(loaded: Loaded, kind: str) -> InputReceipt:
    source = loaded.source
    return InputReceipt(
        name=source.name,
        kind=kind if loaded.read else "binary",
        bytes=source.byte_count,
        lines=loaded.lines,
        read=loaded.read,
        truncated=source.truncated,
        note=loaded.note,
    )


def _unread(left: Attachment, limits: Limits, found: _Facts) -> InputReceipt:
    note = f"only the first {limits.attachments} attachments are read"
    found.problems.append(Problem(code="too_many", message=f"{left.name} was not read: {note}"))
    size = len(left.content)
    return InputReceipt(name=left.name, kind="unread", bytes=size, lines=0, read=False, truncated=True, note=note)


def _versions(found: _Facts, known_good: Mapping[str, VersionFact]) -> dict[str, VersionFact]:
    """Listings before prose before comments, exact before a range; among equals the first one read.

    A pin in a sentence that says that this version worked (``x==0.6 is fine``) is no listing.
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
    own = [o.key for o in run.options if o.scope not in ("env", "launcher", "deepspeed", "accelerate")]
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


def _peak(run: RunConfig) -> float | None:
    setting = run.settings.get("learning_rate")
    value = setting.value if setting else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
