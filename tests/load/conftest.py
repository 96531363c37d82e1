"""The service under load and with faults, which is collected only where the command line names this folder: minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.load.service import Service

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these files alone unless they were asked for."""
    base = config.invocation_params.dir
    asked = ((base / argument.split("::")[0]).resolve() for argument in config.args)
    return None if any(path == HERE or HERE in path.parents for path in asked) else True


@pytest.fixture
def start(knowledge_folder: Path, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts services over one data folder, each with further settings, and ends them."""
    with ExitStack() as stack:

        def started(**settings: str) -> Service:
            service = Service(tmp_path / "data", tmp_path, settings)
            stack.callback(service.kill)
            service.wait()
            return service

        yield started
