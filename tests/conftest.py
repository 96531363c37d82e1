"""What every test runs under: no network, no settings of the machine it runs on, the same examples every time."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from trainmedic.service.advisor import Advisor
from trainmedic.service.history import History
from trainmedic.service.settings import Settings
from trainmedic.ui.app import load_knowledge

# The coverage gate and a slow machine must not depend on chance; to search on: --hypothesis-profile=default
hypothesis_settings.register_profile(
    "same",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis_settings.load_profile("same")

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
    """The data folder in which the shipped knowledge is indexed, once for all tests. Copy it, never write to it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return tmp_path_factory.mktemp("knowledge")
    shared = tmp_path_factory.getbasetemp().parent / "knowledge"  # by all processes of this test run
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # one builds the index, the others find it
        load_knowledge(Settings(data_dir=shared))
    return shared


@pytest.fixture(scope="session")
def knowledge_advisor(knowledge_folder: Path) -> Advisor:
    """One advisor over the shipped knowledge, built once for all tests that ask whole questions."""
    return Advisor(load_knowledge(Settings(data_dir=knowledge_folder)))


@pytest.fixture
def advisor(knowledge_advisor: Advisor) -> Advisor:
    """The shared knowledge with a history of the test's own."""
    return Advisor(knowledge_advisor.knowledge, History("sqlite://"))
