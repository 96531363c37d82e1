"""The shape of a model: from its pasted config.json, from the table of known ones, or from its size alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Value

_FAMILIES: Mapping[str, Sequence[Sequence[float]]] = load_table("memory/shapes.toml")["families"]
_NEAR = 0.16
"""How far a size in a name may be from that of a known model (`7b` is 7.6 billion)."""
_SIZE = regex(r"(?<![a-z0-9.])(?:(?P<experts>\d{1,3})x)?(?P<size>\d{1,4}(?:[._]\d{1,2})?)b(?![a-z0-9])")
_MILLIONS = regex(r"(?<![a-z0-9.])(?P<size>\d{2,3})m(?![a-z0-9])")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The dimensions of a decoder. ``exact`` is false where only the size is known and the rest is that
    of a model of about this size; ``billions`` then overrules what the rest would give."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied: bool
    experts: int = 1
    experts_used: int = 1
    billions: float | None = None
    exact: bool = True

    @cached_property
    def embeddings(self) -> int:
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @cached_property
    def layer(self) -> int:
        """Parameters of one layer: attention, gated MLP (three matrices for each expert), norms."""
        attention = self.hidden * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate * self.experts + 2 * self.hidden

    @cached_property
    def parameters(self) -> int:
        if self.billions is not None:
            return int(self.billions * 1e9)
        return self.embeddings + self.layers * self.layer

    def adapter(self, rank: int, all_linear: bool) -> int:
        """Parameters of a LoRA adapter on all linear layers, or on the query and value projections."""
        query, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        sides = (self.hidden + query) + (self.hidden + keys)
        if all_linear:
            sides += (self.hidden + keys) + (query + self.hidden)
            sides += 3 * (self.hidden + self.intermediate) * self.experts
        return rank * sides * self.layers


def shape_of(name: str | None, family: str | None, options: Sequence[Option] = ()) -> Shape | None:
    """The shape of a model by its pasted configuration, else by its name; None if neither tells a size."""
    return _configured(options) or (_named(name.lower(), family) if name else None)


def _configured(options: Sequence[Option]) -> Shape | None:
    """What a pasted config.json says; a model with an image tower has its language model's numbers in a section."""
    stated: dict[str, Value] = {}
    for option in options:
        if option.scope == "checkpoint":
            stated.setdefault(option.key.removeprefix("text_config.").removeprefix("llm_config."), option.value)

    def number(*keys: str) -> int:
        return next((value for key in keys if isinstance(value := stated.get(key), int)), 0)

    layers, hidden, heads = number("num_hidden_layers"), number("hidden_size"), number("num_attention_heads")
    vocabulary = number("vocab_size", "padded_vocab_size")
    experts = number("num_experts", "num_local_experts", "n_routed_experts") or 1
    intermediate = number("moe_intermediate_size") if experts > 1 else 0
    intermediate = intermediate or number("intermediate_size", "ffn_hidden_size")
    if not (layers and hidden and heads and vocabulary and intermediate):
        return None
    return Shape(
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
        heads=heads,
        kv_heads=number("num_key_value_heads") or heads,
        head_size=number("head_dim") or hidden // heads,
        vocabulary=vocabulary,
        tied=stated.get("tie_word_embeddings") is True,
        experts=experts,
        experts_used=number("num_experts_per_tok") or 1,
    )


def _named(name: str, family: str | None) -> Shape | None:
    """The known model of this family and size, else one of about this size."""
    billions = _billions(name)
    if billions is None:
        return None
    rows = [_row(row) for row in _FAMILIES.get(family or "", ())]
    close = [(abs(size - billions) / billions, size, shape) for size, shape in rows]
    distance, _, shape = min(close, key=lambda each: each[:2], default=(1.0, 0.0, None))
    if shape is not None and distance <= _NEAR:
        return shape
    dense = [each for rows in _FAMILIES.values() for each in map(_row, rows) if each[1].experts == 1]
    _, alike = min(dense, key=lambda each: (abs(each[0] - billions), each[0]))
    vocabulary = rows[0][1].vocabulary if rows else alike.vocabulary
    return replace(alike, vocabulary=vocabulary, billions=billions, exact=False)


def _billions(name: str) -> float | None:
    """The size in a name: `qwen2.5-7b`, `mixtral-8x7b` (its experts share their attention), `smollm-135m`."""
    sized = _SIZE.search(name)
    if sized is None:
        small = _MILLIONS.search(name)
        return float(small["size"]) / 1000 if small is not None else None
    size = float(sized["size"].replace("_", "."))
    return size * int(sized["experts"]) * 0.84 if sized["experts"] else size


def _row(row: Sequence[float]) -> tuple[float, Shape]:
    size, *numbers = row
    names = ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_size", "vocabulary", "tied")
    given: dict[str, Any] = dict(zip((*names, "experts", "experts_used"), map(int, numbers), strict=False))
    return size, Shape(**{**given, "tied": bool(given["tied"])})
