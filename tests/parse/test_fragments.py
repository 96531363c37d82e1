"""Options and calls that are pasted without the command or script that they belong to."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.model.evidence import Call
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

ROLLOUT = "actor_rollout_ref.rollout.n"


def options(question: str) -> dict[str, object]:
    run = parse(question).run
    assert all(true_span(option.span, question) for option in run.options)
    return {option.key: option.value for option in run.options}


def calls(text: str) -> list[Call]:
    found = list(parse(text).calls)
    spans = [span for call in found for span in (call.span, *(option.span for option in call.arguments))]
    assert all(true_span(span, text) for span in spans)
    return found


@every_case(
    "text",
    [
        "actor_rollout_ref.rollout.n=8\ntrainer.nnodes=1",
        "verl:\n  actor_rollout_ref.rollout.n=8 \\\n  +trainer.nnodes=1 \\\n",
        "```\nactor_rollout_ref.rollout.n=8 \\\n++trainer.nnodes=1\n```",
        "```bash\n    actor_rollout_ref.rollout.n=8\n    trainer.nnodes=1 \\\n```",
        "- actor_rollout_ref.rollout.n=8\n- trainer.nnodes=1",
        "I run with `actor_rollout_ref.rollout.n=8` and trainer.nnodes=1, flat reward",
    ],
)
def test_overrides_without_their_command_are_options_of_an_excerpt(text: str) -> None:
    assert options(text) == {ROLLOUT: 8, "trainer.nnodes": 1}
    run = parse(text).run
    assert (run.framework and run.framework.value) == "verl"
    assert run.excerpt
    assert "missing_backslash" not in {problem.code for problem in parse(text).receipt.problems}


@every_case(
    "text",
    [
        "without actor_rollout_ref.rollout.n=8 it works",
        "should I set actor_rollout_ref.rollout.n=8?",
        "see a.b.c=8 of another program",
        "`--bf16 maybe`",
    ],
)
def test_what_is_denied_considered_or_unknown_is_no_option(text: str) -> None:
    assert options(text) == {}


def test_flags_in_inline_code_are_options() -> None:
    assert options("swift sft with `--packing true --max_length 4096` is nan") == {"packing": True, "max_length": 4096}


@every_case(
    ("text", "name", "arguments"),
    [
        ("```python\nds = load_dataset('x', split='train')\n```", "load_dataset", {"0": "x", "split": "train"}),
        ("I do\nmodel = FastModel.get_peft_model(model, r=8)\nand loss is 0", "FastModel.get_peft_model", {"r": 8}),
        ("it hangs with `GRPOConfig(use_vllm=True)`", "GRPOConfig", {"use_vllm": True}),
        ("I read it with `load_dataset('x', split='a')`, which hangs", "load_dataset", {"split": "a"}),
        ("```python\nargs = trl.SFTConfig(packing=True, ...)\n```", "trl.SFTConfig", {"packing": True}),
        ("```python\nget_model().prepare(k=(1, 2))\n```", "prepare", {"k": (1, 2)}),
    ],
)
def test_a_call_of_anything_has_its_name_and_arguments(text: str, name: str, arguments: dict[str, object]) -> None:
    (call,) = [call for call in calls(text) if call.name == name]
    for key, value in arguments.items():
        argument = call.get(key)
        assert (argument and argument.value) == value
    assert call.get("absent") is None
    assert call.span.text.endswith(name.rpartition(".")[2])


@every_case(
    ("text", "key", "scope"),
    [
        ("```\nself.args.max_grad_norm = 0.5\n```", "max_grad_norm", ""),
        ("```\nmodel.config.use_cache = False\n```", "use_cache", "config"),
        ("```\nmodel.generation_config.temperature = 0.0\n```", "temperature", "generation_config"),
        ("```\nfinetune(model=m, learning_rate=1e-4, bf16=True)\n```", "learning_rate", "finetune"),
    ],
)
def test_attributes_and_plain_functions_configure_too(text: str, key: str, scope: str) -> None:
    assert (key, scope) in {(option.key, option.scope) for option in parse(text).run.options}


def test_a_generation_configs_temperature_is_no_setting_of_the_run() -> None:
    text = "```python\nfrom trl import GRPOConfig\nmodel.generation_config.temperature = 0.0\n```"
    assert not parse(text).run.written("temperature")


@every_case(
    "text",
    [
        "LlamaForCausalLM(\n  (model): LlamaModel(\n    (embed_tokens): Embedding(32000, 4096)\n  )\n)",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x = f(bf16=True)\nValueError: boom',
        "plain words (with brackets) and more",
    ],
)
def test_what_only_looks_like_a_call_is_none(text: str) -> None:
    assert calls(text) == []


def test_calls_of_an_attached_script_are_read() -> None:
    evidence = parse("", [Attachment(name="a.py", content="trainer = Trainer(model, args=args)\n")])
    assert [(call.name, [option.key for option in call.arguments]) for call in evidence.calls] == [
        ("Trainer", ["0", "args"])
    ]
