"""The right case comes first, in either language, for a reason that is said, the same every time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.knowledge import HashEmbedder, case, cases, glossary, rules
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report
from trainmedic.kb.store import build as store
from trainmedic.kb.store.index import Index
from trainmedic.service.dialogue.query import Facets, Query, build_query
from trainmedic.service.ranking.retrieve import retrieve

CASES: dict[str, Case] = {one.id: one for one in cases().published}


class Blind(HashEmbedder):
    """An embedder that knows no word of the question."""

    def known_share(self, text: str) -> float:
        return 0.0


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    root = tmp_path_factory.mktemp("index")
    return store.ensure(cases(), rules(), glossary(), HashEmbedder(), root, root / "none")


def query(question: str, **changes: object) -> Query:
    made = build_query(Evidence(question=question), Report(), question, glossary=load_glossary())
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("loss nan with vanilla_loss", "kto-nan"),
        ("zero3 cuda out of memory", "zero3-oom"),
        ("训练时爆显存", "zero3-oom"),
        ("训练卡住不动了", "nccl-hang"),
        ("I lower the learning rate and it does not help", "kto-nan"),
    ],
)
def test_the_right_case_comes_first(index: Index, question: str, first: str) -> None:
    assert retrieve(query(question), index, HashEmbedder())[0].case_id == first


def test_a_hit_says_what_found_it(index: Index) -> None:
    hit = retrieve(query("loss nan with vanilla_loss"), index, HashEmbedder(), explain=True)[0]
    assert any(reason.startswith("words: ") and "vanilla_loss" in reason for reason in hit.why)
    assert hit.lexical_rank == 1


def test_an_embedder_that_knows_no_word_has_no_vote(index: Index) -> None:
    hits = retrieve(query("训练卡住不动了"), index, Blind())
    assert hits[0].case_id == "nccl-hang"
    assert all(hit.dense_rank is None for hit in hits)


def test_what_nothing_speaks_for_is_not_found(index: Index) -> None:
    assert retrieve(query("股票"), index, Blind()) == ()


def test_a_fired_rule_brings_its_case(index: Index) -> None:
    hits = retrieve(query("out of memory", fired=("nccl-hang",)), index, Blind())
    hit = next(hit for hit in hits if hit.case_id == "nccl-hang")
    assert hit.fired
    assert "a rule fired" in hit.why


def test_facts_that_agree_decide_between_equals(tmp_path: Path) -> None:
    twins = replace(cases(), cases=(case("a", ["same words"]), case("b", ["same words"], frameworks=("verl",))))
    index = store.ensure(twins, rules(), glossary(), Blind(), tmp_path, tmp_path / "none")
    known = {one.id: one for one in twins.cases}
    plain = query("same words")
    assert retrieve(plain, index, Blind(), cases=known)[0].case_id == "a"
    hits = retrieve(replace(plain, facets=Facets(framework="verl")), index, Blind(), cases=known)
    assert hits[0].case_id == "b"
    assert "facts: framework" in hits[0].why
    assert hits[0].lexical_rank == hits[1].lexical_rank == 1


def test_facts_alone_do_not_beat_words(index: Index) -> None:
    facets = Facets(framework="verl", signals=frozenset({"oom"}))
    asked = query("loss nan with vanilla_loss", facets=facets)
    assert retrieve(asked, index, Blind(), cases=CASES)[0].case_id == "kto-nan"


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({"framework": "verl"}, {"zero3-oom"}),
        ({"family": "communication"}, {"nccl-hang"}),
        ({"kind": "artefact"}, set()),
        ({"framework": "trl", "family": "nan-loss"}, {"kto-nan"}),
    ],
)
def test_filters_leave_only_what_they_ask_for(index: Index, filters: dict[str, str], left: set[str]) -> None:
    asked = query("training loss nan out of memory hang", fired=tuple(CASES))
    hits = retrieve(asked, index, HashEmbedder(), cases=CASES, filters=filters)
    assert {hit.case_id for hit in hits} == left


def test_a_filter_looks_beyond_the_first_chunks(tmp_path: Path) -> None:
    many = [case(f"loud-{n:03}", ["loss nan nan nan"]) for n in range(150)]
    quiet = case("quiet", ["a long story in which a loss is at last nan and more besides"], frameworks=("verl",))
    pages = replace(cases(), cases=(*many, quiet), version="many")
    index = store.ensure(pages, rules(), glossary(), HashEmbedder(), tmp_path, tmp_path / "none")
    known = {one.id: one for one in pages.cases}
    hits = retrieve(query("loss nan"), index, HashEmbedder(), cases=known, filters={"framework": "verl"})
    assert [hit.case_id for hit in hits] == ["quiet"]
