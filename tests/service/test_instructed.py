"""An exception that says what to set."""

from __future__ import annotations

import pytest

from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.request import Ask

CONFIG = Attachment(
    name="config.yaml",
    content="base_model: Qwen/Qwen2.5-7B\nadapter: lora\ndatasets:\n  - path: rows\n    type: alpaca\n"
    "sequence_len: 4096\nsample_packing: true\neval_sample_packing: true\noutput_dir: out\n",
)
TELLS = (
    "eval dataset split is too small for sample_packing. You should set `eval_sample_packing: False` in your config."
)


def trace(message: str) -> Attachment:
    frames = '  File "/opt/axolotl/src/axolotl/train.py", line 52, in train\n    prepare(cfg)\n'
    return Attachment(name="err.txt", content=f"Traceback (most recent call last):\n{frames}ValueError: {message}\n")


def test_what_the_exception_says_is_done_in_the_users_file_and_told_where(advisor: Advisor) -> None:
    asked = Ask(question="it crashes at start", attachments=(CONFIG, trace(TELLS)), conversation_id="c")
    answer = advisor.ask(asked)
    assert (answer.verdict, answer.causes, answer.missing) == ("answered", (), ())
    assert "The error message says what to do" in answer.answer
    assert "-eval_sample_packing: true\n+eval_sample_packing: False\n" in answer.answer
    where = advisor.ask(Ask(question="where do I put that?", conversation_id="c"))
    assert where.answer.startswith("At config.yaml:8:1")
    tried = advisor.ask(Ask(question="tried it, still the same error", conversation_id="c"))
    assert "says what to do" not in tried.answer


@pytest.mark.parametrize(
    "message",
    [
        "Either set `eval_sample_packing: False` or `sample_packing: False`.",
        "eval_sample_packing: True was set, but there are too few rows.",
        "Do not set `eval_sample_packing: True` here.",
        "For debugging consider passing `eval_sample_packing=False`.",
        "You should set `no_such_option_anywhere: 3`.",
    ],
)
def test_what_is_no_plain_instruction_is_not_followed(advisor: Advisor, message: str) -> None:
    answer = advisor.ask(Ask(question="it crashes at start", attachments=(CONFIG, trace(message))))
    assert "The error message says what to do" not in answer.answer


REFUSED = """\
Traceback (most recent call last):
  File "/opt/torchtune/torchtune/datasets/_alpaca.py", line 91, in alpaca_dataset
    raise ValueError(
ValueError: PackedDataset requires a max_seq_len to be set on the tokenizer.
"""


def refused(packed: str, length: str) -> str:
    recipe = f"tokenizer:\n  path: m\n  max_seq_len: {length}\n"
    recipe += f"dataset:\n  _component_: torchtune.datasets.alpaca_dataset\n  packed: {packed}\nepochs: 1\n"
    return recipe + "batch_size: 2\ngradient_accumulation_steps: 8\nmodel:\n  lora_rank: 8\n"


def answered(advisor: Advisor, recipe: str, log: str = REFUSED) -> str:
    files = (Attachment(name="recipe.yaml", content=recipe), Attachment(name="err.log", content=log))
    answer = advisor.ask(Ask(question="it stops at once", attachments=files))
    assert ("refuses these settings together" in answer.answer) <= (answer.verdict == "answered" and not answer.causes)
    return answer.answer


def test_settings_that_fulfil_the_condition_of_the_exception_are_the_answer(advisor: Advisor) -> None:
    told = answered(advisor, refused("true", "null"))
    assert "torchtune refuses these settings together" in told
    assert "-  packed: true\n+  packed: false" in told


def test_a_configuration_that_a_log_repeats_is_not_what_is_patched(advisor: Advisor) -> None:
    told = answered(advisor, refused("true", "null"), log=f"config:\n\n{refused('true', 'null')}\n{REFUSED}")
    assert "+++ b/recipe.yaml" in told
    assert "+++ b/err.log" not in told


@pytest.mark.parametrize(("packed", "length"), [("true", "4096"), ("false", "null")])
def test_a_condition_that_does_not_hold_is_not_blamed(advisor: Advisor, packed: str, length: str) -> None:
    assert "refuses" not in answered(advisor, refused(packed, length)).split("###")[0]
