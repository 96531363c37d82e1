"""The smallest change of versions that clears the defects of an environment."""

from __future__ import annotations

import pytest

from tests.defects.values import defect, pip_list
from trainmedic.kb.audit.audit import audit
from trainmedic.kb.audit.defect import Defect, Effect
from trainmedic.kb.audit.upgrades import UpgradePlan, plan, releases_of
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse


def planned(*defects: Defect, file: Attachment, with_possible: bool = False) -> UpgradePlan:
    evidence = parse("", (file,))
    matches = audit(defects, evidence, releases_of(defects))
    return plan(matches, defects, evidence.versions, with_possible=with_possible)


def steps(result: UpgradePlan) -> list[tuple[str, str, str]]:
    return [(change.package, change.current, change.to) for change in result.changes]


def test_the_lowest_release_without_the_defects_is_chosen() -> None:
    defects = (
        defect("peft-1", introduced="0.10.0", fixed="0.11.0"),
        defect("peft-2", introduced="0.9.0", fixed="0.12.0"),
        defect("peft-3", introduced="0.14.0", fixed="0.15.0"),
    )
    result = planned(*defects, file=pip_list(peft="0.10.0"))
    assert steps(result) == [("peft", "0.10.0", "0.12.0")]
    assert result.changes[0].clears == ("peft-2", "peft-1")
    assert result.left == ()


def test_a_release_with_another_harmful_defect_is_passed_over() -> None:
    defects = (
        defect("peft-1", introduced="0.10.0", fixed="0.12.0"),
        defect("peft-2", introduced="0.12.0", fixed="0.13.0"),
        defect("peft-3", introduced="0.13.0", fixed="0.14.0", effect=Effect.LOG),
    )
    assert steps(planned(*defects, file=pip_list(peft="0.10.0"))) == [("peft", "0.10.0", "0.13.0")]


def test_a_fix_that_only_trades_defects_is_not_made() -> None:
    defects = (
        defect("peft-1", introduced="0.10.0", fixed="0.12.0", effect=Effect.CRASH),
        defect("peft-2", introduced="0.12.0", effect=Effect.SILENT),
    )
    result = planned(*defects, file=pip_list(peft="0.10.0"))
    assert steps(result) == []
    assert [(item.defect, item.reason, item.detail) for item in result.left] == [("peft-1", "trade", "peft-2")]


def test_more_defects_cleared_than_entered_is_a_gain_that_says_what_it_costs() -> None:
    defects = (
        *(defect(f"peft-{number}", introduced="0.10.0", fixed="0.12.0") for number in (1, 2)),
        defect("peft-3", introduced="0.12.0"),
    )
    result = planned(*defects, file=pip_list(peft="0.10.0"))
    assert [(change.to, change.enters) for change in result.changes] == [("0.12.0", ("peft-3",))]


def test_what_no_release_fixes_is_left() -> None:
    result = planned(defect("peft-1", introduced="0.10.0"), file=pip_list(peft="0.10.0"))
    assert steps(result) == []
    assert [(item.defect, item.reason) for item in result.left] == [("peft-1", "unreleased")]


def test_a_framework_moves_with_the_package_that_it_pins() -> None:
    # axolotl 0.8.0 requires transformers==4.50.3, axolotl 0.10.0 transformers==4.52.3.
    known = defect("transformers-1", introduced="4.50.0", fixed="4.52.0")
    result = planned(known, file=pip_list(axolotl="0.8.0", transformers="4.50.3"))
    assert ("transformers", "4.50.3", "4.52.3") in steps(result)
    moved = next(change for change in result.changes if change.package == "axolotl")
    assert (moved.to, moved.clears) == ("0.10.0", ())
    assert moved.because == "axolotl 0.8.0 requires transformers==4.50.3"
    assert result.left == ()


def test_a_framework_whose_fixed_release_needs_older_packages_stays() -> None:
    # axolotl 0.10.0 requires transformers==4.52.3, and nothing is downgraded.
    known = defect("axolotl-1", introduced="0.8.0", fixed="0.10.0")
    late = (defect("axolotl-2", introduced="0.11.9"), defect("axolotl-3", introduced="0.12.1"))
    result = planned(known, *late, file=pip_list(axolotl="0.8.0", transformers="6.0.0", bitsandbytes="0.45.4"))
    assert steps(result) == []
    assert result.left[0].reason == "constraint"
    assert result.left[0].detail == "axolotl 0.10.0 requires transformers==4.52.3"


def test_what_only_a_pre_release_fixes_counts_as_unreleased() -> None:
    result = planned(defect("roll-1", introduced="0.1.0", fixed="0.3.0rc1"), file=pip_list(roll="0.1.0"))
    assert [(item.defect, item.reason) for item in result.left] == [("roll-1", "unreleased")]


def test_an_unfinished_search_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmedic.kb.audit.upgrades.MOST_ROUNDS", 0)
    result = planned(defect("peft-1", introduced="0.10.0", fixed="0.11.0"), file=pip_list(peft="0.10.0"))
    assert (result.changes, result.left[0].reason) == ((), "constraint")


def test_a_package_that_a_moved_framework_pins_moves_too() -> None:
    known = defect("transformers-1", introduced="4.50.0", fixed="4.52.0")
    packages = pip_list(axolotl="0.8.0", bitsandbytes="0.45.4", transformers="4.50.3", peft="0.15.0")
    result = planned(known, file=packages)
    assert "bitsandbytes" not in {change.package for change in result.changes}
    moved = next(change for change in result.changes if change.package == "peft")
    assert (moved.to, moved.because) == ("0.15.2", "axolotl 0.10.0 requires peft==0.15.2")


def test_a_pin_that_no_release_lifts_is_named() -> None:
    known = defect("transformers-1", introduced="4.50.0", fixed="9.0.0")
    result = planned(known, file=pip_list(axolotl="0.8.0", transformers="4.50.3"))
    assert [(item.defect, item.reason) for item in result.left] == [("transformers-1", "constraint")]
    assert result.left[0].detail == "axolotl 0.8.0 requires transformers==4.50.3"


def test_a_pin_that_is_violated_already_is_no_constraint() -> None:
    known = defect("transformers-1", introduced="4.50.0", fixed="4.51.0")
    result = planned(known, file=pip_list(axolotl="0.8.0", transformers="4.50.0"))
    assert steps(result) == [("transformers", "4.50.0", "4.51.0")]


def test_a_bounded_requirement_is_raised() -> None:
    known = defect("peft-1", introduced="0.10.0", fixed="0.12.0")
    requirements = Attachment(name="requirements.txt", content="peft>=0.10\n")
    assert steps(planned(known, file=requirements)) == [("peft", "0.10", "0.12.0")]


def test_a_package_of_unknown_version_is_left() -> None:
    known = defect("trl-1", introduced="0.10.0", fixed="0.12.0")
    git = Attachment(name="requirements.txt", content="trl @ git+https://github.com/huggingface/trl.git@abc1234\n")
    assert [(item.defect, item.reason) for item in planned(known, file=git).left] == [("trl-1", "version")]


def test_possible_defects_are_cleared_when_wanted() -> None:
    known = defect("peft-1", introduced="0.10.0", fixed="0.12.0", when='option("x") == "y"')
    assert steps(planned(known, file=pip_list(peft="0.10.0"))) == []
    assert steps(planned(known, file=pip_list(peft="0.10.0"), with_possible=True)) == [("peft", "0.10.0", "0.12.0")]


def test_only_named_releases_are_candidates() -> None:
    known = (defect("peft-1", introduced="0.10.0", fixed="0.12.0"), defect("peft-2", fixed="0.13.0rc1"))
    assert {"0.10.0", "0.12.0"} <= {str(release) for release in releases_of(known)["peft"]}
    assert "0.13.0rc1" not in {str(release) for release in releases_of(known)["peft"]}
