"""What the files of a run's folder are for, and which of them tell about the newest run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.every_case import every_case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse import run_folder
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.run_folder import Entry, chosen, role_of, telling_ranks, training_program

ROLES = (
    ("outputs/2026-01-02/12-00-00/.hydra/config.yaml", "hydra"),
    ("logs/none_x/attempt_0/3/stderr.log", "rank"),
    ("logs/none_x/attempt_0/3/error.json", "rank_error"),
    ("wandb/run-1/files/config.yaml", "tracked_config"),
    ("wandb/run-1/files/wandb-metadata.json", "tracked_command"),
    ("wandb/run-1/files/requirements.txt", "tracked_packages"),
    ("wandb/run-1/run-abc.wandb", "history"),
    ("runs/x/events.out.tfevents.1.host", "history"),
    ("checkpoint-5/trainer_state.json", "state"),
    ("checkpoint-5/training_args.bin", "arguments"),
    ("checkpoint-5/adapter_config.json", "adapter"),
    ("ds_config_z3.json", "engine"),
    ("accelerate_config.yaml", "engine"),
    ("configs/qwen_lora_sft.yaml", "config"),
    ("out/args.json", "resolved"),
    ("slurm-12.out", "log"),
    ("nemo_log_globalrank-3_localrank-3.txt", "rank"),
    ("nohup.out", "log"),
    ("job.sbatch", "script"),
    ("train.py", "program"),
    ("pip-list.txt", "packages"),
    ("model-00001-of-00002.safetensors", ""),
    ("README.md", ""),
)


def paths(*files: tuple[str, float]) -> list[str]:
    return [entry.path for _, entry in chosen(Entry(path=path, size=1, modified=time) for path, time in files)]


@every_case(("path", "name"), ROLES)
def test_the_path_of_a_file_tells_what_it_is_for(path: str, name: str) -> None:
    role = role_of(path)
    assert (role.name if role is not None else "") == name


def test_an_older_run_beside_the_newest_is_left_out() -> None:
    assert paths(
        ("a/train.log", 1), ("a/training_args.bin", 1), ("b/train.log", 2), ("b/.hydra/config.yaml", 2), ("b/x", 2)
    ) == ["b/.hydra/config.yaml", "b/train.log"]


def test_folders_that_hold_different_things_belong_to_one_run() -> None:
    assert paths(("conf/config.yaml", 1), ("logs/train.log", 5), ("run/events.out.tfevents.1", 3)) == [
        "run/events.out.tfevents.1",
        "conf/config.yaml",
        "logs/train.log",
    ]


def test_of_checkpoints_and_attempts_the_newest_is_taken() -> None:
    files = [(f"checkpoint-{n}/trainer_state.json", n) for n in (10, 20)]
    files += [(f"r/attempt_{n}/{rank}/stderr.log", n) for n in (0, 1) for rank in (0, 1)]
    assert paths(*files) == [
        "r/attempt_1/0/stderr.log",
        "r/attempt_1/1/stderr.log",
        "checkpoint-20/trainer_state.json",
    ]


def test_of_logs_that_differ_by_an_attempt_or_a_job_the_newest_is_taken() -> None:
    attempts = (("train_attempt1.log", 1), ("train.log", 2), ("slurm-7001.out", 4), ("slurm-6001.out", 2))
    assert paths(*attempts) == ["slurm-7001.out", "train.log"]
    assert paths(("logs/run1.log", 1), ("logs/run2.log", 2)) == ["logs/run2.log"]
    assert len(paths(("node1.log", 1), ("node2.log", 2))) == 2


def test_of_the_scripts_beside_a_run_the_one_that_trains_is_read() -> None:
    assert paths(("train.py", 1), ("copies/train.py", 2)) == ["train.py"]
    texts = {"model.py": "class Model: ...", "sft.py": "trainer = SFTTrainer(model)", "loop.py": "loss.backward()"}
    assert training_program({name: texts[name] for name in ("model.py", "sft.py")}) == "sft.py"
    assert training_program(texts) == ""


def test_an_empty_file_is_no_evidence() -> None:
    assert chosen([Entry(path="train.log", size=0, modified=1)]) == ()


def test_of_many_ranks_the_first_and_those_that_failed_differently_are_read() -> None:
    tails = {f"a/{rank}/stderr.log": b"step 1" for rank in range(12)}
    for rank in (3, 4, 10):
        tails[f"a/{rank}/stderr.log"] = b"Traceback (most recent call last): x"
    tails["a/11/stderr.log"] = b"RuntimeError: boom"
    assert telling_ranks(tails) == ("a/0/stderr.log", "a/3/stderr.log", "a/11/stderr.log")
    tails["a/0/stdout.log"] = b"loss 1"
    assert telling_ranks(tails)[:2] == ("a/0/stderr.log", "a/0/stdout.log")
    assert telling_ranks({}) == ()


def test_variables_that_training_reads_are_shown_and_secrets_are_not() -> None:
    given = {
        "NCCL_DEBUG": "INFO",
        "HF_HUB_TOKEN": "x",
        "HOME": "/root",
        "VLLM_API_KEY": "x",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    assert run_folder.shown_environment(given) == {"CUDA_VISIBLE_DEVICES": "0", "NCCL_DEBUG": "INFO"}


@pytest.mark.parametrize(
    ("words", "folders"),
    [
        (["torchrun", "--log-dir", "logs", "train.py", "--output_dir", "out"], ("out", "logs")),
        (["train.py", "--output-dir=out/b"], ("out/b",)),
        (["main_ppo", "trainer.default_local_dir=ckpt"], ("ckpt",)),
        (["train.py", "--output_dir"], ()),
        (["train.py"], ()),
    ],
)
def test_the_command_names_the_folders_of_its_output(words: list[str], folders: tuple[str, ...]) -> None:
    assert run_folder.output_folders(words) == folders


@pytest.mark.parametrize(
    ("data", "command"),
    [
        ({"program": "train.py", "args": ["--lr", "1 e"]}, "python train.py --lr '1 e'\n"),
        ({"program": "train.py", "args": [1]}, "python train.py\n"),
        ({"command": "python train.py --lr 1"}, "python train.py --lr 1\n"),
        ({"args": []}, ""),
        ([], ""),
        ("[" * 5000, ""),
    ],
)
def test_a_tracker_names_the_launch_command(data: Any, command: str) -> None:
    assert run_folder.command_of_tracker(data if isinstance(data, str) else json.dumps(data)) == command


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"message": {"message": "E: x", "extraInfo": {"py_callstack": "Traceback"}}}, "Traceback"),
        ({"message": {"message": "E: x"}}, "E: x"),
        ({"message": "E: x"}, "E: x"),
        ({}, ""),
    ],
)
def test_the_error_file_of_a_rank_holds_its_traceback(data: Any, text: str) -> None:
    assert run_folder.callstack_of_rank(json.dumps(data)) == text


@pytest.mark.parametrize("margin", ["  ", "    "])
def test_the_settings_of_a_tracker_keep_their_lines(margin: str) -> None:
    written = (
        "wandb_version: 1\n\nlr:\n  desc: null\n  value: 0.1\nlora:\n  value:\n    r: 8\ntargets:\n  value:\n  - q\n"
        "_wandb:\n  value:\n    x: 1\n"
    ).replace("\n  ", f"\n{margin}")
    plain = f"\n\n\n\nlr: 0.1\n\nlora:\n{margin}  r: 8\n\ntargets:\n{margin}- q\n\n\n\n"
    assert run_folder.settings_of_tracker(written) == plain
    evidence = parse("", [Attachment(name="run-config.yaml", content=written)])
    assert [(option.key, option.value, option.span.line) for option in evidence.run.options][:1] == [("lr", 0.1, 5)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lr: 0.1\n",
        "lora:\n  value: 1\n  r: 8\n",
        "lr:\n  value: 1\nr: 8\n",
        "lora:\n  r: 8\n",
        "see:\n  value: 1\nand why?\n",
        "  value: 1\n",
    ],
)
def test_other_files_are_no_settings_of_a_tracker(text: str) -> None:
    assert run_folder.settings_of_tracker(text) is text


METADATA = json.dumps({"os": "Linux", "python": "3.10", "program": "/srv/train_dpo.py", "args": ["--bf16"]})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (METADATA, "python /srv/train_dpo.py --bf16\n"),
        ('{"message": {"message": "E", "extraInfo": {"py_callstack": "Traceback"}}}', "Traceback"),
        ("lr:\n  value: 1\n", "\nlr: 1\n"),
        ('{"program": "train.py"}', '{"program": "train.py"}'),
        ("loss is nan", "loss is nan"),
    ],
)
def test_a_record_is_told_as_another_kind_of_file(text: str, told: str) -> None:
    assert run_folder.told(text) == told


def test_what_a_tracker_recorded_belongs_to_the_run_of_the_command() -> None:
    files = {
        "r-train.sh": "accelerate launch train_dpo.py --learning_rate 1e-6",
        "r-wandb-run-1-files-wandb-metadata.json": METADATA,
        "r-wandb-run-1-files-config.yaml": "learning_rate:\n    value: 2.0e-6\nwarmup_ratio:\n    value: 0.5\n",
    }
    runs = parse("", [Attachment(name=name, content=text) for name, text in files.items()]).runs
    assert len(runs) == 1
    assert runs[0].settings["learning_rate"].value == 1e-6
    assert "warmup_ratio" in [option.key for option in runs[0].options]


def test_what_was_not_found_is_named() -> None:
    assert run_folder.missing_kinds([]) == ("command", "config", "log", "versions")
    assert run_folder.missing_kinds(["command", "log"]) == ("versions",)


def test_a_page_that_lists_a_folder_is_told_by_what_files_are_chosen() -> None:
    told = run_folder.rule()
    assert "node_modules" in run_folder.left_out()
    assert any(pattern.endswith("trainer_state.json") for pattern in told["patterns"])
    assert {"left_out", "telling", "ranks", "told_by"} <= told.keys()
