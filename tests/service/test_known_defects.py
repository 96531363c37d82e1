"""Known defects of a release as causes of an answer."""

from __future__ import annotations

from tests.every_case import every_case
from tests.service.values import causes
from trainmedic.kb.audit.defect import Defect, DefectSet, Effect
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.pages.defect import framework_of
from trainmedic.kb.pages.defect_causes import cause_of, with_defects
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.request import Ask

SWAPPED = "GRPO curve changed after the upgrade with the same config, scale_rewards batch behaves like group"


def answer_of(advisor: Advisor, question: str, **files: str) -> Answer:
    attachments = tuple(
        Attachment(name=name.replace("_", "."), content=content) for name, content in sorted(files.items())
    )
    return advisor.ask(Ask(question=question, attachments=attachments))


@every_case(("version", "has_it"), [("0.22.1", True), ("0.22.2", False), ("0.21.0", False)])
def test_only_a_release_in_the_range_is_blamed(advisor: Advisor, version: str, has_it: bool) -> None:
    answer = answer_of(advisor, SWAPPED, pip_txt=f"trl=={version}\ntorch==2.7.0\n")
    assert ("trl-3992" in causes(answer)[:3]) is has_it


def test_the_fix_is_the_release_that_repairs_it_in_both_languages(advisor: Advisor) -> None:
    answer = answer_of(advisor, SWAPPED, pip_txt="trl==0.22.1\n")
    cause = next(cause for cause in answer.causes if cause.case_id == "trl-3992")
    assert cause.level == "defect"
    assert "0.22.2" in cause.fix


def test_a_run_of_another_framework_is_not_told_of_this_ones_defects(advisor: Advisor) -> None:
    command = (
        "deepspeed --module openrlhf.cli.train_ppo_ray --advantage_estimator group_norm --pretrain Qwen/Qwen2-7B\n"
    )
    answer = answer_of(advisor, SWAPPED, train_sh=command)
    assert not any(cause.startswith(("trl-", "verl-", "ms-swift-")) for cause in causes(answer))


def test_a_condition_that_does_not_hold_rules_a_defect_out(advisor: Advisor) -> None:
    question = "loss gets smaller the more completions are truncated with mask_truncated_completions in GRPO"
    command = "trl grpo --model_name_or_path Qwen/Qwen2-7B --dataset_name d --mask_truncated_completions {}\n"
    with_it = answer_of(advisor, question, train_sh=command.format("True"), pip_txt="trl==1.0.0\n")
    without = answer_of(advisor, question, train_sh=command.format("False"), pip_txt="trl==1.0.0\n")
    assert "trl-6439" in causes(with_it)
    assert "trl-6439" not in causes(without)


def defect(**values: object) -> Defect:
    given = {
        "id": "trl-1",
        "package": "trl",
        "title": Text(en="A thing breaks", zh="坏了"),
        "effect": Effect.HANG,
        "touches": ("GRPOTrainer",),
        "symptoms": {"en": ("it breaks",), "zh": ("坏了",)},
        "link": "https://github.com/huggingface/trl/pull/1",
        **values,
    }
    return Defect(**given)  # type: ignore[arg-type]


@every_case(
    ("introduced", "fixed", "says"),
    [
        ("0.1.0", "0.2.0", "from 0.1.0 on; 0.2.0 fixes it"),
        ("0.1.0", None, "no known release fixes it"),
        (None, "0.2.0", "before 0.2.0"),
        (None, None, "No known release of trl fixes it"),
    ],
)
def test_the_cause_says_which_releases_have_it(introduced: str | None, fixed: str | None, says: str) -> None:
    cause = cause_of(defect(introduced=introduced, fixed=fixed))
    assert says in cause.section("cause", "en")
    assert bool(cause.fixed) == bool(fixed)
    assert (fixed or "Upgrading does not help yet") in cause.section("fix", "en")


def test_a_workaround_and_a_condition_are_said() -> None:
    cause = cause_of(
        defect(fixed="0.2.0", when="packing", workaround=Text(en="Turn packing off.", zh="关掉 packing。"))
    )
    assert "`packing`" in cause.section("cause", "zh")
    assert "Turn packing off." in cause.section("fix", "en")
    assert "关掉 packing。" in cause.section("fix", "zh")


def test_only_trainers_belong_to_one_framework() -> None:
    assert framework_of("trl") == "trl"
    assert framework_of("unsloth-zoo") == "unsloth"
    assert framework_of("deepspeed") == ""


def test_the_knowledge_is_another_version_with_other_defects() -> None:
    cases = CaseSet(version="a")
    one = with_defects(cases, DefectSet(by_package={"trl": (defect(),)}, version="1"))
    two = with_defects(cases, DefectSet(by_package={"trl": (defect(), defect(id="trl-2"))}, version="2"))
    assert [case.id for case in two.cases] == ["trl-1", "trl-2"]
    assert one.version != two.version
