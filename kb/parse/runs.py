"""Stretches that were read → the runs they configure: a command with the files it names, a YAML, a Python script.

One command or one full configuration is one run. What only completes a run (a DeepSpeed file, an accelerate file,
exported variables) joins the run that names it, or the only one there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.canonical import CHECKPOINT, canonicalise
from trainmedic.kb.frameworks.mentions import Line
from trainmedic.kb.frameworks.profiles import BESIDE, SETTINGS_OF_FILES, profiles
from trainmedic.kb.frameworks.recognise import recognise
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Origin, Recognised, Region, RunConfig, Unresolved, VersionFact
from trainmedic.kb.parse.text.completeness import excerpt

_SCRIPTS_IDLE = r"(?:.*/)?(?:convert|merge|export|eval|infer|inference|test|serve|download|preprocess|prepare)\w*\.py"
_SCRIPTS_TRAIN = (
    r".*train\w*(?:\.py|\.sh)?|(?:.*/)?(?:sft|dpo|kto|ppo|grpo|rloo|orpo|cpo|gkd|reward_modeling|reward|run_clm"
    r"|finetune|rlhf|main_ppo)\w*(?:\.py)?"
)


def _programs(what: str) -> list[str]:
    """Patterns of all frameworks' programs: their commands with each verb, and those that the profiles list."""
    patterns = []
    for profile in profiles().values():
        commands = profile.commands
        verbs = commands.trains if what == "training" else commands.idle
        patterns += [f"{re.escape(name)} {re.escape(verb)}" for name in commands.names for verb in verbs]
        patterns += profile.training if what == "training" else profile.idle
    return patterns


_IDLE = regex("|".join([*_programs("idle"), _SCRIPTS_IDLE]))
_TRAINS = regex("|".join([*_programs("training"), _SCRIPTS_TRAIN]))
_RECORD = regex(r"(?:^|[/-])files[/-]config\.ya?ml$")
"""The name of a run's configuration as W&B and SwanLab store it, in the run's folder or uploaded from it."""
_RECORDED = ("wandb-metadata.json", "swanlab-metadata.json")
_FILES = ("json", "yaml", "toml", "ini")
_OPTIONS = load_table("parse/data/words.toml")["options"]
_TRAINING = frozenset(_OPTIONS["training"])
_SHAPES = {"hidden_size", "vocab_size", "num_hidden_layers", "text_config", "llm_config"}
_TOKENIZER = frozenset(_OPTIONS["tokenizer"])
_GENERATION = frozenset(_OPTIONS["generation"])
_PARTS_OF_PYTHON = regex(
    r"(?:Lora|AdaLora|BitsAndBytes|Peft|Model|Generation|Script|Sampling|Auto)\w*|(?:\w+\.)?from_pretrained|.*Trainer|env|cast|"
    + "|".join(BESIDE)
)


@dataclass(slots=True)
class Unit:
    """One stretch of text. ``role`` is run | the library whose file it is | checkpoint | env | dump | fragment."""

    region: Region
    anchor: Span
    role: str
    name: str = ""
    files: tuple[str, ...] = ()
    from_log: bool = False
    elided: bool = False
    joined: list[Unit] = field(default_factory=list)
    checkpoints: list[Unit] = field(default_factory=list)

    @property
    def options(self) -> tuple[Option, ...]:
        """Options in rising priority: the files joined to it first, then its own."""
        return tuple(option for unit in (*self.joined, self) for option in unit.region.options)


@dataclass(frozen=True, slots=True)
class Words:
    """The user's prose: the question, with other things blanked, and prose that was attached.

    ``raised`` is the framework that a traceback comes from.
    """

    question: str = ""
    said: Sequence[Line] = ()
    raised: Recognised | None = None


def role_of(
    kind: str, options: Sequence[Option], *, entry: Recognised | None = None, launcher: str | None = None
) -> str:
    if kind == "command":
        if entry is not None or launcher is not None:
            return "run"
        return "fragment" if any(option.scope != "env" for option in options) else "env"
    if not options:
        return ""
    if kind == "dump":
        return "dump"
    keys = {option.key for option in options} | {option.key.split(".")[0] for option in options}
    if kind in _FILES:
        for name, file in reversed(BESIDE.items()):
            if file.has(keys):
                return name
    if kind == "json" and (model := _of_a_model(keys)) is not None:
        return model
    if kind == "python" and all(option.scope in ("env", *BESIDE) for option in options):
        return "env"
    return "run"


def _of_a_model(keys: Set[str]) -> str | None:
    """The role of a file that belongs to a model: only its config.json describes the run."""
    if "architectures" in keys or ("model_type" in keys and keys & _SHAPES):
        return CHECKPOINT
    if keys & _TRAINING:
        return None
    generation = "eos_token_id" in keys and keys & _GENERATION
    return "" if keys & _TOKENIZER or generation else None


def join(units: Sequence[Unit], words: Words, versions: Mapping[str, VersionFact]) -> tuple[RunConfig, ...]:
    """The runs, those that train first; one empty run if nothing configures any."""
    mains = _without_repeated(_without_strangers(_mains(units)))
    _merge_python(mains)
    _attach_files(mains)
    rest = [unit for unit in units if unit.role in (*BESIDE, "env")]
    for unit in rest:
        _attach(unit, mains)
    if not mains:
        mains = [unit for unit in units if unit.role == "dump"][:1]
    if not mains and rest:
        first, *others = rest
        first.joined.extend(others)
        mains = [first]
    ordered = sorted(mains, key=_rank)
    checkpoints = [unit for unit in units if unit.role == CHECKPOINT]
    if not ordered and checkpoints:
        return (_config((), (), words, versions, None, checkpoints=checkpoints, partial=True),)
    for unit in ordered[:1]:
        unit.checkpoints.extend(checkpoints)
    runs = [_run(unit, index, words, versions) for index, unit in enumerate(_distinct(ordered))]
    return tuple(runs) or (_config((), (), words, versions, None, partial=True),)


def _mains(units: Sequence[Unit]) -> list[Unit]:
    mains = [unit for unit in units if unit.role == "run" and not unit.from_log]
    if not any(_trains(unit) for unit in mains):
        mains += [unit for unit in units if unit.role == "run" and unit.from_log]
    fragments = [unit for unit in units if unit.role == "fragment"]
    if not mains and fragments:
        first, *others = fragments
        first.joined.extend(others)
        return [first]
    return mains


def _without_strangers(mains: list[Unit]) -> list[Unit]:
    """Leave out files without any framework's option, unless they are all there is or another one names them."""
    if len(mains) < 2:
        return mains
    named = {name for unit in mains for name in (*_named(unit), *map(_base, unit.files))}
    return [unit for unit in mains if _base(unit.name) in named or not _is_stranger(unit)] or mains


def _without_repeated(mains: list[Unit]) -> list[Unit]:
    """Leave out the command that a tracker recorded if another one starts the same script."""
    recorded = {id(unit) for unit in mains if (unit.name or "").removesuffix(".sh").endswith(_RECORDED)}
    started = {_base(_script(unit)) for unit in mains if id(unit) not in recorded} - {""}
    return [unit for unit in mains if id(unit) not in recorded or _base(_script(unit)) not in started]


def _is_stranger(unit: Unit) -> bool:
    return unit.region.kind in _FILES and not any(catalogue.is_option(option.key) for option in unit.options)


def _trains(unit: Unit) -> bool:
    entry = unit.region.entry
    return entry is None or not _IDLE.fullmatch(entry.value)


def _rank(unit: Unit) -> int:
    entry = unit.region.entry
    if (
        entry is None
        and unit.region.kind in _FILES
        and not _TRAINING & {option.key.rpartition(".")[2] for option in unit.options}
    ):
        return 1  # a data sample: not before what trains
    if entry is None or _TRAINS.fullmatch(entry.value):
        return 0
    return 2 if _IDLE.fullmatch(entry.value) else 1


def _base(path: str) -> str:
    return path.rpartition("/")[2].lower()


def _merge_python(mains: list[Unit]) -> None:
    """Python stretches of one source are one script, until a class that configures a whole run is repeated."""
    last: Unit | None = None
    for unit in [u for u in mains if u.region.kind == "python"]:
        classes = {o.scope for o in unit.options if o.scope and not _PARTS_OF_PYTHON.fullmatch(o.scope)}
        if last is not None and last.region.source == unit.region.source:
            before = {o.scope for o in last.options}
            if not (classes & before) and not (
                classes
                and before & {c for c in before if c.endswith(("Config", "Arguments"))}
                and _both(classes, before)
            ):
                last.joined.append(unit)
                mains.remove(unit)
                continue
        last = unit


def _both(classes: set[str], before: set[str]) -> bool:
    """Two different trainers' configurations (``DPOConfig``, then ``SFTConfig``) are two runs."""
    whole = {c for c in before if c.endswith("Config") and not _PARTS_OF_PYTHON.fullmatch(c)}
    return bool(whole) and any(c.endswith("Config") for c in classes)


def _attach_files(mains: list[Unit]) -> None:
    """Join a command with the configuration or script that it starts: by name, or if there is only one of each."""
    commands = [unit for unit in mains if unit.region.kind == "command" and unit.region.entry is not None]
    by_file: dict[str, list[Unit]] = {}
    for command in commands:
        for file in dict.fromkeys(_base(f) for f in (*command.files, _script(command))):
            by_file.setdefault(file, []).append(command)
    others = [unit for unit in mains if unit.region.kind != "command"]
    alone = len(others)  # those that no command has taken yet
    taken: set[int] = set()
    for unit in others:
        users = by_file.get(_base(unit.name), []) if unit.name else []
        if not users and alone == 1:
            users = [c for c in commands if _wants(c, unit)]
            users = users if len(users) == 1 else []
        if not users and len(commands) == 1 and _RECORD.search(unit.name or ""):
            users = commands
        for command in users:
            command.joined.append(unit)
        if users:
            taken.add(id(unit))
            alone -= 1
    mains[:] = [unit for unit in mains if id(unit) not in taken]


def _script(command: Unit) -> str:
    entry = command.region.entry
    return entry.value if entry is not None and entry.value.endswith(".py") else ""


def _wants(command: Unit, unit: Unit) -> bool:
    if command.joined:
        return False
    if unit.region.kind == "python":
        return bool(_script(command))
    named = [f for f in command.files if not any(each.name and re.search(each.name, f) for each in BESIDE.values())]
    launcher = {_base(str(o.value)) for o in command.region.options if o.scope == "launcher"}
    return bool([f for f in named if _base(f) not in launcher])


def _attach(unit: Unit, mains: Sequence[Unit]) -> None:
    """A part joins the runs that name it, else those that could use it (all of them for exported variables)."""
    if not mains:
        return
    users = [m for m in mains if unit.name and _base(unit.name) in _named(m)]
    if not users and unit.role == "env":
        users = list(mains)
    if not users and unit.role in BESIDE:
        users = [
            m for m in mains if any(_names_file(o, unit.role) for o in m.options) or m.region.launcher == unit.role
        ]
    for main in users or mains[:1]:
        main.joined.insert(0, unit)


def _names_file(option: Option, library: str = "") -> bool:
    """Whether an option names the file of a library (empty: of any)."""
    return any(name in option.key for name in SETTINGS_OF_FILES if library in ("", name))


def _named(unit: Unit) -> set[str]:
    return {_base(option.value) for option in unit.options if isinstance(option.value, str) and "." in option.value}


def _distinct(units: Iterable[Unit]) -> list[Unit]:
    seen: set[tuple[str, ...]] = set()
    distinct = []
    for unit in units:
        entry = unit.region.entry.value if unit.region.entry else ""
        identity = (entry, *(f"{o.scope} {o.key} {o.raw}" for o in unit.options))
        if identity not in seen or not unit.options:
            distinct.append(unit)
        seen.add(identity)
    return distinct


def _run(unit: Unit, index: int, words: Words, versions: Mapping[str, VersionFact]) -> RunConfig:
    options = unit.options
    regions = tuple(part.region for part in (unit, *unit.joined))
    # the file of a library that is cut off says nothing about what is missing from the run itself
    partial = any(part.region.partial for part in (unit, *unit.joined) if part.role in ("run", "fragment"))
    partial = partial or unit.role not in ("run", "dump") or _unread(unit)
    shortened = unit.role == "fragment" or any(part.elided for part in (unit, *unit.joined))
    shortened = shortened or (unit.role == "run" and excerpt(unit.region, options, unit.name))
    config = _config(
        regions,
        options,
        words,
        versions,
        unit.anchor,
        index=index,
        checkpoints=unit.checkpoints,
        partial=partial or shortened,
    )
    return replace(config, excerpt=shortened)


def _unread(unit: Unit) -> bool:
    """Whether a configuration file is named but missing, so that its settings are unknown."""
    command = unit.region
    if command.kind != "command" or any(part.role == "run" for part in unit.joined):
        return False
    own = [o for o in command.options if o.scope == "" and o.origin is not Origin.HYDRA]
    if any(isinstance(option.value, str) and _composes_own(option.key, option.value) for option in own):
        return True
    values = {_base(o.value) for o in own if isinstance(o.value, str) and _names_file(o)}
    launcher = {_base(str(o.value)) for o in command.options if o.scope == "launcher"}
    return any(_base(f) not in values | launcher and _stem(f) not in _shipped() for f in unit.files)


def _stem(path: str) -> str:
    return _base(path).removesuffix(".yaml")


@cache
def _shipped() -> frozenset[str]:
    """The configurations that Hydra finds in the frameworks themselves."""
    declared = [each for profile in profiles().values() for each in profile.declares if each.how == "hydra"]
    return frozenset(name for each in declared for name in each.names)


def _composes_own(key: str, value: str) -> bool:
    """Whether an option of Hydra's names a configuration that no framework ships."""
    name = key.replace("_", "-")
    if name == "config-path":
        return _base(value) != "config"
    return name == "config-name" and _stem(value) not in _shipped()


def _config(
    regions: tuple[Region, ...],
    options: tuple[Option, ...],
    words: Words,
    versions: Mapping[str, VersionFact],
    anchor: Span | None,
    *,
    partial: bool,
    index: int = 0,
    checkpoints: Sequence[Unit] = (),
) -> RunConfig:
    """One run. The model's config.json counts, but its entries are not options of the run: no fix may edit it."""
    regions = (*regions, *(unit.region for unit in checkpoints))
    stated = tuple(option for unit in checkpoints for option in unit.region.options)
    words = words if index == 0 else Words()
    recognition = recognise(
        regions, (*stated, *options), words.question, versions, said=words.said, raised=words.raised
    )
    framework = recognition.framework.value if recognition.framework else None
    options, cut = _separate_switches(options, framework, versions.get(framework or ""))
    partial = partial or cut
    algorithm = recognition.algorithm.value if recognition.algorithm else None
    stage = recognition.stage.value if recognition.stage else None
    family = recognition.model_family.value if recognition.model_family else None
    programs = [region.entry.value for region in regions if region.entry is not None]
    settings = canonicalise(
        (*stated, *options), framework, algorithm, stage, versions, partial, model_family=family, programs=programs
    )
    return RunConfig(
        id="run" if index == 0 else f"run-{index + 1}",
        framework=recognition.framework,
        algorithm=recognition.algorithm,
        stage=recognition.stage,
        model=recognition.model,
        model_family=recognition.model_family,
        options=options,
        settings=settings,
        regions=regions,
        anchor=anchor,
        partial=partial,
    )


def _separate_switches(
    options: Sequence[Option], framework: str | None, fact: VersionFact | None = None
) -> tuple[tuple[Option, ...], bool]:
    """Separate switches from the shell variable behind them (``--bf16 $EXTRA``), and whether there were any.

    A shell reader cannot know that ``--bf16`` takes no value. If the catalogue says so, the variable is a word of its
    own that may hold any options: the switch is on and the command is known in part only.
    """
    if framework is None:
        return tuple(options), False
    separated = tuple(_bare(option) if _is_switch(option, framework, fact) else option for option in options)
    return separated, any(new is not old for new, old in zip(separated, options, strict=True))


def _is_switch(option: Option, framework: str, fact: VersionFact | None) -> bool:
    if option.origin is not Origin.FLAG or option.scope or option.quoted or not isinstance(option.value, Unresolved):
        return False
    if option.value_span is None or not option.value.raw.startswith("$"):
        return False
    info = catalogue.option(framework, option.key, fact.exact if fact else None)
    joined = option.span.text.partition(option.key)[2].startswith("=")
    return info is not None and info.switch and not joined


def _bare(option: Option) -> Option:
    end = option.key_span
    text = option.span.text
    text = text[: text.find(end.text) + len(end.text)]
    span = replace(option.span, end_line=end.end_line, end_column=end.end_column, text=text)
    return replace(option, value=True, raw=None, span=span, value_span=None)
