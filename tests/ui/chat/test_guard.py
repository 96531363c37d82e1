"""What a browser may ask of the pages' framework: attacks on a running service, over a socket."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.every_case import every_case
from tests.incidents import KTO_SINGLE
from tests.ui.chat.conftest import Served
from tests.ui.chat.serving import wait_until
from trainmedic.ui.chat.guard import KEPT_S, CallGuard, RefusedCall, call_of, is_uploaded, sweep

DIGEST = "0" * 63 + "a"
HIDDEN = "deepspeed --module openrlhf.cli.train_kto --vanilla_loss --micro_train_batch_size 1\n"


class Page:
    """A page's calls, made by hand."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.calls = {
            event: call["id"]
            for call in client.get("/config").json()["dependencies"]
            for _, event in reversed(call["targets"])
            if call["inputs"]
        }

    def upload(self, name: str, content: str) -> str:
        """Where the service has put it."""
        answer = self.client.post("/gradio_api/upload", files=[("files", (name, content.encode()))])
        assert answer.status_code == 200
        return str(answer.json()[0])

    def send(self, event: str, session: str, *data: object) -> httpx.Response:
        """Ask for one event of the page."""
        body = {"data": data, "fn_index": self.calls[event], "session_hash": session}
        return self.client.post("/gradio_api/queue/join", json=body)

    def ask(self, session: str, question: str, *paths: str) -> str:
        """Everything that comes back of a question."""
        for event, data in (("load", (None,)), ("submit", (value(question, *paths), None, ""))):
            assert self.send(event, session, *data).status_code == 200
            seen: list[str] = []
            with self.client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as events:
                for line in events.iter_lines():
                    seen.append(line)
                    if '"process_completed"' in line:
                        assert json.loads(line.removeprefix("data:"))["success"]
                        break
        return "\n".join(seen)


def value(text: str, *paths: str) -> dict[str, Any]:
    """What the input holds: a text and files, as the page sends it."""
    return {"text": text, "files": [{"path": path, "meta": {"_type": "gradio.FileData"}} for path in paths]}


@pytest.fixture
def page(served: Served) -> Iterator[Page]:
    with httpx.Client(base_url=served.url, timeout=30.0) as client:
        yield Page(client)


def test_no_file_of_the_machine_can_be_read_through_the_pages(page: Page, tmp_path: Path) -> None:
    secret = tmp_path / "secret.sh"
    secret.write_text(HIDDEN, encoding="utf-8")
    uploaded = page.upload("train.log", "loss nan\n")
    for number, path in enumerate((str(secret), f"{uploaded}/../../../{secret}", "/etc/passwd", "../pyproject.toml")):
        for event, data in (("submit", (value("why is this nan?", path), None, "")), ("change", (value("", path),))):
            answer = page.send(event, f"reads{number}", *data)
            assert answer.status_code == 403
            assert answer.json()["error"]["code"] == "forbidden"
    assert secret.read_text(encoding="utf-8") == HIDDEN


def test_no_address_that_a_call_names_is_fetched(page: Page, served: Served) -> None:
    before = len(served.model.requests)
    for address in (
        f"{served.model.url}/models",
        "http://127.0.0.1:9/x",
        "HTTPS://example.com/x",
        "file:///etc/passwd",
    ):
        assert page.send("change", "fetches", value("", address)).status_code == 403
        nested = {"anything": [{"deep": {"path": address}}]}
        assert page.send("change", "fetches", nested).status_code == 403
    assert len(served.model.requests) == before


def test_the_same_file_of_two_users_is_read_by_both_and_then_gone(page: Page) -> None:
    first, second = page.upload("train.sh", KTO_SINGLE), page.upload("train.sh", KTO_SINGLE)
    assert first == second
    assert "openrlhf-kto-vanilla-loss-single-class" in page.ask("user-one", "kto loss is nan", first)
    assert os.path.exists(first)
    assert "openrlhf-kto-vanilla-loss-single-class" in page.ask("user-two", "kto loss is nan", second)
    wait_until(lambda: not os.path.exists(first))


@every_case("call", ["run/submitted", "api/predict", "call/submitted", "component_server", "vibe-edit"])
def test_no_other_call_reaches_the_framework(call: str, page: Page) -> None:
    for start in ("", "/zh", "/knowledge", "/zh/knowledge"):
        assert page.client.post(f"{start}/gradio_api/{call}", json={"data": []}).status_code == 404


@every_case("body", [b"{", b"\xff\xfe", b"[" * 200_000, b'{"data": NaN', b"x=1"])
def test_a_call_that_is_no_json_is_refused(body: bytes, page: Page) -> None:
    assert page.client.post("/gradio_api/queue/join", content=body).status_code == 400


def test_a_call_that_is_too_long_is_refused(page: Page) -> None:
    text = json.dumps({"data": ["x" * 9_000_000]})
    assert page.client.post("/gradio_api/queue/join", content=text.encode()).status_code == 413


@pytest.mark.parametrize(("method", "path"), [("PUT", "/"), ("POST", "/"), ("DELETE", "/gradio_api/upload")])
def test_no_other_method_is_handed_on(method: str, path: str) -> None:
    with pytest.raises(RefusedCall):
        call_of(method, path)


def upload(folder: Path, name: str) -> str:
    """An uploaded file."""
    (folder / DIGEST).mkdir(exist_ok=True)
    (folder / DIGEST / name).write_text("loss nan\n", encoding="utf-8")
    return str(folder / DIGEST / name)


def admit(folder: Path, *data: object, **others: object) -> None:
    """Let one call of a page through. Raises `RefusedCall`."""
    body = json.dumps({"data": data, "fn_index": 1, "session_hash": "tab", **others}).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: object) -> None:
        raise AssertionError

    scope = {"method": "POST", "path": "/gradio_api/queue/join"}
    asyncio.run(CallGuard(40).admit(scope, receive, send, folder, "key:a"))


def test_a_call_names_few_files_and_each_once(tmp_path: Path) -> None:
    paths = [upload(tmp_path, f"{number}.log") for number in range(41)]
    admit(tmp_path, value("", *paths[:40]), None, event_data=value("", *paths[:40]))
    linked = f"{tmp_path}/{DIGEST}/../{DIGEST}/0.log"
    for refused, status in ((paths, 413), (paths[:1] * 2, 400), ([paths[0], linked], 400)):
        for given in ({"data": (value("", *refused), None)}, {"data": (), "event_data": value("", *refused)}):
            data = given.pop("data")
            with pytest.raises(RefusedCall) as error:
                admit(tmp_path, *data, **given)
            assert error.value.status == status


CANARY = "TOKEN-hf_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(
    "given",
    [
        {"text": {"k": CANARY}, "files": []},
        {"text": [CANARY]},
        {"text": None},
        {"text": "", "files": CANARY},
        {"text": "", "files": [CANARY]},
        {"text": "", "files": [{"url": CANARY, "meta": {"_type": "gradio.FileData"}}]},
        {"text": "", "more": CANARY},
        [CANARY],
        {"k": CANARY},
        7,
    ],
)
def test_a_value_that_the_page_does_not_send_never_reaches_the_framework(given: object, tmp_path: Path) -> None:
    with pytest.raises(RefusedCall) as error:
        admit(tmp_path, given, None)
    assert error.value.status == 400
    assert CANARY not in error.value.message


@every_case("tab", [None, "", 7, "x" * 65])
def test_a_call_names_its_tab(tab: object, tmp_path: Path) -> None:
    with pytest.raises(RefusedCall):
        admit(tmp_path, session_hash=tab)


@every_case("path", ["", "a\0b", None, 1, "/etc/passwd", f"{DIGEST}/x", "."])
def test_only_a_text_that_names_an_upload_is_one(path: object, tmp_path: Path) -> None:
    assert not is_uploaded(path, tmp_path)
    assert is_uploaded(str(tmp_path / DIGEST / "train.log"), tmp_path)
    assert not is_uploaded(str(tmp_path / "tmpabc" / "train.log"), tmp_path)
    assert not is_uploaded(str(tmp_path / DIGEST / "a" / "train.log"), tmp_path)


def test_a_link_out_of_the_folder_is_no_upload(tmp_path: Path) -> None:
    (tmp_path / DIGEST).mkdir()
    (tmp_path / DIGEST / "x").symlink_to("/etc/passwd")
    assert not is_uploaded(str(tmp_path / DIGEST / "x"), tmp_path)


def test_what_nobody_asked_about_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / DIGEST).mkdir()
    (tmp_path / DIGEST / "old.log").write_text("x", encoding="utf-8")
    (tmp_path / "tmp-broken-off").write_text("x", encoding="utf-8")
    sweep(tmp_path, time.time() + KEPT_S - 60)
    assert len(list(tmp_path.iterdir())) == 2
    sweep(tmp_path, time.time() + KEPT_S + 60)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
