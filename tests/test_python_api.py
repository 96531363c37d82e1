"""The public Python API: its names, its weight, and its independence of the folders it is used in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trainmedic
from tests.every_case import every_case
from tests.incidents import KTO_SINGLE

ROOT = Path(__file__).parent.parent
RULE = "openrlhf-kto-vanilla-loss-single-class"


def python(*arguments: str, folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """A training repository whose own packages are named like the folders of trainmedic's source."""
    for name in ("kb", "service", "ui", "ingest"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise RuntimeError('{name} of the training repository')\n")
    (tmp_path / "train.sh").write_text(KTO_SINGLE)
    return tmp_path


@every_case("name", trainmedic.__all__)
def test_every_public_name_can_be_imported_and_is_described(name: str) -> None:
    assert getattr(trainmedic, name)
    assert f"`{name}`" in (ROOT / "docs" / "connect" / "python.md").read_text(encoding="utf-8")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        trainmedic.nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import trainmedic; print(sorted(set(sys.modules) - before))"
    done = python("-S", "-c", code, folder=ROOT, path=str(ROOT))
    assert done.stdout.strip() == "['__future__', 'trainmedic']", done.stderr


def test_check_runs_the_rules_on_files_texts_and_attachments_of_one_run(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text(KTO_SINGLE)
    attachment = trainmedic.Attachment(name="train.sh", content=KTO_SINGLE)
    for given in (script, KTO_SINGLE, attachment):
        report = trainmedic.check(given, "openrlhf==0.3.2")
        assert isinstance(report, trainmedic.Report)
        assert RULE in {finding.rule_id for finding in report.fired}
        assert report.run.versions["openrlhf"] == "0.3.2"
    chinese = trainmedic.check(script, language="zh")
    assert [finding.rule_id for finding in chinese.fired] == [f.rule_id for f in trainmedic.check(script).fired]
    assert chinese.fired[0].title != report.fired[0].title


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        trainmedic.check(tmp_path / "nowhere.sh")


def test_folders_of_the_same_names_do_not_disturb_the_command_line(crowded: Path) -> None:
    done = python("-m", "trainmedic", "check", "train.sh", "--exit-zero", folder=crowded, path=f".:{ROOT}")
    assert done.returncode == 0, done.stderr
    assert RULE in done.stdout


def test_folders_of_the_same_names_do_not_disturb_the_callback_or_the_client(crowded: Path) -> None:
    code = "from trainmedic import Client, TrainmedicCallback; TrainmedicCallback(); Client()"
    done = python("-c", code, folder=crowded, path=f".:{ROOT}")
    assert done.returncode == 0, done.stderr
