"""Who reads an option that a user wrote, and whether that reader takes it: the question behind the option rules.

Only readers whose list of options is closed and catalogued are known here: a framework's own command, its own
configuration file, its own classes. A user's own script may have options of its own, so it has no reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.frameworks.catalogue import OptionInfo, commands, exists, inherited_from
from trainmedic.kb.frameworks.catalogue import option as find_option
from trainmedic.kb.frameworks.profiles import INHERITS, profiles
from trainmedic.kb.frameworks.tables import Table, table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, VersionFact
from trainmedic.kb.versions import version_key

KNOWN = "known"
RETIRED = "retired"
GONE = "gone"
LATER = "later"
ELSEWHERE = "elsewhere"
UNKNOWN = "unknown"
OPEN = "open"
"""``retired``: no version is known and the newest lacks it. ``open``: nothing certain can be said."""

MOST_OPTIONS = 1_000
"""Nobody writes more by hand; a near name for each of ten thousand would take seconds."""
_OPENRLHF = regex(r"openrlhf[./]cli[./](train_\w+?|serve_rm|batch_inference|interactive_chat)(?:\.py)?$")
_SWIFT = regex(r"^swift (sft|pt|rlhf)$|swift[./]cli[./](sft|pt|rlhf)(?:\.py)?$")
_FACTORY = regex(r"^(?:llamafactory-cli|lmf) train$|(?:^|/)train_bash\.py$")
_TRL = regex(r"^trl (sft|dpo|kto|grpo|rloo|reward)$|(?:^|/)trl/scripts/(sft|dpo|kto|grpo|rloo|reward)\.py$")
_MEGATRON = regex(r"(?:^|/)pretrain_(?:gpt|bert|t5|mamba|hybrid|vlm)\.py$")
_SLIME = regex(r"(?:^|/)train(?:_async)?\.py$")
_IMPORT = regex(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)", re.MULTILINE)
_LIBRARIES = ("trl", "transformers", "peft")
_TREE_PROGRAMS = {
    "verl.trainer.main_ppo": ("verl", ()),
    "skyrl_train.entrypoints.main_base": ("skyrl-train", ()),
    "skyrl.train.entrypoints.main_base": ("skyrl", ("main_base",)),
    "skyrl.train.main_sft": ("skyrl", ("main_sft",)),
}
"""Module → its catalogue and owners: ``key=value`` words change a tree that is closed."""
_STILL_TAKEN = {
    "skyrl": ("trainer.use_sample_packing", "use_sample_packing", "generator.inference_engine.async_engine")
}
"""Names that are no longer fields, but that the command still converts or drops itself."""
_ENGINE_ARGUMENTS = {
    "slime": "sglang-",
    "verl": "actor_rollout_ref.rollout.engine_kwargs.sglang.",
    "skyrl-train": "generator.engine_init_kwargs.",
    "roll": "actor_infer.strategy_args.strategy_config.",
}
"""Framework → the beginning of options that it hands to SGLang as they are."""
_TAKEN_OUT = frozenset({"tensor_parallel_size", "pipeline_parallel_size"})
"""What ROLL itself reads there before it starts the engine."""
_XTUNER_COMMAND = "xtuner.v1.train.cli.sft"
_HF_CLASSES = ("TrainingArguments", "Seq2SeqTrainingArguments")
_SECTIONS = {"axolotl": ("trl", "vllm", "qat"), "deepspeed": ("zero_optimization",)}
_FACTORY_FILE = frozenset({"stage", "finetuning_type", "template", "do_train"})
_FACTORY_OTHERS = frozenset(
    {"dist_config", "model_class", "tensor_model_parallel_size", "pipeline_model_parallel_size"}
)
"""Files of the v1 trainer and of the Megatron trainer have names of their own."""
SAMPLED = ("nemo-rl",)
"""Catalogued from example files, which need not write every option: only a near name tells."""
_FREE = frozenset({"config", "accelerate_config", "deepspeed", "env", "ENV", "plugins", "local_rank", "local-rank"})
"""Names that the readers take out themselves before they look at the rest."""


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """``strict``: it refuses what it does not know; otherwise it drops it without a word.

    ``inherits`` is the version of transformers where the arguments extend TrainingArguments and it is known.
    ``how`` it reads: argparse (a command line), dict (a file whose values are taken as they are), call (Python),
    pydantic (a file that a schema checks), json (DeepSpeed), hydra, tree (a nested file), cyclopts (XTuner's command).
    """

    catalogue: str
    low: str | None
    high: str | None
    owners: tuple[str, ...]
    strict: bool
    inherits: str | None
    how: str

    @property
    def exact(self) -> str | None:
        return self.low if self.low is not None and self.low == self.high else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader makes of one name. ``info`` where it exists at the release (or at the newest that had it)."""

    kind: str
    name: str
    info: OptionInfo | None = None
    first: str | None = None
    last: str | None = None


def judged(facts: Facts) -> tuple[tuple[Option, Reader, Verdict], ...]:
    """Every option of the user that has a catalogued reader, with what that reader makes of it."""
    return facts.once(__name__, lambda asked: tuple(_judged(asked)))


def _judged(facts: Facts) -> Iterator[tuple[Option, Reader, Verdict]]:
    run = facts.run
    readers = _Readers(facts)
    for option in run.options[:MOST_OPTIONS]:
        argument = readers.engine_argument(option)
        if argument:
            engine = readers.engine(option)
            yield option, engine, judge(engine, argument)
            continue
        reader = readers.of(option)
        if reader is not None:
            name = _name(reader.catalogue, option.key)
            if reader.how == "tree" and _referred(facts, option.key):
                continue
            if name and name not in _FREE:
                yield option, reader, judge(reader, name)


def _referred(facts: Facts, key: str) -> bool:
    """Whether another value of a file takes it over (``${key}``), so that it may be a name of the user's."""
    return any(f"${{{key}}}" in source.text for source in facts.evidence.sources)


def _name(catalogue: str, key: str) -> str:
    """The option's name as the catalogue has it; empty for what lies inside a free-form value."""
    profile = profiles()[catalogue]
    if profile.tree:
        return "" if profile.free and _pattern(profile.free).search(key) else key
    if catalogue == "openrlhf":
        return key
    head, dot, _ = key.partition(".")
    if not dot or head in _SECTIONS.get(catalogue, ()):
        return key if key.count(".") < 2 else ""
    return head


_pattern = cache(re.compile)


class _Readers:
    """The readers of one run, worked out once."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.run = facts, facts.run
        self.framework = self.run.framework.value if self.run.framework is not None else None
        self.entry = next((r.entry.value for r in self.run.regions if r.entry is not None), None)
        self._made: dict[tuple[str, str, str], Reader | None] = {}

    def engine_argument(self, option: Option) -> str:
        """The name under which a trainer passes an option on to SGLang; empty if it does not."""
        prefix = _ENGINE_ARGUMENTS.get(self.framework or "", "")
        if not prefix or not option.key.startswith(prefix) or option.origin is Origin.DUMP:
            return ""
        if self.framework == "slime":
            trainer = table("slime")
            known = trainer is not None and option.key in trainer.names
            return "" if known or self.of(option) is None else option.key.removeprefix(prefix)
        name = option.key.removeprefix(prefix)
        if (
            "." in name
            or (self.framework == "roll" and name in _TAKEN_OUT)
            or self.facts.name("rollout_engine").value != "sglang"
        ):
            return ""
        return name

    def engine(self, option: Option) -> Reader:
        if self.framework == "slime":
            return self._reader("sglang", "argparse", owners=("server",))
        return self._reader("sglang", "call", owners=("ServerArgs",))

    def of(self, option: Option) -> Reader | None:
        """Who reads an option; None where nobody catalogued does, or where it was only printed into a log."""
        if option.origin is Origin.HYDRA and _adds(option):
            return None
        head = option.key.partition(".")[0] if option.scope == "deepspeed" else ""
        key = (option.scope, option.origin.value, head)
        try:
            return self._made[key]
        except KeyError:
            reader = self._made[key] = self._find(option)
            return reader

    def _find(self, option: Option) -> Reader | None:
        match option.origin:
            case Origin.PYTHON:
                return self._class(option.scope)
            case Origin.FLAG if not option.scope:
                return self._command()
            case Origin.HYDRA if not option.scope:
                return self._overrides()
            case Origin.YAML | Origin.JSON:
                return self._file(option)
            case _:
                return None

    def _class(self, scope: str) -> Reader | None:
        if self.framework == "xtuner":
            return self._class_of_xtuner(scope)
        catalogue = _catalogue_of(scope)
        if catalogue is None:
            return None
        return None if own_class(self.facts, scope) else self._reader(catalogue, "call", owners=(scope,))

    def _class_of_xtuner(self, scope: str) -> Reader | None:
        known = table("xtuner")
        if known is None or not scope.endswith("Config") or not any(scope in group for group in known.owner_sets):
            return None
        return None if own_class(self.facts, scope, ("xtuner",)) else self._reader("xtuner", "call", owners=(scope,))

    def _command(self) -> Reader | None:
        entry = self.entry or ""
        if match := _OPENRLHF.search(entry):
            return self._reader("openrlhf", "argparse", owners=(match[1],))
        if match := _SWIFT.search(entry):
            ignores = self.facts.options("ignore_args_error")
            owner = "rlhf" if "rlhf" in (match[1], match[2]) else "sft"
            return None if ignores else self._reader("ms-swift", "argparse", owners=(owner,))
        if _FACTORY.search(entry):
            return self._factory("argparse")
        if _TRL.search(entry):
            return self._reader("trl", "argparse", strict=False)
        if _MEGATRON.search(entry) and self.framework == "megatron-core":
            return self._reader("megatron-core", "argparse")
        if _SLIME.search(entry) and self.framework == "slime":
            return self._reader("slime", "argparse")
        if entry in ("sglang serve", "sglang.launch_server") or entry.endswith("sglang/launch_server.py"):
            return self._reader("sglang", "argparse", owners=("server",))
        if _module(entry).endswith(_XTUNER_COMMAND):
            return self._reader("xtuner", "cyclopts", owners=("TrainingArguments",))
        return None

    def _overrides(self) -> Reader | None:
        entry = self.entry or ""
        program = next((known for known in _TREE_PROGRAMS if _module(entry).endswith(known)), None)
        if program is not None:
            foreign = any(
                o.key in ("model_engine", "config-name", "config-path") or "@" in o.key for o in self.run.options
            )
            foreign = foreign or any(o.key.startswith("hydra.") or ".model_engine" in o.key for o in self.run.options)
            catalogue, owners = _TREE_PROGRAMS[program]
            return None if foreign else self._reader(catalogue, "hydra", owners=owners)
        if self.framework == "nemo-rl" and _module(entry).rpartition(".")[2].startswith("run_"):
            return self._reader("nemo-rl", "hydra")
        return self._factory("dict") if _FACTORY.search(entry) else None

    def _file(self, option: Option) -> Reader | None:
        if option.scope == "deepspeed":
            return self._reader("deepspeed", "json", strict=option.key.startswith("zero_optimization."))
        if option.scope == "accelerate":
            elsewhere = any(o.value == "AMAZON_SAGEMAKER" for o in self.facts.options("compute_environment"))
            return None if elsewhere else self._reader("accelerate", "json", owners=("ClusterConfig",))
        if option.scope:
            return None
        heads = {
            option.key.partition(".")[0] for option in self.run.options if option.origin in (Origin.YAML, Origin.JSON)
        }
        entry = self.entry or ""
        if _SWIFT.search(entry):
            return self._command()  # the file becomes words of a command line
        if _TRL.search(entry):
            return self._reader("trl", "dict", strict=False)
        if self.framework == "axolotl" and {"base_model", "datasets"} <= heads and "plugins" not in heads:
            return self._reader("axolotl", "pydantic", strict=False)
        if self.framework == "llamafactory" and "model_name_or_path" in heads and heads & _FACTORY_FILE:
            return None if heads & _FACTORY_OTHERS else self._factory("dict")
        if self.framework in ("nemo-rl", "roll"):
            return self._reader(self.framework, "tree", strict=False)
        return None

    def _factory(self, how: str) -> Reader | None:
        """LLaMA-Factory, unless it is told to take extra names or starts another trainer with options of its own."""
        switches = ("ALLOW_EXTRA_ARGS", "USE_MCA")
        text = any(word in source.text for source in self.facts.evidence.sources for word in switches)
        return None if text else self._reader("llamafactory", how)

    def _reader(self, catalogue: str, how: str, owners: tuple[str, ...] = (), strict: bool = True) -> Reader:
        low, high = _bounds(self.facts.evidence.versions.get(catalogue))
        pinned = self.facts.evidence.versions.get("transformers") if catalogue in INHERITS else None
        return _interned(catalogue, low, high, owners, strict, pinned.exact if pinned is not None else None, how)


@lru_cache(maxsize=512)
def _interned(
    catalogue: str,
    low: str | None,
    high: str | None,
    owners: tuple[str, ...],
    strict: bool,
    inherits: str | None,
    how: str,
) -> Reader:
    """The same reader is the same object, so that `judge` finds its answers by identity."""
    return Reader(catalogue, low, high, owners, strict, inherits, how)


def own_class(facts: Facts, scope: str, libraries: tuple[str, ...] = _LIBRARIES) -> bool:
    """Whether a class may be another than the library's: unsloth patches them, and names are used by others as well."""
    for source in facts.evidence.sources:
        text = source.text
        if scope not in text:
            continue
        if "unsloth" in text or f"class {scope}" in text:
            return True
        if f".{scope}(" in text and not any(f"{library}.{scope}(" in text for library in libraries):
            return True
        for statement in _IMPORT.finditer(text):
            if statement[1].partition(".")[0] not in libraries and re.search(rf"\b{scope}\b", statement[2]):
                return True
    return False


@lru_cache(maxsize=512)
def _catalogue_of(scope: str) -> str | None:
    """The catalogue that has a class's fields, all of them."""
    if scope in _HF_CLASSES:
        return "transformers"
    if scope == "LoraConfig":
        return "peft"
    known = table("trl")
    if known is None or not scope.endswith("Config") or scope == "ModelConfig":
        return None
    return "trl" if any(scope in group for group in known.owner_sets) else None


def _module(entry: str) -> str:
    """``skyrl/train/main_sft.py`` as ``skyrl.train.main_sft``."""
    return entry.removesuffix(".py").replace("/", ".")


def _adds(option: Option) -> bool:
    """``+key``, ``++key`` and ``~key``: hydra then takes names that the tree does not have."""
    return option.span.text.lstrip("'\"")[:1] in ("+", "~")


def _bounds(fact: VersionFact | None) -> tuple[str | None, str | None]:
    """The release or the range that the user gave; what merely follows from the options used is no evidence here."""
    if fact is None or (fact.exact is None and fact.span is None):
        return None, None
    return (fact.exact, fact.exact) if fact.exact is not None else (fact.low, fact.high)


@lru_cache(maxsize=8192)
def judge(reader: Reader, name: str) -> Verdict:
    verdict = _judge(reader, name)
    uncertain = reader.catalogue in SAMPLED or name in _STILL_TAKEN.get(reader.catalogue, ())
    return Verdict(OPEN, name) if uncertain and verdict.kind in (GONE, LATER, RETIRED) else verdict


def _judge(reader: Reader, name: str) -> Verdict:
    framework = reader.catalogue
    owner = reader.owners[0] if len(reader.owners) == 1 else None
    info = find_option(framework, name, reader.exact, owner=owner, transformers=reader.inherits)
    catalogue = table(framework)
    assert catalogue is not None, "a reader's catalogue exists"
    if reader.exact is not None and not _examined(catalogue, reader.exact):
        return Verdict(OPEN, name)
    if reader.exact is not None and reader.owners and not set(reader.owners) & commands(framework, reader.exact):
        return Verdict(OPEN, name)  # the command or class itself is not there
    if info is None or (reader.how != "argparse" and (info.abbreviated or info.negated)):
        return _absent(reader, catalogue, name)
    if info.framework != framework:
        return _inherited(reader, info)
    if reader.owners and not set(reader.owners) & set(info.owners):
        return _elsewhere(reader, catalogue, info)
    if info.last is not None and _of_transformers(reader, info.key):
        return Verdict(KNOWN, info.key, info)
    if reader.low is None and reader.high is None:
        still = not reader.owners or set(reader.owners) & commands(framework, catalogue.versions[-1])
        kind = RETIRED if info.last is not None and still else KNOWN  # a command that is gone has no newer names
        return Verdict(kind, info.key, info, info.first, info.last)
    low, high = reader.low or info.first, reader.high
    if catalogue.alive(info.key, low) is False and info.last is not None and _after(low, info.last):
        return Verdict(GONE, info.key, info, info.first, info.last)
    if high is not None and catalogue.alive(info.key, high) is False and _after(info.first, high):
        return Verdict(LATER, info.key, info, info.first, info.last)
    return Verdict(KNOWN, info.key, info, info.first, info.last)


def _examined(catalogue: Table, version: str) -> bool:
    """Whether a release lies within those that the catalogue was made from."""
    wanted = version_key(version)
    return version_key(catalogue.examined[0]) <= wanted <= version_key(catalogue.examined[-1])


def _inherited(reader: Reader, info: OptionInfo) -> Verdict:
    """A name of TrainingArguments. Without a version it is gone only where the newest release certainly lacks it."""
    kind = KNOWN
    if info.last is not None and reader.inherits is None and reader.low is None:
        catalogue = table(reader.catalogue)
        kind = (
            RETIRED
            if catalogue is not None and exists(reader.catalogue, info.key, catalogue.versions[-1]) is False
            else KNOWN
        )
    return Verdict(kind, info.key, info, info.first, info.last)


def _elsewhere(reader: Reader, catalogue: Table, info: OptionInfo) -> Verdict:
    """The release has the name, but for other commands or classes. Without an exact release only if it never was here.

    A catalogued release on either side must agree, as the owners are known at catalogued releases only.
    """
    if reader.catalogue == "accelerate":
        return Verdict(OPEN, info.key, info)  # its file takes names of older files and converts them
    if _of_transformers(reader, info.key) or "Seq2SeqTrainingArguments" in reader.owners:
        return Verdict(KNOWN, info.key, None)
    had = [version for version in catalogue.versions if _owns(catalogue, info.key, version, reader.owners)]
    if reader.exact is None:
        return Verdict(OPEN if had else ELSEWHERE, info.key, info, info.first, info.last)
    wanted = version_key(reader.exact)
    around = [version for version in catalogue.versions if version_key(version) <= wanted][-1:]
    around += [version for version in catalogue.versions if version_key(version) >= wanted][:1]
    if any(version in had for version in around):
        return Verdict(OPEN, info.key, info)
    before = [version for version in had if version_key(version) < wanted]
    if before:
        return Verdict(GONE, info.key, info, info.first, before[-1])
    return Verdict(ELSEWHERE, info.key, info, info.first, info.last)


def _owns(catalogue: Table, name: str, version: str, owners: tuple[str, ...]) -> bool:
    info = catalogue.info(name, version)
    return info is not None and bool(set(owners) & set(catalogue.owner_sets[info["in"]]))


def _of_transformers(reader: Reader, name: str) -> bool:
    """Whether the name may come from TrainingArguments, which many classes extend."""
    known = table("transformers")
    return reader.catalogue in INHERITS and known is not None and name in known.names


def _negates(catalogue: Table, spelled: str) -> bool:
    """``--no_x`` of HF's parser, ``--no-x`` of argparse.BooleanOptionalAction."""
    return spelled.startswith("no_") or (spelled.startswith("no-") and spelled[3:] in catalogue.names)


def _absent(reader: Reader, catalogue: Table, name: str) -> Verdict:
    """A name that the release does not have: it went, it comes later, or it never was."""
    framework = reader.catalogue
    spelled = name.replace("-", "_") if profiles()[framework].dashes else name
    for known in (catalogue, table("transformers") if framework in INHERITS else None):
        line = known.line(spelled) if known is not None else None
        if known is None or line is None:
            continue
        first, last = line["life"][0], line["life"][1]
        release = reader.exact if known is catalogue else reader.inherits
        if release is None:
            release = _standing(reader, known)
        if release is None or not _examined(known, release):
            return Verdict(OPEN, spelled)
        info = find_option(known.framework, spelled)
        if last is not None and _after(release, last):
            return Verdict(GONE, spelled, info, first, last)
        if _after(first, release):
            return Verdict(LATER, spelled, info, first, last)
        return Verdict(OPEN, spelled)
    if not spelled[:1].isalpha():
        return Verdict(OPEN, spelled)
    if framework == "accelerate" and spelled.endswith("_config"):
        return Verdict(OPEN, spelled)  # a section of a fork or of another release
    launch = table("accelerate")
    if framework == "trl" and reader.how != "call" and launch is not None and spelled in launch.names:
        return Verdict(OPEN, spelled)  # leftovers of the trl command go to accelerate launch
    if reader.how == "argparse" and (_prefix_of_any(catalogue, spelled) or _negates(catalogue, spelled)):
        return Verdict(OPEN, spelled)
    if framework == "slime" and spelled.startswith("sglang-"):
        return Verdict(OPEN, spelled)  # judged as an argument of SGLang
    if profiles()[framework].tree and not _in_tree(reader, catalogue, spelled):
        return Verdict(OPEN, spelled)
    if framework == "deepspeed" and spelled.replace(".", ".stage3_", 1) in catalogue.names:
        return Verdict(OPEN, spelled)  # the section takes the field's own name beside its alias
    if framework == "deepspeed" and "." not in spelled and _has_branch(catalogue, f"{spelled}."):
        return Verdict(OPEN, spelled)
    return Verdict(UNKNOWN, spelled)


@lru_cache(maxsize=512)
def _branches(framework: str) -> frozenset[str]:
    known = table(framework)
    names = known.names if known is not None else ()
    sections = {""} if profiles()[framework].tree else set()
    for name in names:
        while name := name.rpartition(".")[0]:
            sections.add(name)
    return frozenset(sections)


def _in_tree(reader: Reader, catalogue: Table, name: str) -> bool:
    """Whether the name is an option of a catalogued section, neither a section itself nor one that is translated."""
    if not _has_branch(catalogue, name) or name in _branches(catalogue.framework):
        return False
    return reader.catalogue != "skyrl" or not _translated(reader, name)


def _has_branch(catalogue: Table, name: str) -> bool:
    """Whether the section that a dotted name stands in is one of the catalogued tree."""
    return name.rpartition(".")[0] in _branches(catalogue.framework)


def _translated(reader: Reader, name: str) -> bool:
    """Whether SkyRL before 0.3.0 may take it: it then falls back to the names of skyrl-train."""
    older = table("skyrl-train")
    return older is not None and name in older.names and (reader.low is None or _after("0.3.0", reader.low))


def _standing(reader: Reader, known: Table) -> str | None:
    """The oldest release of transformers that the framework allows: none of those allowed has the name."""
    if reader.exact is None:
        return None
    pinned = inherited_from(reader.catalogue, reader.exact)
    return pinned[0] if pinned else None


def _prefix_of_any(catalogue: Table, name: str) -> bool:
    """Whether argparse might have taken it for an abbreviation in some release."""
    return profiles()[catalogue.framework].abbreviations and any(known.startswith(name) for known in catalogue.names)


def _after(left: str, right: str) -> bool:
    return version_key(left) > version_key(right)
