"""What every test runs under: no network, no settings of the machine it runs on, the same examples every time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from trainmedic.service.advisor import Advisor
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.ui.app import load_knowledge

# The same examples every time. `HYPOTHESIS_PROFILE=ci` tries many, `fast` a few; to search on:
# --hypothesis-profile=default
for profile, examples in (("fast", 5), ("dev", 25), ("ci", 200)):
    hypothesis_settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

ROOT = Path(__file__).parent.parent
INDEXES = ROOT / ".cache" / "index"
INDEXES_KEPT = 3
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            raise AssertionError(f"a test tried to reach {address}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("TRAINMEDIC_", "SLACK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def knowledge_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the index of the shipped knowledge, shared by all processes of this run.

    Copy it, never write to it. The index is made once for each state of the code and the pages, which takes a minute
    of processor time.
    """
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if parallel else base) / "knowledge"
    folder.mkdir(exist_ok=True)
    cached = INDEXES / indexing_code()
    cached.mkdir(parents=True, exist_ok=True)
    with (cached / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "index").exists():
            load_knowledge(Settings(data_dir=cached))
            shutil.copytree(cached / "index", folder / "index")
            for old in sorted(INDEXES.iterdir(), key=lambda path: path.stat().st_mtime)[:-INDEXES_KEPT]:
                shutil.rmtree(old, ignore_errors=True)
    return folder


def indexing_code() -> str:
    """The digest of the code that an index depends on; the index itself is named after the pages."""
    digest = hashlib.sha256()
    for package in ("store", "glossary", "pages"):
        for path in sorted((ROOT / "kb" / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@pytest.fixture(scope="session")
def knowledge_advisor(knowledge_folder: Path) -> Advisor:
    """One advisor over the shipped knowledge, built once for all tests that ask whole questions."""
    return Advisor(load_knowledge(Settings(data_dir=knowledge_folder)))


@pytest.fixture
def advisor(knowledge_advisor: Advisor) -> Advisor:
    """The shared knowledge with a history of the test's own."""
    return Advisor(knowledge_advisor.knowledge, History("sqlite://"))
