"""The service with its pages as a program of its own, for the browser tests.

    python -m tests.ui.chat.serving DATA_DIR [--model URL ...] [--keys KEYS] [--port PORT]

Prints its ports on the first line, one for each model. Everything is the real thing; the model is whatever listens at
URL, and there is none where that is empty.
"""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from pathlib import Path

import uvicorn

from trainmedic.service.settings import Settings
from trainmedic.ui.app import build_app


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
        settings = Settings(data_dir=given.data_dir, model_base_url=model, api_keys=given.keys, model_restate=False)
        config = uvicorn.Config(build_app(settings), log_level="warning", timeout_graceful_shutdown=1)
        serving.append((uvicorn.Server(config), socket.create_server(("127.0.0.1", given.port))))
    sys.stdout.write(" ".join(str(listening.getsockname()[1]) for _, listening in serving) + "\n")
    sys.stdout.flush()
    (last, listening), *others = reversed(serving)
    for server, other in others:
        threading.Thread(target=server.run, kwargs={"sockets": [other]}, daemon=True).start()
    last.run(sockets=[listening])


if __name__ == "__main__":
    main()
