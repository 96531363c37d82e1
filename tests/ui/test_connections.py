"""Connections that never become a request are closed, and there is an end to their number."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from trainmedic.ui.connections import Connections, protocol_of
from trainmedic.ui.shutdown import Server

PATIENCE_S = 20
HALF = b"GET /livez HTTP/1.1\r\nHost: x\r\nX: "
WHOLE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


class Line:
    """Stands for a connection."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@contextmanager
def serving(connections: Connections, *, head_s: float = PATIENCE_S, rest_s: float = PATIENCE_S) -> Iterator[int]:
    """The port of a server with these connections, whose idle ones uvicorn itself leaves alone."""
    app = FastAPI()
    app.add_api_route("/livez", lambda: "ok", methods=["GET", "POST"])
    protocol = protocol_of(connections, head_s=head_s, rest_s=rest_s)
    config = uvicorn.Config(app, http=protocol, ws="none", log_level="error", timeout_keep_alive=PATIENCE_S)
    server = Server(config, on_stop=lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(PATIENCE_S)


def connected(port: int, data: bytes = b"") -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S / 2)
    line.sendall(data)
    return line


def answered(line: socket.socket) -> bytes:
    """The answer to `WHOLE`."""
    received = b""
    while not received.endswith(b'"ok"'):
        part = line.recv(1000)
        assert part
        received += part
    return received


def is_closed(line: socket.socket) -> bool:
    """Whether the other side ends the connection before our patience does."""
    try:
        return line.recv(1000) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("begun", [b"", b"\r\n", HALF])
def test_a_request_that_does_not_come_is_not_waited_for(begun: bytes) -> None:
    with serving(Connections(10), head_s=0.05) as port, connected(port, begun) as line:
        assert is_closed(line)


@pytest.mark.parametrize("begun", [b"\r\n", HALF])
def test_nor_is_the_second_one_of_a_connection(begun: bytes) -> None:
    with serving(Connections(10), head_s=0.5) as port, connected(port, WHOLE) as line:
        answered(line)
        line.sendall(begun)
        assert is_closed(line)


def test_nor_is_the_rest_of_a_body_that_nobody_reads() -> None:
    endless = b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    with serving(Connections(10), rest_s=0.05) as port, connected(port, endless) as line:
        answered(line)
        line.sendall(b"x")
        assert is_closed(line)


def test_half_open_connections_keep_nobody_out() -> None:
    with serving(Connections(4, trusted=["127.0.0.1"])) as port:
        held = [connected(port, HALF) for _ in range(12)]
        assert httpx.get(f"http://127.0.0.1:{port}/livez").status_code == 200
        for line in held:
            line.close()


def test_an_address_has_only_so_many_connections_and_its_neighbours_have_theirs() -> None:
    connections = Connections(100, 2)
    first, second = Line(), Line()
    assert connections.opened(first, "10.0.0.1")
    assert connections.opened(second, "10.0.0.1")
    assert not connections.opened(Line(), "10.0.0.1")
    assert connections.opened(Line(), "10.0.0.2")
    connections.lost(first)
    assert connections.opened(Line(), "10.0.0.1")


def test_addresses_of_one_network_are_one_client_and_a_proxy_is_none() -> None:
    connections = Connections(100, 1, trusted=["10.0.0.1"])
    assert all(connections.opened(Line(), "10.0.0.1") for _ in range(3))
    assert connections.opened(Line(), "2001:db8::1")
    assert not connections.opened(Line(), "2001:db8::2")
    assert connections.opened(Line(), "::ffff:10.0.0.2")
    assert connections.opened(Line(), "::ffff:10.0.0.3")


def test_who_has_waited_longest_for_a_request_makes_room() -> None:
    connections = Connections(3)
    lines = [Line() for _ in range(3)]
    for number, line in enumerate(lines):
        assert connections.opened(line, f"10.0.0.{number}")
    connections.busy(lines[0])
    assert connections.opened(Line(), "10.0.0.9")
    assert [line.closed for line in lines] == [False, True, False]


def test_where_all_are_answered_there_is_no_room() -> None:
    connections = Connections(1)
    line = Line()
    assert connections.opened(line, "10.0.0.1")
    connections.busy(line)
    assert not connections.opened(Line(), "10.0.0.2")
    assert not line.closed
    connections.idle(line)
    assert connections.opened(Line(), "10.0.0.2")
    assert line.closed


def test_one_too_many_is_told_so() -> None:
    with serving(Connections(10, 1)) as port, connected(port, WHOLE) as line:
        answered(line)
        with connected(port) as other:
            assert other.recv(1000).startswith(b"HTTP/1.1 429 ")
