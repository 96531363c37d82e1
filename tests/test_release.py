"""`make release` sets the version in every place, and refuses what is not ready."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLACES: dict[str, list[str]] = runpy.run_path(str(ROOT / ".ci" / "release"))["PLACES"]


def git(at: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(at), *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (*PLACES, ".ci/release"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 9.8.7 (unreleased)\n\nNews.\n\n## 9.8.6 (unreleased)\n\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "t")
    git(tmp_path, "config", "user.email", "t@example.com")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


def release(project: Path, version: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(project / ".ci" / "release"), version]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_release_is_one_commit_with_the_version_everywhere_and_a_tag(project: Path) -> None:
    done = release(project, "9.8.7")
    assert done.returncode == 0, done.stderr
    assert git(project, "tag", "--points-at", "HEAD").strip() == "v9.8.7"
    assert git(project, "status", "--porcelain") == ""
    for name, patterns in PLACES.items():
        assert (project / name).read_text(encoding="utf-8").count("9.8.7") >= len(patterns), name
    assert "## 9.8.7 (20" in (project / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "tagged already" in release(project, "9.8.7").stderr


@pytest.mark.parametrize(
    ("version", "why"),
    [("soon", "which version"), ("9.9.9", "no section"), ("9.8.6", "no section"), ("", "which version")],
)
def test_what_is_not_ready_is_refused_and_nothing_is_changed(version: str, why: str, project: Path) -> None:
    done = release(project, version)
    assert (done.returncode, git(project, "status", "--porcelain")) == (1, "")
    assert why in done.stderr


def test_uncommitted_changes_are_refused(project: Path) -> None:
    (project / "CHANGELOG.md").write_text("## 9.8.7 (unreleased)\n\nOther news.\n")
    assert "uncommitted" in release(project, "9.8.7").stderr
