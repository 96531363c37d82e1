"""Learning rates of fine-tuning with Adam, as documentation and example files of the frameworks have them."""

from __future__ import annotations

from typing import NamedTuple

PREFERENCE = ("dpo", "orpo", "cpo", "simpo", "ipo", "kto", "reward")
SUPERVISED = ("sft",)
ADAPTERS = ("lora", "qlora")
PAGE = "series-learning-rate-too-high"
"""The page that names the sources."""


class Practice(NamedTuple):
    """The usual rates, and one that practice keeps well below: above it a rate is reported if the run went wrong."""

    low: float
    high: float
    most: float


PRACTICE = {
    "sft.full": Practice(1e-5, 2e-5, 5e-5),
    "sft.lora": Practice(1e-4, 2e-4, 5e-4),
    "preference.full": Practice(5e-7, 1e-6, 5e-6),
    "preference.lora": Practice(5e-6, 5e-5, 1e-4),
}
