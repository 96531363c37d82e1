"""One server with a scripted model for all tests of the pages that need a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fake_model import FakeModel, electing
from tests.ui.chat.serving import PATIENCE_S, START_S, is_up, wait_until
from trainmedic.service.storage.history import History

ROOT = Path(__file__).parents[3]
BECAUSE = (
    "The loss is NaN because `--vanilla_loss` meets a micro-batch of one. "
    "<img src=//evil.example/x onerror=window.hacked=1> ![x](https://evil.example/y)"
)
DIAGNOSIS = electing("OpenRLHF KTO loss is NaN with --vanilla_loss", because=BECAUSE, change="Remove the flag.")
"""What the scripted model says; some of it is hostile."""


@dataclass(slots=True, kw_only=True)
class Served:
    """A running service. ``url`` has no slash at its end; ``plain`` is the same without the model."""

    url: str
    plain: str
    history: History
    model: FakeModel


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[list[str]]:
    """The service as a process of its own, at one address for each model; ready when its first pages answer."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GRADIO", "TRAINMEDIC"))}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.ui.chat.serving", str(folder), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=environment | {"HOME": str(folder)},
    )
    try:
        assert process.stdout is not None
        urls = [f"http://127.0.0.1:{port}" for port in process.stdout.readline().split()]
        wait_until(lambda: all(map(is_up, urls)), START_S)
        yield urls
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture(scope="session")
def data_folder(knowledge_advisor: object, knowledge_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the indexed knowledge for the served process."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(knowledge_folder, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def served(data_folder: Path) -> Iterator[Served]:
    """The service with a model that answers `DIAGNOSIS`, and without one."""
    with (
        FakeModel(forms=[DIAGNOSIS]) as model,
        serving(data_folder, "--model", "", "--model", model.url) as (plain, url),
    ):
        history = History(f"sqlite:///{data_folder / 'history.sqlite3'}")
        yield Served(url=url, plain=plain, history=history, model=model)
        history.close()
