"""Where a program ran out of accelerator memory, read from the frames of its traceback.

The innermost frame that belongs to one of the places decides: a loss computed during an evaluation is the loss's
matter, predictions that pile up between its batches are the evaluation's. A traceback without frames has no place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.values import UNKNOWN, show
from trainmedic.kb.model.evidence import Traceback

PLACES: Mapping[str, re.Pattern[str]] = {
    "entropy": re.compile(r" (?:entropy_from_logits\w*|compute_entropy\w*|logprobs_from_logits\w*)$"),
    "logits": re.compile(
        r" (?:cross_entropy|fixed_cross_entropy|ForCausalLMLoss|log_softmax|selective_log_softmax|get_batch_logps"
        r"|_get_per_token_logps\w*|log_probs_from_logits|concatenated_forward|_?convert_to_fp32)$"
    ),
    "evaluation": re.compile(
        r" (?:nested_concat|torch_pad_and_concatenate|expand_like|pad_across_processes|nested_detach)$"
        r"|trainer_pt_utils\.py:[0-9]+ add$"
    ),
    "wake": re.compile(r" (?:wake_up|create_and_map|python_create_and_map)$"),
    "engine": re.compile(r"(?:/|^)(?:vllm|sglang)/"),
    "optimizer": re.compile(
        r"torch/optim/|bitsandbytes/optim/|/(?:fused_adam|cpu_adam)\.py:"
        r"| (?:_init_group|initialize_optimizer_states|_multi_tensor_adamw?|_single_tensor_adamw?)$"
    ),
    "loading": re.compile(r" (?:from_pretrained|_load_\w{1,60}|load_checkpoint\w{0,40})$"),
    "layers": re.compile(r"/models/\w{1,60}/modeling_\w{1,60}\.py:| apply_rotary_pos_emb$"),
    "backward": re.compile(r"torch/autograd/| backward$"),
}
_END = 1500
"""Characters at the end of a traceback in which a source line tells what the innermost frames do."""
_NO_BACKWARD = re.compile(r" (?:generate|_sample|_beam_search|evaluation_loop|prediction_step)$")
_OUT = ("out of memory", "outofmemoryerror")
_SIZE = re.compile(r"[Tt]ried to allocate (?P<size>[0-9.]{1,12} ?[KMGT]i?B)")


def failures(facts: Facts) -> Iterator[tuple[str, Traceback]]:
    """Every traceback that ends in out of memory, with its place: one of `PLACES`, or empty."""
    for trace in facts.evidence.tracebacks:
        if any(word in f"{trace.exception}: {trace.message}".lower() for word in _OUT):
            yield place_of(trace), trace


def place_of(trace: Traceback) -> str:
    """The place of the innermost frame that has one; the call of the output layer is the logits' matter.

    What a forward pass does while text is generated or rows are evaluated keeps nothing for a backward pass.
    """
    if any(_NO_BACKWARD.search(frame) for frame in trace.frames):
        return _named(trace, ("evaluation", "engine", "wake"))
    if "lm_head(" in trace.span.text[-_END:]:
        return "logits"
    return _named(trace, tuple(PLACES))


def _named(trace: Traceback, places: tuple[str, ...]) -> str:
    for frame in reversed(trace.frames):
        for place in places:
            if PLACES[place].search(frame):
                return place
    return ""


def in_force(facts: Facts, name: str, title: str) -> Mapping[str, str]:
    """A setting's value in brackets for a message, ``<title>_en`` and ``<title>_zh``; empty where it is not known."""
    value = facts.name(name).value
    known = value is not UNKNOWN
    shown = show(value)
    return {f"{title}_en": f" (now {shown})" if known else "", f"{title}_zh": f"（当前 {shown}）" if known else ""}


def ran_out_at(facts: Facts, *places: str) -> Outcome:
    """Fires on the first failure at one of the places; says the size that was asked for and the innermost function.

    False where memory ran out at another known place; without such a traceback there is nothing to judge.
    """
    found = list(failures(facts))
    for place, trace in found:
        if place in places:
            size = _SIZE.search(trace.message)
            shown = {
                "size": size["size"] if size is not None else "?",
                "frame": trace.frames[-1].rpartition("/")[2],
                "place": place,
            }
            return Outcome(value=True, evidence=(trace.span,), user_provided=True, values=shown)
    return Outcome(value=False if any(place for place, _ in found) else None)
