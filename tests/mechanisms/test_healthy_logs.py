"""Logs of runs that go well, with the warnings that such runs print, are not taken for a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shipped import shipped_mechanisms, shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.mechanism import WEIGHTS, weigh
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Severity
from trainmedic.kb.parse.pipeline import parse

LOGS = sorted((Path(__file__).parent / "healthy").glob("*.log"))
HARMLESS = frozenset({"artefacts"})
"""Families of mechanisms that say that nothing is wrong."""


@pytest.fixture(params=LOGS, ids=lambda path: path.stem, scope="module")
def healthy(request: pytest.FixtureRequest) -> Evidence:
    path: Path = request.param
    return parse("", (Attachment(name=path.name, content=path.read_text(encoding="utf-8")),))


def test_no_mechanism_of_a_fault_has_strong_evidence_in_a_healthy_log(healthy: Evidence) -> None:
    runs = healthy.runs or (healthy.run,)
    faults = [m for m in shipped_mechanisms().mechanisms if m.family not in HARMLESS]
    weighed = [weigh(mechanism, Facts(healthy, run, frozenset())) for mechanism in faults for run in runs]
    speaking = [one for one in weighed if one.support - one.contradiction >= WEIGHTS["strong"] and not one.excluded_by]
    assert {one.mechanism.id: [says.says.en for says in one.supports] for one in speaking} == {}


def test_no_check_fires_above_a_note_on_a_healthy_log(healthy: Evidence) -> None:
    report = check(healthy, shipped_rules())
    assert [f.rule_id for f in report.fired if f.severity is not Severity.INFO] == []
