"""The configuration: options as written, settings in canonical terms, versions, and the run they describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from trainmedic.kb.model.place import Span


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A value that the paste refers to but does not hold: ``$LR``, ``$(nproc)``, ``os.environ["X"]``.

    Never to be read as a value; a condition over it is unknown.
    """

    raw: str


Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = "Scalar | Unresolved | tuple[Value, ...] | Mapping[str, Value]"


class Origin(StrEnum):
    """How an option was written, which decides how a fix is written back."""

    FLAG = "flag"  # --key value | --key=value | bare --key
    HYDRA = "hydra"  # key=value, +key=value (verl, llamafactory-cli overrides)
    ENV = "env"  # KEY=value before a command, export KEY=value
    YAML = "yaml"
    JSON = "json"
    PYTHON = "python"  # keyword argument of a call, or an entry of a dict literal
    TOML = "toml"
    INI = "ini"
    DUMP = "dump"  # Namespace(...), TrainingArguments(...) printed into a log


CAST = "cast"
"""The scope of a dtype that a script gives the trained model after its load: ``model.half()``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option exactly as the user wrote it.

    ``key`` is the framework's spelling without dashes or prefix (``micro_train_batch_size``,
    ``zero_optimization.stage``, ``actor_rollout_ref.actor.optim.lr``). ``value`` is what the reader
    that the framework uses makes of it (YAML 1.1 reads ``1e-6`` as text: then it is the text);
    a bare flag has the value True, ``raw`` None and ``value_span`` None.
    ``scope`` says whose option it is: the class called (``DPOConfig``), ``launcher`` for flags that stand
    before the program, ``env``, a DeepSpeed file (``deepspeed``), `CAST`, or empty for the program's own options.
    ``span`` covers key and value; it is what a finding highlights.
    """

    key: str
    value: Value
    raw: str | None
    span: Span
    key_span: Span
    value_span: Span | None
    origin: Origin
    scope: str = ""
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """Something concluded about a run, with the reason and, where there is one, the place."""

    value: str
    reason: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One canonical setting of a run. ``option`` is None where the catalogue's default is used, or where a sentence
    or a log states the value: ``span`` is then its place.

    ``value`` is normalised (attention ``flash2``; dtype ``bf16``/``fp16``/``fp32``/``auto``; numbers as
    numbers even where YAML read text: the option keeps how it was read). None means: explicitly unset or
    the framework's default is "not set".
    ``source`` says in words where the value comes from, e.g. ``default of openrlhf 0.8.11 --attn_implementation``.
    """

    name: str
    value: Value
    option: Option | None
    source: str
    key: str
    span: Span | None = None

    @property
    def place(self) -> Span | None:
        """Where its option or a sentence states the value, None for a default."""
        return self.option.span if self.option is not None else self.span

    @property
    def is_default(self) -> bool:
        return self.place is None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFact:
    """The version of one package. ``exact`` comes from a listing or the user's words.

    Where only a range is known (the options used exist only there), ``exact`` is None and
    ``low``/``high`` bound it, both inclusive; either may be None.
    """

    package: str
    exact: str | None
    reason: str
    span: Span | None = None
    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One recognised piece of a source: a command, a YAML document, a log, a version listing …

    ``kind`` is one of: command, yaml, json, python, toml, ini, log, metrics, versions, traceback, dump, prose.
    """

    kind: str
    source: str | None
    start_line: int
    end_line: int
    options: tuple[Option, ...] = ()
    entry: Recognised | None = None  # program, module or verb of a command: "openrlhf.cli.train_kto", "swift rlhf"
    launcher: str | None = None  # deepspeed, torchrun, accelerate, ray, srun, python
    partial: bool = False  # cut off, or unreadable in part: an absent option is then unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One training run as configured. ``settings`` holds written settings and catalogue defaults alike.

    A name missing from ``settings`` is unknown (no catalogue, no version, or the config is partial).
    ``anchor`` is where evidence for a default points. ``regions`` are the pieces it was joined from
    (a launch command, the YAML it names, the DeepSpeed JSON). ``partial``: an absent option is unknown, because the
    text is cut off, unreadable in part or an ``excerpt`` (a few lines of a configuration, not a whole file or command).
    """

    id: str
    framework: Recognised | None = None
    algorithm: Recognised | None = None
    stage: Recognised | None = None
    model: Recognised | None = None
    model_family: Recognised | None = None
    options: tuple[Option, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    regions: tuple[Region, ...] = ()
    anchor: Span | None = None
    partial: bool = False
    excerpt: bool = False

    def written(self, name: str) -> bool:
        setting = self.settings.get(name)
        return setting is not None and setting.option is not None
