"""One real vLLM server for all tests here, which are collected only where the command line names this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vllm import tiny
from tests.vllm.server import NAME, running

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these files alone unless they were asked for: they need 2.5 GB and half a minute before the first test."""
    base = config.invocation_params.dir
    asked = ((base / argument.split("::")[0]).resolve() for argument in config.args)
    return None if any(path == HERE or HERE in path.parents for path in asked) else True


@pytest.fixture(scope="session")
def vllm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny model."""
    return tiny.make(tmp_path_factory.mktemp("model") / NAME)


@pytest.fixture(scope="session")
def vllm_url(vllm_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The root of a running server (without ``/v1``); its log lies beside the model."""
    with running(vllm_model, tmp_path_factory.mktemp("vllm") / "vllm.log") as server:
        yield server.url
