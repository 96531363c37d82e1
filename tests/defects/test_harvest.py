"""Candidates for defects from a package's own history: a small repository with tags, a release branch, reverts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.defects.values import defect
from tests.every_case import every_case
from trainmedic.ingest.update.harvest import added, candidates, is_fix, known_names
from trainmedic.ingest.update.history import History
from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.pages.defect import defect_packages, load_defects
from trainmedic.kb.versions import version_key

CHECKOUTS = os.environ.get("TRAINMEDIC_CHECKOUTS", "")
SAMPLE = 40
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


class Repository:
    """A checkout of ``trl`` whose training code is one file."""

    def __init__(self, root: Path) -> None:
        self.root = root / "trl"
        (self.root / "trl").mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, subject: str, lines: Sequence[str], body: str = "") -> str:
        (self.root / "trl" / "trainer.py").write_text("".join(f"{line}\n" for line in lines))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"{subject}\n\n{body}")
        return self.git("rev-parse", "HEAD")

    @property
    def history(self) -> History:
        return History(self.root)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def found(repository: Repository) -> dict[str, tuple[str, str, str]]:
    return {item.subject: (item.introduced, item.fixed, item.how) for item in candidates(repository.history)}


BASE = ["def loss(values):", "    return sum(values)", "    # end"]
WRONG = [*BASE[:1], "    return sum(values) / 2", BASE[2]]


def test_a_defect_lasts_from_the_release_of_its_lines_to_the_release_of_the_fix(repository: Repository) -> None:
    repository.commit("Start", BASE)
    repository.git("tag", "v0.1.0")
    repository.commit("Halve the loss (#2)", WRONG)
    repository.git("tag", "v0.2.0")
    repository.git("tag", "v0.3.0rc1")
    repository.commit("Fix wrong loss (#3)", BASE)
    repository.git("tag", "v0.3.0")
    assert found(repository) == {"Fix wrong loss (#3)": ("0.2.0", "0.3.0", "removed")}


def test_a_cherry_pick_on_a_release_branch_counts_as_the_fix(repository: Repository) -> None:
    repository.commit("Start", WRONG)
    repository.git("tag", "v0.1.0")
    fix = repository.commit("Fix wrong loss (#3)", BASE)
    repository.git("checkout", "-q", "-b", "release", "v0.1.0")
    repository.git("cherry-pick", fix)
    repository.git("commit", "-q", "--amend", "-m", "Fix wrong loss (#3)\n\npicked")
    repository.git("tag", "v0.1.1")
    repository.git("checkout", "-q", "main")
    repository.git("tag", "v0.2.0")
    assert found(repository) == {"Fix wrong loss (#3)": ("0.1.0", "0.1.1", "removed")}


def test_a_defect_that_no_release_had_is_left_out(repository: Repository) -> None:
    repository.commit("Start", BASE)
    repository.git("tag", "v0.1.0")
    repository.commit("Halve the loss (#2)", WRONG)
    repository.commit("Fix wrong loss (#3)", BASE)
    repository.git("tag", "v0.2.0")
    assert found(repository) == {}


def test_a_pure_insertion_is_bounded_by_the_line_before_it(repository: Repository) -> None:
    repository.commit("Start", BASE)
    repository.git("tag", "v0.1.0")
    repository.commit("Fix missing mask in the loss (#3)", [BASE[0], "    values = mask(values)", *BASE[1:]])
    assert found(repository) == {"Fix missing mask in the loss (#3)": ("0.1.0", "", "around")}


def test_a_fix_that_was_taken_back_is_left_out(repository: Repository) -> None:
    repository.commit("Start", WRONG)
    repository.git("tag", "v0.1.0")
    fix = repository.commit("Fix wrong loss (#3)", BASE)
    repository.commit('Revert "Fix wrong loss (#3)" (#4)', WRONG, f"This reverts commit {fix}.")
    repository.git("tag", "v0.2.0")
    assert found(repository) == {}


@every_case(
    ("subject", "fix"),
    [
        ("Fix wrong loss", True),
        ("Fix typo in docs", False),
        ("Add a trainer", False),
        ('Revert "Add a trainer"', True),
        ('Revert "Fix wrong loss"', False),
    ],
)
def test_subjects_tell_repairs(subject: str, fix: bool) -> None:
    assert is_fix(subject) is fix


@pytest.fixture
def released(repository: Repository) -> Repository:
    repository.commit("Start", [*WRONG, "count = len(None)"])
    repository.git("tag", "v0.1.0")
    repository.commit("Fix wrong loss (#3)", [*BASE, "count = len(None)"])
    repository.commit("Fix crash without values (#5)", [*BASE, "count = len([])"])
    repository.git("tag", "v0.2.0")
    return repository


def test_a_second_harvest_adds_what_is_new(released: Repository, tmp_path: Path) -> None:
    file = tmp_path / "candidates.jsonl"
    known = known_names([defect("trl-5", pull=5)])
    assert added(file, candidates(released.history, known=known)) == 1
    assert added(file, candidates(released.history)) == 1
    assert added(file, candidates(released.history)) == 0
    entries = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(entry["pull"], entry["introduced"], entry["fixed"]) for entry in entries] == [
        ("3", "0.1.0", "0.2.0"),
        ("5", "0.1.0", "0.2.0"),
    ]
    assert "-    return sum(values) / 2" in entries[0]["diff"]


def test_a_defect_known_by_its_commit_is_skipped(released: Repository) -> None:
    commits = [item.commit for item in candidates(released.history)]
    known = known_names(defect(f"trl-{commit[:7]}", commit=commit[:7]) for commit in commits)
    assert list(candidates(released.history, known=known)) == []


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text("[1]\n", encoding="utf-8")
    with pytest.raises(InvalidRequest, match=r"c\.jsonl:1"):
        added(file, [])


def _sample() -> list[Defect]:
    """Entries whose ranges are recomputed: spread over all packages that have a checkout."""
    if not CHECKOUTS:
        return []
    names = {path.name for path in Path(CHECKOUTS).iterdir()}
    table = load_defects().by_package
    there = [found for package, found in table.items() if names & {package, *folders_of(package)}]
    each = max(1, SAMPLE // max(1, len(there)))
    return [entry for found in there for entry in found[:: max(1, len(found) // each)][:each]]


def folders_of(package: str) -> tuple[str, ...]:
    """The names that a package's checkout may have."""
    return tuple(defect_packages()[package]["checkouts"])


@pytest.mark.skipif(not CHECKOUTS, reason="needs a folder of checkouts, named by TRAINMEDIC_CHECKOUTS")
@every_case("entry", _sample())
def test_ranges_are_those_of_the_history(entry: Defect) -> None:
    folder = next(
        Path(CHECKOUTS) / name
        for name in (entry.package, *folders_of(entry.package))
        if (Path(CHECKOUTS) / name).is_dir()
    )
    history = History(folder, entry.package)
    commit, _, subject = history.git("log", "-1", "--format=%H %s", entry.commit or "HEAD").strip().partition(" ")
    subject = f"(#{entry.pull})" if entry.pull is not None else subject
    assert (history.release_of(commit if entry.commit else "", subject) or None) == entry.fixed
    if entry.introduced is not None and entry.fixed is not None:
        assert version_key(entry.introduced) < version_key(entry.fixed)
    if entry.introduced is not None:
        assert entry.introduced in {version for version, _ in history.releases}
