"""CSV files that experiment trackers export, read as the rows of a log."""

from __future__ import annotations

import math

from tests.every_case import every_case
from trainmedic.kb.model.evidence import Row
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.logs.exports import exported_columns
from trainmedic.kb.parse.pipeline import parse

WANDB = """"Step","good - train/loss","good - train/loss__MIN","good - train/loss__MAX","bad - train/loss"
"1","1.5","1.5","1.5",""
"2","","","","1.4"
"3","1.2","1.2","1.2","NaN"
"""
SWANLAB = """step,t-02:17-train/loss_step,t-02:17-train/loss_timestamp,u-train/loss_step,u-train/loss_timestamp
1,1.5,1751826240,1.6,1751912640
2,nan,1751826250,1.5,1751912650
"""
TENSORBOARD = "Wall time,Step,Value\n1654943296.21,10,0.7\n1654943313.77,20,NaN\n"


def rows_of(name: str, text: str) -> tuple[Row, ...]:
    return parse("", (Attachment(name=name, content=text),)).rows


@every_case(
    ("name", "metric"),
    [
        ("run-.-tag-train_loss.csv", "loss"),
        ("run-exp_7-tag-train_grad_norm.csv", "grad_norm"),
        ("run-a-tag-rewards_chosen.csv", "rewards/chosen"),
        ("loss.csv", "loss"),
        ("run-a-tag-eval_loss.csv", "eval_loss"),
    ],
)
def test_the_metric_of_a_tensorboard_download_is_in_its_name(name: str, metric: str) -> None:
    first, second = rows_of(name, TENSORBOARD)
    assert (first.step, first.metrics[metric].value) == (10, 0.7)
    assert (second.step, math.isnan(second.metrics[metric].value), second.span.line) == (20, True, 3)


def test_a_tensorboard_download_whose_name_tells_no_metric_is_no_log() -> None:
    assert rows_of("download.csv", TENSORBOARD) == ()


def test_a_wandb_export_is_read_for_its_first_run_and_says_so() -> None:
    evidence = parse("", (Attachment(name="wandb_export.csv", content=WANDB),))
    assert [(row.step, row.metrics["loss"].value) for row in evidence.rows] == [(1, 1.5), (3, 1.2)]
    assert [problem.message for problem in evidence.receipt.problems] == [
        "columns of 2 runs; only those of good are used"
    ]


def test_a_swanlab_export_has_the_run_and_the_metric_in_its_columns() -> None:
    first, second = rows_of("loss.csv", SWANLAB)
    assert (first.step, first.metrics["loss"].value, set(first.metrics)) == (1, 1.5, {"step", "loss"})
    assert math.isnan(second.metrics["loss"].value)


@every_case(
    "header", [["Step"], ["step", "loss"], ["a", "b - loss"], ["Step", "run - loss__MIN"], ["step", "x_timestamp"]]
)
def test_other_tables_are_no_exports(header: list[str]) -> None:
    assert exported_columns(header, "loss.csv") is None


def test_a_column_whose_metric_nobody_knows_is_split_at_its_last_hyphen() -> None:
    columns = exported_columns(["step", "my-run-gain_step", "my-run-gain_timestamp"], "a.csv")
    assert columns is not None
    assert (columns.runs, columns.names) == (("my-run",), ("step", "gain", ""))
