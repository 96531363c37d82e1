"""Ranks that really hang, one job for each mechanism, all started together: collected, read and judged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.every_case import every_case
from tests.hang.scenarios import HEALTHY, Ranks, Scenario, dumped, healthy, kinds, scenario, settle, told
from trainmedic.kb.hang.model import Kind
from trainmedic.ui.doctor.stacks import Rank

pytest.importorskip("torch")
SEED = 7
Jobs = dict[str, tuple[Scenario, tuple[Rank, ...]]]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with Ranks(tmp_path_factory.mktemp("hang")) as ranks:
        drawn = {kind.value: scenario(kind, SEED) for kind in kinds()} | {name: healthy(name) for name in HEALTHY}
        started = {}
        for number, (name, one) in enumerate(drawn.items()):
            started[name] = (
                one,
                ranks.start(name.replace(" ", "_"), one, record=one.kind is not None and number % 2 == 0),
            )
        settle(3)
        yield started


@every_case("kind", list(kinds()))
def test_the_odd_rank_its_line_and_the_mechanism_are_named(kind: Kind, jobs: Jobs) -> None:
    one, ranks = jobs[kind.value]
    verdict = told(dumped(ranks))
    assert verdict is not None
    assert verdict.kind is kind
    if kind is not Kind.TRANSPORT:  # nobody is odd
        assert verdict.odd == (str(one.odd),)
    if one.deepest:
        assert verdict.line is not None
        assert verdict.line.line == one.deepest


@every_case("name", list(HEALTHY))
def test_ranks_that_go_on_are_not_said_to_hang(name: str, jobs: Jobs) -> None:
    verdict = told(dumped(jobs[name][1]))
    assert verdict is None or verdict.kind is Kind.UNDECIDED
