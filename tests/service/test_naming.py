"""Options of a fix under the names of the user's own framework."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.service.values import WEIGHTS, case, context, draft_of, evidence, scored
from trainmedic.kb.model.case import Case
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.answer.citations import Citations
from trainmedic.service.answer.layout import composed
from trainmedic.service.answer.option_names import other_names
from trainmedic.service.answer.schema import markdown
from trainmedic.service.ranking.diagnose import diagnose

FIX = (
    "- `use_liger_kernel: true`, or smaller `per_device_train_batch_size` and `max_length`.\n"
    "- verl: `max_completion_length` is its own matter.\n"
    "- Leave `zero_optimization` and `no_such_option` alone.\n\n"
    "```diff\n-num_train_epochs: 10\n+num_train_epochs: 2\n```"
)


def recommended() -> Case:
    sections = {"en": {"cause": "c", "fix": FIX, "confirm": "x"}, "zh": {"cause": "c", "fix": FIX, "confirm": "x"}}
    return case(sections=sections, frameworks=("trl", "transformers"), rules=())


@pytest.mark.parametrize(
    ("said", "title", "names"),
    [
        ("llamafactory 0.9.3, out of memory", "LLaMA-Factory", {"max_length": "cutoff_len"}),
        (
            "axolotl run out of memory",
            "axolotl",
            {
                "use_liger_kernel": "liger_fused_linear_cross_entropy",
                "per_device_train_batch_size": "micro_batch_size",
                "num_train_epochs": "num_epochs",
            },
        ),
        ("trl run out of memory", "", {}),
        ("out of memory", "", {}),
    ],
)
def test_what_another_framework_calls_the_options_is_said(said: str, title: str, names: dict[str, str]) -> None:
    shown, pairs = other_names(recommended(), parse(said))
    assert shown == title
    assert names.items() <= dict(pairs).items()
    assert not {"zero_optimization", "no_such_option", "max_completion_length"} & set(dict(pairs))


def test_a_case_of_one_framework_speaks_its_names_already() -> None:
    one = case(frameworks=("axolotl",), sections={"en": {"fix": "`num_train_epochs: 2`"}})
    assert other_names(one, parse("axolotl run out of memory")) == ("", ())


def test_a_fix_that_names_the_users_own_option_too_needs_no_other() -> None:
    one = case(sections={"en": {"fix": "`num_train_epochs: 2`, in its own words `num_epochs: 2`"}})
    assert other_names(one, parse("axolotl run out of memory"))[1] == ()


def test_the_names_stand_behind_the_fix() -> None:
    shared = context(evidence("loss_nan", framework="axolotl"))
    sure = replace(WEIGHTS, bias=3.0)
    diagnosis = diagnose([scored(recommended())], shared, sure)
    text = markdown(composed(draft_of(diagnosis, shared), Citations("en")))
    assert "In axolotl these options have other names: `use_liger_kernel` →" in text
