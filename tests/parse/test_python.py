"""Python is read by its syntax tree, never run; fragments and broken text keep their readable part."""

from __future__ import annotations

import sys
import time

import pytest

from tests.every_case import every_case
from tests.parse.reading import Checked
from trainmedic.kb.model.run import Unresolved
from trainmedic.kb.parse.readers import python_repair, python_script

_CHECKED = Checked(python_script.read)
read, values, only, codes = _CHECKED.read, _CHECKED.values, _CHECKED.only, _CHECKED.codes


def test_keyword_arguments_have_the_class_as_scope() -> None:
    text = 'LR = 5e-7\na = DPOConfig("x", output_dir="输出", learning_rate=LR, n=2*8, d={"a": {"b": -1}}, l=("q",), e={1, 2})'  # noqa: E501
    assert values(text) == {
        "output_dir": "输出", "learning_rate": 5e-7, "n": 16, "d.a.b": -1, "l": ("q",), "e": (1, 2),
    }  # fmt: skip
    assert only(text, "n").scope == "DPOConfig"
    assert only(text, "n").span.text == "n=2*8"
    assert only(text, "learning_rate").raw == "LR"


def test_from_pretrained_is_a_scope_of_its_own() -> None:
    text = 'm = AutoModel.from_pretrained("Qwen/x", torch_dtype=torch.float16, attn_implementation="eager")'
    assert values(text) == {
        "pretrained_model_name_or_path": "Qwen/x",
        "torch_dtype": "torch.float16",
        "attn_implementation": "eager",
    }
    assert {option.scope for option in read(text).options} == {"from_pretrained"}


@every_case(
    "value", ['f"x{a}"', "g(1)", 'os.environ["X"]', "args.lr", "a if b else c", "1 / 0", "9**9", "x[0]", "UNKNOWN"]
)
def test_what_only_running_would_tell_is_unresolved(value: str) -> None:
    assert values(f"DPOConfig(a={value})") == {"a": Unresolved(value)}


def test_a_name_assigned_twice_is_unresolved() -> None:
    assert values("A = 1\nA = 2\nDPOConfig(a=A)") == {"a": Unresolved("A")}
    assert values("A: int = 1\nL = ['q']\nM = [f()]\nfor B in x: pass\nC(a=A, b=B, l=L, m=M)") == {
        "a": 1, "b": Unresolved("B"), "l": ("q",), "m": Unresolved("M"),
    }  # fmt: skip


def test_configuration_dicts_and_environment_are_read() -> None:
    text = 'ds_config = {"fp16": {"enabled": True}}\nos.environ["A"] = "1"\ntraining_args = {"lr": 1}\ncfg["b"] = 2\n{"zero_optimization": {"stage": 2}}\n'  # noqa: E501
    assert [(o.scope, o.key, o.value) for o in read(text).options] == [
        ("deepspeed", "fp16.enabled", True), ("env", "A", "1"), ("", "lr", 1), ("", "b", 2), ("deepspeed", "zero_optimization.stage", 2),  # noqa: E501
    ]  # fmt: skip


def test_attributes_set_later_belong_to_the_class() -> None:
    text = "a = DPOConfig(lr=1)\na.bf16 = False\nargs.x = 2\nother.y = 3\nz[0] = 1\nq['a'] = 1"
    assert [(o.scope, o.key) for o in read(text).options] == [("DPOConfig", "lr"), ("DPOConfig", "bf16"), ("", "x")]


def test_spread_dicts_are_read_once() -> None:
    assert values('common = {"a": 1}\nDPOConfig(**common, **{"b": 2}, c=dict(d=3))') == {"a": 1, "b": 2, "c.d": 3}
    config = read('my_args = {"a": 1}\nDPOConfig(**my_args, e=my_args)\nX(**unknown)')
    assert [o.key for o in config.options] == ["a", "e.a"]
    assert config.partial


@every_case(
    "text",
    ["  lr=1e-5,\n  bf16=True,\n", "args = DPOConfig(\n    lr=1e-5,\n    bf16=True,\n", "DPOConfig(\n  ...\n  lr=1e-5,\n  bf16=True)",  # noqa: E501
     "lr=1e-5, bf16=True", ">>> X = 1\n>>> DPOConfig(lr=1e-5, bf16=True)", "!pip x\n    DPOConfig(lr=1e-5, bf16=True)",
     "def f(:\n cfg = {'lr': 1e-5, 'bf16': True}", "def (:\nlr=1e-5\nbf16=True # x", "DPOConfig(lr=1e-5, bf16=True)\x00"],  # noqa: E501
)  # fmt: skip
def test_fragments_and_broken_python_are_read(text: str) -> None:
    assert values(text) == {"lr": 1e-5, "bf16": True}


def test_a_broken_generator_as_an_argument_hides_no_other_call() -> None:
    assert values("rows = build(row for row in [1, 2)\nDPOConfig(lr=1e-5, bf16=True)") == {"lr": 1e-5, "bf16": True}


def test_an_elided_call_is_partial() -> None:
    assert read("DPOConfig(..., beta=0.1)").partial
    assert not read("DPOConfig(beta=0.1)").partial


def test_argument_definitions_are_not_options() -> None:
    assert (
        values("p = argparse.ArgumentParser(description='x')\np.add_argument('--lr', default=1)\nprint(x, end='')")
        == {}
    )
    assert values("def f(:\n# DPOConfig(a=1)\nArgumentParser(a=1)\nPath(b=1)\nDPOConfig(c=torch.x, d=2 * 3)") == {
        "c": "torch.x", "d": 6,
    }  # fmt: skip


def test_deep_and_huge_text_is_scanned() -> None:
    read("DPOConfig(a=" + "(" * 3000)
    read("DPOConfig(a=" + "-" * 3000 + "1)")
    assert values("DPOConfig(a=1)\n" + "x = 1\n" * 60000)["a"] == 1


def test_a_name_of_a_thousand_parts_does_not_keep_the_rest_from_being_read() -> None:
    chain = "model" + ".a" * 1500
    assert values(f"DPOConfig(a=1)\nloss.backward({chain})\n{chain}(1)")["a"] == 1


def scopes_of(text: str, key: str = "torch_dtype") -> list[str]:
    return [option.scope for option in read(text).options if option.key == key]


def test_the_load_that_is_handed_to_the_trainer_is_the_trained_model() -> None:
    text = (
        "model = AutoModelForCausalLM.from_pretrained(config.name, torch_dtype=torch.bfloat16)\n"
        "model = AutoModelForCausalLMWithValueHead.from_pretrained(model)\n"
        "scorer = RobertaForSequenceClassification.from_pretrained(toxicity, torch_dtype=torch.float16)\n"
        "trainer = PPOTrainer(config, model, ref_model=ref, tokenizer=tok)\n"
    )
    assert scopes_of(text) == ["from_pretrained", "RobertaForSequenceClassification.from_pretrained"]


def test_a_wrapped_and_moved_model_is_still_the_trained_one() -> None:
    text = (
        "base = AutoModelForCausalLM.from_pretrained('a', torch_dtype='half')\n"
        "other = AutoModelForCausalLM.from_pretrained('b', torch_dtype='auto')\n"
        "net = get_peft_model(prepare_model_for_kbit_training(base.to('cuda')), lora)\n"
        "trainer = DPOTrainer(model=net, ref_model=other, args=args)\n"
    )
    assert scopes_of(text) == ["from_pretrained", "AutoModelForCausalLM.from_pretrained"]


def test_without_a_trainer_the_names_say_which_load_is_the_trained_model() -> None:
    text = (
        "model = AutoModelForCausalLM.from_pretrained(n, torch_dtype='auto')\n"
        "ref_model = AutoModelForCausalLM.from_pretrained(n, torch_dtype='half')\n"
    )
    assert scopes_of(text) == ["from_pretrained", "AutoModelForCausalLM.from_pretrained"]


def test_of_two_loads_that_nothing_tells_apart_neither_is_the_trained_model() -> None:
    text = (
        "a = AutoModelForCausalLM.from_pretrained('a', torch_dtype='auto')\n"
        "b = AutoModelForCausalLM.from_pretrained('b', torch_dtype='half')\n"
    )
    assert scopes_of(text) == ["AutoModelForCausalLM.from_pretrained"] * 2


def test_a_classifier_is_the_trained_model_of_a_reward_script_only() -> None:
    text = (
        "policy = AutoModelForCausalLM.from_pretrained('a', torch_dtype='auto')\n"
        "second = AutoModelForSequenceClassification.from_pretrained('b', torch_dtype='half')\n"
    )
    assert scopes_of(text) == ["from_pretrained", "AutoModelForSequenceClassification.from_pretrained"]
    assert "from_pretrained" not in scopes_of(text + "args = RewardConfig(output_dir='o')\n")


def test_a_tokenizer_is_no_load_of_the_model_even_in_a_broken_script() -> None:
    for tail in ("", "trainer = (\n"):
        text = "tok = AutoTokenizer.from_pretrained('Qwen/Qwen2-7B', torch_dtype='half')\n" + tail
        assert scopes_of(text) == ["AutoTokenizer.from_pretrained"]


def test_an_attribute_of_a_variable_is_unresolved_and_one_of_a_module_is_not() -> None:
    options = {
        o.key: o.value
        for o in read("C(a=model_args.name, b=torch.bfloat16, c=TaskType.SEQ_CLS, d=IntervalStrategy.STEPS)").options
    }
    assert options == {"a": Unresolved("model_args.name"), "b": "torch.bfloat16", "c": "TaskType.SEQ_CLS", "d": "steps"}


@every_case("number", ["9" * 301, "0x" + "f" * 5_000, "0b" + "1" * 2_000])
def test_a_whole_number_that_no_float_can_hold_stays_text(number: str) -> None:
    found = values(f"DPOConfig(beta={number}, learning_rate=-{number}, optim_args={{{number}: 1}})\n")
    assert found["beta"] == number
    assert f"optim_args.{number}" in found
    assert values("DPOConfig(beta=" + "9" * 300 + ")")["beta"] == int("9" * 300)


@every_case(
    ("value", "number"),
    [("2 + 3", 5), ("7 - 3", 4), ("3 / 2", 1.5), ("7 // 2", 3), ("BASE * 2", 2e-6), ("-(1 + 1)", -2), ("+1", 1)],
)
def test_plain_arithmetic_is_worked_out(value: str, number: float) -> None:
    assert values(f"BASE = 1e-6\nDPOConfig(a={value})") == {"a": number}


@every_case("value", ["+".join("1" * 30), 'b"bytes"', "2j", "-NAME", "7 // 0", "~1"])
def test_what_is_no_plain_number_or_text_is_unresolved(value: str) -> None:
    assert values(f"DPOConfig(a={value})") == {"a": Unresolved(value)}


def test_a_dict_that_spreads_another_holds_its_entries() -> None:
    text = 'base = {"a": 1}\nds_config = {**base, "b": 2, key(): 3}\n'
    assert values(text) == {"a": 1, "b": 2}


@every_case("text", ['my_args = {**my_args, "a": 1}', 'my_args = dict(**your_args)\nyour_args = {**my_args, "a": 1}'])
def test_a_dictionary_may_spread_itself(text: str) -> None:
    assert read(text).partial
    assert "a" in values(f"{text}\nDPOConfig(**my_args)")


def test_what_is_set_on_several_at_once_or_on_no_configuration_is_no_option() -> None:
    assert values("model.layers.bias = False\nlr_args, other = f()\n(a.b).c = 1\nx_args[0].y = 1") == {}


def test_nesting_deeper_than_anyone_writes_is_unresolved_at_its_end() -> None:
    held = values("DPOConfig(a=" + "[" * 60 + "1" + "]" * 60 + ", b=2)")
    assert held["b"] == 2
    inner = held["a"]
    while isinstance(inner, tuple):
        (inner,) = inner
    assert isinstance(inner, Unresolved)


def test_a_set_in_a_broken_script_is_no_configuration() -> None:
    assert values("def f(:\nconfig = {'a', 'b'}\nargs = {'lr': 1}\n") == {"lr": 1}


def test_of_a_qualified_class_the_name_counts() -> None:
    text = (
        "policy = transformers.AutoModelForCausalLM.from_pretrained('a', torch_dtype='auto')\n"
        "tok = transformers.AutoTokenizer.from_pretrained('a', torch_dtype='half')\n"
    )
    assert scopes_of(text) == ["from_pretrained", "AutoTokenizer.from_pretrained"]


LOADS = (
    "{} = AutoModelForCausalLM.from_pretrained('a', torch_dtype='auto')\n"
    "{} = AutoModelForCausalLM.from_pretrained('b', torch_dtype='half')\n"
)
FIRST = ["from_pretrained", "AutoModelForCausalLM.from_pretrained"]
NEITHER = ["AutoModelForCausalLM.from_pretrained"] * 2


@every_case(
    ("one", "two", "trainer", "scopes"),
    [
        ("m: PreTrainedModel", "other", "Trainer(model=m)", FIRST),
        ("m, tok", "other", "Trainer(model=m)", FIRST),
        ("m", "models['ref']", "Trainer(m, args)", FIRST),
        ("m", "other", "Trainer(model=m if big else tiny)", FIRST),
        ("m", "other", "Trainer(args, callbacks=c)", NEITHER),
        ("m", "other", "Trainer('a', 'b')", NEITHER),
        ("m", "other", "m = wrap(m)\nTrainer(model=m)", FIRST),
        ("m", "other", "m, engine = deepspeed.initialize(model=m)", FIRST),
        ("m", "other", "".join(f"v{n} = v{n + 1}\n" for n in range(30)) + "v30 = m\nTrainer(model=v0)", NEITHER),
    ],
)
def test_the_trained_model_is_followed_through_plain_assignments(
    one: str, two: str, trainer: str, scopes: list[str]
) -> None:
    assert scopes_of(LOADS.format(one, two) + trainer + "\n") == scopes


@every_case("value", ["x[0]", "x[y[0]]", 'f"x{a}"', "x[" + "y" * 3000 + "]"])
def test_in_a_broken_script_too_what_only_running_would_tell_is_unresolved(value: str) -> None:
    found = values(f"def f(:\nDPOConfig(lr=1, a={value}, b=2)")
    assert found["lr"] == 1
    assert isinstance(found["a"], Unresolved)


def test_a_bracket_that_stays_open_in_a_broken_script_costs_only_its_value() -> None:
    found = values("def f(:\nDPOConfig(a=x[0\n, b=2)")
    assert isinstance(found["a"], Unresolved)
    assert found["b"] == 2


@every_case(
    ("text", "expected"),
    [
        ("LR = 1e-5\nC(lr=LR,\n  ... and so on", {"lr": 1e-5}),
        (
            "a = 3\n(\nC(x={'k': a, 'l': [1, oops oops]}, y=[a, 2 2])",
            {"x.k": 3, "x.l": (1, Unresolved("oops")), "y": (3, 2)},
        ),
        ("my_args = {'lr': 1,\n 'b': 2,\n 'c': 'cut", {"lr": 1, "b": 2}),
        ("my_args = {'lr': 1}\ntrain_args = D(b=2 c=3\n(", {"lr": 1, "b": 2, "c": 3}),
        ("import x\nlr = 1\n(", {}),
        ("C(a=1, b=", {"a": 1}),
        ("C(a=1 b=2)", {"a": 1, "b": 2}),
        ("{'a': 1 'b': 2}\nC(d=1)", {"d": 1}),
        ("b = C(a=1) , [ C(", {"a": 1}),
        ("(\n[{'a': 1}, x x\nC(b=2)", {"b": 2}),
        ('C(a=1, ...). D(...) now: "x" (', {"a": 1}),
        ("if x:\n    C(学='ü', b=1)\n(", {"学": "ü", "b": 1}),
    ],
)
def test_damage_costs_only_what_is_damaged(text: str, expected: dict[str, object]) -> None:
    assert values(text) == expected


def test_curly_quotation_marks_are_read_as_straight_ones() -> None:
    text = "C(lr=“a”, b=‘c’)"
    assert values(text) == {"lr": "a", "b": "c"}
    assert only(text, "lr").span.text == "lr=“a”"


def test_a_name_in_a_broken_script_is_no_text() -> None:
    assert values("(\ntrainer = C(args=training_args, n=1)") == {"args": Unresolved("training_args"), "n": 1}


def test_a_damaged_text_is_read_up_to_a_bound() -> None:
    assert values("(\n" + "C(a=1,\n" * 30_000)["a"] == 1
    assert values("(\n" + " " * 3000 + "C(a=1)") == {}


def test_an_empty_configuration_has_no_options() -> None:
    assert values("my_config = {}\nTrainer()\nDPOConfig(beta=1)") == {"beta": 1}


LOAD = "model = AutoModelForCausalLM.from_pretrained('a', torch_dtype=torch.bfloat16)"
TRAINER = "trainer = DPOTrainer(model=model, args=args)\n"


def cast_of(text: str) -> list[tuple[object, str]]:
    """(value, highlighted text) of every cast."""
    return [(o.value, o.span.text) for o in read(text).options if o.scope == "cast" and o.key == "torch_dtype"]


@every_case(
    ("text", "value", "span"),
    [
        (f"{LOAD}.half()\n", "torch.float16", "half()"),
        (f"{LOAD}.cuda().bfloat16().eval()\n", "torch.bfloat16", "bfloat16()"),
        (f"{LOAD}\nmodel = model.to('cuda', torch.float16)\n", "torch.float16", "torch.float16"),
        (f"{LOAD}\nmodel.to(dtype=torch.float16)\n", "torch.float16", "dtype=torch.float16"),
        (f"{LOAD}\nmodel.to(d_dtype)\n", None, ""),
        (f"my_dtype = torch.half\n{LOAD}\nmodel.to(my_dtype)\n", "torch.half", "my_dtype"),
        (f"{LOAD}\nself.model.float()\n", "torch.float32", "float()"),
        ("base = Qwen2ForCausalLM(config)\nmodel = get_peft_model(base.half(), lora)\n", "torch.float16", "half()"),
        ("model = AutoModelForCausalLM.from_config(c)\nmodel.to(torch.float16)\n", "torch.float16", "torch.float16"),
        ("model = PeftModel.from_pretrained(base_model, p)\nmodel.half()\n", "torch.float16", "half()"),
        ("model = build(config)\nmodel.half()\n", "torch.float16", "half()"),
        ("m, tok = FastLanguageModel.from_pretrained('a')\nm.half()\n", "torch.float16", "half()"),
    ],
)
def test_a_cast_of_the_trained_model_is_a_dtype_that_the_user_wrote(text: str, value: str | None, span: str) -> None:
    expected = [(value, span)] if value else [(Unresolved("d_dtype"), "d_dtype")]
    assert cast_of(text + TRAINER) == expected


@every_case(
    "line",
    [
        "inputs = tok(x).to(torch.float16)", "batch['x'].half()", "logits = model(x).half()",
        "out = model.generate(x).to(torch.float16)", "model.lm_head.half()", "x = torch.randn(3).half()",
        "ref_model.half()", "reward_model = AutoModelForSequenceClassification.from_pretrained('r').half()",
        "model.to('cuda')", "model.to(device)", "for p in model.parameters(): p.data = p.data.float()",
        "trainer.train()\nmodel = model.half()", "def save_merged(model):\n    model.half().save_pretrained('x')",
        "tokenizer = AutoTokenizer.from_pretrained('a')\ntokenizer.half()", "a.b[0].half()", "f().half()",
    ],
)  # fmt: skip
def test_what_is_not_the_trained_model_or_not_before_training_is_no_cast(line: str) -> None:
    assert cast_of(f"{LOAD}\n{TRAINER}{line}\n") == []


def test_a_cast_under_a_condition_is_unresolved() -> None:
    assert cast_of(f"{LOAD}\nif args.fp16:\n    model.half()\n{TRAINER}") == [(Unresolved("half()"), "half()")]
    assert cast_of(f"{LOAD}\nif __name__ == '__main__':\n    model.half()\n") == [("torch.float16", "half()")]
    assert cast_of(f"{LOAD}\nmodel = model.half() if cond else model\n") == [(Unresolved("half()"), "half()")]


def test_of_two_models_only_the_cast_of_the_trained_one_counts() -> None:
    text = (
        "policy_a = AutoModelForCausalLM.from_pretrained('a').half()\n"
        "policy_b = AutoModelForCausalLM.from_pretrained('b').bfloat16()\n"
    )
    assert cast_of(text + "DPOTrainer(model=policy_a, ref_model=policy_b)\n") == [("torch.float16", "half()")]
    assert cast_of(text) == []


def test_in_a_broken_script_a_cast_behind_the_load_or_of_the_model_is_read() -> None:
    assert cast_of(f"def f(:\n{LOAD}.half().cuda()\n{TRAINER}") == [("torch.float16", "half()")]
    assert cast_of(f"def f(:\n{LOAD}\nmodel = model.to('cuda').to(torch.float16)\n") == [
        ("torch.float16", "torch.float16")
    ]
    assert cast_of("def f(:\ntok = AutoTokenizer.from_pretrained('a').half()\n# model.half()\n") == []


def test_assignments_in_a_circle_end() -> None:
    assert cast_of("a = b\nb = a\na.half()\nmodel = model\nmodel.half()\n") == [("torch.float16", "half()")]


@every_case("end", ["push_to_hub(model, 'x')", "model.save_pretrained('x')", "out = model.generate(**i)"])
def test_a_script_that_makes_or_runs_a_model_and_trains_none_has_no_cast(end: str) -> None:
    text = f"model = OPTForCausalLM(config).to(dtype=torch.float16)\n{end}\n"
    assert cast_of(text) == []
    assert len(cast_of(f"{TRAINER}{text}")) == 1
    assert len(cast_of(f"{text}loss.backward()\n")) == 1


@pytest.mark.slow
def test_variables_assigned_crosswise_are_followed_in_linear_time() -> None:
    names = [f"v{n}" for n in range(30)]
    text = "".join(f"{a} = {b}\n" for a in names for b in names if a != b)
    started = time.thread_time()
    read(
        f"{text}v0 = AutoModel.from_pretrained('a')\nx = AutoModel.from_pretrained('b')\nv9.half()\nTrainer(model=v9)\n"
    )
    assert time.thread_time() - started < 5


@every_case(
    "text",
    [
        "model: PreTrainedModel = AutoModel.from_pretrained('a')\nmodel.half()\n",
        "x[0] = AutoModel.from_pretrained('a')\nmodel.half()\n",
        "model = load()\ntry:\n    pass\nexcept ValueError:\n    model.half()\n",
        "model = get_peft_model()\nmodel.to(copy=True, dtype=torch.half)\n",
    ],
)
def test_one_cast_is_found_however_the_model_is_held(text: str) -> None:
    assert len(cast_of(text)) == 1


def test_a_dtype_that_is_no_single_value_is_no_option() -> None:
    assert cast_of("model.to(dtype=[torch.half])\n") == []
    assert cast_of("".join(f"v{n} = v{n + 1}\n" for n in range(60)) + "v0.half()\n") == []


@every_case("links", [300, 900, 1500, 2500])
def test_a_chain_of_calls_of_any_length_is_read_without_an_error(links: int) -> None:
    chain = ".cuda()" * links
    for text in (
        f"model = A.from_pretrained('a'){chain}\nB.from_pretrained('b')\nTrainer(model=model)\nmodel.half()\n",
        f"model.half()\nmodel.to(x{chain})\nif x{chain}:\n    model.half()\n",
    ):
        assert read(text).options


CONFIGURATION = """
from xtuner.model import SupervisedFinetune
sequence_parallel_size = 2
accumulative_counts = 8
accumulative_counts *= sequence_parallel_size
lr = 2e-4
optim_type = AdamW
model = dict(type=SupervisedFinetune, llm=dict(type=Auto.from_pretrained, torch_dtype=torch.float16))
optim_wrapper = dict(optimizer=dict(type=optim_type, lr=lr), accumulative_counts=accumulative_counts)
hooks = [dict(type=Hook, every=5)]
hooks[0] = None
def unrelated():
    lr = 1
"""


def test_every_assignment_of_a_configuration_file_is_an_option() -> None:
    found = values(CONFIGURATION)
    assert found["lr"] == 2e-4
    assert found["optim_wrapper.optimizer.lr"] == Unresolved("lr")  # a function assigns it as well
    assert found["optim_wrapper.accumulative_counts"] == 16
    assert found["optim_wrapper.optimizer.type"] == "AdamW"
    assert found["model.type"] == "SupervisedFinetune"
    assert found["model.llm.torch_dtype"] == "torch.float16"
    assert found["hooks.0.every"] == 5


def test_the_same_assignments_in_another_script_are_no_options() -> None:
    assert values("lr = 2e-4\nmodel = dict(type=Net, depth=3)\n") == {}


def test_without_the_compiled_parser_a_damaged_script_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    python_repair._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    assert python_repair.survivors("x = 1\ny = (").body == []
    python_repair._parser.cache_clear()
