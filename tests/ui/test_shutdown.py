"""A server that is told to stop finishes its answers and does not wait for open pages."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from trainmedic.ui.shutdown import EndlessStreams, Server

PATIENCE_S = 20
WORDS = 10


async def _until_the_client_leaves() -> AsyncIterator[str]:
    while True:
        yield "still here\n"
        await asyncio.sleep(PATIENCE_S)


async def _answer() -> AsyncIterator[str]:
    for number in range(WORDS):
        yield f"{number}\n"
        await asyncio.sleep(0.1)


def _application() -> FastAPI:
    app = FastAPI()
    app.add_api_route("/gradio_api/heartbeat/one", lambda: StreamingResponse(_until_the_client_leaves()))
    app.add_api_route("/mcp", lambda: StreamingResponse(_until_the_client_leaves()))
    app.add_api_route("/answer", lambda: StreamingResponse(_answer()))
    return app


@pytest.mark.parametrize("endless", ["/gradio_api/heartbeat/one", "/mcp"])
def test_an_answer_is_finished_and_an_endless_stream_is_closed(endless: str) -> None:
    streams = EndlessStreams(_application())
    server = Server(
        uvicorn.Config(streams, log_level="error", timeout_graceful_shutdown=PATIENCE_S), on_stop=streams.close
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        with httpx.Client(base_url=url) as client, client.stream("GET", endless) as page:
            signs = page.iter_lines()
            assert next(signs) == "still here"
            with client.stream("GET", "/answer") as answer:
                words = answer.iter_lines()
                assert next(words) == "0"
                told = time.monotonic()
                server.should_exit = True
                assert [*words] == [str(number) for number in range(1, WORDS)]
            with suppress(httpx.RemoteProtocolError):  # an endless stream has no whole end
                assert not [*signs]
            thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert time.monotonic() - told < PATIENCE_S / 2


STUCK = """
import asyncio, threading
from trainmedic.ui.shutdown import end_after

async def main():
    end_after(0.3)
    await asyncio.wait_for(asyncio.to_thread(threading.Event().wait), 0.1)

asyncio.run(main())
"""


def test_a_process_ends_in_time_though_a_thread_never_does() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK], timeout=PATIENCE_S, capture_output=True, text=True, check=True)
    assert "the process ends without it" in done.stderr
