"""The signal kinds, what each means, and the thresholds that `kb.parse.logs.signals` decides them by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trainmedic.kb.data_files import load_table
from trainmedic.kb.model.report import Text

_TABLE = load_table("parse/data/signals.toml")
THRESHOLDS: Mapping[str, float] = _TABLE["thresholds"]
OBSERVED: Mapping[str, Mapping[str, str]] = _TABLE["observed"]
KINDS: Mapping[str, Text] = MappingProxyType(
    {
        kind: Text(**{language: text.format(**THRESHOLDS) for language, text in texts.items()})
        for kind, texts in _TABLE["kinds"].items()
    }
)
NON_FINITE = frozenset(
    {"loss_nan", "loss_inf", "loss_zero_grad_norm_nan", "grad_norm_nan", "grad_norm_inf", "eval_loss_nan"}
    | {"nll_loss_nan", "reward_nan", "logps_nan", "logits_nan", "kl_nan"}
)
"""A number that must stay finite is not."""
BENIGN = frozenset({"lr_in_warmup", "margins_rising", "tokenizer_warning", "steps_skipped", "healthy_log"})
"""Signals that do not speak against a log being healthy."""
