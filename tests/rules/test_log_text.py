"""Lines of a log, and the place at which memory ran out: what counts as a log's word, and what does not."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest

from tests.every_case import every_case
from tests.shipped import shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import find, first, lines, literal_of, pattern_of
from trainmedic.kb.engine.memory_places import PLACES, out_of_memory, place_of
from trainmedic.kb.engine.outcome import fires
from trainmedic.kb.engine.values import UNKNOWN
from trainmedic.kb.model.evidence import Evidence, Traceback
from trainmedic.kb.model.place import Attachment, Span
from trainmedic.kb.parse.pipeline import parse

NOTICE = "`use_cache=True` is incompatible with gradient checkpointing"


def pasted(question: str = "", **files: str) -> Evidence:
    return parse(question, [Attachment(name=name.replace("_", "."), content=text) for name, text in files.items()])


def facts(question: str = "", **files: str) -> Facts:
    return Facts(pasted(question, **files))


def test_a_line_is_found_in_a_log_and_in_a_question_at_its_place() -> None:
    span = first(pasted(train_log=f"start\n  {NOTICE}. Setting x\n"), NOTICE)
    assert span is not None
    assert (span.attachment, span.line, span.column, span.end_column) == ("train.log", 2, 3, 3 + len(NOTICE))
    assert first(pasted(f"what does {NOTICE} mean"), NOTICE) is not None


@every_case(
    ("name", "text"),
    [
        ("train_py", f'import logging\nlogging.warning("{NOTICE}")\nmodel.train()\n'),
        ("config_yaml", f'model_name_or_path: x\nnote: "{NOTICE}"\nlearning_rate: 1.0e-5\n'),
    ],
)
def test_code_and_configurations_say_nothing(name: str, text: str) -> None:
    assert first(pasted(**{name: text}), NOTICE) is None


def test_text_outside_of_every_region_counts_as_a_log() -> None:
    evidence = replace(pasted(train_log=f"start\n{NOTICE}\n"), regions=())
    assert first(evidence, NOTICE) is not None


def test_a_log_that_looks_like_pairs_is_a_log() -> None:
    assert first(pasted("Exception: Current loss scale already at minimum"), "loss scale already") is not None
    assert first(pasted(train_log="warn: again\n" * 5), "again") is not None


def test_what_the_user_denies_is_not_there() -> None:
    assert first(pasted(f"I no longer get {NOTICE} since yesterday"), NOTICE) is None
    assert first(pasted(f"升级之后 {NOTICE} 不再出现了"), NOTICE) is None


def test_a_pattern_names_the_place_and_must_match_the_same_line() -> None:
    log = "Could not find key `a` here\nCould not find key\n`b`\n"
    found = list(lines(pasted(train_log=log), "Could not find key", re.compile(r"key `\w`")))
    assert [(span.line, span.text) for span in found] == [(1, "key `a`")]


def test_no_more_places_than_asked_for_are_looked_at() -> None:
    log = "warn: again\n" * 500
    assert len(list(lines(pasted(train_log=log), "again"))) == 20
    assert len(list(lines(pasted(train_log=log), "again", most=3))) == 3


@every_case(
    ("text", "log", "matched"),
    [
        ("port *", "launch on port `29500`, but another", "port `29500"),
        ("rank * exceeds *", "LoRA rank 64 exceeds 16.", "rank 64 exceeds 16"),
        ("segment**", "creating segment /dev/shm/nccl (size 9)", "segment /dev/shm/nccl (size 9)"),
        ("[Tt]ask was killed", "(raylet) Task was killed", "Task was killed"),
        ("[*][*][*] SIGBUS", "*** SIGBUS received", "*** SIGBUS"),
        ("torch?cuda", "in torch.cuda", "torch.cuda"),
        ("a.b (c*)", "x a.b (cd) e)", "a.b (cd)"),
        ("lib*.so: bad *", "with lib 就报 lib_2.so: bad sym...。然后", "lib_2.so: bad sym"),
        ("[ab]*cd", "x a  cd", "a  cd"),
        ("port *x", "port a\nx", None),
        ("a.b(c", "aab(c", None),
    ],
)
def test_a_text_with_wildcards_matches_within_a_line(text: str, log: str, matched: str | None) -> None:
    span = find(pasted(train_log=f"start\n{log}\n"), text)
    assert (None if span is None else span.text) == matched


def test_the_longest_literal_part_is_searched_first() -> None:
    assert literal_of("plain text") == "plain text"
    assert pattern_of("plain text") is None
    assert literal_of("flash*.so: undefined symbol: *") == ".so: undefined symbol: "
    assert literal_of("**") == ""


def test_the_log_says_the_first_text_that_it_holds_and_never_that_one_is_absent() -> None:
    fact = facts(train_log="one warning\ntwo warnings\n").log_says("two warnings", "one warning")
    assert (fact.value, fact.spans[0].text, fact.user_provided) == (True, "two warnings", True)
    absent = facts(train_log="one warning\n").log_says("two warnings")
    assert (absent.value, absent.missing, absent.user_provided) == (UNKNOWN, ("log",), False)


def test_an_outcome_that_fires_shows_each_place_once_and_its_values_as_text() -> None:
    span = first(pasted(train_log=f"x\n{NOTICE}\n"), NOTICE)
    assert span is not None
    outcome = fires(span, span, name="x", count=3, level=0.123456)
    assert (outcome.value, outcome.evidence, outcome.user_provided) == (True, (span,), True)
    assert dict(outcome.values) == {"name": "x", "count": "3", "level": "0.1235"}


def trace(*frames: str, text: str = "") -> Traceback:
    span = Span(attachment=None, line=1, column=1, end_line=1, end_column=1, text=text)
    return Traceback(exception="torch.OutOfMemoryError", message="CUDA out of memory.", span=span, frames=frames)


@every_case(
    ("frames", "place"),
    [
        (("a/trainer.py:1 training_step", "a/loss/loss_utils.py:3 ForCausalLMLoss"), "logits"),
        (("a/utils/torch_functional.py:3 entropy_from_logits",), "entropy"),
        (("a/optimizer.py:9 step", "x/torch/optim/adamw.py:3 _init_group"), "optimizer"),
        (("a/deepspeed/runtime/zero/stage_1_and_2.py:3 initialize_optimizer_states",), "optimizer"),
        (("a/trainer.py:3 evaluation_loop", "a/trainer_pt_utils.py:3 nested_concat"), "evaluation"),
        (("a/trainer.py:3 evaluation_loop", "a/loss/loss_utils.py:3 ForCausalLMLoss"), ""),
        (("a/trainer.py:3 evaluation_loop", "a/accelerator.py:3 gather_for_metrics"), "evaluation"),
        (("a/trainer.py:3 evaluation_loop", "a/operations.py:3 _gpu_gather_one"), "evaluation"),
        (("a/trainer.py:3 evaluation_loop", "a/accelerator.py:3 pad_across_processes"), "evaluation"),
        (("a/ppo_trainer.py:3 step", "a/accelerator.py:3 pad_across_processes"), ""),
        (("a/vllm/device_allocator/cumem.py:3 create_and_map",), "wake"),
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
    assert list(out_of_memory(pasted(train_log=log))) == []
    assert facts(train_log=log).oom_in("logits").value is UNKNOWN


OUT = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 79 GiB\n"
OPTIMIZER = f'Traceback (most recent call last):\n  File "/x/torch/optim/adamw.py", line 3, in _init_group\n{OUT}'


def test_memory_that_ran_out_elsewhere_rules_a_place_out() -> None:
    assert facts(train_log=OPTIMIZER).oom_in("logits").value is False
    assert facts(train_log=OPTIMIZER).oom_in("logits", "optimizer").value is True
    bare = facts(train_log=OUT).oom_in("logits")
    assert (bare.value, bare.missing) == (UNKNOWN, ("log",))


def test_the_size_and_the_function_are_those_of_the_traceback_at_that_place() -> None:
    asked = facts(train_log=OPTIMIZER)
    assert asked.oom_size("optimizer").value == "9.28 GiB"
    assert asked.oom_frame("optimizer").value == "adamw.py:3 _init_group"
    assert facts(train_log=OPTIMIZER.replace(" Tried to allocate 9.28 GiB.", "")).oom_size("optimizer").value is UNKNOWN
    assert asked.oom_size("logits").value is UNKNOWN
    assert asked.oom_frame("logits").value is UNKNOWN


@pytest.mark.slow
def test_a_long_log_is_looked_through_quickly() -> None:
    row = "{'loss': 1.21, 'grad_norm': 0.8, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
    evidence = parse(
        "", [Attachment(name="train.log", content=(row + "some line of a log without meaning\n") * 12_000)]
    )
    rules = shipped_rules()
    mine = tuple(rule for rule in rules.rules if rule.family in ("log", "series"))
    facts_of = Facts(evidence)
    began = time.thread_time()
    for rule in mine:
        if rule.check is not None:
            rule.check(facts_of)
    assert time.thread_time() - began < 3
    assert not [
        failure for failure in check(evidence, rules).failures if failure.rule_id.startswith(("log-", "series-"))
    ]
