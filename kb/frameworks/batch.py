"""World size, data parallelism, accumulation and global batch, computed the way each framework computes them.

A quantity is None where something it needs is not known. The formulas were read in the frameworks' sources: OpenRLHF
divides its global batch by micro batch times ranks over the ring and tensor groups; HF multiplies; verl divides its
mini batch, counted in prompts times samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.frameworks.profiles import Profile, profiles
from trainmedic.kb.model.run import Option, Setting, Unresolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A computed number with its explanation, and the settings and options that it depends on."""

    value: int
    how: str
    names: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The sizes of a run; None if unknown."""

    world_size: Known | None = None
    data_parallel: Known | None = None
    accumulation: Known | None = None
    global_batch: Known | None = None


def batch(settings: Mapping[str, Setting], framework: str | None, algorithm: str | None = None) -> Batch:
    numbers, profile = _Numbers(settings), profiles().get(framework or "")
    world = _world(numbers, profile)
    parallel = _data_parallel(numbers, world)
    whole: Known | None = None
    accumulation: Known | None = None
    match profile.batch if profile is not None else "":
        case "multiplied":
            accumulation = _hf_accumulation(numbers, profile, algorithm, world)
            whole = _product(numbers, accumulation, parallel)
        case "divided by ranks":
            whole = numbers.written("global_batch", "train batch size")
            accumulation = _openrlhf_accumulation(numbers, whole, world)
        case "divided":
            whole = numbers.written("global_batch", "global batch size")
            accumulation = _micro_batches(numbers, whole, parallel)
            if profile is not None and profile.one_step and numbers.is_unset("global_batch"):
                accumulation = numbers.known(1, "1, as no global batch is set")
                whole = _product(numbers, accumulation, parallel)
        case "prompts" if algorithm != "sft":
            whole = _mini_batch(numbers)
            accumulation = _micro_batches(numbers, whole, parallel)
    return Batch(
        world_size=world,
        data_parallel=parallel,
        accumulation=accumulation,
        global_batch=whole,
    )


class _Numbers:
    def __init__(self, settings: Mapping[str, Setting]) -> None:
        self.settings = settings

    def number(self, name: str) -> int | None:
        """A positive whole number, or None."""
        setting = self.settings.get(name)
        if setting is None or isinstance(setting.value, (bool, Unresolved)):
            return None
        value = setting.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return value if isinstance(value, int) and value > 0 else None

    def one(self, name: str) -> int | None:
        """A size that defaults to 1; None if it is an unresolved variable."""
        setting = self.settings.get(name)
        if setting is None or setting.value is None:
            return 1
        return self.number(name)

    def is_unset(self, name: str) -> bool:
        """Whether it is known to have no value; -1 is none."""
        setting = self.settings.get(name)
        return setting is not None and setting.value in (None, -1)

    def written(self, name: str, how: str) -> Known | None:
        value = self.number(name)
        return None if value is None else self.known(value, how, name)

    def known(self, value: int, how: str, *names: str) -> Known:
        present = [name for name in names if name in self.settings]
        options = [self.settings[name].option for name in present]
        return Known(
            value=value,
            how=how,
            names=tuple(present),
            options=tuple(option for option in options if option is not None),
        )


def _join(numbers: _Numbers, value: int, how: str, names: Sequence[str], *parts: Known) -> Known:
    """A number that depends on settings and on other numbers."""
    own = numbers.known(value, how, *names)
    every = (*own.names, *(name for part in parts for name in part.names))
    options = (*own.options, *(option for part in parts for option in part.options))
    unique = [option for index, option in enumerate(options) if option not in options[:index]]
    return Known(value=value, how=how, names=tuple(dict.fromkeys(every)), options=tuple(unique))


def _world(numbers: _Numbers, profile: Profile | None) -> Known | None:
    """Training processes: the launcher's total, nodes × GPUs per node, or the length of CUDA_VISIBLE_DEVICES."""
    total = numbers.number("num_processes")
    if total is not None:
        return numbers.known(total, f"{total} processes in all", "num_processes")
    gpus, nodes = numbers.number("num_gpus"), numbers.one("num_nodes")
    if gpus is not None and nodes is not None:
        return numbers.known(gpus * nodes, f"{nodes} nodes × {gpus} GPUs", "num_gpus", "num_nodes")
    setting = numbers.settings.get("visible_devices")
    spawns = profile is not None and profile.every_gpu
    if setting is not None and setting.value is not None and spawns and nodes is not None:
        if isinstance(setting.value, Unresolved):
            return None
        count = len([part for part in str(setting.value).strip("\"'").split(",") if part.strip()])
        if count:
            return numbers.known(count * nodes, f"{count} visible GPUs", "visible_devices")
    return None


def _data_parallel(numbers: _Numbers, world: Known | None) -> Known | None:
    """World ÷ (sequence × tensor × pipeline × context parallel); None if it does not divide."""
    if world is None:
        return None
    names = ("sequence_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel")
    sizes = [numbers.one(name) for name in names]
    product = 1
    for size in sizes:
        if size is None:
            return None
        product *= size
    if world.value % product:
        return None
    used = [name for name, size in zip(names, sizes, strict=True) if size and size > 1]
    how = f"{world.value} processes" + (f" ÷ {product} ({', '.join(used)})" if product > 1 else "")
    return _join(numbers, world.value // product, how, used, world)


def _openrlhf_accumulation(numbers: _Numbers, whole: Known | None, world: Known | None) -> Known | None:
    """Global × ring × tensor ÷ (micro × world), rounded down."""
    micro = numbers.number("micro_batch")
    ring, tensor = numbers.one("sequence_parallel"), numbers.one("tensor_parallel")
    if world is None or whole is None or micro is None or ring is None or tensor is None:
        return None
    above, below = whole.value * ring * tensor, micro * world.value
    divisor = f"({micro} × {world.value} ranks)" if ring * tensor == 1 else f"({micro} × {world.value})"
    parts = [name for name in ("sequence_parallel", "tensor_parallel") if numbers.one(name) != 1]
    names = ("global_batch", "micro_batch", *parts)
    return _join(numbers, above // below, f"{above} ÷ {divisor}", names, world)


def _hf_accumulation(
    numbers: _Numbers, profile: Profile | None, algorithm: str | None, world: Known | None
) -> Known | None:
    written = numbers.number("gradient_accumulation")
    if written is not None:
        return numbers.known(written, f"{written} as set", "gradient_accumulation")
    if profile is None or not profile.batch_filled_to or "gradient_accumulation" not in numbers.settings:
        return None
    if isinstance(numbers.settings["gradient_accumulation"].value, Unresolved):
        return None
    if algorithm == "grpo":
        return numbers.known(1, f"{profile.title}'s default for GRPO", "gradient_accumulation")
    micro = numbers.number("micro_batch")
    if micro is None or world is None:
        return None
    value = max(1, math.ceil(profile.batch_filled_to / micro / world.value))
    how = f"{profile.title}'s default: {profile.batch_filled_to} ÷ ({micro} × {world.value}), rounded up"
    return _join(numbers, value, how, ("micro_batch",), world)


def _product(numbers: _Numbers, accumulation: Known | None, parallel: Known | None) -> Known | None:
    micro = numbers.number("micro_batch")
    if micro is None or accumulation is None or parallel is None:
        return None
    return _join(
        numbers,
        micro * accumulation.value * parallel.value,
        f"{micro} per device × {accumulation.value} accumulated × {parallel.value} data parallel",
        ("micro_batch",),
        accumulation,
        parallel,
    )


def _mini_batch(numbers: _Numbers) -> Known | None:
    prompts, samples = numbers.number("global_batch"), numbers.one("num_generations")
    if prompts is None or samples is None:
        return None
    how = f"{prompts} prompts × {samples} samples in a mini batch"
    return numbers.known(prompts * samples, how, "global_batch", "num_generations")


def _micro_batches(numbers: _Numbers, whole: Known | None, parallel: Known | None) -> Known | None:
    """Global batch ÷ (micro batch × data parallel), rounded down."""
    micro = numbers.number("micro_batch")
    dynamic = numbers.settings.get("dynamic_batch")
    if whole is None or parallel is None or micro is None or (dynamic is not None and dynamic.value is True):
        return None
    how = f"{whole.value} ÷ ({micro} × {parallel.value})"
    return _join(numbers, whole.value // (micro * parallel.value), how, ("micro_batch",), whole, parallel)
