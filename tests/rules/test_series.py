"""Series of logged numbers: how rows become series, and that healthy runs of any kind stay without a finding."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import pytest

from tests.every_case import every_case
from tests.shipped import shipped_rules
from trainmedic.kb.checks.log_series import (
    break_of,
    configured,
    early,
    ends,
    evaluations,
    logs,
    peak_rate,
    points,
    values,
)
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

RULES = shipped_rules()
Values = dict[str, float | str]


def line(row: Values) -> str:
    return "{" + ", ".join(f"'{key}': {value}" for key, value in row.items()) + "}"


def facts(rows: list[Values], question: str = "", config: str = "") -> Facts:
    attached = [Attachment(name="train.log", content="\n".join(map(line, rows)) + "\n")]
    if config:
        attached.append(Attachment(name="sft.yaml", content=config))
    return Facts(parse(question, attached))


def fault_findings(rows: list[Values], config: str = "") -> list[str]:
    report = check(facts(rows, config=config).evidence, RULES)
    return [
        f"{finding.rule_id}: {finding.message.en}"
        for finding in report.fired
        if finding.rule_id.startswith("series-") and finding.concludes == "fault"
    ]


def test_a_log_is_cut_where_the_epoch_or_step_falls_back() -> None:
    first: list[Values] = [{"loss": 1.5, "epoch": 0.1 * i} for i in range(1, 4)]
    again: list[Values] = [{"loss": 1.4, "epoch": 0.1 * i} for i in range(1, 3)]
    assert [len(part) for part in logs(facts([*first, *again]))] == [3, 2]
    stepped: list[Values] = [{"loss": 1.5, "step": step} for step in (10, 20, 20, 30, 10)]
    assert [len(part) for part in logs(facts(stepped))] == [4, 1]


def test_evaluation_rows_are_no_training_rows() -> None:
    rows: list[Values] = [{"loss": 1.5, "epoch": 0.1}, {"eval_loss": 1.4, "epoch": 0.1}, {"loss": 1.3, "epoch": 0.2}]
    found = facts(rows)
    assert [len(part) for part in logs(found)] == [2]
    assert values(evaluations(found)) == [1.4]


def test_points_leave_out_what_is_not_finite_unless_asked_for() -> None:
    rows = logs(facts([{"loss": 1.5, "epoch": 0.1}, {"loss": "nan", "epoch": 0.2}]))[0]
    assert values(points(rows, "loss")) == [1.5]
    assert math.isnan(points(rows, "loss", finite=False)[1].value)
    assert points(rows, "loss", finite=False)[1].where == ("logged row 2", "第 2 行日志")


def test_a_stated_step_names_the_place() -> None:
    rows = logs(facts([{"loss": 1.5, "step": 40}]))[0]
    assert points(rows, "loss")[0].where == ("step 40", "第 40 步")


def test_rewards_that_both_fall_are_told_as_the_last_row_has_them() -> None:
    rows: list[Values] = [
        {
            "loss": 0.5,
            "rewards/chosen": -0.15 * i,
            "rewards/rejected": -0.35 * i,
            "rewards/margins": 0.2 * i,
            "rewards/accuracies": 0.7,
            "epoch": 0.1 * i,
        }
        for i in range(9)
    ]
    found = check(facts(rows).evidence, RULES)
    said = next(finding.message.en for finding in found.fired if finding.rule_id == "series-both-rewards-fall")
    assert "rewards/chosen is -1.2, rewards/rejected -2.8, the margin 1.6" in said


def test_the_ends_are_medians_of_the_outer_thirds() -> None:
    assert ends([1.0, 9.0, 1.0, 5.0, 5.0, 5.0, 2.0, 2.0, 8.0]) == (1.0, 2.0)
    assert ends([3.0]) == (3.0, 3.0)


def test_the_peak_is_the_configured_rate_where_it_is_known() -> None:
    rising: list[Values] = [{"loss": 2.0, "learning_rate": 1e-6 * i, "epoch": 0.1 * i} for i in range(1, 4)]
    config = (
        "stage: sft\ndo_train: true\nmodel_name_or_path: x\nlearning_rate: 1.0e-5\noutput_dir: out\ntemplate: qwen\n"
    )
    found = facts(rising, config=config)
    assert peak_rate(found, logs(found)[0]) == 1e-5
    assert configured(found, "learning_rate") == 1e-5
    bare = facts(rising)
    assert peak_rate(bare, logs(bare)[0]) == pytest.approx(3e-6)
    assert configured(bare, "learning_rate") is None


def test_early_is_told_by_step_or_epoch() -> None:
    assert early(logs(facts([{"loss": 1.0, "step": 10}]))[0])
    assert not early(logs(facts([{"loss": 1.0, "step": 5000}]))[0])
    assert early(logs(facts([{"loss": 1.0, "epoch": 0.01}]))[0])
    assert not early(logs(facts([{"loss": 1.0, "epoch": 1.4}]))[0])
    assert not early(logs(facts([{"loss": 1.0}]))[0])


@every_case(
    ("rows", "name"),
    [
        ([{"loss": 1.0, "grad_norm": 1.0}, {"loss": "nan", "grad_norm": "nan"}], "loss"),
        ([{"loss": 1.0, "grad_norm": 1.0}, {"loss": 0.0, "grad_norm": "nan"}], "grad_norm"),
        ([{"loss": 1.0, "grad_norm": "inf"}, {"loss": 1.0, "grad_norm": 1.0}], None),
        ([{"loss": 1.0, "grad_norm": "nan"}, {"loss": 0.9, "grad_norm": "nan"}], None),
        ([{"loss": 1.0, "grad_norm": 1.0}], None),
    ],
)
def test_a_break_is_what_does_not_recover(rows: list[Values], name: str | None) -> None:
    broken = break_of(logs(facts(rows))[0])
    assert (broken.point.metric.name if broken is not None else None) == name


def test_a_log_that_shows_nothing_rules_no_case_out() -> None:
    report = check(
        facts([{"loss": 1.5 - 0.01 * i, "grad_norm": 1.0, "epoch": 0.01 * i} for i in range(20)]).evidence, RULES
    )
    assert not [rule for rule in report.ruled_out if rule.startswith("series-")]


# --- healthy runs --------------------------------------------------------------------------------------------------


def schedule(i: int, n: int, peak: float) -> float:
    """Warm-up over a tenth of the rows, then a cosine to 0."""
    warm = max(1, n // 10)
    if i < warm:
        return peak * i / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (i - warm) / max(1, n - 1 - warm)))


def falling(rng: random.Random, n: int, begin: float, end: float, noise: float) -> list[float]:
    return [round(end + (begin - end) * math.exp(-4 * i / n) + rng.gauss(0, noise), 4) for i in range(n)]


def sft(rng: random.Random, n: int) -> Iterator[Values]:
    losses = falling(rng, n, rng.uniform(1.2, 3.5), rng.uniform(0.6, 1.0), 0.05)
    for i, loss in enumerate(losses):
        yield {
            "loss": loss, "grad_norm": round(rng.lognormvariate(0, 0.4), 4),
            "learning_rate": schedule(i, n, 1e-5), "epoch": round(2 * (i + 1) / n, 3),
        }  # fmt: skip
        if i % 10 == 9:
            yield {"eval_loss": round(loss + rng.gauss(0.05, 0.02), 4), "epoch": round(2 * (i + 1) / n, 3)}


def dpo(rng: random.Random, n: int) -> Iterator[Values]:
    for i in range(n):
        margin = 1.2 * (1 - math.exp(-3 * i / n)) + rng.gauss(0, 0.1)
        chosen = 0.4 * margin + rng.gauss(0, 0.05)
        yield {
            "loss": round(math.log1p(math.exp(-margin)) + abs(rng.gauss(0, 0.02)), 4),
            "grad_norm": round(rng.lognormvariate(1.5, 0.3), 3), "learning_rate": schedule(i, n, 5e-7),
            "rewards/chosen": round(chosen, 4), "rewards/rejected": round(chosen - margin, 4),
            "rewards/accuracies": round(min(1, max(0, 0.5 + 0.3 * margin)), 3), "rewards/margins": round(margin, 4),
            "logps/chosen": round(-200 + rng.gauss(0, 5), 2), "logps/rejected": round(-230 + rng.gauss(0, 5), 2),
            "epoch": round((i + 1) / n, 3),
        }  # fmt: skip


def grpo(rng: random.Random, n: int) -> Iterator[Values]:
    for i in range(n):
        share = i / n
        flat = rng.random() < 0.2
        yield {
            "loss": round(rng.gauss(0.0005 * share, 0.01), 4), "grad_norm": round(rng.lognormvariate(-1, 0.4), 4),
            "learning_rate": schedule(i, n, 1e-6), "reward": round(0.2 + 0.5 * share + rng.gauss(0, 0.05), 4),
            "reward_std": 0.0 if flat else round(abs(rng.gauss(0.25, 0.05)), 4),
            "frac_reward_zero_std": 1.0 if flat else round(rng.uniform(0, 0.5), 2),
            "completions/clipped_ratio": round(max(0.0, 0.3 - 0.2 * share + rng.gauss(0, 0.05)), 3),
            "completion_length": round(300 + 250 * share + rng.gauss(0, 20), 1),
            "kl": round(0.0004 * i * rng.uniform(0.7, 1.3), 5),
            "entropy": round(0.9 - 0.5 * share + rng.gauss(0, 0.05), 4),
            "epoch": round((i + 1) / n, 3),
        }  # fmt: skip


def ppo(rng: random.Random, n: int) -> Iterator[Values]:
    for i in range(n):
        yield {
            "objective/kl": round(0.3 * i * rng.uniform(0.3, 1.2) / 10 - 0.2, 4), "objective/entropy": 30.0,
            "objective/rlhf_reward": round(0.1 + 0.01 * i + rng.gauss(0, 0.05), 4),
            "policy/loss": round(rng.gauss(0, 0.02), 4), "value/loss": round(abs(rng.gauss(0.4, 0.1)), 4),
            "epoch": round((i + 1) / n, 3),
        }  # fmt: skip


@every_case("kind", [sft, dpo, grpo, ppo])
@every_case("rows", [1, 3, 8, 20, 60, 200])
def test_healthy_runs_have_no_finding(kind: Callable[[random.Random, int], Iterator[Values]], rows: int) -> None:
    found = []
    for seed in range(6):
        found += fault_findings(list(kind(random.Random(seed), rows)))
    assert found == []


def test_two_healthy_runs_in_one_file_have_no_finding() -> None:
    rng = random.Random(3)
    assert fault_findings([*sft(rng, 40), *sft(rng, 60)]) == []


def test_the_tail_of_a_healthy_run_has_no_finding() -> None:
    rows = list(sft(random.Random(5), 200))
    assert fault_findings(rows[-40:]) == []
    assert fault_findings(rows[100:160]) == []
