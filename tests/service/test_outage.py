"""While the database cannot be reached, questions are answered all the same, and nobody is locked out at once."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from trainmedic.kb.errors import StoreError
from trainmedic.service.access.gate import Gate
from trainmedic.service.access.keys import ApiKey, KeyStore
from trainmedic.service.access.limits import DatabaseCounters, RateLimits
from trainmedic.service.access.principals import Access
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Rate, Settings
from trainmedic.service.storage.database import open_database, reading
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.service.storage.silence import patience

NOTICE = "The database cannot be reached"


class FlakyHistory(History):
    """A history whose database can be taken away."""

    gone = False

    def _reach(self) -> None:
        if self.gone:
            raise StoreError("the database cannot be reached", hint="OperationalError")

    def add(self, *arguments: Any, **more: Any) -> None:
        self._reach()
        super().add(*arguments, **more)

    def turns(self, *arguments: Any, **more: Any) -> Any:
        self._reach()
        return super().turns(*arguments, **more)

    def stored_answer(self, answer_id: str) -> Any:
        self._reach()
        return super().stored_answer(answer_id)


class FlakyKeys(KeyStore):
    """Keys whose database can be taken away, or hang until it is `freed`."""

    gone = hangs = False
    lookups = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.freed = threading.Event()

    def authenticate(self, token: str, now: Any = None) -> ApiKey | None:
        self.lookups += 1
        if self.hangs:
            self.freed.wait(60)
        if self.gone:
            raise OperationalError("select", {}, Exception("gone"))
        return super().authenticate(token, now)


class HangingCounters(DatabaseCounters):
    """Counters whose database hangs until it is `freed`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.freed = threading.Event()
        self.calls = 0

    def incr(self, *arguments: Any, **more: Any) -> int:
        self.calls += 1
        self.freed.wait(60)
        return super().incr(*arguments, **more)


@pytest.fixture
def flaky(advisor: Advisor) -> tuple[Advisor, FlakyHistory]:
    history = FlakyHistory("sqlite://")
    return Advisor(advisor.knowledge, advisor.read, Memory(history)), history


def test_an_answer_in_an_outage_is_given_and_says_that_it_is_not_stored(flaky: tuple[Advisor, FlakyHistory]) -> None:
    advisor, history = flaky
    before = advisor.ask(Ask(question="loss is nan", conversation_id="c"))
    history.gone = True
    during = advisor.ask(Ask(question="loss is nan with bf16", conversation_id="c"))
    assert [notice for notice in during.notices if NOTICE in notice] == [during.notices[-1]]
    assert during.causes
    history.gone = False
    after = advisor.ask(Ask(question="and what now?", conversation_id="c"))
    assert not any(NOTICE in notice for notice in (*before.notices, *after.notices))
    # What was acknowledged without the notice is there; what was not is not.
    assert [turn.question for turn in history.turns("c")] == ["loss is nan", "and what now?"]


def test_what_needs_the_database_is_refused_with_a_time_to_try_again(flaky: tuple[Advisor, FlakyHistory]) -> None:
    advisor, history = flaky
    client = TestClient(create_app(advisor, Settings()), base_url="http://127.0.0.1")
    history.gone = True
    response = client.get("/v1/answers/a")
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert client.post("/v1/ask", json={"question": "loss is nan"}).status_code == 200


def test_a_key_that_was_used_lately_goes_on_opening_and_an_unknown_one_does_not() -> None:
    keys = FlakyKeys(open_database("sqlite://"))
    access = Access(Settings(), keys, cached_s=0)
    _, used = keys.new("used", "ask")
    _, unused = keys.new("unused", "ask")

    async def scenario() -> None:
        assert await access.key(used.encode()) is not None
        keys.gone = True
        assert (await access.key(used.encode())) is not None
        with pytest.raises(OperationalError):
            await access.key(unused.encode())
        keys.gone = False
        assert await access.key(unused.encode()) is not None

    asyncio.run(scenario())


def test_a_refusal_for_want_of_the_database_says_when_to_try_again(advisor: Advisor) -> None:
    keys = FlakyKeys(open_database("sqlite://"))
    settings = Settings(require_key=True)
    app = create_app(advisor, settings, gate=Gate(settings, Access(settings, keys)))
    _, secret = keys.new("somebody", "ask")
    keys.gone = True
    refused = TestClient(app).get("/v1/cases", headers={"authorization": f"Bearer {secret}"})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


def test_a_database_that_hangs_is_an_outage_and_is_asked_for_each_key_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmedic.service.access.principals.LOOKUP_S", 0.05)
    keys = FlakyKeys(open_database("sqlite://"))
    access = Access(Settings(), keys, cached_s=0)
    _, used = keys.new("used", "ask")
    _, unused = keys.new("unused", "ask")

    async def scenario() -> None:
        assert await access.key(used.encode()) is not None
        keys.hangs, before = True, keys.lookups
        for _ in range(20):
            assert await access.key(used.encode()) is not None
            with pytest.raises(SQLAlchemyError):
                await access.key(unused.encode())
        assert keys.lookups == before + 2
        keys.hangs = False
        keys.freed.set()
        while True:  # until the threads have ended
            with suppress(SQLAlchemyError):
                assert await access.key(unused.encode()) is not None
                return
            await asyncio.sleep(0.01)

    asyncio.run(scenario())


def test_counters_that_hang_are_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmedic.service.access.limits.COUNT_S", 0.05)
    counters = HangingCounters(open_database("sqlite://"))
    limits = RateLimits(Settings(rate=Rate(limit_storage=SecretStr("database"))), counters, attempts="10/hour")

    async def attempts() -> list[bool]:
        spent = [(await limits.spend_login("10.0.0.1")).spent for _ in range(11)]
        counters.freed.set()
        return spent

    assert asyncio.run(attempts()) == [False] * 10 + [True]
    assert counters.calls == 1


def test_a_statement_without_an_answer_ends_and_the_next_one_has_a_new_connection(postgres_database: str) -> None:
    engine = open_database(postgres_database)
    with patience(0.2), pytest.raises(StoreError), reading(engine) as connection:
        connection.execute(text("SELECT pg_sleep(30)"))
    with patience(0.2), reading(engine) as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1
    with patience(0.2), patience(), reading(engine) as connection:
        assert connection.execute(text("SELECT 1 FROM pg_sleep(0.5)")).scalar() == 1
    engine.dispose()


def test_a_connection_whose_packets_are_lost_ends_unless_the_url_says_otherwise(postgres_database: str) -> None:
    for suffix, seconds in (("", 15), ("&keepalives_idle=99", 99)):
        engine = open_database(postgres_database + suffix)
        with reading(engine) as connection:
            driver: Any = connection.connection.driver_connection
            parameters = driver.info.get_parameters()
            assert (parameters["keepalives_idle"], parameters["tcp_user_timeout"]) == (str(seconds), "10000")
        engine.dispose()
