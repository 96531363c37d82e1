"""The real vLLM servers of the tests here, which are collected only where the command line names this folder.

All that the chosen tests need are started when the session begins, two at a time, and wait for their turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.vllm import tiny
from tests.vllm.server import KEY, NAME, Server, running

HERE = Path(__file__).parent
Fleet: TypeAlias = Mapping[str, Future[Server]]
OPTIONS: dict[str, tuple[str, ...]] = {
    "vllm_url": (),
    "vllm_doomed": ("--api-key", KEY),
    "vllm_falling": ("--max-model-len", str(tiny.LONGEST)),
    "vllm_embeddings": ("--runner", "pooling", "--convert", "embed"),
}
"""Each server's fixture with vLLM's further options, in the order in which they are needed."""


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
def vllm_fleet(
    vllm_model: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Fleet]:
    """The servers that are needed, running or on their way; their logs lie in one folder."""
    needed = {name for item in request.session.items if isinstance(item, pytest.Function) for name in item.fixturenames}
    logs = tmp_path_factory.mktemp("vllm")
    with ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        started = {}
        for name in OPTIONS:
            if name in needed:
                server = running(vllm_model, logs / f"{name}.log", extra=OPTIONS[name])
                started[name] = threads.submit(server.__enter__)
                stack.push(server)
        yield started
        for future in started.values():
            future.cancel()
        wait(started.values())


@pytest.fixture(scope="session")
def vllm_url(vllm_fleet: Fleet) -> str:
    """The root of a running server (without ``/v1``) that all tests share."""
    return vllm_fleet["vllm_url"].result().url


@pytest.fixture(scope="session")
def vllm_doomed(vllm_fleet: Fleet) -> Server:
    """A server that wants `KEY`, for the one test that ends it."""
    return vllm_fleet["vllm_doomed"].result()


@pytest.fixture(scope="session")
def vllm_falling(vllm_fleet: Fleet) -> Server:
    """Another one to be ended; with four times the context, so that its answers are long."""
    return vllm_fleet["vllm_falling"].result()


@pytest.fixture(scope="session")
def vllm_embeddings(vllm_fleet: Fleet) -> Server:
    """The same weights, served as an embedder."""
    return vllm_fleet["vllm_embeddings"].result()
