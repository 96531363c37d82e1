"""What does not help is not said beside a rule that recommends it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.service.test_compose import text_of
from tests.service.values import WEIGHTS, both, case, context, draft_of, evidence, finding, patched, scored
from tests.shipped import shipped_cases, shipped_rules
from trainmedic.kb.model.case import Refutation
from trainmedic.service.answer.assemble import cause_views
from trainmedic.service.answer.refutations import advised, refutations_of
from trainmedic.service.ranking.diagnose import diagnose

RATE, CLIP = ("learning_rate", "down"), ("max_grad_norm", "down")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("Lower the learning rate.", {RATE}),
        (
            "Start from a checkpoint before the rise with a third of the learning rate; max_grad_norm 1.0 or less.",
            {RATE, CLIP},
        ),
        ("Raise the learning rate until it moves.", {("learning_rate", "up")}),
        ("Lower the learning rate or clip gradients.", {RATE, CLIP}),
        ("Clip the gradients harder.", {CLIP}),
        ("A lower learning rate does not help.", set()),
        ("Upgrade the transformers package.", {("transformers", "new")}),
        ("The data is broken.", set()),
    ],
)
def test_a_text_advises_a_setting_and_a_direction(text: str, advice: set[tuple[str, str]]) -> None:
    assert advised(text) == advice


def test_a_refutation_disappears_where_a_fired_rule_recommends_the_same() -> None:
    refuted = case(
        refutations=tuple(
            Refutation(claim=both(c), why=both("so")) for c in ("Lower the learning rate.", "Raise the learning rate.")
        )
    )
    words = replace(patched(), text=both("Go on with a tenth of the learning rate."), patch=None)
    edit = replace(patched(), text=both("Set it."), patch="-learning_rate: 1.0e-3\n+learning_rate: 1.0e-5\n")
    opposite = replace(patched(), text=both("Switch bf16 on."))
    for fix, left in ((words, ["Raise the learning rate."]), (edit, ["Raise the learning rate."]), (opposite, None)):
        shared = context(evidence("loss_nan"), finding(fixes=(fix,)))
        diagnosis = diagnose([scored(refuted)], shared, WEIGHTS)
        (view,) = cause_views(draft_of(diagnosis, shared), "en")
        expected = left or [each.claim.en for each in refuted.refutations]
        assert [each.claim for each in view.refutations] == expected
        text, _ = text_of(diagnosis, shared)
        assert ("Lower the learning rate" in text) is (left is None)


def test_one_way_to_write_a_value_stays_refuted_beside_another() -> None:
    claim = both("Pass `--vanilla_loss false` to switch it off.")
    refuted = case(refutations=(Refutation(claim=claim, why=both("it is a switch")),))
    for said, is_left in (("Remove `--vanilla_loss`.", True), ("Switch it off with `--vanilla_loss false`.", False)):
        fired = finding(fixes=(replace(patched(), text=both(said), patch=None),))
        assert bool(refutations_of(refuted, (fired,))) is is_left


def test_no_shipped_case_refutes_what_a_rule_of_any_framework_recommends_beside_it() -> None:
    """Every case beside every rule: what is left says nothing that the rule's fixes recommend."""
    claims = {(each.id, item): advised(item.claim.en) for each in shipped_cases().cases for item in each.refutations}
    met = 0
    for rule in shipped_rules().rules:
        fixes = tuple(replace(patched(), text=spec.text.source, patch=None) for spec in rule.fixes if spec.text)
        fired = finding(rule.id, fixes=fixes)
        recommended = {advice for fix in fixes for advice in advised(fix.text.en)}
        if not recommended:
            continue
        for each in shipped_cases().cases:
            left = refutations_of(each, (fired,))
            met += len(each.refutations) - len(left)
            assert all(recommended.isdisjoint(claims[each.id, item]) or "`" in item.claim.en for item in left)
    assert met > 150
