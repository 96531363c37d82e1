"""Logs of runs that go well, with the warnings that such runs print, are not taken for a fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.shipped import shipped_mechanisms, shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import literal_of, pattern_of
from trainmedic.kb.engine.mechanism import WEIGHTS, weigh
from trainmedic.kb.error_messages.index import load_index
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Severity
from trainmedic.kb.parse.pipeline import parse

LOGS = sorted((Path(__file__).parent / "healthy").glob("*.log"))
HARMLESS = frozenset({"artefacts"})
"""Families of mechanisms that say that nothing is wrong."""
NO_FAILURE = frozenset({"healthy_log", "lr_in_warmup", "tokenizer_warning", "steps_skipped"})
FAULTS = [mechanism for mechanism in shipped_mechanisms().mechanisms if mechanism.family not in HARMLESS]
EVIDENCE_ALL_THE_SAME: Mapping[str, str] = {
    "will be ignored": "counts only where the user says that an option has no effect",
    "has no effect": "the same",
    "is ignored": "the same",
    "All reward functions returned None": "the reward function is at fault, and the run goes on without it",
    "[Ff]alling back to eager attention": "the slow path is the fault, and the run goes on in it",
}
"""Texts that stand in warnings of more than two packages, and why they may."""


@pytest.fixture(params=LOGS, ids=lambda path: path.stem, scope="module")
def healthy(request: pytest.FixtureRequest) -> Evidence:
    path: Path = request.param
    return parse("", (Attachment(name=path.name, content=path.read_text(encoding="utf-8")),))


def test_no_mechanism_of_a_fault_has_strong_evidence_in_a_healthy_log(healthy: Evidence) -> None:
    runs = healthy.runs or (healthy.run,)
    weighed = [weigh(mechanism, Facts(healthy, run, frozenset())) for mechanism in FAULTS for run in runs]
    speaking = [one for one in weighed if one.support - one.contradiction >= WEIGHTS["strong"] and not one.excluded_by]
    assert {one.mechanism.id: [says.says.en for says in one.supports] for one in speaking} == {}


def test_a_healthy_log_shows_no_signal_of_a_failure(healthy: Evidence) -> None:
    assert {signal.kind for signal in healthy.signals} <= NO_FAILURE


def test_no_check_fires_above_a_note_on_a_healthy_log(healthy: Evidence) -> None:
    report = check(healthy, shipped_rules())
    assert [f.rule_id for f in report.fired if f.severity is not Severity.INFO] == []


def test_no_text_that_a_fault_is_told_by_stands_in_the_warnings_of_many_packages() -> None:
    warnings = _warnings()
    everything = "\n".join(warnings.values())
    common = {text for text in _texts() if literal_of(text) in everything and len(_saying(text, warnings)) > 2}
    assert common == EVIDENCE_ALL_THE_SAME.keys()


def _texts() -> set[str]:
    """The texts that the conditions of faults look for in logs."""
    observed = [one.when for m in FAULTS for one in (*m.explains, *m.against, *m.excludes)]
    decided = [origin.when for m in FAULTS for origin in m.origins if origin.when is not None]
    reads = {key for condition in (*observed, *decided) for key in condition.reads}
    return {text for call, *texts in reads if call == "log_says" for text in texts}


def _warnings() -> Mapping[str, str]:
    """What each package warns of or prints in runs that go on, a message a line."""
    return {
        table.package: "\n".join(" ".join(e.literal.split()) for e in table if e.kind in ("warning", "print"))
        for table in load_index().tables
    }


def _saying(text: str, warnings: Mapping[str, str]) -> list[str]:
    pattern, literal = pattern_of(text), literal_of(text)
    return [package for package, said in warnings.items() if (pattern.search(said) if pattern else literal in said)]
