"""``trainmedic kb sources`` and the settings that decide what it may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.archives import CODE, wheel
from trainmedic.service.configuration import load_settings
from trainmedic.ui.cli import FAILED, USAGE, main
from trainmedic.ui.releases import sources_here


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a data folder and an index of two releases, of which the newer is a candidate."""
    folder = tmp_path / "simple" / "tiny"
    folder.mkdir(parents=True)
    for version in ("1.0", "1.1", "2.0rc1"):
        wheel(folder, {**CODE, "tiny/version.py": version.encode()}, version=version)
    (folder / "index.html").write_text("".join(f'<a href="{path.name}">x</a>' for path in folder.glob("*.whl")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_INDEX_URL", folder.parent.as_uri())
    return tmp_path


def stored(capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["kb", "sources", "list"]) == 0
    return [line.partition("  ")[0] for line in capsys.readouterr().out.splitlines()]


def test_releases_are_fetched_exported_and_imported_elsewhere(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    local = wheel(machine, version="0.9")
    assert main(["kb", "sources", "fetch", "tiny==1.0", "tiny", str(local)]) == 0
    assert stored(capsys) == ["tiny==0.9", "tiny==1.0", "tiny==1.1"]
    assert main(["kb", "sources", "export", "all.bundle"]) == 0
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(machine / "elsewhere"))
    monkeypatch.setenv("TRAINMEDIC_SOURCES", "off")
    assert main(["kb", "sources", "import", "all.bundle"]) == 0
    assert stored(capsys) == ["tiny==0.9", "tiny==1.0", "tiny==1.1"]


def test_what_is_installed_is_stored_on_request(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "sources", "fetch", "--installed", "accelerate"]) == 0
    assert [line.partition("==")[0] for line in stored(capsys)] == ["accelerate"]


def test_nothing_is_fetched_where_sources_are_off(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINMEDIC_SOURCES", "off")
    for release in ("tiny==1.0", "tiny"):
        assert main(["kb", "sources", "fetch", release]) == FAILED
        assert "sources are off" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["sources = 'off'", ""])
def test_the_command_line_and_the_service_read_the_same_settings(
    machine: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (machine / "trainmedic.toml").write_text(text)
    service, line = load_settings(), sources_here()
    assert line.mode == service.sources == ("off" if text else "installed")
    assert line.store.folder == service.data_dir / "sources"


def test_an_unknown_mode_is_said_with_those_there_are(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINMEDIC_SOURCES", "on")
    assert main(["kb", "sources", "list"]) == USAGE
    assert "one of installed, index, off" in capsys.readouterr().err
