"""Claims about torch alone."""

from __future__ import annotations

import gc
import io
import pickle
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, distributed, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.utils.checkpoint import CheckpointError, checkpoint

from tests.claims import PAGES, Claim, Claims

TORCH = Claims()


def test_each_claim_names_its_page() -> None:
    assert {case.values[0] for case in TORCH.cases} <= PAGES


@pytest.mark.parametrize(("page", "claim"), TORCH.cases)
def test_claim(page: str, claim: Claim) -> None:
    torch.manual_seed(0)
    claim()


class _Saved:
    """A tensor that the graph keeps for the backward pass."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def _activations_outlive_the_step(*, backward: bool, retain: bool = False) -> bool:
    kept: weakref.WeakSet[_Saved] = weakref.WeakSet()

    def pack(tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        kept.add(saved)
        return saved

    with saved_tensors_hooks(pack, lambda saved: saved.tensor):
        loss = nn.Linear(8, 8)(torch.ones(4, 8)).exp().sum()
    total = torch.zeros(()) + loss
    if backward:
        loss.backward(retain_graph=retain)
    del loss
    gc.collect()
    return total.requires_grad and bool(kept)


@TORCH.of("graph-kept-alive")
def a_summed_loss_keeps_activations_only_where_no_backward_frees_them() -> None:
    assert _activations_outlive_the_step(backward=False)
    assert _activations_outlive_the_step(backward=True, retain=True)
    assert not _activations_outlive_the_step(backward=True)


def _gradient(second_factor: float, *, reentrant: bool) -> float:
    factors = iter((2.0, second_factor))
    weight = torch.ones((), requires_grad=True)

    def forward(given: Tensor) -> Tensor:
        return 2 * (given * next(factors)) ** 2

    checkpoint(forward, weight, use_reentrant=reentrant).backward()
    assert weight.grad is not None
    return float(weight.grad.item())


@TORCH.of("recomputation-conflicts-with-sharding")
def other_values_in_the_second_forward_pass_give_wrong_gradients_without_a_word() -> None:
    assert _gradient(2, reentrant=True) == _gradient(2, reentrant=False) == 16
    assert (_gradient(4, reentrant=True), _gradient(4, reentrant=False)) == (64, 32)


@TORCH.of("recomputation-conflicts-with-sharding")
@TORCH.of("lora-zero3-recompute-metadata-mismatch")
def other_shapes_are_refused_without_reentrance_only() -> None:
    for reentrant in (True, False):
        rows = iter((2, 1))
        given = torch.ones(2, 4, requires_grad=True)

        def forward(given: Tensor, rows: Iterator[int] = rows) -> Tensor:
            return given[: next(rows)].exp().sum()

        loss = checkpoint(forward, given, use_reentrant=reentrant)
        if reentrant:
            loss.backward()
        else:
            with pytest.raises(CheckpointError, match="different metadata"):
                loss.backward()


@contextmanager
def _process_group() -> Iterator[None]:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        distributed.destroy_process_group()


@TORCH.of("shards-not-gathered")
def fsdp2_gives_the_part_of_the_rank_and_no_empty_placeholder() -> None:
    with _process_group():
        model = nn.Linear(4, 4)
        fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
        assert all(isinstance(value, DTensor) and value.numel() for value in model.state_dict().values())


@TORCH.of("ddp-lora-mark-variable-ready-twice")
def ddp_that_looks_for_unused_parameters_refuses_reentrant_checkpointing() -> None:
    class Model(nn.Module):  # type: ignore[misc]  # torch is not followed
        def __init__(self, *, reentrant: bool) -> None:
            super().__init__()
            self.inner, self.reentrant = nn.Linear(4, 4), reentrant

        def forward(self, given: Tensor) -> Tensor:
            return checkpoint(self.inner, given, use_reentrant=self.reentrant).sum()

    given = torch.ones(2, 4, requires_grad=True)
    with _process_group():
        DistributedDataParallel(Model(reentrant=False))(given).backward()
        wrapped = DistributedDataParallel(Model(reentrant=True), find_unused_parameters=True)
        loss = wrapped(given)
        with pytest.raises(RuntimeError, match="mark a variable ready only once"):
            loss.backward()


@TORCH.of("lora-checkpointing-inputs-without-grad")
@TORCH.of("recomputation-conflicts-with-sharding")
def reentrant_checkpointing_of_frozen_inputs_has_no_gradient() -> None:
    layer = nn.Linear(4, 4)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        loss = checkpoint(layer, torch.ones(2, 4), use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="does not require grad"):
        loss.backward()
    checkpoint(layer, torch.ones(2, 4), use_reentrant=False).sum().backward()
    assert layer.weight.grad is not None


@TORCH.of("ids-outside-embedding")
@TORCH.of("token-id-outside-embedding")
def an_id_beyond_the_table_or_below_zero_is_an_index_error_on_the_cpu() -> None:
    for outside in (8, -1):
        with pytest.raises(IndexError, match="index out of range in self"):
            nn.Embedding(8, 2)(torch.tensor([outside]))


@TORCH.of("class-label-outside-num-labels")
def a_class_label_out_of_range_is_an_index_error_on_the_cpu() -> None:
    with pytest.raises(IndexError, match="Target 2 is out of bounds"):
        functional.cross_entropy(torch.zeros(1, 2), torch.tensor([2]))


def _clipped(gradients: list[float], most: float) -> list[float]:
    weight = nn.Parameter(torch.zeros(len(gradients)))
    weight.grad = torch.tensor(gradients)
    clip_grad_norm_([weight], most)
    return [float(value) for value in weight.grad]


@TORCH.of("series-where-the-nan-begins")
@TORCH.of("grpo-k3-kl-overflow")
def clipping_spreads_nan_to_all_gradients_and_infinity_makes_zeros_and_nan() -> None:
    for most in (1e-3, 1.0, 1e3):
        assert np.isnan(_clipped([1.0, float("nan")], most)).all()
        finite, infinite = _clipped([1.0, float("inf")], most)
        assert finite == 0
        assert np.isnan(infinite)


@TORCH.of("optimizer-number-out-of-range")
def clipping_at_zero_stops_training_and_a_beta_of_one_is_refused() -> None:
    assert _clipped([1.0, 2.0], 0.0) == [0, 0]
    with pytest.raises(ValueError, match="Invalid beta parameter"):
        torch.optim.AdamW([nn.Parameter(torch.ones(1))], betas=(0.9, 1.0))


@TORCH.of("grpo-k3-kl-overflow")
def a_clamp_behind_the_exponential_does_not_save_the_gradient() -> None:
    ratio = torch.tensor([100.0], requires_grad=True)
    kl = (ratio.exp() - ratio - 1).clamp(max=10)
    kl.sum().backward()
    assert kl.item() == 10
    assert ratio.grad is not None
    assert ratio.grad.isnan().all()


def _after_a_step(value: float, gradient: float, dtype: torch.dtype, rate: float) -> Tensor:
    weight = nn.Parameter(torch.full((1,), value, dtype=dtype))
    weight.grad = torch.full_like(weight, gradient)
    torch.optim.AdamW([weight], lr=rate, weight_decay=0.0, foreach=False).step()
    return weight.detach()


@TORCH.of("fp16-trainable-head-adam-eps-nan")
def adam_divides_by_zero_in_half_precision() -> None:
    assert torch.tensor(1e-8, dtype=torch.float16) == 0
    assert not _after_a_step(1.0, 0.0, torch.float16, 1e-5).isfinite().any()
    assert _after_a_step(1.0, 0.0, torch.float32, 1e-5).isfinite().all()


@TORCH.of("bf16-weights-swallow-small-updates")
def a_small_update_of_a_bfloat16_weight_is_lost_in_rounding() -> None:
    assert _after_a_step(1.0, 1.0, torch.bfloat16, 1e-5) == 1
    assert _after_a_step(1.0, 1.0, torch.float32, 1e-5) < 1


@TORCH.of("fp16-unscale-gradients")
def the_scaler_refuses_gradients_of_float16_weights() -> None:
    weight = nn.Parameter(torch.ones(1, dtype=torch.float16))
    optimizer, scaler = torch.optim.SGD([weight]), torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(optimizer)


@TORCH.of("dropout-active-at-inference")
def no_grad_leaves_dropout_on_and_eval_switches_it_off() -> None:
    layer, ones = nn.Dropout(0.5), torch.ones(64)
    with torch.inference_mode():
        assert (layer(ones) == 0).any()
        assert layer.eval()(ones).equal(ones)


@TORCH.of("weights-left-on-meta-device")
def what_was_never_loaded_cannot_be_copied_and_to_empty_says_nothing() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        model.to("cpu")
    assert model.to_empty(device="cpu").weight.device.type == "cpu"


@TORCH.of("preference-empty-completion-nan")
@TORCH.of("sft-completion-truncated-away")
def a_mean_over_no_label_is_nan_and_a_sum_is_zero() -> None:
    logits, ignored = torch.zeros(3, 8), torch.full((3,), -100)
    assert functional.cross_entropy(logits, ignored).isnan()
    assert functional.cross_entropy(logits, ignored, reduction="sum") == 0


@TORCH.of("accumulation-averages-unequal-micro-batches")
def a_mean_of_means_is_the_mean_only_where_the_parts_are_equal() -> None:
    losses = torch.tensor([1.0, 1.0, 1.0, 5.0])
    assert torch.stack([part.mean() for part in losses.split([2, 2])]).mean() == losses.mean()
    assert torch.stack([part.mean() for part in losses.split([3, 1])]).mean() != losses.mean()


@TORCH.of("compiled-wrapper-in-saved-keys")
def keys_of_a_compiled_model_match_none_of_a_plain_one() -> None:
    trained, fresh = nn.Linear(2, 2), nn.Linear(2, 2)
    saved, before = torch.compile(trained, backend="eager").state_dict(), fresh.weight.clone()
    assert all(key.startswith("_orig_mod.") for key in saved)
    missing, unexpected = fresh.load_state_dict(saved, strict=False)
    assert (len(missing), len(unexpected)) == (2, 2)
    assert fresh.weight.equal(before)


@TORCH.of("resume-weights-only-load-failed")
def a_numpy_random_state_is_no_file_of_weights_only() -> None:
    file = io.BytesIO()
    torch.save({"numpy": np.random.RandomState(0).get_state(), "python": (3, (1,), None)}, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(file, weights_only=True)


@TORCH.of("save-refuses-shared-tensors")
def safetensors_refuses_two_names_of_one_memory() -> None:
    shared = torch.ones(2)
    with pytest.raises(RuntimeError, match="share memory"):
        save_file({"embed_tokens.weight": shared, "lm_head.weight": shared}, Path("never-written"))


@TORCH.of("moe-router-instability")
def a_second_softmax_makes_any_routing_nearly_uniform() -> None:
    routed = torch.tensor([20.0, *[0.0] * 7]).softmax(0)
    again = routed.softmax(0)
    assert routed.max() > 0.99
    assert again.max() < 0.3


@TORCH.of("openrlhf-kl-loss-with-k1-estimator")
def the_gradient_of_k1_is_zero_on_average_over_own_samples() -> None:
    logits, reference = torch.randn(16, requires_grad=True), torch.randn(16).log_softmax(0)
    ours = logits.log_softmax(0)
    weights = ours.detach().exp()
    k1 = torch.autograd.grad((weights * (ours - reference)).sum(), logits, retain_graph=True)[0]
    k2 = torch.autograd.grad((weights * (ours - reference) ** 2 / 2).sum(), logits)[0]
    assert k1.abs().max() < 1e-6
    assert k2.abs().max() > 1e-3


@TORCH.of("grpo-loss-near-zero-is-normal")
@TORCH.of("loss-near-zero-by-construction")
def a_loss_of_zero_has_a_gradient_where_advantages_differ() -> None:
    logps, advantages = torch.tensor([-1.0, -2.0], requires_grad=True), torch.tensor([1.0, -1.0])
    loss = -((logps - logps.detach()).exp() * advantages).mean()
    loss.backward()
    assert loss == 0
    assert logps.grad is not None
    assert logps.grad.abs().min() > 0


@TORCH.of("gemma2-sdpa-padding-nan")
def masking_by_multiplication_keeps_nan() -> None:
    assert (torch.tensor(float("nan")) * 0).isnan()
