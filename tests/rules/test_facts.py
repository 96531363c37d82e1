"""What a rule may ask: settings, versions, logs, options, each with its place and what to ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.every_case import every_case
from tests.rules.support import evidence, facts, option, recognised, row, run, setting, signal, span, version
from trainmedic.kb.engine.facts import FACTS, Facts
from trainmedic.kb.engine.values import UNKNOWN, Fact, Result, equal, show
from trainmedic.kb.engine.version_ranges import version_text
from trainmedic.kb.model.evidence import Evidence, Traceback
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import Origin, Region, RunConfig, Unresolved, Value, VersionFact
from trainmedic.kb.parse.pipeline import parse

NAN, INF = float("nan"), float("inf")


def ask(given: Evidence, *key: str) -> Fact:
    return facts(given).fact(key)


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


@every_case(
    ("key", "value"),
    [
        (("written", "micro_batch"), True), (("written", "bf16"), False), (("written", "beta"), False),
        (("default_used", "bf16"), True), (("default_used", "micro_batch"), False),
        (("default_used", "beta"), UNKNOWN), (("name", "learning_rate"), UNKNOWN), (("name", "loss_type"), UNKNOWN),
        (("name", "attention"), UNKNOWN), (("name", "beta"), UNKNOWN), (("option", "dash_ed"), 3),
        (("option", "lr"), UNKNOWN), (("option", "absent"), None), (("option", "KEY", "env"), 1),
        (("option", "KEY", "launcher"), None), (("has_option", "dash-ed"), True), (("has_option", "absent"), False),
        (("option_has_value", "flag"), False), (("option_has_value", "dash_ed"), True),
        (("option_has_value", "absent"), False), (("option_origin", "KEY"), "env"),
        (("option_origin", "absent"), None),
    ],
)  # fmt: skip
def test_a_whole_configuration_answers_for_what_it_does_not_hold(key: tuple[str, ...], value: Result) -> None:
    assert ask(configured(), *key).value == value


def test_a_default_points_at_the_command_and_says_so() -> None:
    found = ask(configured(), "name", "bf16")
    assert [(place.text, place.default) for place in found.spans] == [("train", True)]
    already = replace(span(TEXT, "train"), default=True)
    kept = evidence(run((), {"bf16": setting("bf16", True)}, anchor=already))
    assert ask(kept, "name", "bf16").spans == (already,)
    assert ask(evidence(run((), {"bf16": setting("bf16", True)})), "name", "bf16").spans == ()


def test_a_deepspeed_file_that_is_named_but_not_pasted_leaves_its_keys_unknown() -> None:
    text = "train --deepspeed ds.json"
    named = option(text, "--deepspeed ds.json", "deepspeed", "ds.json", raw="ds.json")
    settings = {"deepspeed": setting("deepspeed", "ds.json", named)}
    key = ("option", "zero_optimization.elastic_checkpoint", "deepspeed")
    assert ask(evidence(run((named,), settings)), *key).value is UNKNOWN
    pasted = option('{"stage": 2}', '"stage": 2', "zero_optimization.stage", 2, name="ds.json", scope="deepspeed")
    assert ask(evidence(run((named, pasted), settings)), *key).value is None
    without = {"deepspeed": setting("deepspeed", None, None, "default")}
    assert ask(evidence(run((option(text, "train", "stage"),), without)), *key).value is None


@every_case("given", [evidence(run()), evidence(replace(configured().run, partial=True))])
@every_case(
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


@every_case(
    ("key", "value"),
    [
        (("metric", "loss"), 0.5), (("metric_first", "loss"), 0.7), (("metric_max", "loss"), 0.7),
        (("metric_min", "logits/*"), -3e8), (("metric_abs_max", "logits/*"), 3e8), (("metric_max", "kl"), 0.0),
        (("metric_min", "kl"), 0.0), (("has_metric", "kl"), True), (("has_metric", "reward"), False),
        (("all_finite", "loss", "reward"), True), (("all_finite", "loss", "kl"), False),
        (("metric", "reward"), UNKNOWN), (("metric_abs_max", "reward"), UNKNOWN), (("all_finite", "reward"), UNKNOWN),
        (("signal", "loss_nan"), False), (("seen", "oom"), False), (("traceback", "x"), False),
    ],
)  # fmt: skip
def test_a_log_answers_for_its_metrics(key: tuple[str, ...], value: Result) -> None:
    assert ask(evidence(rows=LOG), *key).value == value


def test_a_metric_points_at_its_row() -> None:
    assert [place.text for place in ask(evidence(rows=LOG), "metric", "loss").spans] == ["'loss': 0.5"]
    assert [place.text for place in ask(evidence(rows=LOG), "all_finite", "kl").spans] == ["'kl': nan"]
    assert ask(evidence(rows=LOG), "metric", "reward").missing == ("metric:reward",)


def test_infinite_is_greater_than_everything_finite() -> None:
    assert ask(evidence(rows=[row(1, loss=INF), row(2, loss=1.0)]), "metric_max", "loss").value == INF


@every_case(
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


@pytest.mark.parametrize(
    ("log", "value"),
    [
        ("  File \"a/reward.py\", line 3, in score\n    f()\nKeyError: 'x'", True),
        ("  File \"a/worker.py\", line 3, in run\n    f()\nKeyError: 'x'\nloading reward.py", False),
        ("  File \"a/reward.py\", line 3, in score\n    f()\nKeyError: 'other'", False),
        ("loading reward.py\nKeyError: 'x'", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_two_texts_of_one_failure_stand_in_one_traceback(log: str, value: object) -> None:
    given = parse(log, ()) if log else evidence()
    assert ask(given, "in_traceback", "KeyError: 'x'", "reward.py").value is value


def test_a_fact_is_worked_out_once() -> None:
    given = facts(configured())
    assert given.fact(("name", "bf16")) is given.fact(("name", "bf16"))
    assert Facts(configured(), run(id="other")).run.id == "other"
    with pytest.raises(KeyError):
        given.fact(("no such function",))
    assert "name" in FACTS


@every_case(
    ("value", "shown"),
    [
        (None, "not set"), (True, "true"), (False, "false"), (1e-6, "1e-06"), (-2.0253e8, "-2.025e+08"),
        (("a", 1), "a, 1"), ({"a": None}, "{a: not set}"), (Unresolved("$X"), "$X"), ("text", "text"),
    ],
)  # fmt: skip
def test_values_are_shown_as_a_person_would_write_them(value: Value, shown: str) -> None:
    assert show(value) == shown


def test_lists_are_equal_part_by_part() -> None:
    assert equal((1, "a"), (1.0, "a"))
    assert not equal((1, "a"), (True, "a"))
    assert not equal((1,), (1, 2))


def test_a_version_is_shown_as_far_as_it_is_known() -> None:
    def shown(exact: str | None = None, low: str | None = None, high: str | None = None) -> str:
        return version_text(VersionFact(package="trl", exact=exact, reason="", low=low, high=high))

    assert shown("2.6.1") == "2.6.1"
    assert (shown(low="0.3.4", high="0.5.2"), shown(low="0.3.4"), shown(high="0.5.2")) == (
        "0.3.4–0.5.2",
        "≥ 0.3.4",
        "≤ 0.5.2",
    )
    assert shown() == "?"


def test_dumps_of_all_ranks_say_what_holds_them_apart() -> None:
    dump = (
        'Process 7: python train.py\nThread 7 (idle): "MainThread"\n    {} (torch/distributed/distributed_c10d.py:9)\n'
    )
    saves, trains = (
        "    save (train.py:52)\n    main (train.py:90)\n",
        "    step (train.py:40)\n    main (train.py:88)\n",
    )
    first = Attachment(name="rank_0", content=dump.format("barrier") + saves)
    other = Attachment(name="rank_1", content=dump.format("all_reduce") + trains)
    held = facts(parse("", [first, other]))
    assert held.hang("collective-on-some-ranks").value is True
    assert held.hang("rank-gone").value is False
    assert facts(parse("", [first])).hang("rank-gone").value is UNKNOWN
