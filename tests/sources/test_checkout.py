"""The code of a tag of a git repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.every_case import every_case
from tests.sources.archives import CODE, wheel
from trainmedic.kb.errors import InvalidRequest, SourceError
from trainmedic.kb.sources.archives import archive_tree
from trainmedic.kb.sources.checkout import checkout_tree


def git(folder: Path, *args: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
    date = {"GIT_COMMITTER_DATE": "2026-05-01T12:00:00Z", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    subprocess.run(["git", *who, "-C", str(folder), *args], check=True, capture_output=True, env=date)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with a tag, and changes since."""
    folder = tmp_path / "project"
    for path, content in {**CODE, "tests/test_tiny.py": b"", "setup.py": b"", "csrc/gen.py": b""}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "tiny" / "link.py").symlink_to("/etc/hostname")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "First")
    git(folder, "tag", "v1.0")
    (folder / "tiny" / "config.py").write_bytes(b"changed\n")
    return folder


def test_a_tag_has_what_its_wheel_has(project: Path, tmp_path: Path) -> None:
    tree = checkout_tree(project, "v1.0", "Tiny", "1.0")
    assert tree.digest == archive_tree(wheel(tmp_path)).digest
    assert (tree.package, tree.origin, tree.released) == ("tiny", "checkout", "2026-05-01")


def test_a_bare_repository_and_a_project_below_a_folder_are_read_too(project: Path, tmp_path: Path) -> None:
    git(project, "mv", "tiny", "python")
    (project / "inner").mkdir()
    git(project, "mv", "python", "inner/tiny")
    git(project, "commit", "-qm", "Move")
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(project), str(bare))
    assert checkout_tree(bare, "HEAD", "tiny", "1.1", below="inner/").paths() == tuple(CODE)


def test_a_file_that_a_partial_clone_lacks_is_left_out_unless_it_is_code(project: Path) -> None:
    (project / "tiny" / "data.json").write_bytes(b"{}")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Data")
    lose(project, "tiny/data.json")
    assert checkout_tree(project, "HEAD", "tiny", "1.1").paths() == tuple(CODE)
    lose(project, "tiny/config.py")
    with pytest.raises(SourceError, match=r"lacks tiny/config\.py") as caught:
        checkout_tree(project, "HEAD", "tiny", "1.1")
    assert caught.value.hint


def lose(project: Path, path: str) -> None:
    """Remove a file's content from the repository."""
    command = ["git", "-C", str(project), "rev-parse", f"HEAD:{path}"]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    (project / ".git" / "objects" / name[:2] / name[2:]).unlink()


@every_case("tag", ["v9", "--upload-pack=touch x", "-v", ""])
def test_what_is_no_tag_is_refused(project: Path, tag: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        checkout_tree(project, tag, "tiny", "1.0")
    assert caught.value.hint


def test_a_folder_that_is_no_repository_or_has_no_code_is_said(project: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest):
        checkout_tree(tmp_path, "v1.0", "tiny", "1.0")
    with pytest.raises(SourceError, match="no Python code"):
        checkout_tree(project, "v1.0", "tiny", "1.0", below="docs")


def test_what_a_repository_names_as_programs_is_not_run(project: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external", "core.sshCommand"):
        git(project, "config", name, str(program))
    git(project, "config", "log.showSignature", "true")
    checkout_tree(project, "v1.0", "tiny", "1.0")
    assert not mark.exists()
