"""Every check: its examples are run, its form and its links hold. `trainmedic kb lint` runs the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.causes.test_page import case
from tests.every_case import every_case
from tests.rules.support import rule, ruleset
from tests.shipped import shipped_cases, shipped_rules
from trainmedic.ingest.authoring.lint import links as links_of
from trainmedic.ingest.authoring.lint import lint
from trainmedic.ingest.authoring.rule_lint import can_be_unknown, lint_rule, run_example
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.pages.examples import KINDS, Example, examples_of
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse

RULES = shipped_rules()
TOY = case()


def read(question: str, attachments: Sequence[Attachment]) -> Evidence:
    return parse(question, attachments)


def examples() -> list[tuple[Rule, Example]]:
    return [(rule, example) for rule in RULES.rules for example in examples_of(rule)]


@every_case(("page", "example"), examples())
def test_the_example_holds(page: Rule, example: Example) -> None:
    assert run_example(page, example, read) == ()


def test_all_pages_load() -> None:
    assert [str(failure) for failure in RULES.failures] == []
    assert RULES.rules


def test_pages_follow_their_form_and_name_checks_that_there_are() -> None:
    found = lint(RULES, shipped_cases(), lambda question, attachments: Evidence(), vocabulary())
    assert [str(problem) for problem in found if not problem.message.startswith(KINDS)] == []


CHAPTER = "## Check a-defect\n"
SCRIPT = "deepspeed --module openrlhf.cli.train_kto \\\n   --pretrain x/Qwen2-7B \\\n   {}--micro_train_batch_size 1\n"


def example(kind: str, content: str, after: str = "") -> str:
    return f"### {kind}: one\n```bash train.sh\n{content}```\n{after}\n"


DIFF = "```diff\n-   --vanilla_loss --micro_train_batch_size 1\n+   --micro_train_batch_size 1\n```"
GOOD = (
    CHAPTER
    + example("Fires", SCRIPT.format("⟦--vanilla_loss⟧ "), DIFF)
    + example("Silent", SCRIPT.format(""))
    + "### Silent: two\n```bash\nls\n```\n"
)
FIX = "[{unset: vanilla_loss, safety: safe}]"


def problems(body: str, **parts: str) -> list[str]:
    made = rule(**{"when": 'has_option("vanilla_loss")', "fix": FIX, **parts}, body=body)
    return [problem.message for problem in lint_rule(made, read)]


def test_a_good_page_has_no_problems() -> None:
    assert problems(GOOD) == []


@every_case(
    ("body", "says"),
    [
        (GOOD.replace("⟦--vanilla_loss⟧", "--vanilla_loss"), "nothing is marked"),
        (GOOD.replace("⟦--vanilla_loss⟧", "⟦--vanilla⟧_loss"), "is marked, but is not evidence"),
        (GOOD.replace("⟦--vanilla_loss⟧ ", ""), "does not fire (it is clear)"),
        (GOOD.replace("+   --micro", "+   --macro"), "the patch differs"),
        (
            GOOD.replace("```bash\nls", "```bash\n" + SCRIPT.format("--vanilla_loss ")), "the rule fires: has_option"),
        (GOOD.replace("### Silent: two", "### Cannot tell: two"), "Silent: 1 example(s), at least 2 needed"),
        (GOOD + example("Cannot tell", SCRIPT.format("")), "the rule is clear"),
        (GOOD + example("Cannot tell", SCRIPT.format("--vanilla_loss "), "missing: log"), "the rule fires"),
        (GOOD.replace("### Fires", "lost\n### Fires"), "text outside any section"),
        (GOOD + example("Cannot tell", SCRIPT.format("")), "name the facts"),
    ],
)  # fmt: skip
def test_a_page_that_does_not_hold_is_found_out(body: str, says: str) -> None:
    assert any(says in problem for problem in problems(body)), problems(body)


def test_a_fix_that_does_not_clear_the_rule_is_found_out() -> None:
    first, _, rest = GOOD.partition(DIFF)
    body = first + rest
    wrong = problems(body, fix="[{set: {micro_batch: 2}, safety: unsafe}]")
    assert any("does not clear the rule" in problem for problem in wrong)
    shown = problems(GOOD, fix="[]")
    assert any("(none)" in problem for problem in shown)


def test_what_a_rule_asks_for_is_checked() -> None:
    when = 'has_option("vanilla_loss") and version("flash-attn", "<2.6")'
    body = CHAPTER + example("Cannot tell", SCRIPT.format("--vanilla_loss "), "missing: version:flash-attn")
    assert not any("asks for" in problem for problem in problems(body, when=when))
    wrong = problems(body.replace("missing: version:flash-attn", "missing: log"), when=when)
    assert any("it asks for version:flash-attn, not for log" in problem for problem in wrong)
    silent = body.replace("### Cannot tell", "### Silent")
    assert any(
        "the rule cannot tell (it cannot tell without version:flash-attn)" in p for p in problems(silent, when=when)
    )
    allowed = silent.replace("missing: version:flash-attn", "cannot tell allowed")
    assert not any("the rule cannot tell" in problem for problem in problems(allowed, when=when))


def test_a_rule_that_may_lack_a_fact_needs_an_example_of_it() -> None:
    two = rule(when='vanilla_loss and version("openrlhf", "<1")')
    assert can_be_unknown(two)
    assert not can_be_unknown(rule(when="vanilla_loss"))
    assert not can_be_unknown(replace(two, condition=None, check=lambda facts: Outcome(value=False)))
    assert any("Cannot tell: 0 example(s)" in p for p in problems(GOOD, when='vanilla_loss and version("trl", "<1")'))


def test_a_rule_that_raises_fails_its_examples() -> None:
    def broken(facts: object) -> Outcome:
        raise KeyError("oh")

    made = replace(rule(body=GOOD), condition=None, check=broken)
    assert "the rule raised KeyError" in next(lint_rule(made, read)).message


def test_a_rule_without_since_or_source_is_found_out() -> None:
    bare = replace(rule(body=GOOD, when='has_option("vanilla_loss")', fix=FIX), since="", sources=())
    assert [problem.message.split(":")[0] for problem in lint_rule(bare, read)] == [
        "a-defect, since",
        "a-defect, sources",
    ]


def test_a_page_names_only_checks_that_there_are() -> None:
    cases = CaseSet(cases=(replace(TOY, id="a-case", rules=("a-defect", "a-defekt")),))
    assert [str(problem) for problem in links_of(ruleset(rule(body=GOOD)), cases)] == [
        "a-case.md:1: detected_by: there is no check 'a-defekt'; did you mean 'a-defect'?"
    ]


def test_a_page_that_did_not_load_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("x")
    failures = load_rules((tmp_path,)).failures
    found = lint(RuleSet(rules=(), failures=failures), CaseSet(failures=failures), read, vocabulary())
    assert [(problem.stem, problem.line) for problem in found] == [("bad", 1)]


def test_only_the_given_pages_are_checked() -> None:
    bare = replace(rule(body="", when='has_option("vanilla_loss")'), cases=())
    assert lint(ruleset(bare), CaseSet(), read, vocabulary(), only={bare.page.name})
    assert lint(ruleset(bare), CaseSet(), read, vocabulary(), only={"another.md"}) == ()
