"""What the page's own script calls before the framework is there, from the outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.every_case import every_case
from tests.ui.chat.test_entry import client_of
from tests.ui.chat.test_signin import serve
from trainmedic.service.access.keys import KeyStore
from trainmedic.service.advisor import Advisor
from trainmedic.service.storage.database import open_database
from trainmedic.ui.chat.texts import examples, words

KTO = examples("en")[0]
FILES = [("file", (file.name, str(file.content).encode())) for file in KTO.files]


@pytest.fixture
def client(advisor: Advisor) -> Iterator[TestClient]:
    with client_of(advisor) as client:
        yield client


def listing(*paths: str) -> dict[str, object]:
    return {"files": [{"path": path, "size": 9, "modified": number} for number, path in enumerate(paths)]}


def test_the_answer_is_what_its_link_shows(client: TestClient) -> None:
    html = client.post("/first/ask", data={"question": KTO.question}, files=FILES).text
    assert "--vanilla_loss" in html
    assert 'class="tm-ev' in html
    assert client.post("/first/ask", data={"example": "kto", "language": "zh"}).text.count("user-row") == 1
    alone = client.post("/first/ask", data={"language": "zh"}, files=FILES[:1]).text
    assert words("zh")["did_it_help"] in alone, "files without a word are answered in the page's language"


def test_the_patch_of_a_first_answer_keeps_the_names_that_the_text_around_it_has_not(client: TestClient) -> None:
    command = "deepspeed --module openrlhf.cli.train_kto --pretrain /home/bob/qwen2 --micro_train_batch_size 1 \\\n"
    script = f"{command}   --vanilla_loss --save_path /home/bob/out\n"
    sent = [("file", ("run.sh", script.encode())), FILES[1]]
    html = client.post("/first/ask", data={"question": KTO.question}, files=sent).text
    assert "-   --vanilla_loss --save_path /home/bob/out" in html
    assert "/home/bob" not in html.replace("--save_path /home/bob/out", "").replace("--pretrain /home/bob/qwen2", "")


def test_waiting_files_are_recognised_by_their_beginnings(client: TestClient) -> None:
    chips = client.post(
        "/first/files", data={"lines": ["1300", "x"]}, files=[*FILES[:2], ("file", ("a", b"\0\1\2" * 99))]
    ).text
    t = words("en")
    assert f"{t['kinds']['command']} · {t['read_lines'].format(count='1,300')}" in chips
    assert t["read_not"] in chips


def test_of_a_listed_folder_the_files_that_tell_of_the_run_are_chosen_as_doctor_does(client: TestClient) -> None:
    assert "*.log" in client.get("/first/folder").json()["patterns"]
    names = ("train.log", "data/rows.bin", "rank_0.log", "rank_1.log", "a.py")
    chosen = client.post("/first/folder", json=listing(*names)).json()
    assert [(each["path"], each["sure"]) for each in chosen] == [
        ("rank_1.log", False),
        ("rank_0.log", True),
        ("a.py", False),
        ("train.log", True),
    ]


@every_case(
    ("method", "call", "body", "status"),
    [
        ("POST", "folder", b"[]", 400),
        ("POST", "folder", b"{", 400),
        ("POST", "other", b"", 404),
        ("DELETE", "ask", b"", 404),
        ("POST", "ask", b"", 400),
    ],
)
def test_other_calls_are_refused(client: TestClient, method: str, call: str, body: bytes, status: int) -> None:
    answer = client.request(method, f"/first/{call}", content=body)
    assert (answer.status_code, "error" in answer.json()) == (status, True)


def test_calls_need_the_key_and_are_counted_and_come_from_our_own_pages(advisor: Advisor) -> None:
    with client_of(advisor, "one") as guarded:
        assert guarded.post("/first/ask", data={"question": "why?"}).status_code == 401
    engine = open_database("sqlite://")
    _, secret = KeyStore(engine).new("alice", "ask")
    with serve(advisor, engine, rate_limit_ask="1/hour") as client:
        client.post("/login", data={"key": secret})
        assert client.post("/first/folder", headers={"Origin": "https://b.example"}).status_code == 403
        answers = [client.post("/first/ask", data={"question": "hello", "language": "zh"}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 429]
        assert answers[-1].json()["error"]["code"] == "rate_limited"
