"""The series that an answer carries for drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.source import Limits
from trainmedic.kb.serialization import plain
from trainmedic.service.answer.series import MAX_POINTS, MAX_SERIES, series_views, thinned


def log(*rows: Mapping[str, object]) -> Attachment:
    return Attachment(name="train.log", content="\n".join(str(row).replace("nan", "'nan'") for row in rows))


def test_each_usual_metric_of_a_log_is_a_series_in_a_fixed_order() -> None:
    rows = [{"loss": 2.0 - n / 10, "grad_norm": 1.0, "epoch": n / 10, "step": 10 * n} for n in range(1, 6)]
    found = series_views(parse("", (log(*rows),)))
    assert [view.name for view in found] == ["loss", "grad_norm"]
    assert found[0].attachment == "train.log"
    assert found[0].points[0] == (10, 1.9)
    assert found[0].steps == (10, 20, 30, 40, 50)


def test_rows_without_a_step_are_numbered() -> None:
    found = series_views(parse("", (log(*({"loss": 1.0, "grad_norm": 0.5, "epoch": 0.1} for _ in range(4))),)))
    assert found[0].steps == (1, 2, 3, 4)


def test_the_step_where_the_loss_breaks_is_marked() -> None:
    rows = [{"loss": 1.0, "grad_norm": 0.5, "step": n} for n in range(1, 5)]
    rows += [{"loss": math.nan, "grad_norm": math.nan, "step": n} for n in range(5, 8)]
    found = series_views(parse("", (log(*rows),)))
    assert [(view.name, view.marked) for view in found] == [("loss", 5), ("grad_norm", 5)]
    assert plain(found[0]) == {
        "name": "loss",
        "attachment": "train.log",
        "steps": [1, 2, 3, 4, 5, 6, 7],
        "values": [1.0, 1.0, 1.0, 1.0, "nan", "nan", "nan"],
        "marked": 5,
        "lines": [1, 2, 3, 4, 5, 6, 7],
        "breaks": [],
        "hidden": [],
    }


def test_a_healthy_run_has_no_mark() -> None:
    rows = [{"loss": 2.0 - n / 100, "grad_norm": 1.0, "step": n} for n in range(1, 30)]
    assert {view.marked for view in series_views(parse("", (log(*rows),)))} == {None}


def test_two_points_are_no_curve() -> None:
    assert series_views(parse("", (log({"loss": 1.0, "step": 1}, {"loss": 0.9, "step": 2}),))) == ()


def test_a_question_without_a_log_has_no_series() -> None:
    assert series_views(parse("loss is nan")) == ()


def test_a_long_run_keeps_its_outline() -> None:
    values = [1.0] * 10_000
    values[4_321] = 90.0
    values[7_000] = math.nan
    kept = thinned(values, [5_555])
    assert len(kept) <= MAX_POINTS
    assert {0, 4_321, 5_555, 7_000, 9_999} <= set(kept)
    assert kept == sorted(kept)


def test_a_stretch_of_nothing_but_nan_stays_visible() -> None:
    values = [1.0 if n < 500 else math.nan for n in range(1_000)]
    assert sum(math.isnan(values[number]) for number in thinned(values)) > 50


def test_each_point_has_its_line_in_the_log() -> None:
    text = "starting\n\n" + "\n".join(f"{{'loss': {2 - n / 10}, 'step': {n}}}" for n in range(1, 5))
    (series,) = series_views(parse("", (Attachment(name="train.log", content=text),)))
    assert series.lines == (3, 4, 5, 6)
    assert (series.breaks, series.hidden) == ((), ())


def test_a_curve_breaks_where_a_long_log_was_not_read() -> None:
    rows = "\n".join(f"{{'loss': {2 - n / 1e5}, 'step': {n}}}" for n in range(1, 2_001))
    evidence = parse("", (Attachment(name="train.log", content=rows),), limits=Limits(head=8_000, tail=8_000))
    (series,) = series_views(evidence)
    (gap,) = series.breaks
    before, behind = series.lines[gap - 1], series.lines[gap]
    (source,) = (source for source in evidence.sources if source.name == "train.log")
    assert source.unread == (before + 1, behind - 1)
    assert series.steps[gap - 1 : gap + 1] == (before, behind)


def test_a_loss_that_the_log_filter_prints_as_zero_is_known() -> None:
    rows: list[dict[str, object]] = [{"loss": 1.0, "grad_norm": 0.5, "step": n} for n in range(1, 5)]
    rows += [{"loss": 0.0, "grad_norm": math.nan, "step": 5}, {"loss": 0.0, "step": 6}]
    rows += [{"loss": 0.0, "grad_norm": 0.1, "step": 7}]
    loss = series_views(parse("", (log(*rows),)))[0]
    assert [loss.steps[place] for place in loss.hidden] == [5, 6]


def test_there_are_at_most_so_many_series() -> None:
    names = ("loss", "grad_norm", "reward", "kl", "entropy", "rewards/margins", "rewards/chosen", "logps/chosen")
    rows = [{**{name: float(n) for name in names}, "learning_rate": 1e-5, "step": n} for n in range(1, 6)]
    assert len(series_views(parse("", (log(*rows),)))) == MAX_SERIES
