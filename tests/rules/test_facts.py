"""What a rule may ask: settings, versions, logs, options, each with its place and what to ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.support import evidence, facts, option, recognised, row, run, setting, signal, span, version
from trainmedic.kb.engine.facts import FACTS, Facts
from trainmedic.kb.engine.values import UNKNOWN, Fact, Result, equal, show
from trainmedic.kb.engine.versions import Interval, holds, interval_holds, interval_of, parse_range, parse_version
from trainmedic.kb.model.evidence import Evidence, Traceback
from trainmedic.kb.model.run import Origin, Region, RunConfig, Unresolved, Value

NAN, INF = float("nan"), float("inf")


def ask(given: Evidence, *key: str) -> Fact:
    return facts(given).fact(key)


@pytest.mark.parametrize(
    ("version_", "spec", "expected"),
    [
        ("2.5.1+cu124", "==2.5.1", True),
        ("2.5.1+cu124", "<=2.5.1", True),
        ("2.5.1+cu124", ">2.5.1", False),
        ("2.5.1+cu124", "==2.5.1+cu121", False),
        ("0.5.2.post1", ">0.5.2", True),
        ("0.5.2.post1", "<=0.5.2", False),
        ("0.5.2", "<0.5.2.post1", True),
        ("2.6.1", ">=2.6.0,<2.6.2", True),
        ("2.6.2", ">=2.6.0,<2.6.2", False),
        ("0.10.0", ">0.9.9", True),
        ("4.46.3", "==4.46.*", True),
        ("4.47.0", "==4.46.*", False),
        ("4.46.3", "!=4.46.*", False),
        ("4.46.3", "!=4.46.2", True),
        ("4.46.3", "~=4.46.1", True),
        ("4.47.0", "~=4.46.1", False),
        ("4.46.0.dev0", ">=4.45", True),
        ("4.46.0.dev0", ">=4.46", None),
        ("4.46.0.dev0", "<4.46", None),
        ("4.46.0rc1", "==4.46.0rc1", True),
        ("4.46.0rc1", "<=4.45", False),
    ],
)
def test_an_exact_version_lies_in_a_range_or_not(version_: str, spec: str, expected: bool | None) -> None:
    found = parse_version(version_)
    assert found is not None
    assert holds(found, parse_range(spec)) is expected


@pytest.mark.parametrize(
    ("low", "high", "spec", "expected"),
    [
        ("0.3.4", None, ">=0.3.4", True),
        ("0.3.4", None, ">0.3.4", None),
        ("0.3.4", None, "<0.3.4", False),
        ("0.3.4", None, "<=0.3.4", None),
        (None, "0.3.3", "<0.3.4", True),
        (None, "0.3.3", "<0.3.3", None),
        (None, "0.3.3", ">0.3.3", False),
        ("1.0", "2.0", ">=1.5", None),
        ("1.0", "2.0", ">=1.0,<=2.0", True),
        ("1.0", "1.0", "==1.0", True),
        ("1.0", "2.0", "==3.0", False),
        ("1.0", "2.0", "!=3.0", True),
        ("1.0", "2.0", "!=1.5", None),
        (None, None, ">=1", None),
    ],
)
def test_a_version_known_between_bounds_gives_three_answers(
    low: str | None, high: str | None, spec: str, expected: bool | None
) -> None:
    assert interval_holds(Interval(parse_version(low), parse_version(high)), parse_range(spec)) is expected


def test_a_requirement_is_an_interval_with_open_and_closed_ends() -> None:
    assert interval_of("==2.6.1") == Interval(parse_version("2.6.1"), parse_version("2.6.1"))
    assert interval_of(">4.41,<4.47,>=4.0,<=5") == Interval(parse_version("4.41"), parse_version("4.47"), True, True)
    assert interval_of("!=4.46.0") is None
    assert interval_of("@ git+https://example.org") is None
    open_ends = interval_of(">1,<2")
    assert open_ends is not None
    assert interval_holds(open_ends, parse_range(">1")) is True
    assert interval_holds(open_ends, parse_range("<2")) is True
    assert interval_holds(open_ends, parse_range(">=2")) is False


@pytest.mark.parametrize("text", ["", "new", ">=1.*", ">=x", "~=4", ">=1 2", ">=1-x-y"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|version|two numbers|only goes"):
        parse_range(text)


def test_a_version_comes_from_the_listing_with_its_place() -> None:
    given = evidence(
        versions=[version("openrlhf", "0.3.3"), version("trl", None, "0.9.6", "0.12.0"), version("x", "main")]
    )
    found = ask(given, "version", "openrlhf", "<0.3.4")
    assert (found.value, [s.text for s in found.spans], found.user_provided) == (True, ["openrlhf==0.3.3"], True)
    assert ask(given, "version", "trl", ">=0.9") == Fact(value=True, seen="trl 0.9.6–0.12.0", user_provided=False)
    assert ask(given, "version", "trl", ">=0.10").missing == ("version:trl",)
    assert ask(given, "version", "x", ">=0.10").value is UNKNOWN
    assert ask(given, "version", "peft", ">=0.10").missing == ("version:peft",)
    assert ask(given, "version_of", "openrlhf").value == "0.3.3"
    assert ask(given, "version_of", "trl").value == "0.9.6–0.12.0"
    assert ask(given, "version_of", "peft").value is UNKNOWN


def test_a_half_bounded_version_is_shown_with_its_bound() -> None:
    given = evidence(versions=[version("a", None, "1.0"), version("b", None, None, "2.0"), version("c", None)])
    assert [ask(given, "version_of", name).value for name in "abc"] == ["≥ 1.0", "≤ 2.0", UNKNOWN]


def test_a_pin_answers_only_where_the_paste_does_not_and_the_release_is_exact() -> None:
    broken = ("pinned", "openrlhf", "flash-attn", ">=2.6.0,<2.6.2")
    pinned = ask(evidence(versions=[version("openrlhf", "0.4.5")]), *broken)
    assert pinned.value is True
    assert [place.text for place in pinned.spans] == ["openrlhf==0.4.5"]
    own = evidence(versions=[version("openrlhf", "0.4.5"), version("flash-attn", "2.7.0")])
    assert ask(own, *broken).value is False
    assert ask(evidence(versions=[version("openrlhf", None, "0.4.5")]), *broken).value is UNKNOWN
    assert ask(evidence(), *broken).missing == ("version:flash-attn",)
    assert (
        ask(evidence(versions=[version("openrlhf", "0.4.5")]), "pinned", "openrlhf", "no-such", ">1").value is UNKNOWN
    )


TEXT = "KEY=1 train --lr $LR --flag --dash-ed 3 --lr 2"


def configured() -> Evidence:
    options = (
        option(TEXT, "KEY=1", "KEY", 1, raw="1", origin=Origin.ENV, scope="env"),
        option(TEXT, "--lr $LR", "lr", Unresolved("$LR"), raw="$LR"),
        option(TEXT, "--flag", "flag"),
        option(TEXT, "--dash-ed 3", "dash-ed", 3, raw="3"),
    )
    settings = {
        "learning_rate": setting("learning_rate", Unresolved("$LR"), options[1]),
        "bf16": setting("bf16", False, None, "default"),
        "loss_type": setting("loss_type", ("a", Unresolved("$B")), options[2]),
        "attention": setting("attention", {"k": Unresolved("$C")}, options[2]),
        "micro_batch": setting("micro_batch", 3, options[3]),
    }
    return evidence(run(options, settings, anchor=span(TEXT, "train", "train.sh")))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("written", "micro_batch"), True),
        (("written", "bf16"), False),
        (("written", "beta"), False),
        (("default_used", "bf16"), True),
        (("default_used", "micro_batch"), False),
        (("default_used", "beta"), UNKNOWN),
        (("name", "learning_rate"), UNKNOWN),
        (("name", "loss_type"), UNKNOWN),
        (("name", "attention"), UNKNOWN),
        (("name", "beta"), UNKNOWN),
        (("option", "dash_ed"), 3),
        (("option", "lr"), UNKNOWN),
        (("option", "absent"), None),
        (("option", "KEY", "env"), 1),
        (("option", "KEY", "launcher"), None),
        (("has_option", "dash-ed"), True),
        (("has_option", "absent"), False),
        (("option_has_value", "flag"), False),
        (("option_has_value", "dash_ed"), True),
        (("option_has_value", "absent"), False),
        (("option_origin", "KEY"), "env"),
        (("option_origin", "absent"), None),
    ],
)
def test_a_whole_configuration_answers_for_what_it_does_not_hold(key: tuple[str, ...], value: Result) -> None:
    assert ask(configured(), *key).value == value


def test_a_default_points_at_the_command_and_says_so() -> None:
    found = ask(configured(), "name", "bf16")
    assert [(place.text, place.default) for place in found.spans] == [("train", True)]
    already = replace(span(TEXT, "train"), default=True)
    kept = evidence(run((), {"bf16": setting("bf16", True)}, anchor=already))
    assert ask(kept, "name", "bf16").spans == (already,)
    assert ask(evidence(run((), {"bf16": setting("bf16", True)})), "name", "bf16").spans == ()


@pytest.mark.parametrize("given", [evidence(run()), evidence(replace(configured().run, partial=True))])
@pytest.mark.parametrize(
    ("key", "missing"),
    [
        (("written", "beta"), "setting:beta"),
        (("option", "absent"), "option:absent"),
        (("has_option", "absent"), "option:absent"),
        (("option_has_value", "absent"), "option:absent"),
        (("option_origin", "absent"), "option:absent"),
    ],
)
def test_without_a_whole_configuration_absence_is_unknown(given: Evidence, key: tuple[str, ...], missing: str) -> None:
    found = ask(given, *key)
    assert (found.value, found.missing) == (UNKNOWN, (missing,))


def test_recognised_words_come_with_their_reason_and_place() -> None:
    placed = RunConfig(id="run", framework=recognised("trl", span("trl sft", "trl")))
    found = ask(evidence(placed), "name", "framework")
    assert (found.value, found.spans[0].text, found.user_provided) == ("trl", "trl", False)
    assert ask(evidence(placed), "name", "algorithm").missing == ("algorithm",)


def test_the_entry_and_the_launcher_come_from_the_command() -> None:
    entry = recognised("trl sft", span("trl sft", "trl sft"))
    command = Region(kind="command", source=None, start_line=1, end_line=1, entry=entry, launcher="accelerate")
    given = evidence(replace(run(), regions=(Region(kind="yaml", source=None, start_line=1, end_line=1), command)))
    assert ask(given, "name", "entry").value == "trl sft"
    assert ask(given, "name", "launcher").value == "accelerate"
    assert ask(evidence(), "name", "entry").missing == ("command",)
    unplaced = evidence(replace(run(), regions=(replace(command, entry=recognised("x")),)))
    assert ask(unplaced, "name", "entry").spans == ()


def test_batch_numbers_are_worked_out_from_the_settings() -> None:
    text = "train --n 4 --b 2 --g 8"
    options = [option(text, f"--{k} {v}", k, v, raw=str(v)) for k, v in (("n", 4), ("b", 2), ("g", 8))]
    names = ("num_gpus", "micro_batch", "gradient_accumulation")
    settings = {name: setting(name, each.value, each) for name, each in zip(names, options, strict=True)}
    settings["num_nodes"] = setting("num_nodes", 1)
    given = evidence(run(options, settings, framework="trl", algorithm="dpo"))
    found = ask(given, "name", "world_size")
    assert (found.value, found.user_provided) == (4, True)
    assert found.spans[0].text == "--n 4"
    unknown = ask(evidence(run(framework=None, algorithm=None)), "name", "world_size")
    assert unknown.missing == ("setting:num_gpus", "setting:micro_batch", "setting:gradient_accumulation")


def test_a_batch_number_whose_parts_are_all_given_still_asks_for_the_gpus() -> None:
    settings: dict[str, Value] = {"num_gpus": 4, "micro_batch": 2, "gradient_accumulation": 1}
    given = evidence(run(settings={key: setting(key, value) for key, value in settings.items()}, framework=None))
    assert ask(given, "name", "global_batch").missing == ("setting:num_gpus",)


LOG = [
    row(1, loss=0.7, kl=0.0, logits__chosen=-2e8),
    row(2, loss=0.5, kl=NAN, logits__chosen=-3e8, logits__rejected=1.0),
]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("metric", "loss"), 0.5),
        (("metric_first", "loss"), 0.7),
        (("metric_max", "loss"), 0.7),
        (("metric_min", "logits/*"), -3e8),
        (("metric_abs_max", "logits/*"), 3e8),
        (("metric_max", "kl"), 0.0),
        (("metric_min", "kl"), 0.0),
        (("has_metric", "kl"), True),
        (("has_metric", "reward"), False),
        (("all_finite", "loss", "reward"), True),
        (("all_finite", "loss", "kl"), False),
        (("metric", "reward"), UNKNOWN),
        (("metric_abs_max", "reward"), UNKNOWN),
        (("all_finite", "reward"), UNKNOWN),
        (("signal", "loss_nan"), False),
        (("seen", "oom"), False),
        (("traceback", "x"), False),
    ],
)
def test_a_log_answers_for_its_metrics(key: tuple[str, ...], value: Result) -> None:
    assert ask(evidence(rows=LOG), *key).value == value


def test_a_metric_points_at_its_row() -> None:
    assert [place.text for place in ask(evidence(rows=LOG), "metric", "loss").spans] == ["'loss': 0.5"]
    assert [place.text for place in ask(evidence(rows=LOG), "all_finite", "kl").spans] == ["'kl': nan"]
    assert ask(evidence(rows=LOG), "metric", "reward").missing == ("metric:reward",)


def test_infinite_is_greater_than_everything_finite() -> None:
    assert ask(evidence(rows=[row(1, loss=INF), row(2, loss=1.0)]), "metric_max", "loss").value == INF


@pytest.mark.parametrize(
    "key", [("metric", "loss"), ("has_metric", "loss"), ("all_finite", "loss"), ("signal", "oom"), ("traceback", "oom")]
)
def test_without_a_log_the_log_is_asked_for(key: tuple[str, ...]) -> None:
    found = ask(evidence(), *key)
    assert (found.value, found.missing) == (UNKNOWN, ("log",))


def test_a_signal_may_be_seen_or_stated() -> None:
    both = evidence(signals=[signal("oom", stated=True), signal("oom"), signal("kl_zero", stated=True)])
    assert ask(both, "signal", "oom").seen == "oom in the log"
    assert ask(both, "signal", "kl_zero").seen == "kl_zero stated"
    assert ask(both, "stated", "kl_zero").value is True
    assert ask(both, "stated", "loss_nan").value is False
    assert ask(both, "seen", "kl_zero").value is UNKNOWN


def test_a_traceback_proves_that_no_crash_was_another_one_but_nothing_about_the_loss() -> None:
    text = "ValueError: Attempting to unscale FP16 gradients."
    trace = Traceback(exception="ValueError", message=text[12:], span=span(text, text))
    given = replace(evidence(), tracebacks=(trace,))
    assert ask(given, "traceback", "attempting to UNSCALE").value is True
    assert ask(given, "traceback", "no such").value is False
    assert ask(given, "signal", "oom").value is False
    assert ask(given, "signal", "loss_nan").value is UNKNOWN
    logged = replace(evidence(), regions=(Region(kind="log", source=None, start_line=1, end_line=2),))
    assert ask(logged, "signal", "oom").value is False


def test_a_fact_is_worked_out_once() -> None:
    given = facts(configured())
    assert given.fact(("name", "bf16")) is given.fact(("name", "bf16"))
    assert Facts(configured(), run(id="other")).run.id == "other"
    with pytest.raises(KeyError):
        given.fact(("no such function",))
    assert "name" in FACTS


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "not set"),
        (True, "true"),
        (False, "false"),
        (1e-6, "1e-06"),
        (-2.0253e8, "-2.025e+08"),
        (("a", 1), "a, 1"),
        ({"a": None}, "{a: not set}"),
        (Unresolved("$X"), "$X"),
        ("text", "text"),
    ],
)
def test_values_are_shown_as_a_person_would_write_them(value: Value, shown: str) -> None:
    assert show(value) == shown


def test_lists_are_equal_part_by_part() -> None:
    assert equal((1, "a"), (1.0, "a"))
    assert not equal((1, "a"), (True, "a"))
    assert not equal((1,), (1, 2))
