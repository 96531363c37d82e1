"""Memory of a training step on one accelerator, term by term, in bytes.

A term is a range with the value that is likeliest, because parts of a run are not in its configuration: how long the
rows are, what a kernel saves for the backward pass. The peak is what stays (weights, gradients, optimizer, engine) and
the larger of what the backward pass and what the optimizer step need besides.

- Mixed precision with Adam: 16 bytes for each trained parameter, 8 if the weights themselves are bfloat16; ZeRO divides
  optimizer states (1), gradients (2) and weights (3) by the ranks (arXiv 1910.02054, table 1).
- Activations of a layer (arXiv 2205.05198, section 4.1, counted again for RMSNorm, gated MLP and grouped heads);
  checkpointing keeps the input of each layer and one layer that is being recomputed.
- Logits: bfloat16, their float32 copy, its log-softmax and the gradients of both, 16 bytes for each token and word.
- The multi-tensor Adam makes a temporary of the size of one state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from trainmedic.kb.memory.shape import Shape

GIB = 1024**3
STAYING = ("weights", "gathered", "gradients", "optimizer", "reference", "engine", "other")
BACKWARD = ("activations", "attention", "logits")
STEP = "update"
_FUSED_LOSS = 0.06
"""Of the logits, what a loss that works in chunks holds at a time."""


class Range(NamedTuple):
    """The least, the likeliest and the most."""

    low: float
    likely: float
    high: float

    def times(self, factor: float) -> Range:
        return Range(self.low * factor, self.likely * factor, self.high * factor)

    def by(self, other: Range) -> Range:
        return Range(self.low * other.low, self.likely * other.likely, self.high * other.high)


def exactly(value: float) -> Range:
    return Range(value, value, value)


def total(ranges: Iterable[Range]) -> Range:
    listed = list(ranges)
    return Range(sum(r.low for r in listed), sum(r.likely for r in listed), sum(r.high for r in listed))


NOTHING = exactly(0)
LOGITS = Range(10, 16, 22)
"""Bytes that a token takes for each word: two copies and their gradients at least, the shifted one at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run in the numbers that the terms need. Bytes are for one parameter.

    ``adapter``: the trained parameters beside a frozen base; None if the whole model is trained. ``weights_ranks``,
    ``gradient_ranks`` and ``optimizer_ranks``: over how many ranks each is divided. ``rows``: sequences in the model at
    once (two for each of a batch of pairs). ``checkpointing`` None: not known. ``step_copy``: of one Adam state.
    """

    shape: Shape
    adapter: int | None
    linear_bytes: Range
    embedding_bytes: Range
    gradient_bytes: Range
    optimizer_bytes: Range
    step_copy: Range = NOTHING
    weights_ranks: int = 1
    gradient_ranks: int = 1
    optimizer_ranks: int = 1
    model_ranks: int = 1
    sequence_ranks: int = 1
    ranks: int = 1
    parameters_offloaded: bool = False
    rows: int = 1
    length: Range = NOTHING
    checkpointing: bool | None = False
    eager: bool = False
    fused_loss: bool = False
    logit_bytes: Range = LOGITS
    references: int = 0
    engine: Range = NOTHING


@dataclass(frozen=True, slots=True)
class Estimate:
    terms: dict[str, Range]

    @property
    def total(self) -> Range:
        staying = total(self.terms[name] for name in STAYING)
        backward = total(self.terms[name] for name in BACKWARD)
        step = self.terms[STEP]
        return Range(*(a + max(b, c) for a, b, c in zip(staying, backward, step, strict=True)))

    @property
    def largest(self) -> list[str]:
        """The terms that the peak consists of, the largest first."""
        backward = total(self.terms[name] for name in BACKWARD).likely
        counted = (*STAYING, *(BACKWARD if backward >= self.terms[STEP].likely else (STEP,)))
        shown = [name for name in counted if self.terms[name].likely > 0.01 * self.total.likely]
        return sorted(shown, key=lambda name: -self.terms[name].likely)


def estimate(plan: Plan) -> Estimate:
    shape = plan.shape
    whole = shape.parameters / plan.model_ranks
    embeddings = min(shape.embeddings, shape.parameters) / plan.model_ranks
    resting = total([plan.linear_bytes.times(whole - embeddings), plan.embedding_bytes.times(embeddings)])
    trained = whole if plan.adapter is None else plan.adapter / plan.model_ranks
    weights = NOTHING if plan.parameters_offloaded else resting.times(1 / plan.weights_ranks)
    if plan.adapter is not None:
        weights = total([weights, Range(2, 4, 4).times(trained)])
    backward = {"activations": _activations(plan), "attention": _scores(plan), "logits": _logits(plan)}
    terms = {
        "weights": weights,
        "gathered": _gathered(plan),
        "gradients": plan.gradient_bytes.times(trained / plan.gradient_ranks),
        "optimizer": plan.optimizer_bytes.times(trained / plan.optimizer_ranks),
        "reference": exactly(plan.references * 2 * whole / plan.weights_ranks),
        "engine": plan.engine,
        **backward,
        STEP: plan.step_copy.times(trained / plan.optimizer_ranks),
    }
    return Estimate({**terms, "other": _other(plan, total(backward.values()))})


def tokens(plan: Plan) -> Range:
    """Tokens that are in the model at once on one rank."""
    return plan.length.times(plan.rows / plan.sequence_ranks)


def logit_sizes(plan: Plan) -> dict[str, float]:
    """The sizes of one copy of the logits of the longest batch, by dtype."""
    words = plan.length.high * plan.rows / plan.sequence_ranks * plan.shape.vocabulary
    return {"float32": 4 * words, "bfloat16": 2 * words}


def _gathered(plan: Plan) -> Range:
    """Weights that sharding brings together for a layer: two layers or the embeddings, at most two billion of them."""
    if plan.weights_ranks == 1:
        return NOTHING
    largest = max(2 * plan.shape.layer / plan.shape.experts, plan.shape.embeddings / (1 if plan.shape.tied else 2))
    return Range(2 * largest, 3 * largest, 2 * max(largest, min(2e9, plan.shape.parameters)))


def _layer(plan: Plan) -> Range:
    """Bytes that one token leaves in one layer."""
    shape = plan.shape
    projections = 4 * shape.head_size * (shape.heads + 2 * shape.kv_heads)
    attention = 2 * shape.head_size * shape.heads + 2 * shape.hidden
    gated = 8 * shape.intermediate * shape.experts_used
    likely = 16 * shape.hidden + projections + attention + gated
    return Range(0.6 * likely, likely, (1.3 if plan.adapter is None else 1.6) * likely)


def _activations(plan: Plan) -> Range:
    layers = plan.shape.layers / plan.model_ranks
    kept = _layer(plan).times(layers)
    inputs = exactly(2 * plan.shape.hidden * layers)
    recomputed = total([inputs, _layer(plan)])
    if plan.checkpointing is None:
        kept = Range(recomputed.low, kept.likely, kept.high)
    return (recomputed if plan.checkpointing else kept).by(tokens(plan))


def _scores(plan: Plan) -> Range:
    """Attention scores and their float32 softmax, which flash and memory-efficient kernels never hold."""
    if not plan.eager:
        return NOTHING
    layers = 1 if plan.checkpointing else plan.shape.layers / plan.model_ranks
    square = Range(*(length**2 for length in plan.length)).times(plan.rows * plan.shape.heads / plan.sequence_ranks)
    return Range(4, 6, 10).by(square).times(layers)


def _logits(plan: Plan) -> Range:
    size = plan.logit_bytes.by(tokens(plan)).times(plan.shape.vocabulary)
    return Range(0, _FUSED_LOSS * size.likely, 2 * _FUSED_LOSS * size.high) if plan.fused_loss else size


def _other(plan: Plan, backward: Range) -> Range:
    """CUDA's context and kernels, communication buffers, and what the allocator cannot use of its blocks.

    The share of the latter is what makes `benchmarks.memory` agree best with peaks that nvidia-smi showed.
    """
    context = Range(0.4, 0.8, 1.5) if plan.ranks == 1 else Range(0.7, 1.8, 4.0)
    return total([context.times(GIB), Range(0, 0.25, 1.0).by(backward)])
