"""The service with its pages as a program of its own, for the browser tests.

    python -m tests.ui.chat.serving DATA_DIR [--model URL] [--keys KEYS]

Prints its port on the first line. Everything is the real thing; the model is whatever listens at URL.
"""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path

import uvicorn

from service.api.app import create_app
from service.api.routes import Worker
from service.asking import Asker, Composed
from service.assistant import Assistant
from service.settings import Settings
from ui.app import build_advisor, build_model
from ui.chat.app import attach
from ui.wired import Wired


def main() -> None:
    """Serve until the process is told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--model", default="")
    parser.add_argument("--keys", default="")
    given = parser.parse_args()
    settings = Settings(
        data_dir=given.data_dir, model_base_url=given.model, model_name="", api_keys=given.keys, model_restate=False
    )
    advisor = build_advisor(settings)
    worker = Worker(settings.concurrency, settings.request_timeout_s)
    asker: Asker = Assistant(advisor, build_model(settings), restate=False) if given.model else Composed(advisor)
    app = create_app(advisor, settings, {}, asker, worker=worker)
    attach(app, Wired(settings=settings, advisor=advisor, asker=asker, run=worker.run))
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)).run(sockets=[listening])


if __name__ == "__main__":
    main()
