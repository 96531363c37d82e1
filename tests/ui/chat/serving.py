"""The service with its pages as a program of its own, for the browser tests.

    python -m tests.ui.chat.serving DATA_DIR [--model URL ...] [--keys KEYS] [--port PORT]

Prints its ports on the first line, one for each model. Everything is the real thing; the model is whatever listens at
URL, and there is none where that is empty. Uploads are deleted by the last service alone: the framework takes their
folder from the environment of the process.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvicorn
from pydantic import SecretStr

from trainmedic.service.settings import ModelSettings, Settings
from trainmedic.ui.app import build_app

PATIENCE_S = 60.0
START_S = 300.0
"""A start takes ten seconds of a processor, which it may have to share with other tests."""


def status_of(url: str) -> int:
    """The status of a GET, 0 where nothing listens yet."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "text/html"})) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def is_up(url: str) -> bool:
    """Whether the pages of a service are there."""
    return status_of(f"{url}/") in (200, 401)


def wait_until(true: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for something that no event tells of."""
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def main() -> None:
    """Serve until the process is told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--model", action="append")
    parser.add_argument("--keys", default="")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    serving = []
    for model in given.model or [""]:
        settings = Settings(
            data_dir=given.data_dir, model=ModelSettings(base_url=model), api_keys=SecretStr(given.keys)
        )
        config = uvicorn.Config(build_app(settings), log_level="warning", timeout_graceful_shutdown=1)
        serving.append((uvicorn.Server(config), socket.create_server(("127.0.0.1", given.port))))
    ports = [listening.getsockname()[1] for _, listening in serving]
    sys.stdout.write(" ".join(map(str, ports)) + "\n")
    sys.stdout.flush()
    *others, (last, listening) = serving
    for (server, other), port in zip(others, ports, strict=False):
        threading.Thread(target=server.run, kwargs={"sockets": [other]}, daemon=True).start()
        # The framework builds the pages of one service at a time.
        wait_until(partial(is_up, f"http://127.0.0.1:{port}"), START_S)
    last.run(sockets=[listening])


if __name__ == "__main__":
    main()
