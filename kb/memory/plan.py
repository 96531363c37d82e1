"""A run's settings → the numbers of its memory, with the settings that each term comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.values import UNKNOWN
from trainmedic.kb.frameworks.profiles import LAUNCHED, SETTINGS_OF_FILES, MemoryHabits, profiles
from trainmedic.kb.lazy import regex
from trainmedic.kb.memory.estimate import LOGITS, NOTHING, Plan, Range, exactly
from trainmedic.kb.memory.observed import cards
from trainmedic.kb.memory.shape import Shape, shape_of
from trainmedic.kb.model.run import Value

SETTINGS = {
    "weights": ("model", "weights_dtype", "load_in_4bit", "load_in_8bit", "quantization_bits"),
    "gathered": ("zero_stage", "fsdp"),
    "gradients": ("zero_stage", "tuner", "lora_rank"),
    "optimizer": ("optimizer", "zero_stage", "optimizer_offload"),
    "reference": ("algorithm",),
    "engine": ("rollout_memory",),
    "activations": ("micro_batch", "max_length", "gradient_checkpointing"),
    "attention": ("attention", "max_length", "micro_batch"),
    "logits": ("micro_batch", "max_length", "max_completion_length", "liger"),
    "update": ("optimizer",),
    "other": (),
}
"""Term → the settings that it depends on."""
_SAID_STAGE = regex(r"(?i)(?<![a-z])zero[-_ ]{0,3}(?:stage)?[-_ ]{0,3}(?P<stage>[0-3])(?![0-9])")
SHARDING = next(iter(SETTINGS_OF_FILES.values()))
"""The setting that names the sharding library's file, or says in a word what it is to do."""
_PAIRS = ("dpo", "orpo", "simpo", "cpo", "ipo", "rm", "reward")
_ROLLOUTS = ("grpo", "ppo", "rloo", "dapo", "reinforce", "gspo", "remax", "gkd")
_SEVERAL_MODELS = ("ppo", "gkd")
"""Algorithms with a critic, a reward model or a teacher, which are not estimated."""
_SCORED = ("rm", "reward")
_WORDLESS = {"seq_cls", "token_cls", "feature_extraction", "embedding", "reranker"}
_STORED = regex(r"(?i)awq|gptq|bnb-?4bit|nf4|int[48]|(?<=[-_])[48]bit")
"""Checkpoints whose weights are stored in 4 or 8 bits say so in their names."""
_REFERENCED = ("dpo", "kto", "ipo", "grpo")
_PARTIAL = ("use_galore", "use_badam", "use_apollo")
_STATES = (
    ("8bit", Range(2, 2, 2.2)),
    ("adafactor", Range(0, 0.1, 4)),
    ("lion", exactly(4)),
    ("muon", Range(4, 4, 8)),
    ("sgd", Range(0, 0, 4)),
    ("galore", Range(1, 2, 8)),
    ("apollo", Range(0.1, 1, 8)),
)
"""Bytes of the states of optimizers other than Adam, for a parameter in float32."""
_CHUNKED = ("cut_cross_entropy", "CutCrossEntropy", "use_fused_kernels", "fused_linear_cross_entropy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplanned:
    """The facts that would be needed and are not known, by their names."""

    missing: tuple[str, ...]


def plan_of(facts: Facts, capacity: float | None = None, *, rows_known: bool = True) -> Plan | Unplanned:
    """The plan of a training run, or what is missing for one. ``capacity``, in bytes, sizes an engine's share.

    With ``rows_known`` false only what stays is planned: no rows are in the model.
    """
    run = facts.run
    algorithm = run.algorithm.value if run.algorithm is not None else ""
    if not run.options or algorithm in _SEVERAL_MODELS or _spread_by_layers(facts) or _trains_a_part(facts):
        return Unplanned(missing=() if run.options else ("command",))
    model = run.model.value if run.model is not None else word_of(facts, "model")
    family = run.model_family.value if run.model_family is not None else None
    shape = shape_of(model, family, [option for region in facts.evidence.regions for option in region.options])
    stage = _stage(facts)
    ranks = number_of(facts, "world_size")
    rows = number_of(facts, "micro_batch") if rows_known else 1
    length = _length(facts, algorithm) if rows_known else NOTHING
    missing = (
        *_untold(facts),
        *(["model"] if shape is None else []),
        *(["setting:micro_batch"] if rows is None and length is not None and not _dynamic(facts) else []),
        *(["setting:max_length"] if length is None else []),
        *(["setting:num_gpus"] if stage > 0 and ranks is None else []),
    )
    if missing or shape is None or length is None:
        return Unplanned(missing=missing)
    parts = [number_of(facts, f"{name}_parallel") or 1 for name in ("tensor", "pipeline", "sequence", "context")]
    model_ranks, sequence_ranks = parts[0] * parts[1], parts[2] * parts[3]
    ranks = ranks or 1
    share = max(1, ranks // model_ranks)
    tuned = _adapter(facts, shape)
    linear, embedding, gradient, optimizer, copy = _bytes(facts, full=tuned is None)
    return Plan(
        shape=shape,
        adapter=tuned,
        linear_bytes=linear,
        embedding_bytes=embedding,
        gradient_bytes=gradient,
        optimizer_bytes=NOTHING if is_on(facts, "optimizer_offload") else optimizer,
        step_copy=NOTHING if is_on(facts, "optimizer_offload") else copy,
        weights_ranks=share if stage >= 3 else 1,
        gradient_ranks=share if stage >= 2 else 1,
        optimizer_ranks=share if stage >= 1 else 1,
        model_ranks=model_ranks,
        sequence_ranks=sequence_ranks,
        ranks=ranks,
        parameters_offloaded=is_on(facts, "param_offload"),
        rows=(rows or 1) * (2 if algorithm in _PAIRS and not is_on(facts, "packing") else 1),
        length=length,
        checkpointing=_checkpointing(facts),
        eager=word_of(facts, "attention") == "eager",
        fused_loss=_fused(facts),
        logit_bytes=_logit_bytes(facts, algorithm),
        references=_references(facts, algorithm, full=tuned is None),
        engine=_engine(facts, capacity),
    )


def value_of(facts: Facts, name: str) -> Value:
    """The value of a setting; None where it is not known."""
    value = facts.name(name).value
    return None if value is UNKNOWN else value


def number_of(facts: Facts, name: str) -> int | None:
    value = value_of(facts, name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def word_of(facts: Facts, name: str) -> str:
    """The value where it is a text, in small letters."""
    value = value_of(facts, name)
    return value.lower() if isinstance(value, str) else ""


def is_on(facts: Facts, name: str) -> bool:
    """Whether a setting is known, and neither false nor empty."""
    return value_of(facts, name) not in (None, False, "", "none", "cpu:false", "false")


def habits(facts: Facts) -> MemoryHabits:
    """The properties that decide the memory of runs of this framework and are not options."""
    profile = profiles().get(facts.run.framework.value) if facts.run.framework is not None else None
    return profile.memory if profile is not None else MemoryHabits()


def _stage(facts: Facts) -> int:
    """How far the states are divided over the ranks, as ZeRO counts it; FSDP divides all of them."""
    stage = value_of(facts, "zero_stage")
    if isinstance(stage, int):
        return stage
    evidence = facts.evidence
    said = _SAID_STAGE.search(evidence.question) if evidence.question else None
    if said is not None:
        return int(said["stage"])
    if any("/zero/stage3.py" in frame for trace in evidence.tracebacks for frame in trace.frames):
        return 3
    by_default = habits(facts).shards and word_of(facts, "training_backend") != "megatron"
    return 3 if is_on(facts, "fsdp") or by_default else 0


def _checkpointing(facts: Facts) -> bool | None:
    value = value_of(facts, "gradient_checkpointing")
    if value is None:
        return True if habits(facts).recomputes else None
    return value if isinstance(value, bool) else True


def _dynamic(facts: Facts) -> bool:
    return value_of(facts, "dynamic_batch") is True


def _length(facts: Facts, algorithm: str) -> Range | None:
    """Tokens of the longest row. Rows that are neither packed nor generated may be shorter than the limit."""
    if _dynamic(facts) and (limit := number_of(facts, "tokens_per_gpu")) is not None:
        return exactly(limit)
    limit = number_of(facts, "max_length")
    if algorithm in _ROLLOUTS:
        parts = [number_of(facts, "max_prompt_length"), number_of(facts, "max_completion_length")]
        known = [part for part in parts if part is not None]
        limit = sum(known) if known else limit
    if limit is None:
        return None
    return exactly(limit) if is_on(facts, "packing") or algorithm in _ROLLOUTS else Range(0.1 * limit, limit, limit)


def _bits(facts: Facts) -> int:
    """Bits of a linear weight: as the settings say, or the name of a checkpoint that is stored quantised."""
    stated = number_of(facts, "quantization_bits")
    if value_of(facts, "load_in_4bit") is True or word_of(facts, "tuner") == "qlora":
        return 4
    if value_of(facts, "load_in_8bit") is True:
        return 8
    stored = _STORED.search(facts.run.model.value) if facts.run.model is not None and stated is None else None
    return stated or (16 if stored is None else 8 if "8" in stored[0] else 4)


def _spread_by_layers(facts: Facts) -> bool:
    """Whether one process has several cards, over which the model or the batch is then spread."""
    ranks, visible = number_of(facts, "world_size") or 1, value_of(facts, "visible_devices")
    listed = len([part for part in str(visible).strip("\"'").split(",") if part.strip()]) if visible is not None else 0
    mapped = word_of(facts, "device_map") in ("auto", "balanced", "balanced_low_0", "sequential")
    seen = sum(1 for _ in cards(facts.evidence)) if mapped and not listed else 0
    return max(listed, seen) > ranks


def _trains_a_part(facts: Facts) -> bool:
    """Whether some layers are frozen, or states are kept of a part of the weights only."""
    used = any(facts.option(name).value is True for name in _PARTIAL)
    return used or word_of(facts, "tuner") == "freeze" or "lomo" in word_of(facts, "optimizer")


def _untold(facts: Facts) -> tuple[str, ...]:
    """What a file that was not pasted, or a part that was cut off, leaves open of sharding and tuning."""
    scopes = {option.scope for option in facts.run.options}
    named = facts.options("config_file", "launcher")
    tuned = any(value_of(facts, name) is not None for name in ("use_peft", "tuner"))
    open_stage = is_on(facts, SHARDING) and value_of(facts, "zero_stage") is None and not _stage(facts)
    return (
        *([] if tuned or not facts.run.partial else ["setting:tuner"]),
        *(["setting:zero_stage"] if open_stage else []),
        *(["setting:fsdp"] if named and scopes.isdisjoint(LAUNCHED) else []),
    )


def _logit_bytes(facts: Facts, algorithm: str) -> Range:
    """Nothing where the model ends in a score or an embedding instead of words."""
    option = facts.option("task_type").value
    tasks = {word_of(facts, "peft_task_type"), option.lower() if isinstance(option, str) else ""}
    if algorithm in _SCORED or tasks & _WORDLESS:
        return NOTHING
    own = habits(facts).logit_bytes
    return Range(*own) if own else LOGITS


def _adapter(facts: Facts, shape: Shape) -> int | None:
    """The parameters of a LoRA adapter; None if the model itself is trained."""
    if not (is_on(facts, "use_peft") or "lora" in word_of(facts, "tuner")) and _bits(facts) == 16:
        return None
    targets = value_of(facts, "lora_targets")
    named: Sequence[object] = targets if isinstance(targets, tuple) else [targets]
    every = any(isinstance(name, str) and "all" in name for name in named) or len(named) > 4
    return shape.adapter(number_of(facts, "lora_rank") or 8, every)


def _bytes(facts: Facts, *, full: bool) -> tuple[Range, Range, Range, Range, Range]:
    """Bytes for a parameter: linear weights, embeddings, gradients, optimizer, temporary of the step."""
    weights, gradients, states = _held(facts, full=full)
    factor, kind = states / 8, word_of(facts, "optimizer")
    optimizer = exactly(8)
    for name, known in _STATES:
        if name in kind:
            optimizer = known if name == "8bit" else known.times(factor)
            break
    else:
        optimizer = optimizer.times(factor)
    copy = Range(0, 0 if "fused" in kind or "bit" in kind or not full else optimizer.likely / 2, optimizer.likely / 2)
    if is_on(facts, "zero_stage") or is_on(facts, SHARDING):
        optimizer = Range(
            optimizer.low + 4, optimizer.likely + 4, optimizer.high + 8
        )  # master weights, float32 gradients
        copy = NOTHING
    bits = _bits(facts)
    if bits < 16:
        return exactly(0.56 if bits == 4 else 1.06), Range(2, 2, 4), Range(2, 4, 4), optimizer, NOTHING
    return weights, weights, gradients, optimizer, copy


def _held(facts: Facts, *, full: bool) -> tuple[Range, Range, float]:
    """Weights, gradients, and how wide Adam's two states are, in bytes for a parameter.

    What is trained is float32 under autocast, unless it was loaded in 16 bits and left there.
    """
    half = is_on(facts, "bf16") or is_on(facts, "fp16") or word_of(facts, "mixed_precision") in ("bf16", "fp16")
    dtype = word_of(facts, "weights_dtype")
    if not full:
        wide = dtype == "fp32" or (not half and not dtype)
        return exactly(4 if wide else 2), Range(2, 4, 4), 8
    if is_on(facts, "zero_stage") or is_on(facts, SHARDING):
        return exactly(2 if half else 4), Range(2, 2 if half else 4, 4), 8
    if habits(facts).master_weights and value_of(facts, "pure_bf16") is not True:
        return Range(4, 4, 6), exactly(4), 8
    if (dtype or habits(facts).trained_dtype) in ("bf16", "fp16"):
        return exactly(2), exactly(2), 4
    if dtype in ("", "auto"):
        return Range(2, 4 if dtype == "" else 2, 6), Range(2, 4 if dtype == "" else 2, 4), 8 if dtype == "" else 4
    return Range(4, 4, 6), exactly(4), 8


def _fused(facts: Facts) -> bool:
    """Whether the loss is computed from the hidden states in chunks, so that the logits are never whole."""
    if is_on(facts, "liger") or is_on(facts, "unsloth") or habits(facts).fused_loss or _chunked(facts):
        return True
    written = (f"{option.key}={option.value}" for option in facts.run.options)
    return any(word in text and "False" not in text for text in written for word in _CHUNKED)


def _chunked(facts: Facts) -> bool:
    """Whether the framework's release computes this algorithm's loss in chunks by itself."""
    since = habits(facts).chunked_loss
    first = since.get("chosen" if facts.written("loss_type").value is True else str(facts.name("algorithm").value))
    return first is not None and facts.version(str(facts.name("framework").value), f">={first}").value is True


def _references(facts: Facts, algorithm: str, *, full: bool) -> int:
    """Frozen copies of the model beside it; with an adapter the base without it is the reference."""
    needless = is_on(facts, "precompute_ref_log_probs") or is_on(facts, "reference_free") or is_on(facts, "ref_offload")
    if not full or needless or algorithm not in _REFERENCED:
        return 0
    return 0 if algorithm == "grpo" and value_of(facts, "kl_coef") in (0, 0.0) else 1


def _engine(facts: Facts, capacity: float | None) -> Range:
    """What an inference engine on the same card takes; while it sleeps, next to nothing of it."""
    share = value_of(facts, "rollout_memory")
    beside = word_of(facts, "rollout_placement") in ("server", "async") or not is_on(facts, "rollout_engine")
    if not isinstance(share, (int, float)) or isinstance(share, bool) or beside or capacity is None:
        return NOTHING
    asleep = is_on(facts, "rollout_sleep") or habits(facts).engine_sleeps
    return Range(0, 0, 0.05 * capacity) if asleep else exactly(share * capacity)
