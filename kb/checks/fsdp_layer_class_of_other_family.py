"""FSDP is told to wrap a layer class that the named model does not have."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option

_KEYS = ("fsdp_transformer_layer_cls_to_wrap", "transformer_layer_cls_to_wrap")
_LAYERS = {
    "llama": "LlamaDecoderLayer", "llama2": "LlamaDecoderLayer", "llama3": "LlamaDecoderLayer",
    "qwen1.5": "Qwen2DecoderLayer", "qwen2": "Qwen2DecoderLayer", "qwen2.5": "Qwen2DecoderLayer",
    "qwen3": "Qwen3DecoderLayer", "mistral": "MistralDecoderLayer", "mixtral": "MixtralDecoderLayer",
    "gemma": "GemmaDecoderLayer", "gemma2": "Gemma2DecoderLayer", "gemma3": "Gemma3DecoderLayer",
    "phi3": "Phi3DecoderLayer",
}  # fmt: skip
"""The decoder layer of each family's language model. Classes outside this table are not judged."""
_OLD = "LLaMADecoderLayer"
_OTHERS = regex(r"(?i)next|-vl|omni|audio|-3n")
"""Models of these families whose layers have names of their own."""
_EXPERTS = regex(r"(?i)moe|-a\d+(\.\d+)?b\b")
_POLICIES = ("fsdp_auto_wrap_policy", "auto_wrap_policy", "fsdp_config.fsdp_auto_wrap_policy")


def check(facts: Facts) -> Outcome:
    """Fires on a class that is another family's, or on the spelling that transformers gave up before 4.28."""
    if _wraps_otherwise(facts):
        return CLEAR
    family = facts.run.model_family
    right = _LAYERS.get(family.value) if family is not None else None
    known = set(_LAYERS.values())
    model = facts.name("model").value
    if right is not None and isinstance(model, str):
        if _OTHERS.search(model):
            right = None
        elif _EXPERTS.search(model):
            right = right.replace("Decoder", "MoeDecoder") if right.startswith("Qwen") else None
    for option in facts.run.options:
        if option.key.rpartition(".")[2] not in _KEYS:
            continue
        for name in _names(option):
            if name == _OLD or (right is not None and name in known and name != right):
                shown = {"wrong": name, "right": right or "LlamaDecoderLayer"}
                return fires(option.span, **shown)
    return CLEAR


def _wraps_otherwise(facts: Facts) -> bool:
    """Whether the file is not for FSDP, or wraps by size or not at all: the class is not looked up then."""
    policies = (option.value for key in _POLICIES for option in facts.options(key))
    kinds = (option.value for option in facts.options("distributed_type"))
    return any(policy in ("SIZE_BASED_WRAP", "NO_WRAP") for policy in policies) or any(
        isinstance(kind, str) and kind.upper() != "FSDP" for kind in kinds
    )


def _names(option: Option) -> list[str]:
    values = option.value if isinstance(option.value, tuple) else (option.value,)
    return [name.strip() for value in values if isinstance(value, str) for name in value.split(",")]
