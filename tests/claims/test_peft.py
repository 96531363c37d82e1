"""Claims about PEFT, on a model of two layers."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from tests.claims import PAGES, Claim, Claims

peft = pytest.importorskip("peft", reason="in the dev group")
PEFT = Claims()
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")


def test_each_claim_names_its_page() -> None:
    assert {case.values[0] for case in PEFT.cases} <= PAGES


@pytest.mark.parametrize(("page", "claim"), PEFT.cases)
def test_claim(page: str, claim: Claim, tmp_path: Path) -> None:
    torch.manual_seed(0)
    claim(tmp_path)


def _base() -> Any:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=32, hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    )


def _lora(**options: object) -> object:
    return peft.LoraConfig(**{"r": 2, "target_modules": ["q_proj"], "task_type": "CAUSAL_LM", **options})


@PEFT.of("adapter-file-holds-embeddings")
def rows_trained_after_a_resize_bring_the_whole_table_along(folder: Path) -> None:
    _base().save_pretrained(folder / "base")
    for embeddings, whole in (("auto", True), (False, False)):
        model = LlamaForCausalLM.from_pretrained(folder / "base")
        model.resize_token_embeddings(33)
        adapted = peft.get_peft_model(model, _lora(trainable_token_indices=[32]))
        with pytest.warns(UserWarning, match="embedding layer has been resized") if whole else nullcontext():
            adapted.save_pretrained(folder / "adapter", save_embedding_layers=embeddings)
        shapes = {tuple(value.shape) for value in load_file(folder / "adapter" / "adapter_model.safetensors").values()}
        assert ((33, 8) in shapes) is whole
        assert (1, 8) in shapes


@PEFT.of("lora-target-modules-not-found")
def one_right_name_among_wrong_ones_passes_and_none_is_refused(_: Path) -> None:
    peft.get_peft_model(_base(), _lora(target_modules=["q_proj", "query_key_value"]))
    with pytest.raises(ValueError, match=r"Target modules .* not found"):
        peft.get_peft_model(_base(), _lora(target_modules=["query_key_value"]))


@PEFT.of("openrlhf-lora-all-linear-as-list")
def all_linear_in_a_list_is_the_name_of_a_module(_: Path) -> None:
    peft.get_peft_model(_base(), _lora(target_modules="all-linear"))
    with pytest.raises(ValueError, match="not found"):
        peft.get_peft_model(_base(), _lora(target_modules=["all-linear"]))


@PEFT.of("lora-adapter-stays-zero")
@PEFT.of("adapter-loaded-into-wrapped-model")
def a_fresh_adapter_changes_nothing(_: Path) -> None:
    model, ids = _base().eval(), torch.arange(4)[None]
    before = model(ids).logits
    assert peft.get_peft_model(model, _lora()).eval()(ids).logits.equal(before)


@PEFT.of("series-adapter-loaded-frozen")
def a_loaded_adapter_is_frozen_unless_asked_otherwise(folder: Path) -> None:
    peft.get_peft_model(_base(), _lora()).save_pretrained(folder)
    for trainable in (False, True):
        model = peft.PeftModel.from_pretrained(_base(), folder, is_trainable=trainable)
        assert any(weight.requires_grad for weight in model.train().parameters()) is trainable


@PEFT.of("lora-scale-out-of-range")
def rslora_acts_stronger_by_the_root_of_the_rank(_: Path) -> None:
    scale = {
        rslora: peft.get_peft_model(_base(), _lora(r=64, lora_alpha=16, use_rslora=rslora))
        .base_model.model.model.layers[0]
        .self_attn.q_proj.scaling["default"]
        for rslora in (False, True)
    }
    assert math.isclose(scale[True], 8 * scale[False])


@PEFT.of("new-tokens-not-trained")
def all_linear_leaves_embedding_and_head_frozen(_: Path) -> None:
    model = peft.get_peft_model(_base(), _lora(target_modules="all-linear"))
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained
    assert not any("embed_tokens" in name or "lm_head" in name for name in trained)
