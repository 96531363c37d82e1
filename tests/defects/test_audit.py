"""Which defects an environment has, in which order, and how sure that is."""

from __future__ import annotations

from tests.defects.values import defect, pip_list
from tests.every_case import every_case
from trainmedic.kb.audit.audit import DefectMatch, Doubt, audit, closeness
from trainmedic.kb.audit.defect import Defect, Effect
from trainmedic.kb.audit.upgrades import releases_of
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse


def matches(*defects: Defect, files: tuple[Attachment, ...]) -> tuple[DefectMatch, ...]:
    return audit(defects, parse("", files), releases_of(defects))


@every_case(
    ("version", "certain"),
    [
        ("0.19.1", None),  # before
        ("0.20.0", True),
        ("0.20.0.post1", True),
        ("0.20.5+local", True),
        ("0.21.0.dev0", False),  # a checkout between two releases
        ("0.20.0.dev0", False),
        ("0.21.0", None),
        ("0.21.0rc1", False),
    ],
)
def test_the_version_decides(version: str, certain: bool | None) -> None:
    found = matches(defect("trl-1", introduced="0.20.0", fixed="0.21.0"), files=(pip_list(trl=version),))
    assert [match.certain for match in found] == ([] if certain is None else [certain])


def test_packages_that_are_not_installed_have_no_defects() -> None:
    assert matches(defect("peft-1"), files=(pip_list(trl="0.20.0"),)) == ()


def test_a_requirement_bounds_the_version() -> None:
    known = defect("trl-1", introduced="0.20.0", fixed="0.21.0")
    requirements = Attachment(name="requirements.txt", content="trl>=0.15\n")
    assert [match.doubts for match in matches(known, files=(requirements,))] == [(Doubt.VERSION,)]
    late = Attachment(name="requirements.txt", content="trl>=0.22\n")
    assert matches(known, files=(late,)) == ()


def test_a_git_install_may_have_every_defect() -> None:
    known = defect("trl-1", introduced="0.20.0", fixed="0.21.0")
    git = Attachment(name="requirements.txt", content="trl @ git+https://github.com/huggingface/trl.git@abc1234\n")
    assert [match.doubts for match in matches(known, files=(git,))] == [(Doubt.VERSION,)]


def test_a_defect_without_bounds_is_in_every_release() -> None:
    assert matches(defect("trl-1"), files=(pip_list(trl="0.3.0"),))[0].certain


def test_an_unreleased_fix_leaves_all_later_releases_affected() -> None:
    known = defect("trl-1", introduced="0.20.0")
    assert matches(known, files=(pip_list(trl="0.30.0"),))[0].certain
    assert matches(known, files=(pip_list(trl="0.19.0"),)) == ()


def test_the_condition_is_unknown_without_a_configuration_and_drops_the_defect_where_it_is_false() -> None:
    known = defect("trl-1", introduced="0.20.0", fixed="0.21.0", when='option("loss_type") == "dapo"')
    packages = pip_list(trl="0.20.0")
    (match,) = matches(known, files=(packages,))
    assert match.doubts == (Doubt.CONDITION,)
    assert match.missing == ("option:loss_type",)
    script = "python -m trl.scripts.grpo --model_name_or_path x --loss_type {}\n"
    (match,) = matches(known, files=(packages, Attachment(name="run.sh", content=script.format("dapo"))))
    assert match.certain
    assert [span.text for span in match.spans] == ["--loss_type dapo"]
    assert matches(known, files=(packages, Attachment(name="run.sh", content=script.format("grpo")))) == ()


@every_case(
    ("says", "message", "doubts"),
    [
        ('log_says("GptOssTopKRouter")', "", (Doubt.NAMED,)),
        ('log_says("GptOssTopKRouter") or log_says("weights of the router are missing")', "", ()),
        ('log_says("GptOssTopKRouter")', "router are missing", ()),  # the defect's own message is printed
    ],
)
def test_a_name_in_the_log_proves_no_defect_and_a_message_does(
    says: str, message: str, doubts: tuple[Doubt, ...]
) -> None:
    known = defect("trl-1", introduced="0.20.0", fixed="0.21.0", when=says, message=message)
    log = Attachment(name="train.log", content="(GptOssTopKRouter): Linear\nthe weights of the router are missing\n")
    (match,) = matches(known, files=(pip_list(trl="0.20.0"), log))
    assert match.doubts == doubts


def test_a_condition_that_does_not_compile_is_unknown() -> None:
    known = defect("trl-1", when="no_such_setting")
    assert matches(known, files=(pip_list(trl="0.20.0"),))[0].doubts == (Doubt.CONDITION,)


def test_a_constant_condition_asks_for_the_configuration() -> None:
    known = defect("trl-1", when="1 / 0 > 1")
    assert matches(known, files=(pip_list(trl="0.20.0"),))[0].missing == ("configuration",)


def test_a_defect_of_unknown_age_is_doubtful_unless_its_fix_is_near() -> None:
    steps = [defect(f"trl-{minor}", introduced=f"0.{minor}.0", fixed=f"0.{minor + 1}.0") for minor in range(1, 30)]
    known = defect("trl-100", fixed="0.30.0")
    old, new = (matches(known, *steps, files=(pip_list(trl=version),)) for version in ("0.26.0", "0.28.0"))
    assert next(match.doubts for match in old if match.defect is known) == (Doubt.DISTANT,)
    assert next(match.doubts for match in new if match.defect is known) == ()


def test_order_is_harm_then_certainty_then_the_newest_fix() -> None:
    defects = (
        defect("trl-1", effect=Effect.LOG),
        defect("trl-2", effect=Effect.CRASH, fixed="0.21.0"),
        defect("trl-3", effect=Effect.CRASH, fixed="0.22.0"),
        defect("trl-4", effect=Effect.CRASH),
        defect("trl-5", effect=Effect.SILENT, when='option("x") == "y"'),
        defect("trl-6", effect=Effect.SILENT, fixed="0.21.0"),
    )
    found = matches(*defects, files=(pip_list(trl="0.20.0"),))
    assert [match.defect.id for match in found] == ["trl-6", "trl-5", "trl-4", "trl-3", "trl-2", "trl-1"]


def test_the_printed_message_is_the_closest_to_a_defect() -> None:
    known = defect("trl-1", message="Expected all tensors*lm_head", touches=("GRPOTrainer", "x"))
    log = Attachment(name="train.log", content="RuntimeError: Expected all tensors to be on one device: lm_head\n")
    assert closeness(known, parse("", (log,))) == 1.0
    named = parse("GRPOTrainer behaves oddly")
    assert 0.2 < closeness(known, named) < 1.0
    assert closeness(known, parse("")) == 0.0


def test_the_users_words_are_compared_with_the_symptoms() -> None:
    known = defect("trl-1", symptoms={"en": ("the clip ratio is always zero",), "zh": ("clip_ratio 恒为 0",)})
    evidence = parse("the clip ratio is always zero with sequence level sampling")
    assert closeness(known, evidence, [evidence.question]) > 0.5 > closeness(known, evidence, ["out of memory"])
