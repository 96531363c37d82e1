"""Lines of a log, and the place at which memory ran out: what counts as a log's word, and what does not."""

from __future__ import annotations

import re
import time

import pytest

from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.model.evidence import Traceback
from trainmedic.kb.model.place import Attachment, Span
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse import parse
from trainmedic.kb.rules.shared.log_text import first, lines, told
from trainmedic.kb.rules.shared.memory_place import PLACES, failures, place_of, ran_out_at

NOTICE = "`use_cache=True` is incompatible with gradient checkpointing"


def facts(question: str = "", **files: str) -> Facts:
    return Facts(
        parse(question, [Attachment(name=name.replace("_", "."), content=text) for name, text in files.items()])
    )


def test_a_line_is_found_in_a_log_and_in_a_question_at_its_place() -> None:
    span = first(facts(train_log=f"start\n  {NOTICE}. Setting x\n"), NOTICE)
    assert span is not None
    assert (span.attachment, span.line, span.column, span.end_column) == ("train.log", 2, 3, 3 + len(NOTICE))
    assert first(facts(f"what does {NOTICE} mean"), NOTICE) is not None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train_py", f'import logging\nlogging.warning("{NOTICE}")\nmodel.train()\n'),
        ("config_yaml", f'model_name_or_path: x\nnote: "{NOTICE}"\nlearning_rate: 1.0e-5\n'),
    ],
)
def test_code_and_configurations_say_nothing(name: str, text: str) -> None:
    assert first(facts(**{name: text}), NOTICE) is None


def test_a_log_that_looks_like_pairs_is_a_log() -> None:
    assert first(facts("Exception: Current loss scale already at minimum"), "loss scale already") is not None
    assert first(facts(train_log="warn: again\n" * 5), "again") is not None


def test_what_the_user_denies_is_not_there() -> None:
    assert first(facts(f"I no longer get {NOTICE} since yesterday"), NOTICE) is None
    assert first(facts(f"升级之后 {NOTICE} 不再出现了"), NOTICE) is None


def test_a_pattern_names_the_place_and_must_match_the_same_line() -> None:
    log = "Could not find key `a` here\nCould not find key\n`b`\n"
    found = list(lines(facts(train_log=log), "Could not find key", re.compile(r"key `\w`")))
    assert [(span.line, span.text) for span in found] == [(1, "key `a`")]


def test_no_more_places_than_asked_for_are_looked_at() -> None:
    log = "warn: again\n" * 500
    assert len(list(lines(facts(train_log=log), "again"))) == 20
    assert len(list(lines(facts(train_log=log), "again", most=3))) == 3


def test_an_outcome_tells_what_was_found() -> None:
    assert told(None).value is None
    assert not told(None).user_provided
    span = first(facts(train_log=f"x\n{NOTICE}\n"), NOTICE)
    outcome = told(span, name="x")
    assert outcome.value is True
    assert outcome.evidence == (span,)
    assert dict(outcome.values) == {"name": "x"}


def trace(*frames: str, text: str = "") -> Traceback:
    span = Span(attachment=None, line=1, column=1, end_line=1, end_column=1, text=text)
    return Traceback(exception="torch.OutOfMemoryError", message="CUDA out of memory.", span=span, frames=frames)


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (("a/trainer.py:1 training_step", "a/loss/loss_utils.py:3 ForCausalLMLoss"), "logits"),
        (("a/utils/torch_functional.py:3 entropy_from_logits",), "entropy"),
        (("a/optimizer.py:9 step", "x/torch/optim/adamw.py:3 _init_group"), "optimizer"),
        (("a/deepspeed/runtime/zero/stage_1_and_2.py:3 initialize_optimizer_states",), "optimizer"),
        (("a/trainer.py:3 evaluation_loop", "a/trainer_pt_utils.py:3 nested_concat"), "evaluation"),
        (("a/trainer.py:3 evaluation_loop", "a/loss/loss_utils.py:3 ForCausalLMLoss"), ""),
        (("a/vllm/worker.py:3 x", "a/vllm/device_allocator/cumem.py:3 wake_up"), "wake"),
        (("a/vllm/worker/cache_engine.py:3 _allocate_kv_cache",), "engine"),
        (("a/models/llama/modeling_llama.py:3 forward", "torch/nn/modules/linear.py:3 forward"), "layers"),
        (("a/generation/utils.py:3 generate", "a/models/llama/modeling_llama.py:3 forward"), ""),
        (("x/torch/autograd/graph.py:3 _engine_run_backward",), "backward"),
        (
            ("a/modeling_utils.py:3 from_pretrained", "a/modeling_utils.py:3 _load_state_dict_into_meta_model"),
            "loading",
        ),
        ((), ""),
    ],
)
def test_the_innermost_known_frame_is_the_place(frames: tuple[str, ...], place: str) -> None:
    assert place_of(trace(*frames)) == place
    assert place in ("", *PLACES)


def test_the_output_layer_is_told_by_its_source_line() -> None:
    frames = ("a/models/llama/modeling_llama.py:3 forward", "torch/nn/modules/linear.py:3 forward")
    assert place_of(trace(*frames, text="logits = self.lm_head(hidden_states)")) == "logits"


def test_only_memory_errors_have_a_place() -> None:
    log = 'Traceback (most recent call last):\n  File "a/loss_utils.py", line 3, in ForCausalLMLoss\nValueError: no\n'
    assert list(failures(facts(train_log=log))) == []
    assert ran_out_at(facts(train_log=log), "logits").value is None


def test_memory_that_ran_out_elsewhere_rules_a_place_out() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/x/torch/optim/adamw.py", line 3, in _init_group\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 79 GiB\n"
    )
    assert ran_out_at(facts(train_log=log), "logits").value is False
    assert ran_out_at(facts(train_log=log), "optimizer").value is True
    bare = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB.\n"
    assert ran_out_at(facts(train_log=bare), "logits").value is None


def test_the_message_names_the_size_and_the_function() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/x/loss/loss_utils.py", line 3, in ForCausalLMLoss\n'
        "    logits = logits.float()\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 79 GiB\n"
    )
    outcome = ran_out_at(facts(train_log=log), "logits")
    assert outcome.value is True
    assert outcome.values["size"] == "9.28 GiB"
    assert outcome.values["frame"] == "loss_utils.py:3 ForCausalLMLoss"


@pytest.mark.slow
def test_a_long_log_is_looked_through_quickly() -> None:
    row = "{'loss': 1.21, 'grad_norm': 0.8, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
    evidence = parse(
        "", [Attachment(name="train.log", content=(row + "some line of a log without meaning\n") * 12_000)]
    )
    rules = load_rules()
    mine = tuple(rule for rule in rules.rules if rule.family in ("log", "series"))
    facts_of = Facts(evidence)
    began = time.perf_counter()
    for rule in mine:
        if rule.module is not None:
            rule.module(facts_of)
    assert time.perf_counter() - began < 3
    assert not [
        failure for failure in check(evidence, rules).failures if failure.rule_id.startswith(("log-", "series-"))
    ]
