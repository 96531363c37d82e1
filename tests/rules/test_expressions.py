"""The condition language: what it refuses, Kleene's logic, and what an explanation names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from tests.rules.support import WORDS_OF_TESTS, evidence, option, row, run, setting, version
from trainmedic.kb.engine.expressions import ALLOWED, Expression, all_of, compile_expression, fact_expression
from trainmedic.kb.engine.facts import FACTS, Facts
from trainmedic.kb.engine.functions import ALL_FUNCTIONS, COMPUTATIONS, FACT_CALLS, SPECIAL
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.values import UNKNOWN, Result, truth
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import Setting, Unresolved, Value


def condition(text: str) -> Expression:
    return compile_expression(text, WORDS_OF_TESTS)


def with_values(**values: Value) -> Facts:
    return Facts(evidence(run(settings={name: setting(name, value) for name, value in values.items()})))


def value_of(text: str, **values: Value) -> Result:
    return condition(text).evaluate(with_values(**values))


@every_case(
    "text",
    [
        "().__class__",
        "micro_batch.bit_length()",
        "[x for x in (1, 2)]",
        "(x for x in (1, 2))",
        "lambda: 1",
        "__import__('os')",
        "open('x')",
        "eval('1')",
        "micro_batch[0]",
        "2 ** 999",
        "1 << 40",
        "~micro_batch",
        "+micro_batch",
        "1 if bf16 else 2",
        "f'{bf16}'",
        "(y := 3)",
        "bf16 is None",
        "{'a': 1}",
        "{1, 2}",
        "b'x' == loss_type",
        "1j",
        "... == 1",
        "1e999 > 1",
        "99999999999999999999999 > 1",
        "'" + "x" * 400 + "' == loss_type",
        "no_such_setting",
        "micro_batc == 1",
        "no_such_function(1)",
        "abs(*loss_type)",
        "abs(x=1)",
        "abs()",
        "min(1)",
        "maybe()",
        "version('trl')",
        "version(loss_type, '>=1')",
        "version('trl', 'new')",
        "version('trl', '>=x')",
        "version('TRL', '>=1')",
        "signal('no_kind')",
        "said('no-concept')",
        "written('no_setting')",
        "metric('')",
        "log_says('a*b')",
        "log_says('*')",
        "oom_in('nowhere')",
        "card_below('8.0')",
        "card_below(True)",
        "card_name(8)",
        "certain()",
        "when_known()",
        "contains_any('a')",
        "all_finite()",
        "micro_batch ==",
        "(",
        "bf16) or (fp16",
        "bf16, fp16",
        "\0",
        "-" * 3000 + "1",
        "not " * 60 + "bf16",
        "(" * 300 + "bf16" + ")" * 300,
        "bf16 and " * 600 + "bf16",
        " or ".join(["bf16"] * 300),
        "",
    ],
)
def test_what_is_not_listed_is_refused_when_the_page_is_loaded(text: str) -> None:
    with pytest.raises(InvalidPage):
        condition(text)


@every_case("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_the_parser_ends_them(end: str) -> None:
    assert condition(f"bf16{end}and micro_batch{end}== 1 - 2{end}- 1")


def test_a_refusal_names_the_line_and_what_is_allowed() -> None:
    with pytest.raises(InvalidPage, match="line 2") as caught:
        condition("bf16\nand micro_batc == 1")
    assert "micro_batc" in caught.value.message
    assert caught.value.hint is not None
    assert "all_finite" in caught.value.hint


def test_a_name_close_to_a_setting_is_answered_with_that_setting() -> None:
    with pytest.raises(InvalidPage, match="did you mean micro_batch"):
        condition("micro == 1")


def test_every_fact_call_has_its_fact_and_every_function_is_named_in_the_hint() -> None:
    assert set(FACT_CALLS) == set(FACTS) - {"name"}
    assert set(ALL_FUNCTIONS) == {*FACT_CALLS, *COMPUTATIONS, *SPECIAL}
    assert all(name in ALLOWED for name in ALL_FUNCTIONS)


@every_case(
    ("text", "expected"),
    [
        ("micro_batch == 1", True), ("micro_batch == 1.0", True), ("micro_batch == True", False),
        ("micro_batch != True", True), ("micro_batch == '1'", False), ("1 <= micro_batch < 2", True),
        ("1 < micro_batch < 2", False), ("contains_any(loss_type, ('x', 'SIG'))", True),
        ("contains_any(loss_type, ('x', 'y'))", False), ("contains_any(loss_type, ('x', 3))", UNKNOWN),
        ("contains_any(rpo_alpha, ('x', 'y'))", False), ("contains_any(loss_type, 'sig')", UNKNOWN), ("bf16", True),
        ("not bf16", False), ("bf16 > 0", UNKNOWN), ("rpo_alpha == None", True), ("rpo_alpha != 0", True),
        ("rpo_alpha > 0", False), ("0 > rpo_alpha", False), ("rpo_alpha + 1 > 0", UNKNOWN), ("not rpo_alpha", True),
        ("learning_rate * 2 == 2e-06", True), ("-micro_batch < 0", True), ("micro_batch / 0 > 1", UNKNOWN),
        ("micro_batch % 0 > 1", UNKNOWN), ("7 // 2 == 3 and 7 % 2 == 1 and 7 - 2 == 5 and 1 + 1 == 2", True),
        ("'1' + 1 == 2", UNKNOWN), ("loss_type > 3", UNKNOWN), ("'sft' in loss_type", True),
        ("'sf' in loss_type", False), ("'sf' not in loss_type", True), ("3 in loss_type", False),
        ("'score' in modules_to_save", True), ("'head' in modules_to_save", False), ("'x' in rpo_alpha", False),
        ("'x' in micro_batch", UNKNOWN), ("loss_type in ('a', 'sigmoid, sft')", True),
        ("modules_to_save == ('score',)", True), ("modules_to_save == ['score', 'x']", False),
        ("len(modules_to_save) == 1", True), ("len(rpo_alpha) == 0", True), ("len(micro_batch) == 1", UNKNOWN),
        ("min(micro_batch, 3) == 1 and max(micro_batch, 3) == 3", True), ("min(loss_type, 3) == 1", UNKNOWN),
        ("max(loss_type, 3) == 1", UNKNOWN), ("abs(0 - 3) == 3", True), ("abs(loss_type) == 3", UNKNOWN),
        ("lower('ABC') == 'abc'", True), ("lower(3) == 'abc'", UNKNOWN), ("contains(loss_type, 'SIG')", True),
        ("startswith(loss_type, 'sig') and endswith(loss_type, 'sft')", True), ("matches(loss_type, 'SIG*')", True),
        ("matches(loss_type, 'sig')", False), ("contains(rpo_alpha, 'x')", False),
        ("contains(micro_batch, 'x')", UNKNOWN), ("known(beta)", False), ("known(bf16)", True),
        ("maybe(beta > 1)", True), ("maybe(bf16)", True), ("maybe(micro_batch > 1)", False), ("beta", UNKNOWN),
        ("beta in (1, 2)", UNKNOWN), ("abs(beta) > 1", UNKNOWN), ("beta > 1 and micro_batch > 1", False),
        ("beta > 1 or micro_batch == 1", True), ("beta > 1 and micro_batch == 1", UNKNOWN),
        ("beta > 1 or micro_batch > 1", UNKNOWN), ("not (beta > 1)", UNKNOWN), ("max_length == 1", UNKNOWN),
        ("True and not False", True),
    ],
)  # fmt: skip
def test_an_expression_has_one_of_three_values(text: str, expected: Result) -> None:
    found = value_of(
        text,
        micro_batch=1,
        bf16=True,
        rpo_alpha=None,
        learning_rate=1e-6,
        loss_type="sigmoid, sft",
        modules_to_save=("score",),
        max_length=Unresolved("$LEN"),
    )
    assert found is expected


def test_a_mapping_holds_its_keys() -> None:
    inline: Value = {"fp16": {"enabled": True}}
    assert value_of("'fp16' in weights_dtype", weights_dtype=inline) is True
    assert value_of("3 in weights_dtype", weights_dtype=inline) is False


def test_the_unknown_cannot_be_taken_for_a_boolean() -> None:
    with pytest.raises(TypeError):
        bool(UNKNOWN)
    assert truth(Unresolved("$X")) is UNKNOWN


def kleene(text: str, names: dict[str, bool | None]) -> bool | None:
    """Kleene's logic by brute force: the value if it is the same whatever the unknown ones are."""
    open_names = [name for name, value in names.items() if value is None]
    answers = set()
    for bits in range(2 ** len(open_names)):
        filled = {**names, **{name: bool(bits >> n & 1) for n, name in enumerate(open_names)}}
        answers.add(bool(value_of(text, **filled)))
    return answers.pop() if len(answers) == 1 else None


@given(
    st.recursive(
        st.sampled_from(["a", "b", "c"]),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), inner, inner), st.tuples(st.just("not"), inner)
        ),
        max_leaves=5,
    ),
    st.tuples(*[st.sampled_from([True, False, None])] * 5),
)
def test_logic_never_says_more_than_every_completion_of_the_unknown(
    tree: object, values: tuple[bool | None, ...]
) -> None:
    names: dict[str, bool | None] = {}
    fields = iter(("bf16", "fp16", "beta", "vanilla_loss", "attention"))

    def text_of(node: object) -> str:
        if isinstance(node, str):
            name = next(fields)
            names[name] = values[len(names)]
            return name
        assert isinstance(node, tuple)
        if node[0] == "not":
            return f"not ({text_of(node[1])})"
        return f"({text_of(node[1])}) {node[0]} ({text_of(node[2])})"

    text = text_of(tree)
    known = {name: value for name, value in names.items() if value is not None}
    found = value_of(text, **known)
    expected = kleene(text, names)
    assert found is (UNKNOWN if expected is None else expected)
    outcome = condition(text).explain(with_values(**known))
    unknown = {f"setting:{name}" for name, value in names.items() if value is None}
    assert set(outcome.missing) <= unknown
    assert bool(outcome.missing) == (expected is None)
    for fact in outcome.missing:  # each named fact can still change the result (every name stands once)
        name = fact.removeprefix("setting:")
        others = [other for other in names if names[other] is None and other != name]
        assert any(
            kleene(text, {**names, **_bits(others, bits), name: True})
            != kleene(text, {**names, **_bits(others, bits), name: False})
            for bits in range(2 ** len(others))
        )


def _bits(names: list[str], bits: int) -> dict[str, bool | None]:
    return {name: bool(bits >> n & 1) for n, name in enumerate(names)}


TEXT = "deepspeed train --vanilla_loss --micro_train_batch_size 1 --beta 0.1"


def a_command() -> Evidence:
    flag = option(TEXT, "--vanilla_loss", "vanilla_loss")
    micro = option(TEXT, "--micro_train_batch_size 1", "micro_train_batch_size", 1, raw="1")
    settings: dict[str, Setting] = {
        "vanilla_loss": setting("vanilla_loss", True, flag),
        "micro_batch": setting("micro_batch", 1, micro),
        "bf16": setting("bf16", False, None, "default of openrlhf 0.3.0"),
    }
    return evidence(run((flag, micro), settings), versions=[version("openrlhf", "0.3.0")])


def explained(text: str, given: Evidence | None = None) -> Outcome:
    return condition(text).explain(Facts(given or a_command()))


def test_the_evidence_is_what_the_true_terms_read_in_their_order() -> None:
    outcome = explained("micro_batch == 1 and vanilla_loss and not bf16")
    assert [span.text for span in outcome.evidence] == ["--micro_train_batch_size 1", "--vanilla_loss"]
    assert outcome.value is True
    assert outcome.user_provided


def test_only_the_true_side_of_an_or_is_evidence() -> None:
    outcome = explained("micro_batch == 2 or vanilla_loss")
    assert [span.text for span in outcome.evidence] == ["--vanilla_loss"]
    assert [(term.text, term.value) for term in outcome.terms] == [("micro_batch == 2", False), ("vanilla_loss", True)]


def test_a_negated_term_is_explained_as_its_negation() -> None:
    outcome = explained("not (micro_batch == 2 or bf16)")
    assert [(term.text, term.value) for term in outcome.terms] == [("not (micro_batch == 2)", True), ("not bf16", True)]
    assert [span.text for span in outcome.evidence] == ["--micro_train_batch_size 1"]


def test_missing_names_only_what_could_still_change_the_result() -> None:
    outcome = explained("vanilla_loss and (beta > 1 and micro_batch == 2 or fp16 and micro_batch == 1)")
    assert outcome.value is None
    assert outcome.missing == ("setting:fp16",)


def test_what_counts_as_true_when_unknown_is_not_asked_for() -> None:
    outcome = explained('maybe(version("flash-attn", "<2")) and maybe(bf16 or vanilla_loss) and beta == 1')
    assert outcome.missing == ("setting:beta",)
    assert "--vanilla_loss" in [span.text for span in outcome.evidence]
    assert explained("not maybe(beta) and vanilla_loss").value is False


def test_what_is_certain_is_never_unknown_and_asks_for_nothing() -> None:
    assert [value_of("certain(bf16)", **given) for given in ({"bf16": True}, {"bf16": False}, {})] == [
        True,
        False,
        False,
    ]
    outcome = explained("certain(micro_batch == 1 and vanilla_loss) and beta == 1")
    assert outcome.missing == ("setting:beta",)
    assert [span.text for span in outcome.evidence] == ["--micro_train_batch_size 1", "--vanilla_loss"]
    assert [term.text for term in outcome.terms] == ["micro_batch == 1", "vanilla_loss", "beta == 1"]
    denied = explained("not certain(beta == 1) and vanilla_loss")
    assert (denied.value, denied.terms[0].text) == (True, "not (certain(beta == 1))")


def test_a_text_for_a_message_is_left_out_if_one_of_its_parts_is_unknown() -> None:
    assert value_of("when_known(' (now ', micro_batch, ')')", micro_batch=2) == " (now 2)"
    assert value_of("when_known(' (now ', micro_batch, ')')") == ""


def test_a_term_says_what_was_seen_and_where_a_default_comes_from() -> None:
    outcome = explained("micro_batch == 1 and bf16 == False")
    assert outcome.terms[0].seen == "micro_batch = 1"
    assert outcome.terms[1].seen == "bf16 = false (default of openrlhf 0.3.0)"


def test_only_a_default_that_holds_is_nothing_the_user_brought() -> None:
    assert not explained("not bf16 and fp16").user_provided
    assert explained("vanilla_loss and fp16").user_provided


def test_conditions_joined_keep_their_order() -> None:
    leaf = fact_expression('version("openrlhf", "<1")', ("version", "openrlhf", "<1"))
    outcome = all_of(condition("vanilla_loss"), leaf).explain(Facts(a_command()))
    assert [span.text for span in outcome.evidence] == ["--vanilla_loss", "openrlhf==0.3.0"]
    assert all_of(leaf).evaluate(Facts(a_command())) is True


def test_arithmetic_over_metrics_reads_both() -> None:
    given = evidence(run(), rows=[row(1, kl=8.0)])
    assert condition('metric("kl") / micro_batch > 2').explain(Facts(given)).missing == ("setting:micro_batch",)
