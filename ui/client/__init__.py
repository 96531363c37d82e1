"""A typed client of the REST API, for programs.

    from trainmedic.ui.client import Client

    with Client("http://127.0.0.1:8000", api_key="...") as medic:
        answer = medic.ask("loss is nan after step 10", {"train.sh": script, "train.log": log})
        print(answer.verdict, answer.answer)

Importing it loads httpx and the dataclasses of the answer, nothing else of the service; pydantic is loaded by the first
response. docs/connect/python.md has every call with an example.
"""

from __future__ import annotations

from trainmedic.ui.client.client import Client
from trainmedic.ui.client.failure import ServiceError
from trainmedic.ui.client.models import Answer, Audit, Delta, Diff, Report, Step
from trainmedic.ui.client.requests import read_files

__all__ = ["Answer", "Audit", "Client", "Delta", "Diff", "Report", "ServiceError", "Step", "read_files"]
