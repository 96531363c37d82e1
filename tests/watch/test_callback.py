"""The callback inside a real training run: a tiny model, made to break by a real defect."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.ui.watch import trainer_run
from trainmedic.ui.watch.callback import TrainmedicCallback
from trainmedic.ui.watch.watcher import Diagnosis

STEPS = 5


@pytest.fixture(autouse=True)
def _indexed(knowledge_folder: Path, knowledge_advisor: Advisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(knowledge_folder))


def tiny(dtype: torch.dtype) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=32,
    )
    model: LlamaForCausalLM = LlamaForCausalLM(config).to(dtype)
    return model


def arguments(folder: Path, **more: Any) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=STEPS,
        logging_steps=1,
        per_device_train_batch_size=2,
        learning_rate=1e-4,
        optim="adamw_torch",
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        **more,
    )


def trained(folder: Path, dtype: torch.dtype, callback: TrainmedicCallback) -> Trainer:
    rows = [{"input_ids": torch.randint(0, 64, (8,)), "labels": torch.randint(0, 64, (8,))} for _ in range(16)]
    trainer = Trainer(model=tiny(dtype), args=arguments(folder), train_dataset=rows, callbacks=[callback])
    trainer.train()
    return trainer


@pytest.mark.filterwarnings("ignore")
def test_float16_weights_with_adams_epsilon_are_told_at_the_step_that_breaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[Diagnosis] = []
    trainer = trained(tmp_path, torch.float16, TrainmedicCallback(notifiers=[told.append]))
    rows = [row for row in trainer.state.log_history if "grad_norm" in row]
    first_broken = next(row["step"] for row in rows if row["grad_norm"] != row["grad_norm"])
    (diagnosis,) = told
    assert diagnosis.alarm.step == first_broken
    assert diagnosis.answer.verdict == "answered"
    assert diagnosis.answer.causes[0].case_id == "fp16-trainable-head-adam-eps-nan"
    before, _, after = capsys.readouterr().err.partition("trainer_log.jsonl")
    assert "fp16-trainables-adam-eps" in before, "the configuration is checked when training begins"
    assert f"step {first_broken}" in after
    assert [thread for thread in threading.enumerate() if thread.name == "trainmedic"] == []


@pytest.mark.filterwarnings("ignore")
def test_a_watch_that_fails_does_not_touch_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMEDIC_NO_SUCH_SETTING", "1")
    trainer = trained(tmp_path, torch.float32, TrainmedicCallback())
    assert trainer.state.global_step == STEPS
    assert "unknown setting" in capsys.readouterr().err


def test_a_run_is_described_so_that_it_is_read_back(tmp_path: Path) -> None:
    files = trainer_run.attachments(arguments(tmp_path, hub_token="hf_" + "a1B2" * 8, bf16=True), tiny(torch.bfloat16))
    settings = parse("", files).run.settings
    assert settings["weights_dtype"].value == "bf16"
    assert settings["micro_batch"].value == 2
    assert settings["bf16"].value is True
    assert settings["optimizer"].value == "adamw_torch"
    assert "hf_" not in "".join(str(file.content) for file in files)
    assert {file.name for file in files} == {trainer_run.SCRIPT, trainer_run.VERSIONS}


def test_deepspeeds_configuration_comes_along(tmp_path: Path) -> None:
    assert '"stage": 2' in trainer_run.deepspeed({"zero_optimization": {"stage": 2}})
    file = tmp_path / "ds.json"
    file.write_text('{"zero_optimization": {"stage": 3}}', encoding="utf-8")
    assert '"stage": 3' in trainer_run.deepspeed(str(file))
    assert trainer_run.deepspeed(str(tmp_path / "absent.json")) == ""
