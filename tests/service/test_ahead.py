"""Work that goes on beside other work of the same answer."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Event, get_ident

import pytest

from trainmedic.kb.errors import StoreError
from trainmedic.service.ranking.ahead import Ahead


def test_a_call_runs_in_another_thread_before_anybody_waits_for_it() -> None:
    begun = Event()

    def call() -> int:
        begun.set()
        return get_ident()

    ahead = Ahead(call)
    assert begun.wait(10)
    assert ahead() != get_ident()


def test_its_error_is_raised_where_its_result_is_asked_for() -> None:
    def call() -> int:
        raise StoreError("the embedder fails")

    with pytest.raises(StoreError, match="the embedder fails"):
        Ahead(call)()


def test_it_sees_the_context_of_who_began_it() -> None:
    request = ContextVar("request", default="none")
    request.set("of this user")
    assert Ahead(request.get)() == "of this user"
