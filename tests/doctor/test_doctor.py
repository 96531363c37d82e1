"""``trainmedic doctor`` on folders and processes as runs leave them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.every_case import every_case
from tests.incidents import KTO_SINGLE
from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.ui.cli import main
from trainmedic.ui.doctor import target
from trainmedic.ui.doctor.answering import checked
from trainmedic.ui.doctor.bundle import MANIFEST
from trainmedic.ui.doctor.collect import Collected, collect, with_stacks
from trainmedic.ui.doctor.processes import process
from trainmedic.ui.doctor.reading import WHOLE, Reading
from trainmedic.ui.doctor.target import target_of
from trainmedic.ui.present.page import MOST_BYTES, Page, PageCause

ROOT = Path(__file__).parent.parent.parent
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
UNSCALE = "Traceback (most recent call last):\nValueError: Attempting to unscale FP16 gradients.\n"
HEALTHY = "".join(
    f"{{'loss': {2.0 - n / 20}, 'grad_norm': 1.{n % 7}, 'learning_rate': 1e-4, 'epoch': {n / 10}}}\n"
    for n in range(1, 12)
)
RUNS: dict[str, dict[str, str]] = {
    "trainer": {
        "sft.sh": KTO_SINGLE,
        "out/checkpoint-10/trainer_state.json": json.dumps({"log_history": [{"loss": 2.0, "step": 10}]}),
        "out/checkpoint-20/trainer_state.json": json.dumps({"log_history": [{"loss": 1.0, "step": 20}]}),
    },
    "ranks": {
        "run.sh": "torchrun --nproc_per_node 3 train.py --deepspeed ds_config.json --fp16 True --output_dir out\n",
        "ds_config.json": json.dumps({"fp16": {"enabled": True}, "zero_optimization": {"stage": 2}}),
        **{f"logs/none_x/attempt_0/{rank}/stderr.log": "step 1 loss 2.0\n" for rank in (0, 2)},
        "logs/none_x/attempt_0/1/stderr.log": UNSCALE,
        "logs/none_x/attempt_0/1/error.json": json.dumps({"message": {"extraInfo": {"py_callstack": UNSCALE}}}),
    },
    "named": {
        "run.sh": "llamafactory-cli train configs/dpo.yaml\n",
        "configs/dpo.yaml": "stage: dpo\n",
        "configs/newer_sft.yaml": "stage: sft\n",
    },
    "hydra": {
        "outputs/2026-01-02/.hydra/config.yaml": "algorithm:\n  adv_estimator: grpo\ndata:\n  train_batch_size: 8\n"
        "actor_rollout_ref:\n  actor:\n    ppo_mini_batch_size: 16\n",
        "outputs/2026-01-02/main_ppo.log": "step:1 - actor/loss:0.1\n",
        "outputs/2026-01-01/main_ppo.log": "step:1 - actor/loss:0.1\n",
    },
    "tracked": {
        "wandb/run-1/files/wandb-metadata.json": json.dumps({"program": "train.py", "args": ["--bf16", "True"]}),
        "wandb/run-1/files/config.yaml": "learning_rate:\n  value: 0.1\n",
        "wandb/run-1/files/requirements.txt": "torch==2.4.0\ntransformers==4.46.0\n",
        "wandb/run-1/files/output.log": HEALTHY,
    },
}
READ = {
    "trainer": {"sft.sh", "out/checkpoint-20/trainer_state.json"},
    "ranks": {
        "run.sh",
        "ds_config.json",
        "logs/none_x/attempt_0/0/stderr.log",
        "logs/none_x/attempt_0/1/stderr.log",
        "logs/none_x/attempt_0/1/error.json.log",
    },
    "named": {"run.sh", "configs/dpo.yaml"},
    "hydra": {"outputs/2026-01-02/.hydra/config.yaml", "outputs/2026-01-02/main_ppo.log"},
    "tracked": {
        "wandb/run-1/files/wandb-metadata.json.sh",
        *(f"wandb/run-1/files/{name}" for name in ("config.yaml", "requirements.txt", "output.log")),
    },
}


def run_folder(folder: Path, files: dict[str, str]) -> Path:
    for number, (name, text) in enumerate(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (1_700_000_000 + number,) * 2)
    return folder


def found(collected: Collected) -> set[str]:
    return {item.attachment.name for item in collected.found if item.role not in ("installed", "devices")}


def page(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """The exit code of ``doctor --quick --json`` and its page."""
    code = main(["doctor", "--quick", "--json", "--language", "en", *words])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of this Python are none of the run's."""
    monkeypatch.setattr("trainmedic.ui.doctor.collect.sys.prefix", "/nowhere")


@every_case("name", RUNS)
def test_what_there_is_of_the_newest_run_is_found(tmp_path: Path, name: str) -> None:
    files = dict(sorted(RUNS[name].items()))
    assert found(collect(target_of(str(run_folder(tmp_path / name, files))))) == READ[name]


def test_the_cause_comes_with_its_line_and_patch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], no_environment: None
) -> None:
    code, shown = page(capsys, str(run_folder(tmp_path, RUNS["trainer"])))
    assert (code, shown["verdict"]) == (1, "answered")
    assert "sft.sh:7: --vanilla_loss" in shown["causes"][0]["evidence"]
    assert "-   --vanilla_loss" in shown["patch"]
    assert [line.split(":")[0] for line in shown["not_found"]] == ["the installed versions"]


def test_a_failing_rank_tells_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], no_environment: None
) -> None:
    code, shown = page(capsys, str(run_folder(tmp_path, RUNS["ranks"])))
    assert (code, shown["verdict"]) == (1, "answered")
    assert "float16" in str(shown["causes"])


def test_of_a_healthy_run_it_says_what_it_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], no_environment: None
) -> None:
    code, shown = page(capsys, str(run_folder(tmp_path, RUNS["tracked"])))
    assert (code, shown["verdict"], shown["causes"], shown["not_found"]) == (0, "no_fault", [], [])
    assert "wandb/run-1/files/output.log" in shown["read"]


def test_the_whole_answer_needs_an_index_and_stays_on_one_page(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    knowledge_folder: Path,
    knowledge_loaded: None,
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(knowledge_folder))
    folder = str(run_folder(tmp_path, RUNS["ranks"]))
    assert main(["doctor", folder, "--language", "zh", "--symptom", "训练一开始就报错"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("trainmedic：原因已知。\n\n1. ")
    assert len(text.encode()) <= MOST_BYTES
    assert "logs/none_x/attempt_0/1/error.json.log:2: ValueError: Attempting to unscale" in text


def test_a_folder_without_a_run_is_an_error_and_not_a_clean_bill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(tmp_path)]) == 3
    assert "nothing of a run" in capsys.readouterr().err


def test_neither_links_nor_pipes_nor_weights_are_read(tmp_path: Path) -> None:
    outside = run_folder(tmp_path / "outside", {"train.log": TOKEN})
    folder = run_folder(tmp_path / "run", {"slurm-1.out": HEALTHY, "nohup.out": ""})
    (folder / "train.log").symlink_to(outside / "train.log")
    (folder / "more").symlink_to(outside)
    (folder / "model.safetensors").write_bytes(b"x")
    (folder / "training_args.bin").write_bytes(b"\x80\x04damaged")
    os.mkfifo(folder / "slurm-2.out")
    collected = collect(target_of(str(folder)))
    assert found(collected) == {"slurm-1.out"}
    assert (collected.links, collected.unread) == (2, ("training_args.bin",))


def test_of_a_log_larger_than_can_be_counted_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as stream:
        stream.truncate(WHOLE + 1)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\nRuntimeError: boom\n")
    (item,) = [item for item in collect(target_of(str(tmp_path))).found if item.role == "log"]
    assert item.note == "end_alone"
    assert bytes(item.attachment.content).endswith(b"boom\n")  # type: ignore[arg-type]


def test_reading_ends_with_its_time_and_says_so(tmp_path: Path) -> None:
    collected = collect(target_of(str(run_folder(tmp_path, RUNS["trainer"]))), seconds=-1)
    assert (found(collected), collected.cut_short) == (set(), True)


def test_no_folder_is_too_large_or_too_deep(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdefghij")
    run_folder(deep, {"train.log": HEALTHY})
    (tmp_path / "b.log").write_text(HEALTHY, encoding="utf-8")
    reading = Reading.within(5)
    assert [entry.path for entry in reading.entries(tmp_path)] == ["b.log"]
    reading.files = 0
    assert reading.file(tmp_path / "b.log") is None


# --- processes and jobs ---------------------------------------------------------------------------------------------


@pytest.fixture
def training(tmp_path: Path) -> Iterator[int]:
    """A process that looks like a run: it works in the folder, names its configuration and prints to a log there."""
    (tmp_path / "train.py").write_text("import time; print('{\\'loss\\': 1.0}', flush=True); time.sleep(60)\n")
    (tmp_path / "sft.yaml").write_text("learning_rate: 1e-4\n", encoding="utf-8")
    command = [sys.executable, "train.py", "--config", "sft.yaml", "--output_dir", "out"]
    environment = {"PATH": os.environ["PATH"], "HF_TOKEN": TOKEN, "NCCL_DEBUG": "INFO"}
    with (tmp_path / "console.txt").open("wb") as log:
        started = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    until = time.monotonic() + 30
    while not (tmp_path / "console.txt").stat().st_size and time.monotonic() < until:
        time.sleep(0.05)
    yield started.pid
    started.kill()
    started.wait()


@pytest.mark.parametrize("by", ["process", "folder"])
def test_a_process_shows_its_command_files_output_and_packages(tmp_path: Path, training: int, by: str) -> None:
    collected = collect(target_of(str(training) if by == "process" else str(tmp_path)))
    texts = {item.attachment.name: item.attachment.content for item in collected.found}
    command = f"command-of-process-{training}.sh"
    assert {command, "train.py", "sft.yaml", "console.txt", "pip-list.txt"} <= texts.keys()
    assert str(texts[command]).splitlines()[0] == "export NCCL_DEBUG=INFO"
    assert str(texts[command]).endswith("train.py --config sft.yaml --output_dir out\n")
    assert TOKEN not in str(texts)
    assert "torch==" in str(texts["pip-list.txt"])
    assert collected.missing == ()


def test_the_program_that_python_runs_is_the_command() -> None:
    here = process(os.getpid())
    assert here is not None
    assert here.command
    assert process(2**30) is None


def test_of_a_rank_the_launcher_above_it_is_the_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time; print(1, flush=True); time.sleep(60)\n", encoding="utf-8")
    start = "import subprocess, sys; subprocess.run([sys.executable, '-u', *sys.argv[1:]])"
    (tmp_path / "torchrun").write_text(start, encoding="utf-8")
    command = [sys.executable, "torchrun", "train.py", "--bf16", "True"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, process_group=0) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"1\n"
        try:
            (rank,) = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text(encoding="utf-8").split()
            launcher = target_of(rank).process
        finally:
            os.killpg(started.pid, signal.SIGKILL)
    assert launcher is not None
    assert (launcher.pid, launcher.command) == (started.pid, "torchrun train.py --bf16 True")


SCONTROL = "JobId=7 JobName=x\n   Command={0}/job.sbatch\n   WorkDir={0}\n   StdErr={0}/err\n   StdOut={0}/out.txt\n"


def test_a_job_names_its_script_and_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_folder(tmp_path, {"job.sbatch": KTO_SINGLE, "out.txt": HEALTHY})
    monkeypatch.setattr(target, "said_by", lambda command: SCONTROL.format(tmp_path) if command[-1] == "7" else "")
    collected = collect(target_of("job:7"))
    assert found(collected) == {"job.sbatch", "out.txt"}
    with pytest.raises(NotFound):
        target_of("job:8")


@pytest.mark.parametrize(("word", "error"), [("no-such-folder", NotFound), (__file__, InvalidRequest)])
def test_what_is_no_run_is_refused(word: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        target_of(word)


def test_a_program_that_is_missing_fails_or_hangs_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "PROGRAM_S", 0.2)
    assert target.said_by(("echo", "x")) == "x\n"
    assert [target.said_by(command) for command in (("no-such-program",), ("false",), ("sleep", "9"))] == [""] * 3


# --- what can be sent -----------------------------------------------------------------------------------------------


def test_a_bundle_holds_what_was_found_without_secrets_and_can_be_asked_about(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    knowledge_folder: Path,
    knowledge_loaded: None,
) -> None:
    folder = run_folder(tmp_path / "run", {**RUNS["trainer"], "train.log": f"token: {TOKEN}\n{UNSCALE}"})
    (folder / "nohup.out").write_bytes(os.urandom(5000))
    archive = tmp_path / "out.zip"
    main(["doctor", "--quick", str(folder), "--bundle", str(archive)])
    with zipfile.ZipFile(archive) as bundle:
        files = {name: bundle.read(name) for name in bundle.namelist()}
    assert MANIFEST in files
    assert {"sft.sh", "train.log"} <= files.keys()
    assert "nohup.out" not in files
    assert files["sft.sh"] == KTO_SINGLE.encode()
    assert TOKEN.encode() not in b"".join(files.values())
    capsys.readouterr()
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(knowledge_folder))
    assert main(["ask", "-f", str(archive)]) == 0
    assert "--vanilla_loss" in capsys.readouterr().out
    main(["check", "--format", "json", str(archive)])
    of_archive = json.loads(capsys.readouterr().out)["findings"]
    of_folder = checked("", collect(target_of(str(folder))).attachments, "en").findings
    assert {each["rule_id"] for each in of_archive} == {each.rule_id for each in of_folder} != set()


def test_stacks_are_taken_of_a_process_that_is_named_and_of_no_other(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", RUNS["trainer"])
    with pytest.raises(NotFound, match="no process"):
        with_stacks(collect(target_of(str(folder))))


def test_the_page_for_agents_is_described_field_by_field() -> None:
    described = (ROOT / "docs" / "connect" / "agents.md").read_text(encoding="utf-8")
    names = [field.name for kind in (Page, PageCause) for field in fields(kind)]
    assert [name for name in names if f"`{name}`" not in described and name != "language"] == []


def test_the_skill_file_is_written_for_the_agents_that_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    main(["skills", "install"])
    (tmp_path / ".claude").mkdir()
    main(["skills", "install"])
    main(["skills", "install", "--target", str(tmp_path / "mine")])
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.relative_to(tmp_path).parts[0] for path in written] == [".agents", ".agents", ".claude", "mine"]
    main(["skills", "show"])
    assert {path.read_text(encoding="utf-8") for path in written} == {capsys.readouterr().out}
