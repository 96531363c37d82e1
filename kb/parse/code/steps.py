"""The order of a step: backward, clip, step, zero, schedule; modes, contexts and what is kept from step to step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainmedic.kb.parse.code.program import (
    Event,
    Flaws,
    Loop,
    Program,
    dotted,
    is_backward,
    is_constant,
    iterates_data,
    keyword,
    last_part,
    loss_of,
    mentions,
    names_in,
    targets,
    words_in,
)

_CLIPS = ("clip_grad_norm_", "clip_grad_value_")
_EVERY = ("accum", "grad_acc", "gas", "gradient_accumulation")
_SYNCS = frozenset({"sync_gradients", "accumulate", "no_sync"})


def _optimizer_steps(events: list[Event], program: Program) -> list[Event]:
    """``optimizer.step()`` and ``scaler.step(optimizer)``, not those of schedulers, profilers or engines."""
    made = {name for name, _, _ in program.optimizers}
    return [event for event in events if event.tail == "step" and _steps_optimizer(event, made)]


def _steps_optimizer(event: Event, made: set[str]) -> bool:
    on = dotted(event.receiver)
    if on in made or "optim" in on.rpartition(".")[2].lower() or on.rpartition(".")[2] == "opt":
        return True
    node = event.node
    return isinstance(node, ast.Call) and "scaler" in on.lower() and bool(node.args)


def _zeroes(event: Event) -> bool:
    node = event.node
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        return node.targets[0].attr == "grad" and is_constant(node.value, None)
    return event.tail in ("zero_grad", "zero_grad_buffer", "zero_grad_and_update")


def gradients_never_cleared(program: Program) -> Flaws:
    """Gradients of every step so far are added up."""
    if "zero_grad" in program.words or any(map(_zeroes, program.events)) or not program.whole:
        return
    for loop in program.training:  # the step may stand outside the loop over micro batches
        events = program.within(loop)
        steps = _optimizer_steps(events, program)
        passes = [event for event in events if is_backward(event)]
        made = {name for name, event, _ in program.optimizers if event in events}
        if not steps or not passes or dotted(steps[0].receiver) in made:
            continue
        if not any(_may_clear(event, program) for event in events):
            yield passes[0].node, steps[0].node
            return


def _may_clear(event: Event, program: Program) -> bool:
    """Whether a function that is not in this text gets the optimizer, and may clear its gradients."""
    node = event.node
    if not isinstance(node, ast.Call) or event.tail in program.functions or "scaler" in event.name.lower():
        return False
    return any(mentions(words_in(argument), "optim") for argument in node.args)


def _same_block(first: Event, second: Event) -> bool:
    return (first.scope, first.loops, first.guards) == (second.scope, second.loops, second.guards)


def gradients_cleared_before_step(program: Program) -> Flaws:
    """Between backward and step the gradients are thrown away."""
    for _, events in program.steps:
        steps = _optimizer_steps(events, program)
        for passed in filter(is_backward, events):
            after = [event for event in events if event.at > passed.at and _same_block(event, passed)]
            zero = next((event for event in after if event.tail == "zero_grad"), None)
            step = next((event for event in after if event in steps), None)
            if zero is None or step is None or zero.at > step.at:
                continue
            again = any(is_backward(event) and zero.at < event.at < step.at for event in events)
            if dotted(zero.receiver) == dotted(step.receiver) and not again:
                yield passed.node, zero.node, step.node
                return


def accumulation_cleared(program: Program) -> Flaws:
    """The optimizer steps every few micro batches, but every micro batch clears the gradients."""
    for loop, events in program.steps:
        for step in _optimizer_steps(events, program):
            every = [guard for guard in step.guards if guard.holds and _counts(guard.test)]
            if not every or step.loops[-1:] != (loop,):
                continue
            around = step.guards[: -len(every)]
            if (*around, *every) != step.guards or _SYNCS & program.words:
                continue
            for zero in events:
                if zero.tail == "zero_grad" and zero.loops == step.loops and zero.guards == around:
                    yield zero.node, step.node
                    return


def _counts(test: ast.expr) -> bool:
    """Whether a test holds once in several turns: ``(step + 1) % accumulation == 0``."""
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) and not is_constant(part.right, 1)
        for part in ast.walk(test)
    )


def _measures(clip: Event) -> bool:
    """Whether the bound is infinite: the call only returns the norm."""
    node = clip.node
    bounds = [*node.args[1:], *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
    return any("inf" in words_in(bound) for bound in bounds)


def _switched_off(call: ast.AST) -> bool:
    return isinstance(call, ast.Call) and is_constant(keyword(call, "enabled"), False)


def _clips(event: Event) -> bool:
    return event.tail in _CLIPS and "accelerator" not in event.name and not _measures(event)


def clipped_before_unscaling(program: Program) -> Flaws:
    """Gradients that are still multiplied by the loss scale are clipped to the norm of unscaled ones."""
    if {"unscale_", "unscale_gradients"} & program.words or any(
        _switched_off(event.node) for event in program.calls("GradScaler")
    ):
        return
    for _, events in program.steps:
        scaled = [event for event in events if is_backward(event) and _is_scaled(event)]
        stepped = [event for event in events if event.tail == "step" and "scaler" in event.name.lower()]
        clip = next(filter(_clips, events), None)
        if scaled and stepped and clip is not None and scaled[0].at < clip.at < stepped[-1].at:
            yield scaled[0].node, clip.node
            return


def _is_scaled(event: Event) -> bool:
    return isinstance(event.receiver, ast.Call) and last_part(event.receiver.func) == "scale"


def clipped_after_step(program: Program) -> Flaws:
    """The gradients are clipped when the optimizer has used them."""
    for _, events in program.steps:
        steps = _optimizer_steps(events, program)
        for clip in events:
            if not _clips(clip):
                continue
            before = [step for step in steps if step.at < clip.at and _same_block(step, clip)]
            passes = [event for event in events if is_backward(event) and _same_block(event, clip)]
            if not before or not passes or any(step.at > clip.at for step in steps):
                continue
            if passes[-1].at < before[-1].at:
                yield before[-1].node, clip.node
                return


def evaluation_mode_stays(program: Program) -> Flaws:
    """The model is put into evaluation mode between steps and never back."""
    trains = [e for e in program.calls("train") if e.receiver is not None and "trainer" not in e.name.lower()]
    for loop in program.outermost:
        events = program.within(loop)
        last = _left_at(loop)
        evals = [event for event in events if event.tail == "eval" and _is_model(event) and event.node not in last]
        for event in evals:
            on = dotted(event.receiver)
            back = [e for e in (*events, *trains) if e.tail in ("train", "set_train", "model_train") and e is not event]
            inside = [e for e in back if e in events]
            if not inside and on and (back or program.whole) and not _restores(events):
                if any(isinstance(node, ast.Attribute) and node.attr == "mode" for node in ast.walk(loop)):
                    continue
                if _trained_again(on, events, event):
                    yield (event.node,)
                    return


def _left_at(loop: ast.AST) -> set[ast.AST]:
    """What stands in a branch that ends with leaving this loop."""
    inner = {e for n in ast.walk(loop) if isinstance(n, ast.For | ast.While) and n is not loop for e in ast.walk(n)}
    left: set[ast.AST] = set()
    for branch in ast.walk(loop):
        if isinstance(branch, ast.If):
            end = branch.body[-1]
            if isinstance(end, ast.Return) or (isinstance(end, ast.Break) and end not in inner):
                left.update(e for statement in branch.body for e in ast.walk(statement))
    return left


def _is_model(event: Event) -> bool:
    name = dotted(event.receiver).rpartition(".")[2].lower()
    node = event.node
    if not isinstance(node, ast.Call) or node.args or name.startswith(("ref", "ema", "teacher")):
        return False
    return "model" in name or name in ("net", "policy", "actor")


def _restores(events: list[Event]) -> bool:
    return any("train" in e.tail.lower() and e.tail != "train" for e in events if e.receiver is not None)


def _trained_again(model: str, events: list[Event], event: Event) -> bool:
    """Whether this very model, or what a function calls its model, goes forward for a backward pass in the loop."""
    names = {dotted(each.node.func) for each in events if isinstance(each.node, ast.Call)}
    return model in names or event.scope != events[0].scope


def never_in_training_mode(program: Program) -> Flaws:
    """`from_pretrained` returns a model in evaluation mode; a loop of one's own has to switch it."""
    known = {"Trainer", "SFTTrainer", "initialize", "train", "set_train"}
    if not program.whole or program.tails & known or "train" in {name.rpartition(".")[2] for name in program.functions}:
        return
    for model, event, call in program.made:
        if last_part(call.func) != "from_pretrained" or "Model" not in dotted(call.func):
            continue
        for _, events in program.steps:
            forward = next((e for e in events if e.name == model and e.scope == event.scope), None)
            if forward is not None:
                yield event.node, forward.node
                return


def backward_under_autocast(program: Program) -> Flaws:
    """The backward pass runs in the autocast region of the forward pass."""
    for event in program.events:
        if is_backward(event):
            entered = [c for c in event.contexts if isinstance(c, ast.Call) and last_part(c.func) == "autocast"]
            if entered and "accelerator" not in dotted(entered[0].func) and not _switched_off(entered[-1]):
                yield entered[0], event.node
                return


def graph_kept_for_logging(program: Program) -> Flaws:
    """A running total or a list of losses keeps the graph of every step."""
    for _, events in program.steps:
        losses = {dotted(loss_of(event)): event for event in events if is_backward(event) and dotted(loss_of(event))}
        for event in events:
            loss, total = _added(event)
            passed = losses.get(loss)
            if passed is None or not total or total in losses or event.scope != passed.scope:
                continue
            if _detached(program, loss, event) or any("no_grad" in words_in(context) for context in event.contexts):
                continue
            if total in {name for other in losses for name in _sources(program, other)}:
                continue
            if any(
                isinstance(e.node, ast.Assign) and e is not event and event.loops[0] in e.loops
                for e in program.assignments.get(total, ())
            ):
                continue  # begun again every few steps
            yield (event.node,)
            return


def _added(event: Event) -> tuple[str, str]:
    """(loss, what it is added to) of ``total += loss``, ``total = total + loss`` and ``losses.append(loss)``."""
    node = event.node
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return dotted(node.value), dotted(node.target)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
        total = targets(node)[0]
        return (dotted(node.value.right), total) if dotted(node.value.left) == total else ("", "")
    if event.tail == "append" and isinstance(node, ast.Call) and len(node.args) == 1:
        return dotted(node.args[0]), dotted(event.receiver)
    return "", ""


def _detached(program: Program, loss: str, before: Event) -> bool:
    value = program.value(loss, before)
    return value is not None and bool({"item", "detach", "float", "cpu"} & words_in(value))


def _sources(program: Program, name: str) -> set[str]:
    return {found for e in program.events if name in targets(e.node) for found in names_in(e.node.value)}  # type: ignore[union-attr]


def cache_emptied_every_step(program: Program) -> Flaws:
    """Every step gives the allocator's memory back and asks for it again, and waits for the GPU."""
    for loop, events in program.steps:
        for event in events:
            if event.tail == "empty_cache" and event.loops[-1:] == (loop,) and not event.guards and iterates_data(loop):
                yield (event.node,)
                return


def many_waits_every_step(program: Program) -> Flaws:
    """Every step waits for the GPU several times, to read one number each."""
    for loop, events in program.steps:
        waits = [
            event
            for event in events
            if event.loops[-1:] == (loop,) and not event.guards and event.tail in ("item", "synchronize")
        ]
        waits = [event for event in waits if isinstance(event.node, ast.Call) and not event.node.args]
        if len(waits) >= 4:
            yield tuple(event.node for event in waits)
            return


def schedule_of_steps_by_epoch(program: Program) -> Flaws:
    """A schedule over all steps advances once an epoch, and stays in its warmup."""
    for name, event, call in program.made:
        maker = last_part(call.func)
        total = keyword(call, "num_training_steps") or (call.args[2] if len(call.args) > 2 else None)
        if not (maker.startswith("get_") and "schedule" in maker) or total is None:
            continue
        held = program.value(dotted(total), event) if dotted(total) else total
        per_batch = held is not None and any(
            isinstance(p, ast.Call) and last_part(p.func) == "len" for p in ast.walk(held)
        )
        if not per_batch:
            continue
        inner = {loop for loop, _ in program.steps}
        stepped = [e for e in program.calls("step") if dotted(e.receiver) == name]
        # Micro batches may have a loop of their own: the optimizer then steps where the schedule does.
        inner.update(e.loops[-1] for e in _optimizer_steps(program.events, program) if e.loops)
        outside = stepped and all(e.loops and not inner.intersection(e.loops) for e in stepped)
        if outside and any(loop in program.training for e in stepped for loop in e.loops):
            yield event.node, stepped[0].node
            return


def accumulated_without_division(program: Program) -> Flaws:
    """Gradients are added over several micro batches, not averaged, and then clipped or used by plain SGD."""
    if {"Accelerator", "initialize", "sum"} & program.words or not program.whole:
        return
    for loop, events in program.steps:
        steps = [s for s in _optimizer_steps(events, program) if any(g.holds and _counts(g.test) for g in s.guards)]
        if not steps or any(event.tail in ("div_", "mul_", "true_divide", "mean") for event in events):
            continue
        every = {name for step in steps for guard in step.guards for name in words_in(guard.test)}
        divided = any(
            isinstance(part, ast.BinOp | ast.AugAssign) and isinstance(part.op, ast.Div | ast.Mult)
            for part in _nodes(events, loop)
        )
        clipped = next((event for event in events if event.tail in _CLIPS), None)
        if (
            mentions(every, *_EVERY)
            and not divided
            and clipped is not None
            and all(s.loops[-1:] == (loop,) for s in steps)
        ):
            passed = next(filter(is_backward, events))
            yield passed.node, clipped.node
            return


def _nodes(events: list[Event], loop: Loop) -> Iterator[ast.AST]:
    yield from ast.walk(loop)
    for event in events:
        yield from ast.walk(event.node)


def divided_twice(program: Program) -> Flaws:
    """The loss is divided by the accumulation that the library's backward divides it by as well."""
    scaled = [
        event
        for event in program.calls("Accelerator")
        if isinstance(event.node, ast.Call) and _accumulates(keyword(event.node, "gradient_accumulation_steps"))
    ]
    engines = {name for e in program.events for name in targets(e.node)[:1] if _initialises(e)}
    for event in filter(is_backward, program.events):
        on = dotted(event.receiver)
        by_library = (scaled and "accelerator" in on.lower()) or on in engines
        divided = _division(program, event) if by_library else None
        if divided is not None:
            yield divided, event.node
            return


def _accumulates(value: ast.expr | None) -> bool:
    return value is not None and not is_constant(value, 1)


def _initialises(event: Event) -> bool:
    value = getattr(event.node, "value", None)
    return isinstance(value, ast.Call) and dotted(value.func) == "deepspeed.initialize"


def _division(program: Program, event: Event) -> ast.AST | None:
    """The division by an accumulation of the loss that goes backward."""
    loss = loss_of(event)
    candidates: list[ast.AST] = [loss] if isinstance(loss, ast.BinOp) else []
    name = dotted(loss)
    for other in program.events:
        if name and (other.scope, other.loops) == (event.scope, event.loops) and other.at < event.at:
            candidates += [other.node] if name in targets(other.node) else []
    for node in candidates:
        value = node if isinstance(node, ast.BinOp) else getattr(node, "value", None)
        by = value.right if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div) else None
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            by = node.value
        if by is not None and mentions(words_in(by), *_EVERY):
            return node
    return None
