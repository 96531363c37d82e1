"""A typed client of the REST API, for programs: `Client`, and `AsyncClient` with the same methods.

    from trainmedic.ui.client import Client

    with Client("http://127.0.0.1:8000", api_key="...") as medic:
        answer = medic.ask("loss is nan after step 10", {"train.sh": script, "train.log": log})
        print(answer.verdict, answer.answer)

Importing it loads httpx and the dataclasses of the answer, nothing else of the service; pydantic is loaded by the first
response. docs/connect/python.md has every call with an example.
"""

from __future__ import annotations

from trainmedic.service.api.resources import (
    CaseDocument,
    CaseSummary,
    Hit,
    Hits,
    MechanismDocument,
    MechanismSummary,
    Readiness,
    RuleDocument,
    RuleSummary,
    Versions,
)
from trainmedic.ui.client.asynchronous import AsyncClient
from trainmedic.ui.client.failure import ServiceError
from trainmedic.ui.client.models import (
    Answer,
    Audit,
    Cause,
    Citation,
    Defect,
    Delta,
    Diff,
    Differential,
    Evidence,
    Finding,
    Missing,
    Report,
    Step,
)
from trainmedic.ui.client.requests import read_files
from trainmedic.ui.client.synchronous import Client
from trainmedic.ui.client.webhooks import WebhookEvent, verified

__all__ = [
    "Answer",
    "AsyncClient",
    "Audit",
    "CaseDocument",
    "CaseSummary",
    "Cause",
    "Citation",
    "Client",
    "Defect",
    "Delta",
    "Diff",
    "Differential",
    "Evidence",
    "Finding",
    "Hit",
    "Hits",
    "MechanismDocument",
    "MechanismSummary",
    "Missing",
    "Readiness",
    "Report",
    "RuleDocument",
    "RuleSummary",
    "ServiceError",
    "Step",
    "Versions",
    "WebhookEvent",
    "read_files",
    "verified",
]
