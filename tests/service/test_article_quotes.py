"""The sentences that a model chooses in a write-up."""

from __future__ import annotations

import asyncio

from tests.fake_model import FakeModel, Reply, failing, form
from trainmedic.service.llm.article_quotes import article_quotes
from trainmedic.service.llm.chat import ChatModel, ModelOptions

LINES = ("DPO nan", "The labels are all -100.")


def quotes(reply: Reply) -> tuple[tuple[str, str], ...]:
    async def scenario() -> tuple[tuple[str, str], ...]:
        with FakeModel(forms=(reply,)) as server:
            model = ChatModel(ModelOptions(base_url=server.url))
            try:
                return await article_quotes(LINES, model)
            finally:
                await model.aclose()

    return asyncio.run(scenario())


def test_the_quotes_come_with_their_fields() -> None:
    reply = form({"symptom": [], "cause": ["The labels are all -100."], "fix": ["x"], "no_help": []})
    assert quotes(reply) == (("cause", "The labels are all -100."), ("fix", "x"))


def test_a_model_that_fails_chooses_nothing() -> None:
    assert quotes(failing(500)) == ()
    assert quotes(form({"cause": "no list"})) == ()
