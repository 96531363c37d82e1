"""What decides a run, with its origin, and what is written without effect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from trainmedic.kb.effective.model import Effective, Row
from trainmedic.kb.effective.table import effective, rows_of
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.serialization import from_json, to_json
from trainmedic.kb.sources.initialising import initialised
from trainmedic.kb.sources.tree import tree_of
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.schema import Answer
from trainmedic.service.api.app import create_app
from trainmedic.service.diagnosis.brief import brief_of
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.ui.chat.evidence import panel
from trainmedic.ui.cli import main

VERSIONS = "trl==1.9.0\ntransformers==5.23.0\ndeepspeed==0.19.5\n"
COMMAND = "accelerate launch --num_processes 8 trl/scripts/sft.py --config sft.yaml "


def found(files: Mapping[str, str]) -> Effective:
    return effective(parse("", [Attachment(name=name, content=text) for name, text in files.items()]))


def sft(yaml: str, flags: str = "", **files: str) -> Effective:
    named = {name.replace("_", "."): text for name, text in files.items()}
    return found({"versions.txt": VERSIONS, "sft.yaml": yaml, "run.sh": COMMAND + flags, **named})


def row(of: Effective, name: str, part: str = "") -> Row:
    return next(row for row in of.rows if (row.name, row.part) == (name, part))


def lost(of: Effective) -> set[tuple[str, str]]:
    return {(each.name, each.kind) for each in of.lost}


def test_a_default_is_that_of_the_class_at_its_release_and_of_transformers_at_the_one_installed() -> None:
    run = sft("model_name_or_path: m\n")
    assert (row(run, "max_length").value, row(run, "max_length").origin) == (1024, "default of trl 1.9.0")
    assert row(run, "seed").origin == "default of transformers 5.23.0"


def test_what_a_command_says_last_counts_and_what_it_replaces_is_listed() -> None:
    run = sft("learning_rate: 2.0e-5\n", "--learning_rate 1e-5 --learning-rate 3e-5")
    assert (row(run, "learning_rate").value, row(run, "learning_rate").origin) == (3e-5, "command: run.sh:1")
    assert [(each.value, each.span.attachment) for each in run.lost] == [(2e-5, "sft.yaml"), (1e-5, "run.sh")]


def test_a_switch_written_as_no_is_false() -> None:
    assert row(sft("packing: true\n", "--no_gradient_checkpointing"), "gradient_checkpointing").value is False


def test_auto_in_a_deepspeed_file_has_the_trainers_value_and_another_value_is_refused() -> None:
    file = """{"train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto", "gradient_accumulation_steps": 2,
        "optimizer": {"type": "AdamW", "params": {"betas": "auto"}}, "zero_optimization": {"stage": 3}}"""
    yaml = "per_device_train_batch_size: 4\ngradient_accumulation_steps: 8\ndeepspeed: ds.json\noptim: adafactor\n"
    run = sft(yaml, ds_json=file)
    assert row(run, "train_micro_batch_size_per_gpu", "deepspeed").value == 4
    assert row(run, "train_batch_size", "deepspeed").value == row(run, "global_batch").value == 4 * 8 * 8
    assert row(run, "optimizer.params.betas", "deepspeed").value == (0.9, 0.999)
    assert {("gradient_accumulation_steps", "refused"), ("optim", "unused")} <= lost(run)


def test_what_nothing_reads_beside_another_option_is_no_part_of_the_run() -> None:
    run = sft("num_train_epochs: 3\nmax_steps: 100\neval_steps: 10\n")
    assert lost(run) == {("num_train_epochs", "unused"), ("eval_steps", "unused")}


def test_a_key_outside_its_section_and_a_name_that_no_release_has_are_dropped() -> None:
    run = sft("deepspeed: ds.json\nfoo_bar: 1\n", ds_json='{"overlap_comm": true, "zero_optimization": {"stage": 2}}')
    assert lost(run) == {("overlap_comm", "dropped"), ("foo_bar", "dropped")}
    assert not any(row.name in ("overlap_comm", "foo_bar") for row in run.rows if row.span is not None)


def test_the_precision_of_the_trainer_replaces_that_of_accelerate() -> None:
    run = sft("fp16: true\nbf16: false\n").lost
    assert run == ()
    command = COMMAND.replace("--num_processes", "--mixed_precision bf16 --num_processes")
    given = {"versions.txt": VERSIONS, "sft.yaml": "fp16: true\n", "run.sh": command}
    assert lost(found(given)) == {("mixed_precision", "replaced")}


def test_a_reference_has_the_value_of_what_it_names() -> None:
    run = found(
        {"run.sh": "pip install verl==0.9.0\npython3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.n=5 data.x=1"}
    )
    follows = row(run, "actor_rollout_ref.actor.rollout_n")
    assert (follows.value, follows.kind, follows.origin) == (5, "derived", "follows actor_rollout_ref.rollout.n")


def test_nothing_is_said_of_the_defaults_of_a_release_that_was_not_read() -> None:
    run = found({"run.sh": "pip install trl==9.9.9\ntrl sft --learning_rate 1e-5 --model_name_or_path m"})
    assert [row.name for row in run.rows if row.kind == "default"] == []
    assert row(run, "learning_rate").value == 1e-5


def test_a_variable_of_the_shell_is_not_read_as_a_value() -> None:
    assert row(sft("seed: 1\n", "--learning_rate $LR"), "learning_rate").kind == "unknown"


def test_the_short_table_has_what_rules_speak_of_and_all_that_was_written() -> None:
    run = sft("logging_dir: x\n")
    short, whole = list(rows_of(run, everything=False)), list(rows_of(run, everything=True))
    assert len(short) < len(whole) == len(run.rows)
    assert {row.name for row in run.rows if row.span is not None} <= {row.name for row in short}


@pytest.mark.parametrize(
    ("transformers", "hidden", "size"),
    [("4.44.2", 64, 3686.4), ("4.45.0", 64, 3686), ("5.24.0", 64, 3686), ("5.24.0", 9**400, "auto")],
)
def test_a_bucket_that_follows_the_model_is_what_the_release_makes_it(
    transformers: str, hidden: int, size: float | str
) -> None:
    run = found(
        {
            "versions.txt": f"transformers=={transformers}\n",
            "config.json": f'{{"model_type": "llama", "hidden_size": {hidden}}}',
            "train.py": "from transformers import TrainingArguments\nTrainingArguments('o', deepspeed='ds.json')\n",
            "ds.json": '{"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto"}}',
        }
    )
    assert row(run, "zero_optimization.stage3_prefetch_bucket_size", "deepspeed").value == size


RUN = {
    "versions.txt": VERSIONS,
    "run.sh": COMMAND.replace("--config sft.yaml ", "--deepspeed ds.json --per_device_train_batch_size 4 ")
    + "--seed 1 --seed 2",
    "ds.json": '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}}',
}
SEED, MICRO = {"name": "seed", "value": 2}, {"name": "train_micro_batch_size_per_gpu", "value": 4, "kind": "derived"}


def test_a_service_tells_what_is_in_effect_and_what_is_lost(knowledge_advisor: Advisor) -> None:
    with TestClient(create_app(knowledge_advisor, Settings())) as client:
        files = [{"name": name, "content": text} for name, text in RUN.items()]
        report = client.post("/v1/effective", json={"attachments": files}).json()
        (one,) = report["runs"]
        rows = {row["name"]: row for row in one["rows"]}
        assert [each for each in (SEED, MICRO) if not each.items() <= rows[each["name"]].items()] == []
        assert rows["learning_rate"]["origin"].startswith("default of ")
        assert [(each["name"], each["kind"], each["span"]["line"]) for each in one["lost"]] == [
            ("seed", "overridden", 1)
        ]
        assert [item["name"] for item in report["receipt"]["inputs"]] == [None, *RUN]
        nothing = client.post("/v1/effective", json={"attachments": [{"name": "a", "content": "hello"}]}).json()
        assert nothing["runs"] == []


def test_an_answer_and_its_page_and_a_model_are_told_what_is_not_as_written(knowledge_advisor: Advisor) -> None:
    files = tuple(Attachment(name=name, content=text) for name, text in RUN.items())
    draft = knowledge_advisor.prepare(Ask(question="The loss does not go down.", attachments=files))
    told = [fact.text for fact in brief_of(draft, 10_000).facts]
    assert "without effect: seed = 1 (overridden): run.sh:1 sets it to 2" in told
    assert any(text.startswith("in effect: train_micro_batch_size_per_gpu = 4, auto: ") for text in told)
    answer = assemble(draft)
    assert answer.effective is not None
    assert {row.kind for row in answer.effective.rows} == {"written", "derived"}
    page = panel(from_json(Answer, to_json(answer)), {}, "en")
    assert "<code>train_micro_batch_size_per_gpu</code></td><td><code>4</code>" in page
    assert "<code>seed = 1</code></b> overridden" in page


@pytest.mark.parametrize("code", ["self.run_name * self.seed", "self.run_name % self.seed"])
def test_what_a_class_makes_of_a_hostile_value_stays_small(code: str) -> None:
    text = f"class C:\n    def __post_init__(self):\n        self.run_name = {code}\n"
    made = initialised(
        "C", tree_of("p", "1", "wheel", {"p/c.py": text.encode()}), values={"run_name": "%09d", "seed": 9**20}
    )
    assert made["run_name"][0] is False


def test_the_command_prints_the_table_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.sh"
    file.write_text("pip install trl==1.9.0\ntrl sft --model_name_or_path m --seed 1 --seed 2\n", encoding="utf-8")
    assert main(["effective", str(file), "--language", "en"]) == 0
    printed = capsys.readouterr().out
    assert [word for word in ("seed = 1", "overridden", "more options at their defaults") if word not in printed] == []
    assert main(["effective", str(file), "--json"]) == 0
    (whole,) = json.loads(capsys.readouterr().out)
    assert {"name": "seed", "value": 2}.items() <= next(row for row in whole["rows"] if row["name"] == "seed").items()
    file.write_text("nothing here", encoding="utf-8")
    assert main(["effective", str(file)]) == 3
