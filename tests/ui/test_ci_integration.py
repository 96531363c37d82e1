"""The GitHub action and the pre-commit hook as their programs run them: real shells, real installs, no network."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.incidents import KTO_SINGLE
from trainmedic.ui.cli import main

ROOT = Path(__file__).parent.parent.parent
ACTION = yaml.safe_load((ROOT / ".github/actions/check/action.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
SITE = str(Path(yaml.__file__).parent.parent)
OFFLINE = {
    # Dependencies and the build tool are those of the tests: nothing is downloaded.
    "PYTHONPATH": SITE,
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it the other way round: isolation off
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
NO_AUDIT = {"defects": "", "audit-sarif-file": ""}
RULE = "openrlhf-kto-vanilla-loss-single-class"
pytestmark = [
    pytest.mark.skipif(shutil.which("bash") is None or shutil.which("git") is None, reason="needs bash and git"),
    pytest.mark.slow,
]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINMEDIC_", "GIT_", "PIP_"))}
    return {**kept, **OFFLINE, **more}


def run(*command: str, at: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=at, env=environment(**more), capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as somebody else gets it: the files that git has or would take, in a repository of their own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    folders = ("trainmedic/", "kb/", "service/", "ingest/", "ui/", ".github/")
    files = (".pre-commit-hooks.yaml", "pyproject.toml", "setup.py", "README.md", "LICENSE", "constraints.txt")
    folder = tmp_path_factory.mktemp("project")
    for name in (each for each in listed if each.startswith((*folders, *files))):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    commit(folder)
    return folder


def commit(folder: Path) -> str:
    """Make a repository of a folder; the commit."""
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        done = run("git", *who, *arguments, at=folder)
        assert done.returncode == 0, done.stderr
    return run("git", "rev-parse", "HEAD", at=folder).stdout.strip()


# --- the action -----------------------------------------------------------------------------------------------------


@dataclass
class Runner:
    """Runs a composite action's bash steps as GitHub does; steps that use another action are noted."""

    workspace: Path
    action: Path
    temp: Path
    used: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    said: str = ""

    def run(self, **given: str) -> int:
        """The exit code of the action with these inputs."""
        inputs = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        code = 0
        for step in ACTION["runs"]["steps"]:
            if not self._wanted(step.get("if"), values, code):
                continue
            if "uses" in step:
                shown = {name: self._filled(str(value), values) for name, value in step.get("with", {}).items()}
                self.used.append((step["uses"], shown))
                continue
            code = self._bash(step, values) or code
        for name, each in ACTION["outputs"].items():
            self.outputs[name] = self._filled(each["value"], values)
        return code

    def _bash(self, step: Mapping[str, Any], values: dict[str, str]) -> int:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an input as text of a script would be executed"
        output = self.temp / "output"
        output.write_text("")
        more = {name: self._filled(str(value), values) for name, value in step.get("env", {}).items()}
        script = self.temp / "script.sh"
        script.write_text(step["run"])
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        paths = {"GITHUB_ACTION_PATH": str(self.action), "RUNNER_TEMP": str(self.temp), "PATH": path}
        done = run(
            "bash", "--noprofile", "--norc", "-eo", "pipefail", str(script),
            at=self.workspace, GITHUB_OUTPUT=str(output), **paths, **more,
        )  # fmt: skip
        self.said += done.stdout + done.stderr
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode

    def _filled(self, text: str, values: Mapping[str, str]) -> str:
        return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda match: values.get(match[1], ""), text)

    def _wanted(self, condition: str | None, values: Mapping[str, str], code: int) -> bool:
        """The few conditions that the action has: comparisons joined by &&."""
        terms = (condition or "").removeprefix("${{").removesuffix("}}").strip().split(" && ")
        if terms == [""]:
            return code == 0
        always = "always()" in terms
        comparisons = [re.fullmatch(r"([\w.-]+) (==|!=) '([^']*)'", term) for term in terms if term != "always()"]
        assert all(comparisons), condition
        held = all((values.get(m[1], "") == m[3]) is (m[2] == "==") for m in comparisons if m is not None)
        return held and (always or code == 0)


@pytest.fixture(scope="module")
def installed(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner's folder in which the install step has run; the other tests find it done and repeat nothing."""
    temp = tmp_path_factory.mktemp("runner")
    workspace = tmp_path_factory.mktemp("empty")
    runner = Runner(workspace=workspace, action=project / ".github/actions/check", temp=temp)
    assert runner.run(files="", python_version="") == 0, runner.said
    assert (temp / "trainmedic/bin/trainmedic").is_file()
    assert "no file matches" in runner.said
    assert runner.outputs == {"findings": "false", "sarif-file": "", **NO_AUDIT}
    return temp


@pytest.fixture
def runner(project: Path, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    done = {"run": f'echo "bin={installed}/trainmedic/bin" >> "$GITHUB_OUTPUT"'}
    steps = [{**step, **done} if step.get("id") == "install" else step for step in ACTION["runs"]["steps"]]
    monkeypatch.setitem(ACTION["runs"], "steps", steps)
    workspace, temp = tmp_path / "work", tmp_path / "temp"
    (workspace / "scripts/deep").mkdir(parents=True)
    temp.mkdir()
    (workspace / "scripts/deep/train kto.sh").write_text(KTO_SINGLE)
    (workspace / "fine.yaml").write_text("model_name_or_path: Qwen/Qwen2-7B\n")
    return Runner(workspace=workspace, action=project / ".github/actions/check", temp=temp)


def test_findings_become_annotations_and_fail_the_step(runner: Runner) -> None:
    assert runner.run(files="scripts/**/*.sh\n*.yaml\n") == 1, runner.said
    assert f"title={RULE}" in runner.said
    assert "::error file=scripts/deep/train kto.sh,line=" in runner.said
    assert runner.outputs == {"findings": "true", "sarif-file": "", **NO_AUDIT}
    assert [uses for uses, _ in runner.used] == ["actions/setup-python@v5"]


def test_what_only_reports_fails_nothing_and_says_so_in_its_output(runner: Runner) -> None:
    assert runner.run(files="scripts/deep/train kto.sh", fail_on="never", language="zh") == 0
    assert "::error " in runner.said
    assert re.search("[\u4e00-\u9fff]", runner.said)
    assert runner.outputs["findings"] == "true"


def test_a_sarif_log_is_written_and_handed_on_although_the_step_fails(runner: Runner) -> None:
    assert runner.run(files="scripts/**/*.sh", format="sarif", upload_sarif="true", python_version="") == 1
    log = json.loads((runner.workspace / "trainmedic.sarif").read_text())
    assert RULE in {result["ruleId"] for result in log["runs"][0]["results"]}
    assert runner.outputs == {"findings": "true", "sarif-file": "trainmedic.sarif", **NO_AUDIT}
    assert runner.used == [
        ("github/codeql-action/upload-sarif@v3", {"sarif_file": "trainmedic.sarif", "category": "trainmedic"})
    ]


def test_a_named_file_that_is_not_there_fails(runner: Runner) -> None:
    assert runner.run(files="missing.yaml", fail_on="never") == 3
    assert "missing.yaml" in runner.said


NASTY = ["$(touch pwned).sh", "`touch pwned`", "; touch pwned", "--kb=/", 'a" ; touch pwned "']


@pytest.mark.parametrize(
    "given",
    [
        {"files": "\n".join(NASTY)},
        {"files": "fine.yaml", "fail_on": NASTY[0]},
        {"files": "fine.yaml", "language": NASTY[-1]},
        {"files": "fine.yaml", "audit": NASTY[2]},
    ],
    ids=lambda given: list(given)[-1],
)
def test_what_inputs_hold_is_not_executed(runner: Runner, given: dict[str, str]) -> None:
    assert runner.run(**given) in (2, 3), runner.said
    assert not (runner.workspace / "pwned").exists()


# --- the hook -------------------------------------------------------------------------------------------------------


def test_the_hook_checks_the_files_that_pre_commit_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text(KTO_SINGLE)
    program, *arguments = shlex.split(HOOKS[0]["entry"]) + HOOKS[0].get("args", [])
    assert program == "trainmedic"
    assert main([*arguments, "train.sh"]) == 1
    assert RULE in capsys.readouterr().out
    assert "shell" in HOOKS[0]["types_or"]


def test_the_hook_is_one_that_pre_commit_accepts() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib")
    hooks = clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    assert [(hook["id"], hook["language"]) for hook in hooks] == [
        ("trainmedic-check", "python"),
        ("trainmedic-audit", "python"),
    ]
    assert [each["id"] for each in HOOKS] == [hook["id"] for hook in hooks]


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("requirements.txt", True),
        ("envs/requirements-dev.in", True),
        ("uv.lock", True),
        ("pylock.gpu.toml", True),
        ("train.py", False),
        ("my-uv.lock", False),
    ],
)
def test_the_audit_hook_takes_lists_of_packages(name: str, taken: bool) -> None:
    assert bool(re.search(HOOKS[1]["files"], name)) is taken


def test_an_audit_runs_beside_the_check_and_has_a_threshold_of_its_own(runner: Runner) -> None:
    (runner.workspace / "requirements.txt").write_text("numpy==2.0\n")
    assert runner.run(files="fine.yaml", audit="*.txt") == 0, runner.said
    assert runner.outputs["defects"] == "false"
    assert runner.run(files="fine.yaml", audit="absent.txt") == 3
    assert runner.run(files="fine.yaml", audit="*.lock") == 0
    assert "no list of packages matches" in runner.said
    assert runner.run(files="fine.yaml", audit="*.txt", format="sarif", upload_sarif="true") == 0
    assert json.loads((runner.workspace / "trainmedic-audit.sarif").read_text())["runs"]
    assert [used[1]["category"] for used in runner.used if "category" in used[1]] == ["trainmedic", "trainmedic-audit"]


EXAMPLE = ROOT / "docs/examples/ci"


def test_the_action_does_for_the_example_repository_what_its_workflow_says(runner: Runner) -> None:
    shutil.copytree(EXAMPLE, runner.workspace, dirs_exist_ok=True)
    workflow = yaml.safe_load((EXAMPLE / ".github/workflows/configs.yml").read_text(encoding="utf-8"))
    (step,) = (each for each in workflow["jobs"]["check"]["steps"] if "trainmedic" in each["uses"])
    assert runner.run(**{name.replace("-", "_"): value for name, value in step["with"].items()}) == 1, runner.said
    assert "::error file=scripts/train.sh,line=5" in runner.said
    assert runner.outputs["defects"] == "false"


def test_the_hooks_do_for_the_example_repository_what_pre_commit_would(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXAMPLE)
    (repository,) = yaml.safe_load(Path(".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    names = [path.as_posix() for path in sorted(Path().rglob("*.*")) if path.is_file()]
    codes = {}
    for chosen in repository["hooks"]:
        hook = {**next(each for each in HOOKS if each["id"] == chosen["id"]), **chosen}
        files = [name for name in names if re.search(hook["files"], name)]
        codes[hook["id"]] = main([*shlex.split(hook["entry"])[1:], *hook.get("args", []), *files])
    assert codes == {"trainmedic-check": 1, "trainmedic-audit": 0}
    assert "scripts/train.sh:5:4: --flash_attn" in capsys.readouterr().out


def test_the_documented_inputs_are_those_of_the_action() -> None:
    page = (ROOT / "docs/connect/ci.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE) == list(ACTION["inputs"])
    for name, each in ACTION["inputs"].items():
        assert each.get("required") or not each["default"] or f"| `{name}` | `{each['default']}` |" in page, name
