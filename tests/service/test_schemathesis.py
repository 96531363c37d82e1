"""The API against its own description: generated requests, good and bad, under every check of schemathesis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.generation import GenerationMode

from tests.every_case import MANY, every_case, some
from tests.openai_app import openai_app
from trainmedic.service.advisor import Advisor
from trainmedic.service.api import routes
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory

EXAMPLES = 12 if MANY else 4
"""Requests generated for each call, of those that fit the description, and as many again of those that do not."""
SETTINGS = Settings()
OPERATIONS = [
    "POST /v1/ask", "GET /v1/answers/{answer_id}", "POST /v1/check", "POST /v1/audit", "POST /v1/diff",
    "POST /v1/effective",
    "POST /v1/messages/explain", "POST /v1/search", "POST /v1/feedback", "GET /v1/cases", "GET /v1/cases/{case_id}",
    "GET /v1/mechanisms", "GET /v1/mechanisms/{mechanism_id}", "GET /v1/rules", "GET /v1/rules/{rule_id}",
    "GET /v1/conversations", "GET /v1/conversations/{conversation_id}", "DELETE /v1/conversations/{conversation_id}",
    "GET /v1/models", "GET /v1/models/{model_id}", "POST /v1/chat/completions", "GET /livez", "GET /readyz",
    "GET /version", "GET /metrics",
]  # fmt: skip


@pytest.fixture(scope="module")
def operations(knowledge_advisor: Advisor) -> Iterator[dict[str, Any]]:
    """Every operation of the description, by its label."""
    # How many there may be in all lists together is no part of the description.
    patch = pytest.MonkeyPatch()
    patch.setattr(routes, "MAX_ATTACHMENTS", 1_000)
    history = History("sqlite://")
    app = openai_app(Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(history)), SETTINGS)
    described = schemathesis.openapi.from_asgi("/openapi.json", app)
    # Ten thousand generated messages take minutes; test_openai_client.py tests that bound.
    del described.raw_schema["components"]["schemas"]["Completion"]["properties"]["messages"]["maxItems"]
    yield {operation.label: operation for operation in map(known, described.get_all_operations())}
    history.close()
    patch.undo()


def known(result: Any) -> Any:
    """An operation; a test fails where its description cannot be understood."""
    return result.ok()


def test_every_operation_that_is_described_is_tried(operations: dict[str, Any]) -> None:
    assert sorted(operations) == sorted(OPERATIONS)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", OPERATIONS)
def test_every_response_is_one_that_the_description_promises(
    operations: dict[str, Any], label: str, mode: GenerationMode
) -> None:
    operation = operations[label]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
        pytest.skip("nothing that is sent to it can be wrong: any id may be asked for")

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def conforms(case: Case[Any]) -> None:
        case.call_and_validate()

    conforms()


@every_case("label", OPERATIONS)
def test_values_at_the_bounds_are_answered_as_described(operations: dict[str, Any], label: str) -> None:
    operation = operations[label]
    cases = operation.schema.iter_coverage_cases(
        operation=operation, generation_modes=list(GenerationMode), generation_config=operation.schema.config.generation
    )
    for case in some(islice(cases, 40), 4):
        case.call_and_validate()
