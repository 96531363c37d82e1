"""Arguments printed into logs are read with the class they belong to."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import Checked
from trainmedic.kb.model.run import Origin, Unresolved
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.readers import dump
from trainmedic.kb.parse.source import Piece

_CHECKED = Checked(dump.read)
read, values, only, codes = _CHECKED.read, _CHECKED.values, _CHECKED.only, _CHECKED.codes


def test_a_namespace_has_no_scope() -> None:
    text = "Namespace(a=1, b='x', c=None, d=[1, 2], e=/path/x, f=two words, g=f(1), h=inf)\n"
    assert values(text) == {
        "a": 1, "b": "x", "c": None, "d": (1, 2), "e": "/path/x", "f": Unresolved("two words"), "g": {}, "h": float("inf"),  # noqa: E501
    }  # fmt: skip
    assert {option.scope for option in read(text).options} == {""}


def test_printed_arguments_have_their_class() -> None:
    text = "[INFO:swift] args: RLHFArguments(\nrlhf_type='kto',\ns=<Strategy.STEPS: 'steps'>,\nn=<E.X: 3>,\no=<object at 0x1>,\nd={'z': {'s': 3}})\n{'loss': 1.0}\n"  # noqa: E501
    assert values(text) == {"rlhf_type": "kto", "s": "steps", "n": 3, "o": Unresolved("<object at 0x1>"), "d.z.s": 3}
    assert only(text, "s").scope == "RLHFArguments"


def test_a_printed_model_config_has_its_class() -> None:
    option = only('Model config Qwen2Config {\n  "architectures": [\n    "Q"\n  ],\n  "x": null\n}\n', "architectures")
    assert (option.scope, option.value) == ("Qwen2Config", ("Q",))


def test_a_printed_dict_behind_logger_prefixes_is_read() -> None:
    text = "(TaskRunner pid=1) {'actor': {'lr': 1e-06,\n(TaskRunner pid=1)   'x': True}}\n"
    assert values(text) == {"actor.lr": 1e-6, "actor.x": True}


@every_case("value", ["x[0]", "x[y[0]]", "x[0\n", "x[" + "y" * 3000 + "]"])
def test_a_printed_expression_is_unresolved(value: str) -> None:
    found = values(f"Namespace(lr=1, a={value}, b=2)")
    assert (found["lr"], found.get("b", 2)) == (1, 2)
    assert isinstance(found["a"], Unresolved)


def test_a_printed_set_is_no_configuration() -> None:
    assert values("Model config Qwen2Config {'a', 'b'}\nTrainingArguments(lr=1)\n") == {"lr": 1}


REPEATED = (
    "Error executing job with overrides: ['algorithm.adv_estimator=grpo', \"data.truncation='error'\", 'x', 'a.b=8']"
)


def test_the_overrides_that_hydra_repeats_are_options() -> None:
    found = dump.overrides(Piece(source="e.log", text=f"2026 {REPEATED}\nTraceback"))
    assert found is not None
    place, reading = found
    assert place.text == REPEATED
    assert [(option.key, option.value) for option in reading.options] == [
        ("algorithm.adv_estimator", "grpo"), ("data.truncation", "error"), ("a.b", 8),
    ]  # fmt: skip
    assert {option.origin for option in reading.options} == {Origin.DUMP}
    assert reading.options[2].span.text == "a.b=8"


@every_case("text", ["", "Error executing job with overrides: []", "Error executing job with overrides: ['x"])
def test_without_overrides_there_is_nothing_to_read(text: str) -> None:
    assert dump.overrides(Piece(source=None, text=text)) is None


def test_repeated_overrides_are_the_run_where_no_command_is_pasted() -> None:
    run = parse(f"verl dies\n{REPEATED}\n").run
    assert (run.framework and run.framework.value) == "verl"
    assert (run.algorithm and run.algorithm.value) == "grpo"
    pasted = f"```bash\npython3 -m verl.trainer.main_ppo a.b=4\n```\n{REPEATED}\n"
    assert [option.value for option in parse(pasted).run.options if option.key == "a.b"] == [4]


MEGATRON = """\
------------------------ arguments ------------------------
  bf16 ............................................ True
  recompute_granularity ........................... None
  tensor_model_parallel_size ...................... 2
  world_size ...................................... 8
-------------------- end of arguments ---------------------
 iteration 1/ 10 | consumed samples: 8 | lm loss: nan | grad norm: nan |
"""


def test_the_arguments_that_megatron_prints_are_options_as_its_command_line_spells_them() -> None:
    evidence = parse(MEGATRON)
    run = evidence.run
    assert (run.framework and run.framework.value) == "megatron-core"
    assert {name: run.settings[name].value for name in ("bf16", "tensor_parallel", "num_processes")} == {
        "bf16": True, "tensor_parallel": 2, "num_processes": 8,
    }  # fmt: skip
    assert not run.partial
    assert len(evidence.rows) == 1
    cut = dump.arguments(Piece(source=None, text=MEGATRON.partition("  world")[0]))
    assert cut is not None
    assert cut[1].partial
    assert dump.arguments(Piece(source=None, text=MEGATRON.partition("  bf16")[0])) is None
