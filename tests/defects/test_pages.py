"""Lists of defects are read into values, and what is wrong with one is reported at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.defects.values import ENTRY, folder
from trainmedic.ingest.authoring.defect_lint import lint_spots
from trainmedic.kb.audit.defect import Effect
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.pages.defect import discover_defects, load_defects
from trainmedic.kb.pages.defect_causes import cause_of
from trainmedic.kb.sources.store import Store
from trainmedic.kb.sources.tree import tree_of
from trainmedic.ui.cli import main


def problems(root: Path, text: str, package: str = "trl") -> list[str]:
    failures = load_defects((package,), [folder(root, text, package)], vocabulary()).failures
    return [f"{failure.line}: {failure.message}" for failure in failures if failure.page.startswith(str(root))]


def test_the_shipped_lists_have_no_problems() -> None:
    assert load_defects(words=vocabulary()).failures == ()


def test_an_entry_becomes_a_defect(tmp_path: Path) -> None:
    text = ENTRY.replace("trl-3435", "trl-99993435")
    loaded = load_defects(("trl",), [folder(tmp_path, text)])
    defect = next(defect for defect in loaded.by_package["trl"] if defect.id == "trl-99993435")
    assert (defect.effect, defect.introduced, defect.fixed) == (Effect.SILENT, "0.20.0", "0.21.0")
    assert defect.touches == ("GRPOTrainer", "importance_sampling_level")
    assert defect.link == "https://github.com/huggingface/trl/pull/3435"
    assert defect.title.zh.startswith("GRPO")
    assert loaded.places["trl-99993435"].endswith("trl/rl.yaml")


def test_unknown_and_unreleased_are_no_releases(tmp_path: Path) -> None:
    text = ENTRY.replace('"0.20.0"', "unknown").replace('"0.21.0"', "unreleased").replace("trl-3435", "trl-99993435")
    loaded = load_defects(("trl",), [folder(tmp_path, text)])
    defect = next(defect for defect in loaded.by_package["trl"] if defect.id == "trl-99993435")
    assert (defect.introduced, defect.fixed) == (None, None)


def test_only_the_named_packages_are_read(tmp_path: Path) -> None:
    folder(tmp_path, "not: [yaml", "peft")
    assert load_defects(("trl",), [folder(tmp_path, ENTRY.replace("trl-3435", "trl-99993435"))]).failures == ()
    assert set(load_defects(("trl",), [tmp_path]).by_package) == {"trl"}


def test_other_yaml_files_are_no_lists_of_defects(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "sft.yaml").write_text("model: x\n", encoding="utf-8")
    assert list(discover_defects([tmp_path])) == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("  effect:", "  effct:", "5: unknown field 'effct'; did you mean 'effect'?"),
        ("silent", "silnt", "5: effect: unknown word 'silnt'; did you mean 'silent'?"),
        ("trl-3435", "peft-3435", "1: id: 'peft-3435' must be trl-<pull request>"),
        ("trl-3435", "trl-", "1: id: 'trl-' must be trl-<pull request>"),
        ('"0.20.0"', '"0.21.0"', "8: introduced: 0.21.0 is not before the release that fixes it, 0.21.0"),
        ('"0.20.0"', "main", "8: introduced: 'main' is not a release; write a number such as 0.20.0, or unknown"),
        ('"0.21.0"', "never", "9: fixed: 'never' is not a release; write a number such as 0.20.0, or unreleased"),
        ("option(", "optoin(", "7: when: line 1 of the expression: there is no function 'optoin'"),
        ("samples-too-far", "sample-too-far", "did you mean 'samples-too-far-off-policy'?"),
        ("  message: ", "  message: abc*def #", "14: message: 'abc*def' needs 4 characters in a row"),
        (
            "GRPO 的序列级比率把填充位置也算进了平均",
            "averaged over padding",
            "3: title: the text under zh is not Chinese",
        ),
        ("    zh: [GSPO 的 ratio 一直接近 1]\n", "", "12: symptoms: field 'zh' is missing"),
        ("[the GSPO ratio stays near 1 however far the policy moves]", "[]", "12: symptoms.en: write one to 4"),
        ("[GSPO 的 ratio 一直接近 1]", "[一, 二, 三, 四, 五]", "13: symptoms.zh: write one to 4"),
        ("[GRPOTrainer, importance_sampling_level]", "[]", "6: touches: name at least one class, option or model"),
        ("{pull: 3435, commit: 0123456789ab}", "{}", "10: fix: name the pull request, the commit, or path and symbol"),
        ("commit: 0123456789ab", "path: trl/a.py", "10: fix.path: path and symbol need each other"),
        ("commit: 0123456789ab", "path: trl.a, symbol: f", "10: fix.path: 'trl.a' is not the path of a module"),
        ("pull: 3435", "pull: '#3435'", "10: fix.pull: '#3435' is not the number of a pull request"),
        ("commit: 0123456789ab", "commit: main", "10: fix.commit: 'main' is not a commit"),
        ("  effect: silent\n", "  effect: silent\n  effect: log\n", "'effect' occurs twice"),
    ],
)
def test_a_problem_has_its_line(tmp_path: Path, before: str, after: str, problem: str) -> None:
    assert before in ENTRY
    found = problems(tmp_path, ENTRY.replace(before, after, 1))
    assert len(found) == 1
    assert problem in found[0]


SPOT = "{path: trl/trainer/grpo_trainer.py, symbol: GRPOTrainer._compute_loss}"
IN_PACKAGE = ENTRY.replace("trl-3435", "trl-averaged-over-padding").replace("{pull: 3435, commit: 0123456789ab}", SPOT)


@pytest.mark.parametrize(
    ("package", "link"),
    [
        ("trl", "https://github.com/huggingface/trl/blob/v0.21.0/trl/trainer/grpo_trainer.py"),
        ("accelerate", "https://github.com/huggingface/accelerate/blob/v0.21.0/src/accelerate/optimizer.py"),
        ("unsloth", "https://pypi.org/project/unsloth/0.21.0/"),
    ],
)
def test_a_fix_without_a_history_is_a_place_in_the_release_with_it(tmp_path: Path, package: str, link: str) -> None:
    text = IN_PACKAGE.replace("trl-av", f"{package}-av").replace("trl/trainer/grpo_tr", f"{package}/trainer/grpo_tr")
    text = text.replace("accelerate/trainer/grpo_trainer.py", "accelerate/optimizer.py")
    loaded = load_defects((package,), [folder(tmp_path, text, package)])
    found = next(each for each in loaded.all if each.id == f"{package}-averaged-over-padding")
    assert found.link == link
    assert found.source.startswith(f"{package} 0.21.0, {package}/")
    assert found.source.endswith(": GRPOTrainer._compute_loss")
    cause = cause_of(found)
    assert (cause.evidence, cause.sources[0].says, cause.sources[0].note) == ("source-read", "source", found.source)
    assert "GRPOTrainer._compute_loss" in cause.section("confirm", "en")


def test_a_place_without_a_release_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, IN_PACKAGE.replace('"0.21.0"', "unreleased")) == [
        "10: fix: path and symbol are those of the release with the fix: name it under fixed"
    ]


BEFORE = "class GRPOTrainer:\n    def _compute_loss(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (BEFORE, BEFORE.replace("1", "2"), ""),
        ("", BEFORE, ""),
        (BEFORE, BEFORE, "GRPOTrainer._compute_loss is the same in 0.20.0 and 0.21.0"),
        (BEFORE, BEFORE.replace("_compute", "compute"), "trl 0.21.0 has no GRPOTrainer._compute_loss"),
    ],
)
def test_the_place_of_a_fix_is_looked_up_in_what_is_stored(
    tmp_path: Path, before: str, after: str, problem: str
) -> None:
    store = Store(tmp_path / "sources")
    for version, text in (("0.20.0", before), ("0.21.0", after)):
        store.add(tree_of("trl", version, "wheel", {"trl/trainer/grpo_trainer.py": text.encode()}))
    loaded = load_defects(("trl",), [folder(tmp_path / "team", IN_PACKAGE)])
    own = [each for each in loaded.all if each.id == "trl-averaged-over-padding"]
    found = [each.message for each in lint_spots(own, loaded.places, store)]
    assert [message.startswith(f"trl-averaged-over-padding: fix: {problem}") for message in found] == [True] * bool(
        problem
    )
    assert list(lint_spots(own, loaded.places, Store(tmp_path / "empty"))) == []


def test_an_unreleased_fix_needs_a_workaround(tmp_path: Path) -> None:
    text = "".join(line for line in ENTRY.splitlines(keepends=True) if "workaround" not in line)
    assert problems(tmp_path, text.replace('"0.21.0"', "unreleased")) == [
        "1: fixed: unreleased needs a workaround, or a word that there is none"
    ]


def test_a_bad_entry_leaves_the_others(tmp_path: Path) -> None:
    text = ENTRY.replace("silent", "loud") + ENTRY.replace("trl-3435", "trl-99990001")
    loaded = load_defects(("trl",), [folder(tmp_path, text)])
    assert "trl-99990001" in loaded.places
    assert len(loaded.failures) == 1


def test_an_id_occurs_once_in_all_lists(tmp_path: Path) -> None:
    entry = ENTRY.replace("trl-3435", "trl-99990002")
    folder(tmp_path, entry, area="a")
    found = load_defects(("trl",), [folder(tmp_path, entry, area="b")]).failures
    assert [str(problem) for problem in found] == [
        f"{tmp_path}/trl/b.yaml:1: id 'trl-99990002' is taken by {tmp_path}/trl/a.yaml"
    ]


def test_a_file_that_is_no_list_is_one_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, "- id: [unclosed\n")[0].startswith("2: not YAML")
    assert problems(tmp_path, "a: b\n") == ["1: must be a list"]
    assert problems(tmp_path, "- just a text\n") == ["1: must be a mapping"]
    assert problems(tmp_path, "# nothing yet\n") == []
    (tmp_path / "trl" / "rl.yaml").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in str(load_defects(("trl",), [tmp_path]).failures[0])


def test_kb_lint_checks_lists_alone_and_with_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = folder(tmp_path, ENTRY.replace("trl-3435", "trl-99990003").replace("silent", "silnt"))
    assert main(["kb", "lint", str(root)]) == 1
    assert "trl/rl.yaml:5: effect: unknown word" in capsys.readouterr().out
    folder(tmp_path, ENTRY.replace("trl-3435", "trl-99990003"))
    assert main(["kb", "lint", str(root / "trl" / "rl.yaml")]) == 0
    assert capsys.readouterr().err == "1 defect, 0 problems\n"
    assert main(["kb", "lint", str(root / "trl" / "other.yaml")]) == 2
