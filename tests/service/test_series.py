"""The series that an answer carries for drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.source import Limits
from trainmedic.kb.parse.text.condense import Room
from trainmedic.kb.serialization import plain
from trainmedic.service.answer.series import MAX_POINTS, series_views, thinned

ROOM = Room(head=10_000, between=99_000, tail=10_000)


def log(*rows: Mapping[str, object]) -> Attachment:
    return log_of("\n".join(str(row).replace("nan", "'nan'") for row in rows))


def log_of(text: str) -> Attachment:
    return Attachment(name="train.log", content=text)


def test_each_usual_metric_of_a_log_is_a_series_in_a_fixed_order() -> None:
    rows = [{"loss": 2.0 - n / 10, "grad_norm": 1.0, "epoch": n / 10, "step": 10 * n} for n in range(1, 6)]
    found = series_views(parse("", (log(*rows),)))
    assert [view.name for view in found] == ["loss", "grad_norm"]
    assert found[0].attachment == "train.log"
    assert found[0].points[0] == (10, 1.9)
    assert found[0].steps == (10, 20, 30, 40, 50)


def test_rows_without_a_step_are_named_by_their_lines() -> None:
    found = series_views(parse("", (log(*({"loss": 1.0, "grad_norm": 0.5, "epoch": 0.1} for _ in range(4))),)))
    assert (found[0].unit, found[0].steps) == ("line", (1, 2, 3, 4))


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
        "hidden": [],
        "unit": "step",
    }


def test_a_healthy_run_has_no_mark() -> None:
    rows = [{"loss": 2.0 - n / 100, "grad_norm": 1.0, "step": n} for n in range(1, 30)]
    assert {view.marked for view in series_views(parse("", (log(*rows),)))} == {None}


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
    assert (series.lines, series.hidden) == ((3, 4, 5, 6), ())


def test_a_log_without_steps_has_its_own_lines_as_axis_however_long_it_is() -> None:
    rows = "\n".join(f"{{'loss': {math.exp(-n / 9_000):.4f}, 'epoch': {n / 9_000:.4f}}}" for n in range(27_000))
    evidence = parse("", (Attachment(name="train.log", content=rows),), limits=Limits(room=ROOM))
    (series,) = series_views(evidence)
    assert (series.unit, series.steps[0], series.steps[-1]) == ("line", 1, 27_000)
    assert series.steps == series.lines
    assert all(abs(value - math.exp(-line / 9_000)) < 1e-3 for line, value in series.points)
    assert max(after - before for before, after in pairwise(series.steps)) < 1_000


def test_a_spike_without_a_step_is_marked_at_its_line() -> None:
    rows = "\n".join(f"{{'loss': {9.0 if n == 12_000 else 1.0 + n % 3 / 10}, 'epoch': 0.1}}" for n in range(27_000))
    assert [view.marked for view in series_views(parse("", (log_of(rows),)))] == [12_001]


def test_rows_that_share_a_line_are_counted() -> None:
    (series,) = series_views(parse("", (log_of("".join(f"{{'loss': {2 - n / 10:.1f}}} " for n in range(4))),)))
    assert (series.unit, series.steps) == ("row", (1, 2, 3, 4))


def test_a_loss_that_the_log_filter_prints_as_zero_is_known() -> None:
    rows: list[dict[str, object]] = [{"loss": 1.0, "grad_norm": 0.5, "step": n} for n in range(1, 5)]
    rows += [{"loss": 0.0, "grad_norm": math.nan, "step": 5}, {"loss": 0.0, "step": 6}]
    rows += [{"loss": 0.0, "grad_norm": 0.1, "step": 7}]
    loss = series_views(parse("", (log(*rows),)))[0]
    assert [loss.steps[place] for place in loss.hidden] == [5, 6]
