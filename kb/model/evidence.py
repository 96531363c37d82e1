"""Evidence from a paste: the runs, log rows, signals, versions, and the receipt of what was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Attachment, Source, Span
from trainmedic.kb.model.report import Text
from trainmedic.kb.model.run import Option, Region, RunConfig, VersionFact

_OWN_FRAME = regex(
    r'File "(?![^"\n]*(?:/site-packages/|/dist-packages/|/lib/python|<frozen))[^"\n]+\.py", line [0-9]+, in '
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number in a log row. ``value`` may be nan or inf; ``span`` covers key and value."""

    name: str
    value: float
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One logged row: an HF dict line, a progress line, a CSV or JSONL record.

    ``step`` is the optimizer step where the row states it, else None. Metric names are normalised
    (``loss``, ``grad_norm``, ``learning_rate``, ``rewards/chosen``, ``logits/chosen``, ``kl`` …); the row's own
    spelling is in the metric's span.
    """

    step: int | None
    metrics: Mapping[str, Metric]
    span: Span
    style: str = "hf"  # hf | postfix | dashed | megatron | trainer_state | csv | jsonl | user
    evaluation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Traceback:
    """One Python traceback, rank prefixes removed. ``root`` is the first exception of a chain or of all ranks."""

    exception: str
    message: str
    span: Span
    frames: tuple[str, ...] = ()  # "path:line function", innermost last
    root: bool = True
    rank: int | None = None

    @property
    def places(self) -> tuple[Span, ...]:
        """Where it says what is wrong, and the innermost call of the user's own code."""
        lines = self.span.text.split("\n")
        raised = next((n for n in range(len(lines) - 1, 0, -1) if self.exception and self.exception in lines[n]), None)
        if raised is None:
            return (self.span,)
        own = (n for n in range(raised - 1, 0, -1) if _OWN_FRAME.search(lines[n]))
        return tuple(self._line(n, lines[n]) for n in (raised, next(own, None)) if n is not None)

    def _line(self, number: int, text: str) -> Span:
        line, column = self.span.line + number, len(text) - len(text.lstrip()) + 1
        return replace(
            self.span, line=line, column=column, end_line=line, end_column=len(text) + 1, text=text[column - 1 :]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Something a log, traceback or the user's words show. ``kind`` is one of `kb.parse.logs.signal_kinds.KINDS`.

    ``stated`` is True where the user only said so in prose (weaker than a log line that shows it). ``observed`` is what
    the numbers of the log are, where they show it.
    """

    kind: str
    span: Span
    value: float | None = None
    step: int | None = None
    stated: bool = False
    detail: str = ""
    observed: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call in pasted Python, whatever is called: ``SFTConfig``, ``AutoModel.from_pretrained``, ``load_dataset``.

    ``name`` is dotted as written; ``arguments`` are in the order written, positional ones under their index (``"0"``).
    ``span`` covers the name.
    """

    name: str
    arguments: tuple[Option, ...]
    span: Span

    def get(self, name: str) -> Option | None:
        """The argument called ``name``; None if it is not written."""
        return next((argument for argument in self.arguments if argument.key == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFlaw:
    """A fault in pasted training code. ``name`` is one of `kb.parse.code.flaws.CHECKS`; ``spans`` belong together."""

    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Something that the user tried: "lowering the lr made no difference", "works with packing off".

    ``settings`` are the canonical settings it names, ``concepts`` the ids of glossary concepts. ``helped`` is None if
    the outcome is not said. ``on`` and ``off`` are those of the settings that it switched ("packing off").
    """

    text: str
    span: Span
    settings: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    helped: bool | None = None
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something about the input that could not be read as it stands. Never an exception."""

    code: str  # truncated, binary, unclosed_quote, yaml_error, json_error, too_large, encoding, …
    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReceipt:
    """One input, and how it was read."""

    name: str | None
    kind: str
    bytes: int
    lines: int
    read: bool
    truncated: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The inputs that were read, the secrets that were masked, and the parts that could not be read."""

    inputs: tuple[InputReceipt, ...] = ()
    masked: tuple[tuple[str, int], ...] = ()  # (kind of secret, how many)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything a paste proves. The only input of the rules, together with the catalogues.

    ``runs`` is never empty: without any configuration it holds one empty `RunConfig`, so that facts
    from prose and logs still belong to a run. ``run`` is the one the paste is about (the first that trains).
    ``versions`` are those of the run that fails; ``known_good`` are versions with which the same run worked.
    """

    question: str = ""
    runs: tuple[RunConfig, ...] = ()
    rows: tuple[Row, ...] = ()
    tracebacks: tuple[Traceback, ...] = ()
    signals: tuple[Signal, ...] = ()
    versions: Mapping[str, VersionFact] = field(default_factory=lambda: MappingProxyType({}))
    regions: tuple[Region, ...] = ()
    sources: tuple[Source, ...] = ()
    receipt: Receipt = field(default_factory=Receipt)
    calls: tuple[Call, ...] = ()
    flaws: tuple[CodeFlaw, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    known_good: Mapping[str, VersionFact] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def run(self) -> RunConfig:
        return self.runs[0] if self.runs else RunConfig(id="run")

    def has(self, kind: str) -> bool:
        """Whether a signal of this kind was seen or stated."""
        return any(signal.kind == kind for signal in self.signals)


Read = Callable[[str, Sequence[Attachment]], Evidence]
"""A reader of question and attachments: `kb.parse.pipeline.parse`, in this process or in another."""
