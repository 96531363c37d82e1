"""While the database cannot be reached, questions are answered all the same, and nobody is locked out at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError

from trainmedic.kb.errors import StoreError
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.access import Access
from trainmedic.service.api.app import create_app
from trainmedic.service.question.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import open_database
from trainmedic.service.storage.history import History
from trainmedic.service.storage.keys import ApiKey, KeyStore

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

    def sightings(self, *arguments: Any, **more: Any) -> Any:
        self._reach()
        return super().sightings(*arguments, **more)

    def stored_answer(self, answer_id: str) -> Any:
        self._reach()
        return super().stored_answer(answer_id)


class FlakyKeys(KeyStore):
    """Keys whose database can be taken away."""

    gone = False

    def authenticate(self, token: str, now: Any = None) -> ApiKey | None:
        if self.gone:
            raise OperationalError("select", {}, Exception("gone"))
        return super().authenticate(token, now)


@pytest.fixture
def flaky(advisor: Advisor) -> tuple[Advisor, FlakyHistory]:
    history = FlakyHistory("sqlite://")
    return Advisor(advisor.knowledge, history), history


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
