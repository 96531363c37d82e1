"""Which framework, algorithm, stage and model a paste is about, each with the reason and the place.

What decides, in this order: the program that is started, the classes that are called, option names and values that
only one framework has, and last what the user says in prose. Names of runs, paths and data sets never decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.kb.frameworks.entries import Entry, algorithm_options, class_entry, program_entry, stage_of
from trainmedic.kb.frameworks.frames import LIBRARIES
from trainmedic.kb.frameworks.mentions import (
    GEMMA2,
    NAMES_OF_ALGORITHMS,
    NAMES_OF_FRAMEWORKS,
    Line,
    mentioned,
    own_words,
    span_in,
    where,
)
from trainmedic.kb.frameworks.models import family_of_type, find_family, model_family
from trainmedic.kb.frameworks.profiles import INHERITS, profiles, select
from trainmedic.kb.frameworks.settings import index
from trainmedic.kb.frameworks.signatures import from_keys, knows
from trainmedic.kb.model.run import Option, Recognised, Region, Unresolved, Value, VersionFact

__all__ = ["TRAINING_STAGES", "Recognition", "model_family", "recognise", "stage_of"]

TRAINING_STAGES = ("pretrain", "sft", "reward", "preference", "rl", "distill")

_NONE: Mapping[str, VersionFact] = MappingProxyType({})
_HF_CLASSES = ("TrainingArguments", "Seq2SeqTrainingArguments", "Trainer", "Seq2SeqTrainer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """What was recognised; None where nothing says it."""

    framework: Recognised | None = None
    algorithm: Recognised | None = None
    stage: Recognised | None = None
    model: Recognised | None = None
    model_family: Recognised | None = None


@dataclass(slots=True)
class _Found:
    framework: Recognised | None = None
    algorithm: Recognised | None = None
    stage: Recognised | None = None
    entries: list[tuple[Entry, Recognised]] = field(default_factory=list)


def recognise(
    regions: Sequence[Region],
    options: Sequence[Option],
    question: str = "",
    versions: Mapping[str, VersionFact] = _NONE,
    *,
    said: Sequence[Line] = (),
    raised: Recognised | None = None,
) -> Recognition:
    """Recognise one run from its regions and options, and the user's words where those say nothing.

    ``said`` are lines of prose that came as attachments (a pasted article, a README); the question's own come first.
    ``raised`` is the framework that a traceback comes from, which says more than words do.
    """
    found = _Found()
    prose = own_words(question, regions, said)
    _from_programs(found, regions)
    _from_classes(found, options)
    if found.framework is None:
        found.framework = from_keys(options)
    elif found.entries and not found.entries[0][0].certain:
        _doubt(found, options)
    _refine(found, options)
    if found.framework is None:
        found.framework = _named(prose, raised) or _installed(versions)
    if found.algorithm is None and not (found.stage and found.stage.value in ("inference", "export")):
        found.algorithm = mentioned(prose, NAMES_OF_ALGORITHMS)
    _stage(found, options)
    model = _model(found.framework.value if found.framework else None, options)
    return Recognition(
        framework=found.framework,
        algorithm=found.algorithm,
        stage=found.stage,
        model=model,
        model_family=_family(model, options, prose),
    )


def _named(prose: Sequence[Line], raised: Recognised | None) -> Recognised | None:
    """The framework that a traceback or the user's words name. A mere library in the traceback yields to the words."""
    words = mentioned(prose, NAMES_OF_FRAMEWORKS)
    if raised is None or (words is not None and raised.value in LIBRARIES):
        return words
    return raised


def _stage(found: _Found, options: Sequence[Option]) -> None:
    """The stage where nothing names it: the algorithm's; plain supervised training where HF's trainer is set up."""
    if found.stage is not None:
        return
    if found.algorithm is not None:
        reason = f"algorithm {found.algorithm.value}"
        found.stage = Recognised(value=stage_of(found.algorithm.value), reason=reason, span=found.algorithm.span)
        return
    hf = next((option for option in options if option.scope in _HF_CLASSES), None)
    if hf is not None and found.framework is not None and found.framework.value == "transformers":
        reason = f"{hf.scope} trains, and nothing says that it is anything but fine-tuning"
        found.stage = Recognised(value="sft", reason=reason, span=hf.span)


def _from_programs(found: _Found, regions: Sequence[Region]) -> None:
    for region in regions:
        if region.entry is None:
            continue
        entry = program_entry(region.entry.value)
        if entry is not None:
            found.entries.append((entry, region.entry))
    # A training command says more about the run than a server that is started beside it.
    found.entries.sort(key=lambda pair: (pair[0].stage in ("inference", "export"), not pair[0].certain))
    for entry, place in found.entries[:1]:
        reason = f"{place.value} is {entry.framework}'s"
        found.framework = Recognised(value=entry.framework, reason=reason, span=place.span)
        if entry.algorithm:
            found.algorithm = Recognised(
                value=entry.algorithm, reason=f"{place.value} trains {entry.algorithm}", span=place.span
            )
        if entry.stage:
            found.stage = Recognised(value=entry.stage, reason=f"{place.value} is for {entry.stage}", span=place.span)


def _from_classes(found: _Found, options: Sequence[Option]) -> None:
    best: tuple[int, Entry, Option] | None = None
    for option in options:
        entry = class_entry(option.scope)
        if entry is not None:
            weight = 0 if entry.algorithm else 1
            if best is None or weight < best[0]:
                best = (weight, entry, option)
    if best is None:
        return
    _, entry, option = best
    weak = found.framework is not None and not found.entries[0][0].certain if found.entries else False
    if found.framework is None or weak:
        found.framework = Recognised(
            value=entry.framework, reason=f"{option.scope} is {entry.framework}'s", span=option.span
        )
    if entry.algorithm and (found.algorithm is None or weak):
        found.algorithm = Recognised(
            value=entry.algorithm, reason=f"{option.scope} trains {entry.algorithm}", span=option.span
        )
    elif entry.stage and found.stage is None:
        found.stage = Recognised(value=entry.stage, reason=f"{option.scope} is for {entry.stage}", span=option.span)


def _doubt(found: _Found, options: Sequence[Option]) -> None:
    """A bare script name (``train_dpo.py``) names a framework only where its options are that framework's."""
    entry = found.entries[0][0]
    plain = [option for option in options if not option.scope]
    if found.framework is None or found.framework.value != entry.framework or not plain:
        return
    known = [option for option in plain if _accepts(entry.framework, option.key)]
    if 2 * len(known) >= len(plain):
        return
    other = from_keys(options)
    hf = [option for option in plain if _accepts("transformers", option.key)]
    if other is None and entry.algorithm is not None and len(hf) >= 2:
        reason = f"a script for {entry.algorithm} with the options of HF's trainer"
        other = Recognised(value="trl", reason=reason, span=hf[0].span)
    found.framework = other


def _accepts(framework: str, key: str) -> bool:
    if framework in INHERITS and _accepts("transformers", key):
        return True
    return knows(framework, key, key.replace("-", "_"))


def _refine(found: _Found, options: Sequence[Option]) -> None:
    """The algorithm where an option's value says it: stage, rlhf_type, rl, the advantage estimator."""
    framework = found.framework.value if found.framework else ""
    if found.stage and found.stage.value in ("inference", "export"):
        return
    hints = algorithm_options(framework)
    verdict: tuple[int, str, Option] | None = None
    for option in options:
        if option.scope and option.scope != framework and class_entry(option.scope) is None:
            continue
        words = hints.get(option.key) or hints.get(option.key.replace("-", "_"))
        if words is None:
            continue
        value = option.value[0] if isinstance(option.value, tuple) and option.value else option.value
        algorithm = words.get(str(value).lower())
        strength = list(hints).index(option.key.replace("-", "_") if option.key not in hints else option.key)
        if algorithm is not None and (verdict is None or strength >= verdict[0]):
            verdict = (strength, algorithm, option)
    if verdict is not None:
        _, algorithm, option = verdict
        reason = f"{option.key} {option.value}" if not isinstance(option.value, bool) else option.key
        found.algorithm = Recognised(value=algorithm, reason=reason, span=option.span)
        found.stage = Recognised(value=stage_of(algorithm), reason=reason, span=option.span)
    elif found.algorithm is None and framework:
        _by_default(found, framework, options)


def _by_default(found: _Found, framework: str, options: Sequence[Option]) -> None:
    """The algorithm a program trains where no option names one."""
    programs = [place for entry, place in found.entries if entry.framework == framework]
    words = " ".join(place.value for place in programs)
    written = {option.key for option in options}
    default = ""
    if framework == "ms-swift" and "rlhf" in words and "rlhf_type" not in written:
        default = "dpo"
    elif framework == "verl" and "main_ppo" in words and "algorithm.adv_estimator" not in written:
        default = "ppo"
    else:
        default = _says_nothing(framework, {key.partition(".")[0] for key in written}, bool(programs))
    span = programs[0].span if programs else options[0].span if options else None
    if default in ("inference", "export"):
        found.stage = Recognised(value=default, reason=f"the options are those for {default}", span=span)
    elif default:
        found.algorithm = Recognised(
            value=default, reason=f"what {framework} trains where nothing else is said", span=span
        )


_SWIFT_TRAINS = {"learning_rate", "num_train_epochs", "per_device_train_batch_size", "max_epochs", "micro_batch_size"}


def _says_nothing(framework: str, written: set[str], started: bool) -> str:
    """What a whole file of a framework is for that names no algorithm: an algorithm, ``inference`` or ``export``.

    ``written``: first parts of the options' names; ``started``: a program of the framework is seen as well.
    """
    match framework:
        case "axolotl" if "rl" not in written and "base_model" in written:
            return "pt" if "pretraining_dataset" in written else "sft" if "datasets" in written else ""
        case "llamafactory" if "stage" not in written and "model_name_or_path" in written:
            if "dataset" in written:
                return "sft"
            return "export" if "export_dir" in written else "inference" if "infer_backend" in written else ""
        case "ms-swift" if not started and "rlhf_type" not in written:
            return "sft" if {"model", "dataset"} <= written and written & _SWIFT_TRAINS else ""
        case _:
            return ""


def _model(framework: str | None, options: Sequence[Option]) -> Recognised | None:
    """The model by name or path; a path with an unresolved variable counts for its last part (``$DIR/Qwen2-7B``)."""
    columns = [framework] if framework else ["trl", "openrlhf", "axolotl", "ms-swift"]
    tokenizers = [option for option in options if _names_tokenizer(option)]
    best: tuple[int, str, Option] | None = None
    for option in options:
        name, rank = _written_name(option.value), 9
        if not name:
            continue
        if option.scope == "from_pretrained" and option.key in ("pretrained_model_name_or_path", "0", "model_name"):
            rank = 2
        elif tokenizers == [option]:
            rank = 3
        elif option.scope.endswith("Trainer") and option.key == "model":
            rank = 1
        elif (not option.scope or class_entry(option.scope) is not None) and _means_model(columns, option.key):
            rank = 0
        if rank < 9 and (best is None or rank < best[0]):
            best = (rank, name, option)
    if best is None:
        return None
    _, name, option = best
    return Recognised(value=name, reason=option.key, span=option.value_span or option.span)


def _written_name(value: Value) -> str:
    if isinstance(value, Unresolved):
        _, slash, last = value.raw.strip("'\"").rpartition("/")
        return last if slash and re.fullmatch(r"[\w.\-]+", last) else ""
    return value if isinstance(value, str) else ""


def _means_model(columns: Sequence[str], key: str) -> bool:
    if key == "model.path" and columns == ["verl"]:
        return True  # the engine-based SFT trainer; its files take the model's group from elsewhere
    return any(spec.name == "model" for column in columns for spec, _ in index(column).get(key, ()))


def _names_tokenizer(option: Option) -> bool:
    return option.scope.endswith("Tokenizer.from_pretrained") and option.key == "pretrained_model_name_or_path"


def _family(model: Recognised | None, options: Sequence[Option], prose: Sequence[Line]) -> Recognised | None:
    if model is not None:
        family = model_family(model.value)
        if family is not None:
            return Recognised(value=family, reason=f"model {model.value}", span=model.span)
    for option in options:
        if option.key.rsplit(".", 1)[-1] == "model_type" and isinstance(option.value, str):
            family = family_of_type(option.value) or model_family(option.value)
            if family is not None:
                return Recognised(value=family, reason=f"model_type {option.value}", span=option.span)
    for line in prose:
        named = find_family(line[2])
        if named is not None:
            family, start, end = named
            return Recognised(value=family, reason=where(line), span=span_in(line, start, end))
    bare = ((line, GEMMA2.search(line[2])) for line in prose) if model is None else ()
    said = next(((line, match) for line, match in bare if match is not None), None)
    if said is not None:
        line, match = said
        return Recognised(value="gemma2", reason=where(line), span=span_in(line, match.start(), match.end()))
    return None


def _installed(versions: Mapping[str, VersionFact]) -> Recognised | None:
    """The one training framework in a version listing; TRL only where no framework that builds on it is there."""
    own = [profiles()[name] for name in select("trainer") if name in versions]
    names = [profile.name for profile in own if not profile.library and not profile.options_of]
    if not names and "trl" in versions:
        names = ["trl"]
    if len(names) != 1:
        return None
    return Recognised(
        value=names[0], reason=f"{names[0]} is the only framework installed", span=versions[names[0]].span
    )
