"""A frontier model's diagnoses of outside incidents go through the whole path and come out as they did."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.every_case import every_case
from tests.service.recorded import incidents, replayed, rows
from trainmedic.service.advisor import Advisor

KNOWN = incidents()
ROWS = rows()


@pytest.fixture(scope="module")
def told() -> Counter[str]:
    return Counter()


@every_case("row", ROWS)
def test_a_recorded_diagnosis_is_shown_as_it_was(
    row: dict[str, object], knowledge_advisor: Advisor, told: Counter[str]
) -> None:
    then, missing = replayed(row, KNOWN[str(row["incident"])], knowledge_advisor)
    told["missing"] += len(missing)
    assert then == row["then"]


def test_the_model_is_still_told_what_it_rested_on(told: Counter[str]) -> None:
    cited = sum(
        len(each["lines_for"]) + len(each["lines_against"]) for row in ROWS for each in row["form"]["hypotheses"]
    )
    assert cited
    assert told["missing"] < cited / 10
