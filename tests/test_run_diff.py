"""A run that works against one that fails: what differs, what each difference does, and where the curves part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import trainmedic
from tests.defects.values import ENTRY, folder
from tests.every_case import every_case
from trainmedic.kb.comparison.curve_comparison import partings
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import DifferenceView, DiffView
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.ui.cli import main
from trainmedic.ui.present import diff_text

GOOD = """model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
do_train: true
finetuning_type: full
template: qwen
learning_rate: 1.0e-5
bf16: true
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
output_dir: a
"""
BAD = GOOD.replace("1.0e-5", "1.0e-3").replace("bf16: true", "fp16: true").replace("template: qwen", "template: llama3")
PACKAGES = "torch==2.4.0\nllamafactory==0.9.1\ntransformers==4.45.2\n"


def log(last: int = 40, broken: int | None = None) -> str:
    """Rows of every tenth step; from row ``broken`` the gradient norm grows, and five rows later it is NaN."""
    lines = []
    for row in range(1, last + 1):
        late = row - broken if broken is not None else -1
        loss, norm = 2.5 - row / 40 + (row % 3) * 0.01, f"{1 + (row % 4) * 0.1:.2f}"
        if late >= 0:
            loss, norm = (loss + late / 2, f"{3.0 * 2**late}") if late < 5 else (0.0, "nan")
        lines.append(f"{{'loss': {loss:.4f}, 'grad_norm': {norm}, 'learning_rate': 1e-05, 'step': {row * 10}}}")
    return "\n".join(lines) + "\n"


def attachment(name: str, content: str) -> Attachment:
    return Attachment(name=name, content=content)


def run_of(config: str, packages: str, rows: str) -> list[Attachment]:
    return [attachment("train.yaml", config), attachment("pip.txt", packages), attachment("train.log", rows)]


@pytest.fixture(scope="module")
def view() -> DiffView:
    newer = PACKAGES.replace("4.45.2", "4.46.0")
    return trainmedic.diff(run_of(GOOD, PACKAGES, log()), run_of(BAD, newer, log(broken=16)))


def difference(view: DiffView, name: str) -> DifferenceView:
    return next(item for item in view.differences if item.name == name)


def test_only_what_differs_is_listed_with_both_values_and_places(view: DiffView) -> None:
    rate = difference(view, "learning_rate")
    assert (rate.kind, rate.good, rate.bad) == ("setting", "1e-05", "0.001")
    assert rate.good_place is not None
    assert rate.bad_place is not None
    assert (rate.good_place.line, rate.bad_place.text) == (6, "learning_rate: 1.0e-3")
    package = difference(view, "transformers")
    assert (package.kind, package.good, package.bad) == ("package", "4.45.2", "4.46.0")
    assert {"stage", "gradient_accumulation", "torch"}.isdisjoint(item.name for item in view.differences)


def test_a_default_that_takes_the_place_of_a_written_value_is_said_to_be_one(view: DiffView) -> None:
    bf16 = difference(view, "bf16")
    assert (bf16.good, bf16.bad, bf16.bad_place) == ("true", "false", None)
    assert bf16.bad_source.startswith("default of llamafactory")


def test_what_explains_the_symptom_comes_first(view: DiffView) -> None:
    assert "grad_norm_nan" in {signal.kind for signal in view.signals}
    explaining = [item.explains for item in view.differences]
    assert explaining == sorted(explaining, reverse=True)
    rate = difference(view, "learning_rate")
    assert (rate.effects[0].kind, rate.effects[0].explains) == ("origin", True)
    assert rate.effects[0].fix
    assert not difference(view, "chat_template").explains


def test_the_step_at_which_the_curves_part_is_told(view: DiffView) -> None:
    curves = {curve.metric: curve for curve in view.curves}
    assert curves["grad_norm"].step == 160
    assert (curves["grad_norm"].bad, curves["grad_norm"].bad_place.line, curves["grad_norm"].whole) == (3.0, 16, False)
    assert 160 <= curves["loss"].step <= 170
    assert "learning_rate" not in curves


def test_a_run_compared_with_itself_has_no_difference() -> None:
    same = trainmedic.diff(run_of(GOOD, PACKAGES, log()), run_of(GOOD, PACKAGES, log()))
    assert (same.differences, same.curves, same.signals, same.findings, same.defects) == ((), (), (), (), ())
    assert diff_text.report(same) == "Nothing differs in what was read.\n"


def test_a_default_that_changed_between_the_releases_is_a_difference() -> None:
    script = "from trl import GRPOConfig\nGRPOConfig(output_dir='x', num_generations=8)\n"
    view = trainmedic.diff([script, "trl==0.17.0"], [script, "trl==0.19.0"])
    changed = [item for item in view.differences if any(effect.kind == "default" for effect in item.effects)]
    assert changed
    assert all(item.good != item.bad for item in changed)
    assert difference(view, "trl").kind == "package"


def test_an_option_without_a_canonical_name_that_was_left_as_it_was_is_a_difference_if_its_default_changed() -> None:
    script = attachment("train.py", "from trl import GRPOConfig\nargs = GRPOConfig(output_dir='o', beta=0.04)\n")
    good, bad = ([script, attachment("pip.txt", f"trl=={version}\n")] for version in ("1.9.0", "1.16.0"))
    changed = {each.name: each for each in trainmedic.diff(good, bad).differences if each.kind == "option"}
    assert (changed["use_bias_correction_kl"].good, changed["use_bias_correction_kl"].bad) == ("false", "true")
    assert [effect.kind for effect in changed["use_bias_correction_kl"].effects] == ["default"]


def test_a_known_defect_of_the_failing_version_is_tied_to_what_brings_it(tmp_path: Path) -> None:
    always = ENTRY.replace("trl-3435", "trl-99").replace(
        '  when: option("importance_sampling_level") == "sequence"\n', ""
    )
    pages = [folder(tmp_path / "kb", ENTRY + always)]
    view = trainmedic.diff(["trl==0.19.1\n"], ["trl==0.20.0\n"], pages=pages)
    assert [(effect.kind, effect.id) for effect in difference(view, "trl").effects] == [("defect", "trl-99")]
    assert {"trl-99", "trl-3435"} <= {defect.id for defect in view.defects}
    script = "from trl import GRPOConfig\nGRPOConfig(output_dir='x', importance_sampling_level={!r})\n"
    sides = [[script.format(level), "trl==0.20.0"] for level in ("token", "sequence")]
    option = difference(trainmedic.diff(*sides, pages=pages), "importance_sampling_level")
    assert ("defect", "trl-3435") in [(effect.kind, effect.id) for effect in option.effects]


def test_a_side_without_a_configuration_says_nothing_of_options() -> None:
    view = trainmedic.diff([attachment("train.log", log())], run_of(BAD, PACKAGES, log(broken=16)))
    assert {item.kind for item in view.differences} <= {"package"}
    assert view.curves


def test_options_without_a_canonical_name_and_recognised_words_are_compared() -> None:
    dpo = "swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B --deepspeed zero2 --logging_steps 5 --report_to none"
    kto = dpo.replace("dpo", "kto").replace("--logging_steps 5", "--logging_steps 1")
    view = trainmedic.diff([dpo], [kto])
    assert (difference(view, "algorithm").good, difference(view, "algorithm").bad) == ("dpo", "kto")
    logging = difference(view, "logging_steps")
    assert (logging.good, logging.bad) == ("5", "1")


def test_computed_batch_sizes_are_compared() -> None:
    command = "torchrun --nproc_per_node {} train.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4"
    files = "from transformers import TrainingArguments\n"
    view = trainmedic.diff([command.format(4), files], [command.format(8), files])
    assert "num_gpus" in {item.name for item in view.differences}


@every_case(
    ("good", "bad", "step"),
    [
        ([1.0, 1.1, 1.0, 1.1, 1.0], [1.05, 1.0, 1.1, 1.0, 1.05], None),  # noise
        ([1.0, 1.1, 1.0, 1.1, 1.0], [1.0, 1.1, float("nan"), float("nan"), float("nan")], 3),
        ([1.0, 1.1, 9.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0], [1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0], None),  # a spike
        ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], 1),
        ([1.0, 1.0], [2.0, 2.0], None),  # too few
        ([float("nan")] * 4, [float("nan")] * 4, None),
    ],
)
def test_curves_part_where_they_differ_for_good(good: list[float], bad: list[float], step: int | None) -> None:
    texts = ["".join(f"{{'loss': {value}, 'step': {n}}}\n" for n, value in enumerate(side, 1)) for side in (good, bad)]
    sides = [parse("", (attachment("train.log", text),)) for text in texts]
    found = partings(*sides)
    assert [parting.step for parting in found] == ([] if step is None else [step])
    assert all(parting.whole is (step == 1) for parting in found)


def test_rows_without_a_step_are_counted() -> None:
    good = "".join(f"{{'loss': {3 - n / 10:.2f}, 'grad_norm': 1.0}}\n" for n in range(8))
    bad = "".join(f"{{'loss': {3 - n / 10 if n < 4 else 5 + n:.2f}, 'grad_norm': 1.0}}\n" for n in range(8))
    sides = [parse("", (attachment("train.log", text),)) for text in (good, bad)]
    assert [(parting.metric, parting.step) for parting in partings(*sides)] == [("loss", 5)]


def test_the_text_is_complete_in_both_languages(view: DiffView) -> None:
    english, chinese = diff_text.report(view, "en"), diff_text.report(view, "zh")
    assert "Differences that explain it:\n  " in english
    assert "learning_rate: 1e-05 (train.yaml:6) → 0.001 (train.yaml:6)" in english
    assert "bf16: true (train.yaml:7) → false (default)" in english
    assert "grad_norm: from step 160, 1 → 3 (train.log:16)" in english
    assert "能解释这些现象的差异：" in chinese
    assert "默认值" in chinese
    unexplained = diff_text.report(replace(view, differences=(difference(view, "chat_template"),)))
    assert "None of the differences is known to cause this." in unexplained
    many = replace(view, differences=(difference(view, "chat_template"),) * 50, findings=())
    assert "… (+10)" in diff_text.report(many)
    assert "\x1b[31m" in diff_text.report(view, colour=True)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    for name, config, rows in (("good", GOOD, log()), ("bad", BAD, log(broken=16))):
        (tmp_path / name / "logs").mkdir(parents=True)
        (tmp_path / name / "train.yaml").write_text(config)
        (tmp_path / name / "logs" / "train.log").write_text(rows)
        (tmp_path / name / "model.safetensors").write_bytes(b"\0" * 10)
        (tmp_path / name / ".hidden").write_text("learning_rate: 5")
    return str(tmp_path / "good"), str(tmp_path / "bad")


def test_folders_are_compared_on_the_command_line(folders: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *folders, "--format", "json", "--language", "en"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["differences"][0]["effects"][0]["explains"] is True
    assert [Path(item["name"]).name for item in found["bad_receipt"]["inputs"] if item["name"]] == [
        "train.log",
        "train.yaml",
    ]
    assert main(["diff", *folders, "--exit-zero"]) == 0
    assert main(["diff", folders[0], folders[0]]) == 0


def test_a_folder_without_text_or_with_too_many_files_is_said_to_be_unreadable(
    tmp_path: Path, folders: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    empty, many = tmp_path / "empty", tmp_path / "many"
    empty.mkdir()
    many.mkdir()
    for number in range(101):
        (many / f"{number}.txt").touch()
    (tmp_path / "model").write_bytes(b"\x7fELF\0\0\0")
    for name, message in (("empty", "has no files"), ("many", "101 files"), ("model", "no readable text")):
        assert main(["diff", folders[0], str(tmp_path / name)]) == 3
        assert message in capsys.readouterr().err


@pytest.fixture
def client(knowledge_advisor: Advisor) -> Iterator[TestClient]:
    with TestClient(create_app(knowledge_advisor, Settings())) as client:
        yield client


def test_the_service_compares_two_runs(client: TestClient) -> None:
    def side(config: str, rows: str) -> list[dict[str, str]]:
        return [{"name": "train.yaml", "content": config}, {"name": "train.log", "content": rows}]

    body = {"good": side(GOOD, log()), "bad": side(BAD, log(broken=16)), "language": "zh"}
    answer = client.post("/v1/diff", json=body).json()
    rate = next(item for item in answer["differences"] if item["name"] == "learning_rate")
    assert any("\u4e00" <= char <= "\u9fff" for char in rate["effects"][0]["title"])
    assert answer["bad"]["framework"] == "llamafactory"
    too_many = {**body, "bad": side(BAD, "") * 20}
    assert client.post("/v1/diff", json=too_many).status_code == 413
    assert client.post("/v1/diff", json={"good": body["good"], "bad": []}).status_code == 422
