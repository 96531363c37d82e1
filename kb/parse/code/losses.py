"""Losses and labels: activations applied twice, shifts applied twice or never, padding that is learned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainmedic.kb.parse.code.program import (
    Event,
    Flaws,
    Program,
    dotted,
    is_constant,
    keyword,
    last_part,
    mentions,
    targets,
    words_in,
)

_CAUSAL = ("AutoModelForCausalLM", "AutoLigerKernelForCausalLM", "GPT2LMHeadModel", "LlamaForCausalLM")
_WRAPS = (
    *("get_peft_model", "from_pretrained", "prepare", "prepare_model", "prepare_model_for_kbit_training", "compile"),
    *("DataParallel", "DistributedDataParallel", "DDP", "FSDP", "FullyShardedDataParallel"),
)
_MASKS = frozenset(("DataCollatorForLanguageModeling", "DataCollatorForCompletionOnlyLM", "DataCollatorForSeq2Seq"))


def _losses(program: Program) -> Iterator[tuple[Event, str, ast.expr, ast.expr | None]]:
    """(call, kind of loss, input, target) of every loss, as function or as a module that a name holds."""
    for event in program.events:
        node = event.node
        if not isinstance(node, ast.Call) or not (node.args or node.keywords):
            continue
        kind = _kind(program, event, node)
        given = node.args[0] if node.args else keyword(node, "input")
        if kind and given is not None:
            yield event, kind, given, node.args[1] if len(node.args) > 1 else keyword(node, "target")


def _kind(program: Program, event: Event, node: ast.Call) -> str:
    functions = {
        "cross_entropy": "CrossEntropyLoss",
        "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
        "nll_loss": "NLLLoss",
    }
    if event.tail in functions and event.tail not in program.functions:
        return functions[event.tail]
    made = node.func if isinstance(node.func, ast.Call) else _made(program, node)
    name = last_part(made.func) if made is not None else ""
    return name if name in functions.values() else ""


def _made(program: Program, call: ast.Call) -> ast.Call | None:
    """The call that made what is called here: ``nn.Sequential(...)``, moved to a device or not."""
    value = program.value(dotted(call.func))
    if (
        isinstance(value, ast.Call)
        and last_part(value.func) in ("to", "cuda")
        and isinstance(value.func, ast.Attribute)
    ):
        value = value.func.value
    return value if isinstance(value, ast.Call) else None


def _activation(program: Program, event: Event, given: ast.expr) -> tuple[str, ast.AST] | None:
    """The activation that was applied last to what a loss is given, and where."""
    node: ast.AST = given
    for _ in range(4):
        match node:
            case ast.Call(
                func=ast.Attribute(value=inner, attr="view" | "reshape" | "float" | "squeeze" | "contiguous")
            ):
                node = inner
            case ast.Subscript(value=inner):
                node = inner
            case ast.Call() if last_part(node.func) in ("softmax", "sigmoid", "log_softmax", "logsigmoid", "Softmax"):
                return last_part(node.func), node
            case ast.Call(func=ast.Call() as maker) if last_part(maker.func) in ("Softmax", "Sigmoid", "LogSoftmax"):
                return last_part(maker.func), node
            case ast.Call() if (made := _made(program, node)) is not None and last_part(made.func) == "Sequential":
                last = made.args[-1] if made.args else None
                called = last_part(last.func) if isinstance(last, ast.Call) else ""
                return (called, last) if last is not None and called in ("Softmax", "Sigmoid") else None
            case ast.Name() | ast.Attribute() if (held := program.assigned(dotted(node), event)) is not None:
                value = held.node.value if isinstance(held.node, ast.Assign) else None
                if value is None or len(targets(held.node)) != 1 or held.guards != event.guards[: len(held.guards)]:
                    return None
                node, event = value, held
            case _:
                return None
    return None


def softmax_before_cross_entropy(program: Program) -> Flaws:
    """The loss applies the softmax itself."""
    for event, kind, given, _ in _losses(program):
        found = _activation(program, event, given)
        wrong = {"CrossEntropyLoss": ("softmax", "Softmax"), "BCEWithLogitsLoss": ("sigmoid", "Sigmoid")}.get(kind, ())
        if found is not None and found[0] in wrong:
            yield found[1], event.node


def nll_of_probabilities(program: Program) -> Flaws:
    """The loss takes logarithms, and is given probabilities."""
    for event, kind, given, _ in _losses(program):
        found = _activation(program, event, given)
        if kind == "NLLLoss" and found is not None and found[0] in ("softmax", "Softmax"):
            yield found[1], event.node


def _causal_models(program: Program) -> set[str]:
    """The names that hold a causal language model of transformers, wrapped or not."""
    found: set[str] = set()
    for name, _, call in program.made:
        called = dotted(call.func)
        loaded = called.rpartition(".")[2] in ("from_pretrained", "from_config") and any(c in called for c in _CAUSAL)
        if loaded or (last_part(call.func) in _WRAPS and found & {dotted(argument) for argument in call.args}):
            found.add(name)
    return found


def _shift(node: ast.AST | None) -> str:
    """``left`` for ``x[:, 1:]`` and ``x[..., 1:, :]``, ``right`` for ``x[:, :-1]``, ``around`` for roll."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Subscript):
            dims = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
            for dim in dims[1:]:
                if isinstance(dim, ast.Slice):
                    if is_constant(dim.lower, 1) and dim.upper is None:
                        return "left"
                    if dim.lower is None and isinstance(dim.upper, ast.UnaryOp) and is_constant(dim.upper.operand, 1):
                        return "right"
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "roll":
            return "around"
    return ""


def shifted_twice(program: Program) -> Flaws:
    """The model shifts the labels itself."""
    models = _causal_models(program)
    for event in program.events:
        node = event.node
        if not isinstance(node, ast.Call) or event.name not in models:
            continue
        labels = keyword(node, "labels")
        held = program.assigned(dotted(labels), event)
        value = labels if held is None else getattr(held.node, "value", None)
        given = node.args[0] if node.args else keyword(node, "input_ids")
        aligned = given is not None and _shift(_resolved(program, event, given)) == _shift(value)
        if labels is not None and _shift(value) in ("left", "around") and not aligned:
            yield (held.node if held is not None else labels), node


def never_shifted(program: Program) -> Flaws:
    """Logits of a position are compared with the token of that position, not of the next."""
    models = _causal_models(program)
    if not models or any(_shift(event.node) for event in program.events) or not program.whole:
        return
    if mentions(program.words, "shift"):
        return
    for event, kind, given, target in _losses(program):
        if kind != "CrossEntropyLoss" or target is None or "logits" not in words_in(_resolved(program, event, given)):
            continue
        if "input_ids" in words_in(_resolved(program, event, target)):
            yield given, target


def _resolved(program: Program, event: Event, node: ast.expr) -> ast.expr:
    """An expression, or what the name in it was last given."""
    named = node
    while isinstance(named, ast.Call) and isinstance(named.func, ast.Attribute):
        named = named.func.value
    held = program.value(dotted(named), event)
    return node if held is None else held


def padding_is_learned(program: Program) -> Flaws:
    """The labels are a copy of padded inputs: the loss counts the padding."""
    if (
        _MASKS & program.words
        or mentions(program.words, "ignore_index", "ignore_token")
        or any(map(_is_mask, ast.walk(program.tree)))
    ):
        return
    alone = bool(list(program.calls("map"))) and "batched" not in program.words  # one row is its own longest
    padded = {event.scope: event for event in program.events if _pads(event, alone)}
    if not padded or not program.whole or {"SFTTrainer", "masked_fill", "masked_fill_", "where"} & program.tails:
        return
    for event in program.events:
        node = event.node
        copied = isinstance(node, ast.Assign) and _called_labels(node.targets[0]) and _copies(node.value)
        if copied and event.scope in padded:
            yield padded[event.scope].node, node
            return


def _is_mask(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and is_constant(node.operand, 100)


def _pads(event: Event, alone: bool) -> bool:
    node = event.node
    padding = keyword(node, "padding") if isinstance(node, ast.Call) and "token" in event.name.lower() else None
    return isinstance(padding, ast.Constant) and padding.value in (
        ("max_length",) if alone else (True, "max_length", "longest")
    )


def _called_labels(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return isinstance(target.slice, ast.Constant) and target.slice.value == "labels"
    return isinstance(target, ast.Name) and target.id == "labels"


def _copies(value: ast.expr) -> bool:
    """``x["input_ids"].copy()``, ``batch.input_ids.clone()`` or the same without a copy."""
    if isinstance(value, ast.Call) and last_part(value.func) in ("copy", "clone", "deepcopy"):
        inner = value.func.value if isinstance(value.func, ast.Attribute) else None
        value = value.args[0] if value.args else inner if inner is not None else value
    if isinstance(value, ast.Subscript):
        held = isinstance(value.value, ast.Name | ast.Attribute)
        return held and isinstance(value.slice, ast.Constant) and value.slice.value == "input_ids"
    return isinstance(value, ast.Name | ast.Attribute) and last_part(value) == "input_ids"


def end_is_masked(program: Program) -> Flaws:
    """Padding is the end-of-text token, and all of it is masked in the labels: the model never learns to stop."""
    shared = None
    for event in program.events:
        node = event.node
        if any("pad_token" in words_in(guard.test) for guard in event.guards):
            continue  # only a tokenizer without padding is given it, and which that is the code does not say
        if isinstance(node, ast.Assign) and last_part(node.targets[0]) in ("pad_token", "pad_token_id"):
            shared = event if last_part(node.value) in ("eos_token", "eos_token_id") else shared
    if shared is None:
        return
    for event in program.events:
        node = event.node
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and _masks_padding(node):
            yield shared.node, node
            return


def _masks_padding(node: ast.Assign) -> bool:
    target = node.targets[0]
    assert isinstance(target, ast.Subscript)
    test, masked = target.slice, isinstance(node.value, ast.UnaryOp | ast.Name | ast.Attribute)
    if not masked or not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    return (
        "pad_token_id" in words_in(test.comparators[0]) and "label" in " ".join(sorted(words_in(target.value))).lower()
    )


def evaluated_with_graph(program: Program) -> Flaws:
    """The evaluation builds the graph of every batch, which nothing uses."""
    if {
        "no_grad",
        "inference_mode",
        "set_grad_enabled",
        "Trainer",
        "backward_hook",
    } & program.words or not program.whole:
        return
    if not program.training:
        return
    for event in program.calls("eval"):
        node = event.node
        if not isinstance(node, ast.Call) or node.args or "model" not in dotted(event.receiver).lower():
            continue
        model = dotted(event.receiver)
        forwards = [e for e in program.events if e.scope == event.scope and e.at > event.at and e.name == model]
        if forwards and forwards[0].loops and forwards[0].loops[-1] not in program.training:
            yield event.node, forwards[0].node
            return
