"""Every rule page: examples are run, links hold, both languages are there. `trainmedic kb lint` runs the same."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rules.support import rule, ruleset
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.body import Example, read_body
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.pages.rule_lint import can_be_unknown, lint_rule, lint_rules, run_example
from trainmedic.kb.parse import parse

RULES = load_rules()


def read(question: str, attachments: Sequence[Attachment]) -> Evidence:
    return parse(question, attachments)


def examples() -> list[tuple[Rule, Example]]:
    return [(each, example) for each in RULES.rules for example in read_body(each).examples]


def known_cases() -> Mapping[str, tuple[str, ...]] | None:
    """Case id → the rules that it names."""
    if importlib.util.find_spec("trainmedic.kb.pages.case") is None:
        return None
    from trainmedic.kb.pages.case import load_cases

    return {case.id: case.rules for case in load_cases().cases}


@pytest.mark.parametrize(
    ("page", "example"),
    [pytest.param(*pair, id=f"{pair[0].id}: {pair[1].kind}, {pair[1].sentence}") for pair in examples()],
)
def test_the_example_holds(page: Rule, example: Example) -> None:
    assert run_example(page, example, RULES, read) == ()


def test_all_pages_load() -> None:
    assert [f"{failure.rule_id}: {failure.message}" for failure in RULES.failures] == []
    assert RULES.rules


def test_pages_follow_their_form_and_link_to_cases_that_link_back() -> None:
    found = lint_rules(RULES, lambda question, attachments: Evidence(), known_cases())
    problems = [problem for problem in found if not problem.message.startswith(("Fires", "Cannot tell", "Silent, "))]
    assert [f"{problem.page}:{problem.line}: {problem.message}" for problem in problems] == []


DOCUMENTED = (
    "## en\n### What it finds\na\n### Why it matters\na\n### What to do\na\n"
    "## zh\n### 检查什么\n一\n### 为什么重要\n一\n### 怎么改\n一\n"
)
SCRIPT = "deepspeed --module openrlhf.cli.train_kto \\\n   --pretrain x/Qwen2-7B \\\n   {}--micro_train_batch_size 1\n"


def example(kind: str, content: str, after: str = "") -> str:
    return f"## {kind}\n### One\n```bash train.sh\n{content}```\n{after}\n"


DIFF = "```diff\n-   --vanilla_loss --micro_train_batch_size 1\n+   --micro_train_batch_size 1\n```"
GOOD = (
    DOCUMENTED
    + example("Fires", SCRIPT.format("⟦--vanilla_loss⟧ "), DIFF)
    + example("Silent", SCRIPT.format(""))
    + "### Two\n```bash\nls\n```\n"
)
FIX = "[{unset: vanilla_loss, safety: safe}]"


def problems(body: str, **parts: str) -> list[str]:
    made = rule(**{"when": 'has_option("vanilla_loss")', "fix": FIX, **parts}, body=body)
    return [problem.message for problem in lint_rule(made, ruleset(made), read)]


def test_a_good_page_has_no_problems() -> None:
    assert problems(GOOD) == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (GOOD.replace("⟦--vanilla_loss⟧", "--vanilla_loss"), "nothing is marked"),
        (GOOD.replace("⟦--vanilla_loss⟧", "⟦--vanilla⟧_loss"), "is marked, but is no evidence"),
        (GOOD.replace("⟦--vanilla_loss⟧ ", ""), "does not fire (it is clear)"),
        (GOOD.replace("+   --micro", "+   --macro"), "the patch is not the one"),
        (
            GOOD.replace("```bash\nls", "```bash\n" + SCRIPT.format("--vanilla_loss ")), "the rule fires: has_option"),
        (GOOD.replace("### What to do\na", "### What to do\n"), "is empty"),
        (GOOD.replace("### What to do\na\n", ""), "chapter en must have the sections"),
        (GOOD.replace("### Two", "## Cannot tell\n### Two"), "Silent: 2 example(s) needed, there are 1"),
        (GOOD + example("Cannot tell", SCRIPT.format("")), "the rule is clear"),
        (GOOD + example("Cannot tell", SCRIPT.format("--vanilla_loss "), "missing: log"), "the rule fires"),
        (GOOD + "## Fires\nlost\n", "outside any section"),
        (GOOD + example("Cannot tell", SCRIPT.format("")), "must name the facts"),
    ],
)  # fmt: skip
def test_a_page_that_does_not_hold_is_found_out(body: str, says: str) -> None:
    assert any(says in problem for problem in problems(body)), problems(body)


def test_a_fix_that_does_not_clear_the_rule_is_found_out() -> None:
    body = GOOD.split("```diff")[0] + "## Silent" + GOOD.split("## Silent")[1]
    wrong = problems(body, fix="[{set: {micro_batch: 2}, safety: unsafe}]")
    assert any("does not clear the rule" in problem for problem in wrong)
    shown = problems(GOOD, fix="[]")
    assert any("(none)" in problem for problem in shown)


def test_what_a_rule_asks_for_is_checked() -> None:
    when = 'has_option("vanilla_loss") and version("flash-attn", "<2.6")'
    body = DOCUMENTED + example("Cannot tell", SCRIPT.format("--vanilla_loss "), "missing: version:flash-attn")
    assert not any("asks for" in problem for problem in problems(body, when=when))
    wrong = problems(body.replace("missing: version:flash-attn", "missing: log"), when=when)
    assert any("it asks for version:flash-attn, not for log" in problem for problem in wrong)
    silent = body.replace("## Cannot tell", "## Silent")
    assert any(
        "the rule cannot tell (it cannot tell without version:flash-attn)" in p for p in problems(silent, when=when)
    )
    allowed = silent.replace("missing: version:flash-attn", "cannot tell allowed")
    assert not any("the rule cannot tell" in problem for problem in problems(allowed, when=when))


def test_a_rule_that_may_lack_a_fact_needs_an_example_of_it() -> None:
    two = rule(when='vanilla_loss and version("openrlhf", "<1")')
    assert can_be_unknown(two)
    assert not can_be_unknown(rule(when="vanilla_loss"))
    assert not can_be_unknown(replace(two, condition=None, module=lambda facts: Outcome(value=False)))
    assert any("Cannot tell: 1 example(s)" in p for p in problems(GOOD, when='vanilla_loss and version("trl", "<1")'))


def test_a_rule_that_raises_fails_its_examples() -> None:
    def broken(facts: object) -> Outcome:
        raise KeyError("oh")

    made = replace(rule(body=GOOD), condition=None, module=broken)
    assert "the rule raised KeyError" in lint_rule(made, ruleset(made), read)[0].message


def test_a_rule_without_since_case_or_source_is_found_out() -> None:
    bare = replace(rule(body=GOOD, when='has_option("vanilla_loss")', fix=FIX), since="", cases=(), sources=())
    assert [problem.message.split(":")[0] for problem in lint_rule(bare, ruleset(bare), read)] == [
        "since", "cases", "sources",
    ]  # fmt: skip


def test_links_hold_in_both_directions() -> None:
    made = rule(body=GOOD, when='has_option("vanilla_loss")', fix=FIX)

    def links(cases: Mapping[str, tuple[str, ...]] | None) -> list[str]:
        return [problem.message for problem in lint_rules(ruleset(made), read, cases)]

    assert links(None) == []
    assert links({"a-case": ("a-defect",)}) == []
    assert links({}) == ["there is no case 'a-case'"]
    assert links({"a-case": ()}) == ["the case 'a-case' does not name this rule"]
    assert "there is no rule 'gone'" in links({"a-case": ("a-defect", "gone")})
    assert links({"a-case": ("a-defect",), "b": ("a-defect",)}) == ["the rule 'a-defect' does not name this case"]


def test_a_page_that_did_not_load_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("x")
    loaded = load_rules((tmp_path,))
    found = lint_rules(RuleSet(rules=(), failures=loaded.failures), read)
    assert [(problem.page, problem.line) for problem in found] == [("bad.md", 1)]
