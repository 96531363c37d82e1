"""Before the first step: optimizers of parameters that are no longer the model's, frozen ones, and wrong loaders."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from trainmedic.kb.parse.code.program import (
    Event,
    Flaws,
    Loop,
    Program,
    dotted,
    exclude_each_other,
    is_backward,
    is_constant,
    keyword,
    last_part,
    mentions,
    names_in,
    targets,
    words_in,
)

_ADAPTER = "get_peft_model"
_REPLACES = frozenset(("from_pretrained", "from_config", "fully_shard", "FSDP", "FullyShardedDataParallel"))
_NOT_THE_WEIGHTS = frozenset(
    ("GradScaler", _ADAPTER, "LoraConfig", "initialize", "Accelerator", "load_in_8bit", "load_in_4bit")
)
"""Names of what trains other weights than those loaded, or keeps a copy of them in float32."""
_ADAPTS = frozenset((_ADAPTER, "PeftModel", "inject_adapter_in_model", "add_adapter", "LoRA"))
_HELD_OUT = ("val", "test", "eval")


def _owner(call: ast.Call) -> str:
    """The model whose ``parameters()`` an optimizer is given, directly or filtered."""
    for part in ast.walk(call):
        if isinstance(part, ast.Call) and last_part(part.func) in ("parameters", "named_parameters"):
            return dotted(part.func.value) if isinstance(part.func, ast.Attribute) else ""
    return ""


def _optimizers(program: Program) -> Iterator[tuple[str, Event, ast.Call, list[Event]]]:
    """(model, assignment, call, what comes later in the same scope), where no later optimizer takes its place."""
    for name, event, call in program.optimizers:
        owner = _owner(call)
        again = any(
            other is not event and other.at > event.at and called == name for called, other, _ in program.optimizers
        )
        if owner and not again and not event.guards:
            later = [each for each in program.events if each.scope == event.scope and each.at > event.at]
            yield owner, event, call, later


def optimizer_before_adapter(program: Program) -> Flaws:
    """The adapter's parameters come after the optimizer was given its own."""
    for owner, event, _, later in _optimizers(program):
        if any(other.tail == "add_param_group" for other in later):
            continue
        for other in later:
            on = dotted(other.receiver) if other.tail == "add_adapter" else _first_argument(other)
            if other.tail in _ADAPTS and on == owner:
                yield event.node, other.node
                break


def optimizer_before_new_parameters(program: Program) -> Flaws:
    """The model's parameters are replaced after the optimizer was made: it trains what no one uses."""
    for owner, event, _, later in _optimizers(program):
        for other in later:
            trained = (each for each in later if each.at > other.at)
            if _replaces(other, owner) and any(map(is_backward, program.followed(trained))):
                yield event.node, other.node
                break


def _replaces(event: Event, model: str) -> bool:
    node = event.node
    if isinstance(node, ast.Call):
        if event.tail == "resize_token_embeddings":
            return dotted(event.receiver) == model
        return event.tail == "fully_shard" and _first_argument(event) == model
    value = node.value
    if not isinstance(node, ast.Assign) or targets(node) != [model] or not isinstance(value, ast.Call):
        return False
    called = last_part(value.func)
    if called in ("FSDP", "FullyShardedDataParallel") and is_constant(keyword(value, "use_orig_params"), True):
        return False
    return called in _REPLACES


def optimizer_without_unfrozen(program: Program) -> Flaws:
    """Only what was trainable then is in the optimizer; more is unfrozen later, and not given to it."""
    for owner, event, call, later in _optimizers(program):
        if "requires_grad" not in words_in(call) or any(other.tail == "add_param_group" for other in later):
            continue
        for other in later:
            if _unfreezes(other, program, owner):
                yield event.node, other.node
                break


def _unfreezes(event: Event, program: Program, model: str) -> bool:
    node = event.node
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        named = node.targets[0]
        if named.attr != "requires_grad" or not is_constant(node.value, True) or not event.loops:
            return False
        loop = event.loops[-1]
        return not isinstance(loop, ast.While) and model in names_in(loop.iter)
    if event.tail == "requires_grad_" and event.receiver is not None:
        call = node
        assert isinstance(call, ast.Call)
        return model in names_in(event.receiver) and (not call.args or is_constant(call.args[0], True))
    return False


def adapter_frozen_with_base(program: Program) -> Flaws:
    """Everything is frozen after the adapter was added: nothing is left to train."""
    adapted: dict[tuple[str, str], Event] = {}
    for name, event, call in program.made:
        if last_part(call.func) == _ADAPTER:
            adapted[event.scope, name] = event
    for event in program.events:
        model = _frozen_whole(event)
        before = adapted.get((event.scope, model)) if model else None
        if before is None or before.at > event.at or exclude_each_other(before, event):
            continue
        trained = any(_trains(other) for other in program.events if before.at < other.at < event.at)
        if not trained and not any(_thaws(other) for other in program.events if other.at > event.at):
            yield before.node, event.node


def _trains(event: Event) -> bool:
    """Training is done with the adapter: what is frozen after it is frozen for inference."""
    return event.tail == "backward" or (event.tail == "train" and "trainer" in dotted(event.receiver).lower())


def _frozen_whole(event: Event) -> str:
    """The model of which every parameter is frozen, whatever its name."""
    node = event.node
    if event.tail == "requires_grad_" and isinstance(node, ast.Call) and node.args and is_constant(node.args[0], False):
        return dotted(event.receiver)
    match node, event.loops[-1:], event.guards:
        case (
            ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=False)),
            (ast.For(iter=ast.Call(func=ast.Attribute(value=model, attr="parameters" | "named_parameters"))),),
            (),
        ):
            return dotted(model)
    return ""


def _thaws(event: Event) -> bool:
    node = event.node
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        return node.targets[0].attr == "requires_grad" and not is_constant(node.value, False)
    if event.tail == "requires_grad_" and isinstance(node, ast.Call):
        return not (node.args and is_constant(node.args[0], False))
    return event.tail in (_ADAPTER, "enable_adapters", "enable_adapter_layers", "set_adapter", "merge_and_unload")


_TRL_TRAINERS = ("SFT", "DPO", "KTO", "GRPO", "RLOO", "Reward", "ORPO", "CPO")
_GRADIENTS_AT_INPUT = {f"{name}Trainer" for name in _TRL_TRAINERS} | {
    *("FastLanguageModel", "modules_to_save", "embed_tokens", "wte"),
    *("register_forward_hook", "requires_grad_"),
}
"""Words of scripts whose embedding is trained, or whose trainer or hook asks for gradients of the inputs."""


def checkpointing_after_adapter(program: Program) -> Flaws:
    """Reentrant checkpointing is switched on for a model with an adapter, and its inputs need no gradient."""
    if {"enable_input_require_grads", "prepare_model_for_kbit_training", "use_reentrant"} & program.words:
        return
    if "_prepare_model_for_gradient_checkpointing" in program.words or _GRADIENTS_AT_INPUT & program.words:
        return
    for event in program.calls(_ADAPTER):
        for other in program.calls("gradient_checkpointing_enable"):
            node = other.node
            plain = isinstance(node, ast.Call) and not node.args and not node.keywords
            if plain and other.scope == event.scope and other.at > event.at and not other.guards:
                yield event.node, other.node
                return


def reference_is_the_policy(program: Program) -> Flaws:
    """The reference model is another name for the trained one, so the two never differ."""
    for at, event in enumerate(program.events):
        node = event.node
        if not isinstance(node, ast.Assign) or len(targets(node)) != 1 or not program.training:
            continue
        name, value = targets(node)[0], dotted(node.value)
        if any(_made_anew(later.node, value) for later in program.events[at + 1 :]):
            continue
        plain = name.rpartition(".")[2] in ("ref_model", "reference_model", "model_ref", "old_policy", "ref_policy")
        trained = value.rpartition(".")[2] in ("model", "policy", "policy_model", "actor", "net")
        if plain and trained and not event.guards and not {"disable_adapter", "set_adapter"} & program.tails:
            yield (event.node,)


def _made_anew(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Assign) or name not in targets(node) or not isinstance(node.value, ast.Call):
        return False
    return dotted(node.value.func).rpartition(".")[2] in ("deepcopy", "from_pretrained")


def sampler_without_epoch(program: Program) -> Flaws:
    """Every epoch draws the batches in the order of the first."""
    if "set_epoch" in program.words or not program.whole or {"prepare", "setup_dataloaders"} & program.tails:
        return
    epochs = next(filter(_counts_epochs, program.training), None)
    for event in program.calls("DistributedSampler"):
        node = event.node
        assert isinstance(node, ast.Call)
        trained = not mentions(words_in(node), *_HELD_OUT)
        if epochs is None or not trained or is_constant(keyword(node, "shuffle"), False):
            continue
        seed = keyword(node, "seed")
        if seed is None or not names_in(seed) & names_in(epochs.target):
            yield event.node, epochs.target


def _counts_epochs(loop: Loop) -> TypeGuard[ast.For]:
    if not isinstance(loop, ast.For):
        return False
    one = isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1 and is_constant(loop.iter.args[0], 1)
    return not one and mentions(words_in(loop.target) | words_in(loop.iter), "epoch")


def same_data_on_every_rank(program: Program) -> Flaws:
    """Under DistributedDataParallel a loader without a distributed sampler gives every rank all of the data."""
    if not program.whole or not ({"DistributedDataParallel", "DDP"} & program.tails):
        return
    if mentions(program.words, "sampler", "shard", "split_dataset_by_node", "prepare", "num_replicas", "accelerator"):
        return
    sums = (node for node in ast.walk(program.tree) if isinstance(node, ast.BinOp))
    if any(isinstance(node.op, ast.Mod) and mentions(words_in(node.right), "world") for node in sums):
        return
    for event in program.calls("DataLoader"):
        node = event.node
        assert isinstance(node, ast.Call)
        data = node.args[0] if node.args else keyword(node, "dataset")
        shuffled = keyword(node, "shuffle")
        if data is None or any(word.arg is None for word in node.keywords):
            continue
        trains = not mentions(words_in(data), *_HELD_OUT)
        if is_constant(shuffled, True) and trains and not _ranked(program, data, event):
            yield (event.node,)
            return


def _ranked(program: Program, node: ast.AST, event: Event, depth: int = 4) -> bool:
    """Whether data, or a value they are made from, depends on the rank."""
    words = words_in(node)
    if mentions(words, "rank", "world"):
        return True
    values = (program.value(word, event) or program.value(word) for word in sorted(words))
    return depth > 0 and any(_ranked(program, value, event, depth - 1) for value in values if value is not None)


def stale_map_cache(program: Program) -> Flaws:
    """A fixed cache file is read again whatever the function and its arguments have become."""
    for event in program.calls("map"):
        node = event.node
        assert isinstance(node, ast.Call)
        named = keyword(node, "cache_file_name")
        fixed = isinstance(named, ast.Constant) and isinstance(named.value, str)
        if fixed and not is_constant(keyword(node, "load_from_cache_file"), False):
            yield (node,)


def half_precision_weights(program: Program) -> Flaws:
    """Adam updates weights that are held in float16: its epsilon and most updates round to zero."""
    if not program.training or _NOT_THE_WEIGHTS & program.words:
        return
    for owner, event, call, _ in _optimizers(program):
        if not last_part(call.func).startswith("Adam"):
            continue
        before = [other for other in program.events if other.scope == event.scope and other.at < event.at]
        if any(other.tail == "float" and dotted(other.receiver) == owner for other in before):
            continue
        for other in before:
            if _halves(other, owner):
                yield other.node, event.node
                return


def _halves(event: Event, model: str) -> bool:
    node = event.node
    if not isinstance(node, ast.Assign) or targets(node) != [model] or not isinstance(node.value, ast.Call):
        return isinstance(node, ast.Call) and event.tail == "half" and dotted(event.receiver) == model
    call = node.value
    for part in ast.walk(call):
        if isinstance(part, ast.Call) and last_part(part.func) == "half":
            return True
        if isinstance(part, ast.Call) and last_part(part.func) == "from_pretrained":
            return dotted(keyword(part, "torch_dtype") or keyword(part, "dtype")) in ("torch.float16", "torch.half")
    return False


def _first_argument(event: Event) -> str:
    node = event.node
    return dotted(node.args[0]) if isinstance(node, ast.Call) and node.args else ""
