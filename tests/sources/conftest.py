"""The machine that runs the tests asks no index."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _own_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip is configured for nothing but what a test says."""
    for name in os.environ:
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
