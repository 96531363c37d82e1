"""When what is pasted is a whole configuration, and when only an excerpt of one."""

from __future__ import annotations

from tests.every_case import every_case
from tests.shipped import shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.kb.model.run import RunConfig
from trainmedic.kb.parse.pipeline import parse

FEW_KEYS = "rlhf_type: dpo\nlearning_rate: 1.0e-6\nbeta: 0.1\npacking: true\n"
WHOLE_FILE = "model_name_or_path: a/Qwen2-7B\ndataset: d\noutput_dir: o\nstage: sft\nfinetuning_type: lora\n"
RULES = shipped_rules()


def run(question: str, **files: str) -> RunConfig:
    return parse(question, [Attachment(name=n.replace("__", "."), content=text) for n, text in files.items()]).run


def report(question: str) -> Report:
    return check(parse(question), RULES)


def defaults(config: RunConfig) -> list[str]:
    return [name for name, setting in config.settings.items() if setting.source.startswith("default of")]


@every_case(
    "question",
    [
        f"my ms-swift config has\n```yaml\n{FEW_KEYS}```\nwhy is the loss nan",
        "```yaml\nstage: sft\nmodel_name_or_path: a/b\n```\nin LLaMA-Factory gives nan",
        "trl run:\n```python\nargs = GRPOConfig(beta=0.1, num_generations=8)\n```",
        "```bash\ndeepspeed --module openrlhf.cli.train_sft --pretrain a/b \\\n  ... \\\n  --bf16\n```",
        f"LLaMA-Factory:\n```yaml\n{WHOLE_FILE}...\n```",
        f"LLaMA-Factory:\n```yaml\n{WHOLE_FILE}# ... the rest is as in the example\n# ...\n```",
    ],
)
def test_a_few_lines_or_an_ellipsis_are_an_excerpt_without_defaults(question: str) -> None:
    config = run(question)
    assert config.options
    assert config.excerpt
    assert config.partial
    assert defaults(config) == []


@every_case(
    "question",
    [
        "`swift rlhf --rlhf_type dpo`",
        "deepspeed --module openrlhf.cli.train_sft --pretrain a/b --bf16",
        f"LLaMA-Factory:\n```yaml\n{WHOLE_FILE}```",
        "```python\nfrom trl import SFTConfig\nargs = SFTConfig(output_dir='o', bf16=True)\n```",
    ],
)
def test_a_command_and_what_holds_all_that_a_run_needs_are_whole(question: str) -> None:
    assert not run(question).excerpt


def test_a_file_under_a_configuration_files_name_is_whole() -> None:
    assert not run("nan with ms-swift", args__yaml=FEW_KEYS).excerpt
    assert run("nan with ms-swift", args__yaml="beta: 0.1\n").excerpt
    assert run("nan with ms-swift", args__yaml=f"{FEW_KEYS}# ...\n").excerpt


def test_a_written_key_of_an_excerpt_is_a_fact() -> None:
    config = run(f"ms-swift:\n```yaml\n{FEW_KEYS}```")
    assert config.settings["beta"].value == 0.1
    assert config.written("beta")


def test_nothing_is_ruled_out_or_found_over_a_key_that_an_excerpt_lacks() -> None:
    excerpt, whole = (report(f"LLaMA-Factory\n```yaml\n{keys}```") for keys in ("stage: sft\nbf16: true\n", WHOLE_FILE))
    assert whole.ruled_out
    assert excerpt.ruled_out < whole.ruled_out
    assert [finding for finding in excerpt.findings if all(span.default for span in finding.evidence)] == []


def test_an_excerpt_raises_no_question_about_rules_that_explain_nothing_observed() -> None:
    assert report(f"ms-swift:\n```yaml\n{FEW_KEYS}```").cannot_tell == ()
