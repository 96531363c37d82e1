"""``trainmedic audit``: what it prints, what it changes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sarif_pydantic import Sarif

from tests.defects.values import ENTRY, folder
from trainmedic.kb.model.place import Attachment
from trainmedic.ui.auditing import audit
from trainmedic.ui.cli import main

SLOW = """\
- id: peft-77
  title: {en: Merging takes hours, zh: 合并需要几个小时}
  effect: slow
  touches: [merge_and_unload]
  introduced: unknown
  fixed: "0.15.2"
  fix: {pull: 77}
  symptoms: {en: [merge_and_unload never ends], zh: [合并一直不结束]}
"""
HANG = """\
- id: trl-88
  title: {en: Evaluation waits for ever with one process, zh: 单进程评估会一直等待}
  effect: hang
  touches: [GRPOTrainer]
  introduced: "0.20.0"
  fixed: unreleased
  fix: {pull: 88}
  symptoms: {en: [evaluation never ends], zh: [评估不结束]}
  workaround: {en: Evaluate on two processes., zh: 用两个进程评估。}
"""


@pytest.fixture(autouse=True)
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A knowledge base of three defects, in place of the shipped lists."""
    root = tmp_path / "kb"
    folder(root, ENTRY + HANG)
    folder(root, SLOW, "peft")
    monkeypatch.setattr("trainmedic.kb.pages.defect.DEFECTS", root)
    monkeypatch.setattr("trainmedic.kb.pages.fixed_causes.told_by_shipped_pages", tuple)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAINMEDIC_KB_PATHS", raising=False)
    return str(root)


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["audit", "--language", "en", *arguments])
    return code, capsys.readouterr().out


def test_defects_are_grouped_by_package_and_the_worst_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, write("requirements.txt", "peft==0.15.0\ntrl==0.20.0\n"))
    assert code == 1
    assert text == (
        "trl 0.20.0\n"
        "  hang trl-88: Evaluation waits for ever with one process\n"
        "    >=0.20.0\n"
        "    until then: Evaluate on two processes.\n"
        "    https://github.com/huggingface/trl/pull/88\n"
        "  silent trl-3435 [may be there]: Sequence-level ratios of GRPO are averaged over padding too\n"
        "\n"
        "peft 0.15.0\n"
        "  slow peft-77: Merging takes hours\n"
        "    <0.15.2; the first affected release is not known\n"
        "    https://github.com/huggingface/peft/pull/77\n"
        "\n"
        "Change:\n"
        "  peft 0.15.0 → 0.15.2  clears peft-77\n"
        "Not cleared by any version:\n"
        "  trl-88: no known release has the fix\n"
        "\n"
        "2 packages checked, 2 known defects, 1 that may be there\n"
        "Releases and conditions are read from each fix, not from a run: open its link before you act on it.\n"
        "Add the launch script or configuration to see which of them your run has.\n"
    )


def test_all_lists_what_may_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = run(capsys, "--all", write("requirements.txt", "trl==0.20.0\n"))
    assert "silent trl-3435 [may be there]" in text
    assert ">=0.20.0,<0.21.0; the configuration decides" in text
    assert "trl 0.20.0 → 0.21.0  clears trl-3435" in text


def test_a_configuration_decides(capsys: pytest.CaptureFixture[str]) -> None:
    packages = write("requirements.txt", "trl==0.20.0\n")
    script = "python -m trl.scripts.grpo --model_name_or_path x --importance_sampling_level {}\n"
    _, text = run(capsys, packages, write("run.sh", script.format("sequence")))
    assert "silent trl-3435: Sequence-level ratios" in text
    _, text = run(capsys, packages, write("run.sh", script.format("token")))
    assert "trl-3435" not in text


def test_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = run(capsys, "--lang", "zh", write("requirements.txt", "trl==0.20.0\n"))
    assert "卡死 trl-88: 单进程评估会一直等待" in text
    assert "任何版本都无法消除：\n  trl-88: 已知的发行版都没有包含修复" in text


@pytest.mark.parametrize(("threshold", "code"), [("silent", 0), ("hang", 1), ("crash", 1), ("log", 1), ("never", 0)])
def test_the_threshold_decides_the_exit_code(capsys: pytest.CaptureFixture[str], threshold: str, code: int) -> None:
    packages = write("requirements.txt", "trl==0.20.0\n")
    assert run(capsys, "--fail-on", threshold, packages)[0] == code
    assert run(capsys, "--fail-on", threshold, "--exit-zero", packages)[0] == 0


def test_what_may_be_there_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--fail-on", "log", write("requirements.txt", "trl>=0.19\n"))[0] == 0


def test_an_environment_without_known_packages_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, write("requirements.txt", "numpy==2.0\n"))
    assert (code, text) == (0, "No version of a package with known defects was recognised.\n")


def test_nothing_to_audit_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys)[0] == 2
    assert run(capsys, "absent.txt")[0] == 3
    Path("image.png").write_bytes(b"\x89PNG\x00\x00")
    assert run(capsys, "image.png")[0] == 3


def test_the_running_environment_can_be_audited(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "--installed", "--format", "json")
    assert code == 0
    assert json.loads(text)["receipt"]["inputs"][1]["name"] == "installed packages"


def test_fix_changes_the_requirements_in_place(capsys: pytest.CaptureFixture[str]) -> None:
    name = write("requirements.txt", "peft[a] >= 0.10, <1  # adapters\r\ntrl==0.20.0 ; python_version > '3.9'\n")
    run(capsys, "--fix", "--all", name)
    assert Path(name).read_bytes().decode() == (
        "peft[a] >=0.15.2,<1  # adapters\r\ntrl==0.21.0 ; python_version > '3.9'\n"
    )


def test_diff_shows_the_change_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    name = write("requirements.txt", "peft==0.15.0\n")
    _, text = run(capsys, "--diff", name)
    assert "-peft==0.15.0\n+peft==0.15.2\n" in text
    assert Path(name).read_text(encoding="utf-8") == "peft==0.15.0\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "peft==0.15.0 --hash=sha256:0123\n"),
        ("pip-list.txt", "Package Version\n------- -------\npeft 0.15.0\n"),
        ("requirements.txt", "peft @ https://example.org/peft-0.15.0-py3-none-any.whl\n"),
        ("environment.yml", "channels: [x]\ndependencies:\n  - peft==0.15.0\n"),
    ],
)
def test_what_is_no_plain_requirement_is_not_edited(capsys: pytest.CaptureFixture[str], name: str, text: str) -> None:
    _, printed = run(capsys, "--fix", write(name, text))
    assert "peft 0.15.0 → 0.15.2" in printed
    assert Path(name).read_text(encoding="utf-8") == text


def test_sarif_has_a_place_for_each_defect_and_follows_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    name = write("requirements.txt", "peft==0.15.0\ntrl==0.20.0\n")
    _, text = run(capsys, "--format", "sarif", "--all", name)
    Sarif.model_validate_json(text)
    (log,) = json.loads(text)["runs"]
    assert [(result["ruleId"], result["kind"], result["level"]) for result in log["results"]] == [
        ("trl-3435", "open", "none"),
        ("trl-88", "fail", "error"),
        ("peft-77", "fail", "warning"),
    ]
    place = log["results"][2]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "requirements.txt"
    assert place["region"]["startLine"] == 1
    assert log["automationDetails"]["id"] == "trainmedic-audit/"


def test_github_annotates_the_line_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = run(capsys, "--format", "github", write("requirements.txt", "\npeft==0.15.0\n"))
    assert text == (
        "::warning file=requirements.txt,line=2,endLine=2,col=1,endColumn=13,title=peft-77::"
        "peft 0.15.0 (<0.15.2): Merging takes hours%0Ahttps://github.com/huggingface/peft/pull/77\n"
    )


def test_two_environments_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    good = write("good.txt", "trl==0.19.1\npeft==0.15.0\nnumpy==1.0\n")
    bad = write("bad.txt", "trl==0.20.0\npeft==0.15.0\nray==2.0\n")
    _, text = run(capsys, "--good", good, "--bad", bad)
    head = text.split("\n\n")
    assert head[0] == (
        "Changed from the environment that works:\n  numpy 1.0 → -\n  ray - → 2.0\n  trl 0.19.1 → 0.20.0"
    )
    assert head[1].startswith("Known defects that only the failing environment has:\n  hang trl-88")
    assert "peft-77" not in head[1]
    assert head[2].startswith("Options that the releases treat differently")
    _, text = run(capsys, "--good", good, "--bad", good)
    assert text.startswith("Both environments have the same packages.")


def test_the_defect_that_the_question_speaks_of_comes_first() -> None:
    packages = ("requirements.txt", "trl==0.20.0\n")
    good = ("good.txt", "trl==0.19.1\n")
    question = "the GSPO ratio stays near 1 however far the policy moves"
    view = audit(
        Attachment(name=packages[0], content=packages[1]),
        good=[Attachment(name=good[0], content=good[1])],
        question=question,
    )
    assert view.compare is not None
    assert view.compare.defects == ("trl-3435", "trl-88")
    plain = audit("trl==0.20.0\n", good=["trl==0.19.1\n"])
    assert plain.compare is not None
    assert plain.compare.packages[0].kind == "upgraded"


def test_an_option_that_concerns_the_configuration_comes_first() -> None:
    script = "python -m trl.scripts.dpo --model_name_or_path x --evaluation_strategy steps\n"
    good, bad = "transformers==4.50.3\n", "transformers==4.56.3\n"
    view = audit(bad, Attachment(name="run.sh", content=script), good=[good])
    assert view.compare is not None
    first = view.compare.options[0]
    assert first.concerns
    removed = [option for option in view.compare.options if option.option == "evaluation_strategy"]
    assert [(option.kind, option.concerns) for option in removed] == [("removed", True)]


def test_versions_that_are_not_exact_are_changed_and_have_no_options_to_compare() -> None:
    view = audit("transformers>=4.50\n", good=["transformers==4.44.0\n"])
    assert view.compare is not None
    assert [(change.kind, change.good) for change in view.compare.packages] == [("changed", "4.44.0")]
    assert view.compare.options == ()
    down = audit("trl==0.19.1\n", good=["trl==0.20.0\n"]).compare
    assert down is not None
    assert down.packages[0].kind == "downgraded"
    near = audit("transformers==4.50.3\n", good=["transformers==4.50.2\n"]).compare
    assert near is not None
    assert near.options == ()
