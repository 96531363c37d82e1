"""The service with its pages as a program of its own, for the browser tests.

    python -m tests.ui.chat.serving DATA_DIR [--model URL] [--keys KEYS] [--port PORT]

Prints its port on the first line. Everything is the real thing; the model is whatever listens at URL.
"""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path

import uvicorn

from trainmedic.service.settings import Settings
from trainmedic.ui.app import build_app


def main() -> None:
    """Serve until the process is told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--model", default="")
    parser.add_argument("--keys", default="")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    app = build_app(
        Settings(data_dir=given.data_dir, model_base_url=given.model, api_keys=given.keys, model_restate=False)
    )
    listening = socket.create_server(("127.0.0.1", given.port))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)).run(sockets=[listening])


if __name__ == "__main__":
    main()
