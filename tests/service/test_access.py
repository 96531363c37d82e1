"""Who may do what, how often, and whose a conversation is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import Engine
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from tests.every_case import every_case
from trainmedic.kb.errors import InvalidRequest, InvalidSettings, NotFound
from trainmedic.service.access.audit_log import AuditLog
from trainmedic.service.access.gate import Gate
from trainmedic.service.access.keys import ApiKey, KeyStore, Scope, Session, SessionStore, key_digest
from trainmedic.service.access.limits import (
    ATTEMPTS,
    MOST_CLIENTS,
    PEER_FACTOR,
    DatabaseCounters,
    RateLimits,
    item_of,
    network_of,
)
from trainmedic.service.access.principals import Access
from trainmedic.service.access.scopes import REQUIREMENTS, requirement
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.api.app import create_app
from trainmedic.service.api.resources import ServedIndex
from trainmedic.service.configuration import settings_from
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import open_database
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.app import build_app
from trainmedic.ui.cli import main

NOW = datetime(2026, 11, 23, tzinfo=UTC)
QUESTION = {"question": "OpenRLHF KTO loss is nan with --vanilla_loss"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    yield engine
    engine.dispose()


@pytest.fixture
def keys(engine: Engine) -> KeyStore:
    return KeyStore(engine)


@dataclass
class Served:
    """A service with stored keys."""

    app: Any
    keys: KeyStore

    def client(self, scope: Scope = "ask", secret: str = "", address: str = "10.0.0.1", **options: Any) -> TestClient:
        """A client with a key of its own, or with the given one."""
        secret = secret or self.keys.new("somebody", scope, **options)[1]
        return TestClient(self.app, headers={"authorization": f"Bearer {secret}"}, client=(address, 1))


@pytest.fixture
def served(advisor: Advisor, engine: Engine, keys: KeyStore) -> Served:
    keys.new("chief", "admin")
    return serve(advisor, engine, keys)


def serve(advisor: Advisor, engine: Engine, keys: KeyStore, attempts: str = ATTEMPTS, **settings: Any) -> Served:
    values = settings_from({"require_key": True} | settings)
    remembering = Advisor(advisor.knowledge, advisor.read, Memory(History(engine)))
    gate = Gate(values, Access(values, keys, SessionStore(engine)), RateLimits(values, attempts=attempts))
    return Served(create_app(remembering, values, gate=gate, library=NoLibrary()), keys)


class NoLibrary:
    """Stands for the knowledge behind a service."""

    def served(self) -> ServedIndex:
        raise NotFound("nothing here")

    def reload(self) -> bool:
        return False


# --- every route ----------------------------------------------------------------------------------------------------


def routes_of(router: Any) -> Iterator[tuple[str, str]]:
    """Method and path of every route, those of included routers and mounted applications too."""
    for route in router.routes:
        if isinstance(route, Mount):
            yield "*", f"{route.path}/{{page:path}}"
        elif isinstance(route, Route) or hasattr(route, "methods"):
            for method in (getattr(route, "methods", None) or {"*"}) - {"HEAD"}:
                yield method, route.path
        else:
            inner = getattr(route, "original_router", None) or getattr(route, "router", None)
            assert inner is not None, f"{route} is of no known kind"
            yield from routes_of(inner)


@contextmanager
def everything(folder: Path, tmp_path: Path) -> Iterator[Any]:
    """The application with all channels."""
    settings = settings_from(
        {
            "data_dir": folder,
            "database_url": f"sqlite:///{tmp_path / 'h.sqlite3'}",
            "api_keys": "one",
            "admin_keys": "chief",
            "slack_bot_token": "xoxb-1",
            "slack_signing_secret": "s",
            "feishu_app_id": "cli_1",
            "feishu_app_secret": "s",
            "feishu_encrypt_key": "s",
            "dingtalk_client_id": "d",
            "dingtalk_client_secret": "s",
        }
    )
    yield build_app(settings)


def test_every_route_of_every_channel_has_a_declared_requirement(
    knowledge_folder: Path, knowledge_advisor: Advisor, tmp_path: Path
) -> None:
    with everything(knowledge_folder, tmp_path) as app:
        found = set(routes_of(app))
    declared = {(method, path) for method, path, _ in REQUIREMENTS}
    undeclared = {route for route in found if route not in declared and ("*", route[1]) not in declared}
    assert undeclared == set()
    assert declared - found - {("*", "/mcp")} == set(), "declared but not served"
    assert any(path == "/mcp" for _, path in found)


@every_case(
    ("method", "path", "needed"),
    [
        ("GET", "/v1/cases/x", "read"), ("HEAD", "/v1/cases", "read"), ("GET", "/v1/nothing", "read"),
        ("PUT", "/v1/admin/nothing", "admin"), ("GET", "/mcp", "ask"), ("GET", "/any/", "pages"),
        ("GET", "/v1x", "pages"),
    ],
)  # fmt: skip
def test_a_path_that_is_not_declared_is_not_open(method: str, path: str, needed: str) -> None:
    assert requirement(method, path)[1] == needed


CALLS: tuple[tuple[Scope, str, str, dict[str, str]], ...] = (
    ("read", "GET", "/v1/cases", {}),
    ("read", "GET", "/metrics", {}),
    ("read", "POST", "/v1/search", {"query": "loss is nan"}),
    ("ask", "POST", "/v1/ask", QUESTION),
    ("ask", "GET", "/v1/conversations", {}),
    ("ask", "GET", "/v1/conversations/c", {}),
    ("admin", "GET", "/v1/admin/index", {}),
)


@pytest.mark.parametrize("scope", ["read", "ask", "admin"])
def test_a_key_opens_what_its_scope_includes_and_nothing_more(scope: Scope, served: Served) -> None:
    client = served.client(scope)
    order = ["read", "ask", "admin"]
    for needed, method, path, body in CALLS:
        response = client.request(method, path, json=body or None)
        if order.index(needed) <= order.index(scope):
            assert response.status_code in (200, 404), path
        else:
            assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden")
    assert TestClient(served.app).get("/v1/cases").status_code == 401


def test_without_any_key_the_service_is_open_but_for_administration(advisor: Advisor, engine: Engine) -> None:
    keys = KeyStore(engine)
    client = TestClient(serve(advisor, engine, keys, require_key=False).app)
    assert client.post("/v1/ask", json=QUESTION).status_code == 200
    assert client.get("/v1/admin/index").status_code == 404
    key, _ = keys.new("first", "read")
    keys.revoke(key.id)
    closed = TestClient(serve(advisor, engine, keys, require_key=False).app)
    assert closed.get("/v1/cases").status_code == 401, "revoking the last key opened the service"


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_secret_is_nowhere_in_the_database(keys: KeyStore, tmp_path: Path, engine: Engine) -> None:
    key, secret = keys.new("ci", "ask")
    engine.dispose()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.id.encode() in stored
    assert secret.rpartition(key.id)[2].strip("_").encode() not in stored


def test_a_key_is_known_by_its_whole_secret_until_it_expires_or_is_revoked(keys: KeyStore) -> None:
    key, secret = keys.new("ci", "ask", expires_at=NOW + timedelta(days=1), now=NOW)
    assert keys.authenticate(secret, NOW) == key
    for wrong in (secret[:-1], secret + "x", f"tm_{key.id}_", f"tm__{secret}", secret[3:], "tm_", "", "one"):
        assert keys.authenticate(wrong, NOW) is None
    assert keys.authenticate(secret, NOW + timedelta(days=1)) is None
    keys.revoke(key.id, NOW)
    assert keys.authenticate(secret, NOW) is None
    with pytest.raises(InvalidRequest):
        keys.rotate(key.id, timedelta(), NOW)
    with pytest.raises(NotFound):
        keys.revoke("unknown")


def test_a_rotated_key_has_two_secrets_for_a_while(keys: KeyStore) -> None:
    key, old = keys.new("ci", "ask", now=NOW)
    rotated, new = keys.rotate(key.id, timedelta(hours=1), NOW)
    assert rotated.id == key.id
    for at, works in ((NOW, True), (NOW + timedelta(hours=1), False)):
        assert (keys.authenticate(old, at) is not None) is works
        assert keys.authenticate(new, at) is not None


def test_a_session_lasts_as_long_as_the_secret_that_opened_it(keys: KeyStore) -> None:
    key, old = keys.new("ci", "ask", now=NOW)
    opened, unknown = (
        Session(principal=f"key:{key.id}", name="ci", scope="ask", key_digest=digest)
        for digest in (key_digest(old), key_digest("tm_x_invented"))
    )
    assert keys.of_session(opened, NOW) == key
    assert keys.of_session(unknown, NOW) is None
    keys.rotate(key.id, timedelta(hours=1), NOW)
    assert keys.of_session(opened, NOW) == key
    assert keys.of_session(opened, NOW + timedelta(hours=1)) is None


def test_keys_are_managed_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path / "data"))
    assert main(["admin", "key", "new", "nightly", "--scope", "read", "--limit", "5/minute", "--expires", "90d"]) == 0
    secret = capsys.readouterr().out.strip()
    key_id = secret.split("_")[1]
    assert main(["admin", "key", "list"]) == 0
    listed = capsys.readouterr().out
    assert "read" in listed
    assert "5/minute" in listed
    assert secret.split("_", 2)[2] not in listed
    assert main(["admin", "key", "rotate", key_id, "--grace", "0m"]) == 0
    second = capsys.readouterr().out.strip()
    keys = KeyStore(open_database(f"sqlite:///{tmp_path / 'data' / 'history.sqlite3'}"))
    assert keys.authenticate(secret) is None
    assert isinstance(keys.authenticate(second), ApiKey)
    assert main(["admin", "key", "revoke", key_id]) == 0
    assert main(["admin", "key", "list", "--json"]) == 0
    assert '"revoked"' in capsys.readouterr().out
    assert main(["admin", "key", "new", "x", "--limit", "many"]) == 2
    assert main(["admin", "key", "revoke", "unknown"]) == 3


# --- limits ---------------------------------------------------------------------------------------------------------


def test_a_client_that_asks_too_often_is_told_when_to_come_back(
    advisor: Advisor, engine: Engine, keys: KeyStore
) -> None:
    client = serve(advisor, engine, keys, rate_limit_ask="2/hour").client()
    for left in ("1", "0"):
        response = client.post("/v1/messages/explain", json={"message": "CUDA out of memory"})
        assert (response.status_code, response.headers["ratelimit-remaining"]) == (200, left)
    refused = client.post("/v1/ask", json=QUESTION)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert refused.headers["ratelimit-limit"] == "2"
    assert client.get("/v1/cases").status_code == 200, "reading has a budget of its own"


def test_keys_have_budgets_of_their_own_and_a_keys_own_limit_replaces_the_settings(
    advisor: Advisor, engine: Engine, keys: KeyStore
) -> None:
    served = serve(advisor, engine, keys, rate_limit="2/hour")
    first, second, generous = served.client(), served.client(), served.client(rate_limit="5/hour")
    for client, allowed in ((first, 2), (second, 2), (generous, 5)):
        statuses = [client.get("/v1/cases").status_code for _ in range(allowed + 1)]
        assert statuses == [200] * allowed + [429]


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_whoever_probes_is_not_counted(path: str, advisor: Advisor, engine: Engine, keys: KeyStore) -> None:
    client = TestClient(serve(advisor, engine, keys, rate_limit="1/hour").app, client=("10.0.0.1", 1))
    assert {client.get(path).status_code for _ in range(5)} == {200}
    assert client.get("/version").status_code == 200, "the first that counts"


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("POST", "/v1/ask", "/v1/ask"),
        ("GET", "/v1/cases/some-case", "/v1/cases/{case_id}"),
        ("GET", "/v1/nothing", "other"),
    ],
)
def test_a_refusal_is_counted_with_its_route(
    method: str, path: str, route: str, advisor: Advisor, engine: Engine, keys: KeyStore
) -> None:
    served = serve(advisor, engine, keys, attempts="1/hour", rate_limit="10/hour")
    with TestClient(served.app, client=("10.0.0.1", 1)) as client:
        statuses = [client.request(method, path, headers={"authorization": "Bearer x"}).status_code for _ in range(2)]
    figures = served.client("read", address="10.0.0.2").get("/metrics").text
    assert statuses == [401, 429]
    for status in statuses:
        assert f'trainmedic_requests_total{{code="{status}",route="{route}"}} 1.0' in figures


@pytest.mark.parametrize("path", ["/version", "/metrics", "/slack/events", "/v1/ask", "/v1/nothing"])
def test_requests_without_a_key_are_counted_by_address(
    path: str, advisor: Advisor, engine: Engine, keys: KeyStore
) -> None:
    served = serve(advisor, engine, keys, rate_limit="3/hour")
    method = "POST" if path == "/slack/events" else "GET"
    for address in ("10.0.0.1", "2001:db8::1"):
        client = TestClient(served.app, client=(address, 1))
        statuses = [client.request(method, path).status_code for _ in range(4)]
        assert 429 not in statuses[:3]
        assert statuses[3] == 429
    same_network = TestClient(served.app, client=("2001:db8::2", 1))
    assert same_network.request(method, path).status_code == 429


def test_wrong_keys_use_up_the_attempts_of_an_address_but_not_those_of_its_neighbours(
    advisor: Advisor, engine: Engine, keys: KeyStore
) -> None:
    served = serve(advisor, engine, keys, attempts="2/hour", api_keys="guessable")
    regular = served.client(secret="guessable")
    assert regular.get("/v1/cases").status_code == 200
    guesses = [served.client(secret=f"guess-{number}").get("/v1/cases").status_code for number in range(3)]
    assert guesses == [401, 401, 429]
    assert regular.get("/v1/cases").status_code == 200, "whoever had the key before is not locked out"
    stranger = served.client(secret="guessable", address="10.0.0.2")
    assert [served.client(secret="x", address="10.0.0.2").get("/v1/cases").status_code for _ in range(2)] == [401] * 2
    assert stranger.get("/v1/cases").status_code == 429, "a right guess is not told from a wrong one"
    assert served.client(address="10.0.0.2").get("/v1/cases").status_code == 200, "a stored key cannot be guessed"


def test_only_a_trusted_proxy_is_believed_about_the_clients_address(
    advisor: Advisor, engine: Engine, keys: KeyStore
) -> None:
    served = serve(advisor, engine, keys, rate_limit="1/hour", trusted_proxies="10.9.0.0/16")
    for proxy, expected in (("10.9.0.1", [404, 404]), ("10.8.0.1", [404, 429])):
        client = TestClient(served.app, client=(proxy, 1))
        forwarded = [{"x-forwarded-for": address} for address in ("198.51.100.1", "198.51.100.2")]
        assert [client.post("/feishu/events", headers=headers).status_code for headers in forwarded] == expected


def test_a_forwarded_header_of_nobody_in_particular_is_ignored_with_one_warning(
    advisor: Advisor, engine: Engine, keys: KeyStore, caplog: pytest.LogCaptureFixture
) -> None:
    served = serve(advisor, engine, keys, attempts="2/hour")
    client = TestClient(served.app, client=("127.0.0.1", 1))
    guesses = [
        client.get("/v1/cases", headers={"authorization": "Bearer x", "x-forwarded-for": f"9.9.9.{number}"})
        for number in range(4)
    ]
    assert [guess.status_code for guess in guesses] == [401, 401, 429, 429]
    assert caplog.text.count("127.0.0.1, which is not in trusted_proxies") == 1


def test_wrong_keys_through_one_proxy_are_counted_together_and_the_audit_log_names_it(
    advisor: Advisor, engine: Engine
) -> None:
    settings = Settings(require_key=True, trusted_proxies="127.0.0.1")
    audit_log = AuditLog(engine)
    gate = Gate(settings, Access(settings, KeyStore(engine)), RateLimits(settings, attempts="1/hour"), audit_log)
    client = TestClient(create_app(advisor, settings, gate=gate), client=("127.0.0.1", 1))
    guesses = [
        client.get("/v1/cases", headers={"authorization": "Bearer x", "x-forwarded-for": f"9.9.9.{number}"})
        for number in range(PEER_FACTOR + 1)
    ]
    assert [guess.status_code for guess in guesses] == [401] * PEER_FACTOR + [429]
    assert audit_log.entries()[0].entry.address == "9.9.9.0 via 127.0.0.1"


def test_ones_own_machine_is_not_limited_on_a_service_without_keys(advisor: Advisor) -> None:
    app = create_app(advisor, settings_from({"rate_limit": "1/hour"}))
    here = TestClient(app, client=("127.0.0.1", 1))
    assert [here.get("/v1/cases").status_code for _ in range(3)] == [200] * 3
    proxied = [here.get("/v1/cases", headers={"x-forwarded-for": "10.0.0.1"}).status_code for _ in range(2)]
    assert proxied == [200, 429]


def test_two_processes_count_in_one_database(engine: Engine) -> None:
    settings = settings_from({"rate_limit_storage": "database"})

    async def attempts() -> list[bool]:
        processes = [RateLimits(settings, DatabaseCounters(engine), attempts="3/hour") for _ in range(2)]
        return [(await processes[number % 2].spend_login("10.0.0.1")).spent for number in range(5)]

    assert asyncio.run(attempts()) == [False, False, False, True, True]


def test_while_the_shared_counters_cannot_be_reached_each_process_counts_for_itself(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_from({"rate_limit_storage": "database"})
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE rate_counters")

    async def attempts() -> list[bool]:
        limits = RateLimits(settings, DatabaseCounters(engine), attempts="1/hour")
        return [(await limits.spend_login("10.0.0.1")).spent for _ in range(2)]

    assert asyncio.run(attempts()) == [False, True]
    assert "by this process alone" in caplog.text


def test_the_memory_of_counters_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmedic.service.access.limits.MOST_CLIENTS", 10)
    limits = RateLimits(Settings())

    async def flood() -> int:
        for number in range(100):
            await limits.spend_login(f"10.0.0.{number}")
        return len(limits._memory.storage.storage)  # type: ignore[attr-defined]

    assert asyncio.run(flood()) <= 11
    assert MOST_CLIENTS > 1_000


def test_limits_that_cannot_be_read_are_refused_at_start() -> None:
    with pytest.raises(InvalidSettings):
        RateLimits(settings_from({"rate_limit_storage": "nowhere://x"}))
    with pytest.raises(InvalidSettings):
        item_of("limit of the key", "often")
    assert item_of("x", "10 per 2 hours").amount == 10
    assert network_of("2001:db8:0:1::5") == "2001:db8:0:1::/64"


# --- conversations --------------------------------------------------------------------------------------------------


def test_two_keys_that_choose_the_same_conversation_never_share_it(served: Served) -> None:
    first, second = served.client(), served.client()
    script = {"name": "train.sh", "content": "deepspeed --module openrlhf.cli.train_kto --vanilla_loss --bf16"}
    named = {"conversation_id": "our-incident"}
    mine = first.post("/v1/ask", json={"question": "loss is nan", "attachments": [script]} | named).json()
    foreign = second.post("/v1/ask", json={"question": "and now?"} | named).json()
    fresh = second.post("/v1/ask", json={"question": "and now?", "conversation_id": "never-used"}).json()
    assert foreign["conversation_id"] == mine["conversation_id"] == "our-incident"
    assert [item["name"] for item in foreign["receipt"]["inputs"]] == [i["name"] for i in fresh["receipt"]["inputs"]]
    changing = ("id", "conversation_id", "timings_ms", "trace_id")
    assert {k: v for k, v in foreign.items() if k not in changing} == {
        k: v for k, v in fresh.items() if k not in changing
    }, "a foreign conversation can be told from an unknown one"
    again = first.post("/v1/ask", json={"question": "and now?"} | named).json()
    assert "train.sh" in [item["name"] for item in again["receipt"]["inputs"]]


def test_a_conversation_is_deleted_everywhere_by_its_owner_alone(served: Served, engine: Engine) -> None:
    mine, other, admin = served.client(), served.client(), served.client("admin")
    answer = mine.post("/v1/ask", json=QUESTION | {"conversation_id": "c"}).json()
    mine.post("/v1/feedback", json={"answer_id": answer["id"], "reaction": "down", "comment": "canary-comment"})
    assert [item["id"] for item in mine.get("/v1/conversations").json()["items"]] == ["c"]
    assert other.get("/v1/conversations").json()["items"] == []
    assert [turn["answer_id"] for turn in mine.get("/v1/conversations/c").json()["items"]] == [answer["id"]]
    unread, hidden = other.get("/v1/conversations/unknown"), other.get("/v1/conversations/c")
    assert (unread.status_code, unread.json()["error"]["code"]) == (404, "not_found")
    assert hidden.json()["error"]["message"] == unread.json()["error"]["message"]
    unknown, foreign = other.delete("/v1/conversations/unknown"), other.delete("/v1/conversations/c")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "not_found")
    assert foreign.json()["error"]["message"] == unknown.json()["error"]["message"]
    history = History(engine)
    copy = history.branch(answer["id"], "user:reader")
    assert copy is not None
    assert len(history.unresolved()) == 1
    assert mine.delete("/v1/conversations/c").status_code == 204
    assert mine.get(f"/v1/answers/{answer['id']}").status_code == 404
    assert mine.delete("/v1/conversations/c").status_code == 404
    for table in ("turns", "answers", "feedback"):
        with engine.connect() as connection:
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0, table
    assert history.unresolved() == ()
    mine.post("/v1/ask", json=QUESTION | {"conversation_id": "c"})
    assert admin.delete("/v1/conversations/c").status_code == 204


def test_without_keys_a_conversation_is_deleted_from_the_services_own_machine_alone(
    advisor: Advisor, engine: Engine
) -> None:
    app = create_app(Advisor(advisor.knowledge, advisor.read, Memory(History(engine))), Settings())
    here, there = (TestClient(app, client=(host, 1)) for host in ("127.0.0.1", "10.0.0.9"))
    there.post("/v1/ask", json=QUESTION | {"conversation_id": "c"})
    assert there.delete("/v1/conversations/c").status_code == 403
    assert here.delete("/v1/conversations/c", headers={"x-forwarded-for": "10.0.0.9"}).status_code == 403
    assert here.delete("/v1/conversations/c").status_code == 204


def test_only_who_asked_says_whether_an_answer_helped(served: Served, engine: Engine) -> None:
    mine, other, admin = served.client(), served.client(), served.client("admin")
    answer = mine.post("/v1/ask", json=QUESTION | {"conversation_id": "c"}).json()
    other.post("/v1/ask", json=QUESTION | {"conversation_id": "c"})  # a conversation of the same name

    def says(client: TestClient, reaction: str) -> int:
        return client.post("/v1/feedback", json={"answer_id": answer["id"], "reaction": reaction}).status_code

    assert says(mine, "resolved") == 200
    assert says(other, "down") == 403
    stored = History(engine).feedback(answer["id"])
    assert stored is not None
    assert stored.reaction == "resolved"
    assert says(admin, "up") == 200
    assert other.post("/v1/feedback", json={"answer_id": "unknown", "reaction": "up"}).status_code == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/conversations", 200),
        ("/v1/answers/unknown", 404),
        ("/v1/cases", 200),
        ("/metrics", 200),
        ("/openapi.json", 200),
    ],
)
def test_what_a_key_opened_is_kept_in_no_cache(served: Served, path: str, status: int) -> None:
    answer = served.client().get(path)
    assert (answer.status_code, answer.headers.get_list("cache-control")) == (status, ["no-store"])
    refused = TestClient(served.app).get(path)
    assert refused.headers["cache-control"] == "no-store"


def test_an_answer_to_a_conversation_that_was_deleted_meanwhile_is_not_stored(
    advisor: Advisor, engine: Engine, keys: KeyStore
) -> None:
    remembering = Advisor(advisor.knowledge, advisor.read, Memory(History(engine)))
    remembering.ask(Ask(question="loss is nan", conversation_id="c", owner="key:1"))
    prepared = remembering.prepare(Ask(question="and now?", conversation_id="c", owner="key:1"))
    remembering.memory.delete_conversation("c", "key:1")
    remembering.memory.remember(prepared.asked, assemble(prepared))
    assert remembering.memory.conversations("key:1") == ()
