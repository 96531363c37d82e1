"""The Jupyter magic in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.incidents import KTO_SINGLE


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "trainmedic")
    (tmp_path / "train.sh").write_text(KTO_SINGLE, encoding="utf-8")
    yield shell
    InteractiveShell.clear_instance()


def test_the_line_magic_is_the_command_line(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_line_magic("trainmedic", "check train.sh --language en") is None
    assert "openrlhf-kto-vanilla-loss-single-class" in capsys.readouterr().out
    shell.run_line_magic("trainmedic", "check absent.sh")
    assert "absent.sh cannot be read" in capsys.readouterr().err
    shell.run_line_magic("trainmedic", "nonsense")
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.usefixtures("knowledge_loaded")
def test_the_cell_magic_asks_with_the_cell_the_files_and_the_last_traceback(shell: Any) -> None:
    answer = shell.run_cell_magic("trainmedic", "train.sh", "the loss is nan at every step, why?")
    assert "vanilla_loss" in answer._repr_markdown_()
    assert repr(answer) == answer.text
    shell.run_cell("def save():\n    raise ValueError('Tried to allocate 2 GiB')\nsave()")
    answer = shell.run_cell_magic("trainmedic", "", "what happened?")
    assert "traceback" in answer.text
    shell.run_cell_magic("trainmedic", "absent.sh", "why?")
