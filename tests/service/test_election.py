"""A small model: what its endpoint can do, what it is used for, and how it weighs the program's causes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fake_model import NAME, FakeModel, Reply, Request, chat, form
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import run_inline
from trainmedic.service.diagnosis.assistant import Assistant
from trainmedic.service.diagnosis.confidence import Role, calibration_of, store
from trainmedic.service.diagnosis.election import CAUSES, Ballot, Election, ballot_of, election_of
from trainmedic.service.diagnosis.roles import Wanted, billions, role_of, standing
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.abilities import Abilities
from trainmedic.service.llm.chat import ModelError
from trainmedic.ui.evaluation.model import How, Measured, fitted_weights, measure
from trainmedic.ui.evaluation.outside import Incident, Scorer

UNSURE = Ask(question="DPO with TRL: rewards/accuracies stays at 0.5 and the loss at 0.69.")
SMALL = "tiny-1.5b"
MEASURED = '{"role": "elects", "weights": {"decisions": 1.0, "logprobs": 1.0, "form": 3.0}, "bins": {}}'
ALL = ("structured", "logprobs", "tools", "decisions")


def answered(
    advisor: Advisor, folder: Path, measured: str = MEASURED, request: Ask = UNSURE, **fake: Any
) -> tuple[Answer, FakeModel]:
    """What is answered with a small model of which this was measured, and its server afterwards."""
    if measured:
        store(measured, SMALL, folder)

    async def scenario() -> tuple[Answer, FakeModel]:
        with FakeModel(models=[SMALL], **fake) as server:
            async with chat(server.url) as model:
                parts = [part async for part in Assistant(advisor, model, calibrations=folder).stream(request)]
        assert isinstance(parts[-1], Answer)
        return parts[-1], server

    return asyncio.run(scenario())


def believing(title: str) -> Callable[[str], float]:
    """A model that believes in one cause, and in no other."""
    return lambda question: 0.98 if title in question.rpartition("# Possible cause")[2] else 0.02


def choosing(title: str) -> Callable[[Request], Reply]:
    """A model that chooses the cause with this title, wherever it stands."""

    def reply(asked: Request) -> Reply:
        line = next(line for line in asked.prompt.splitlines() if title in line)
        return form({"label": line.partition(".")[0]})

    return reply


def causes_of(answer: Answer) -> list[str]:
    return [cause.case_id for cause in answer.causes]


@pytest.fixture
def second(knowledge_advisor: Advisor) -> str:
    """The title of the second cause of the unsure question."""
    return knowledge_advisor.ask(UNSURE).causes[1].title


# --- what an endpoint can do -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("able", [(), ALL, ("structured", "tools"), ("logprobs",), ("decisions", "structured")])
def test_what_an_endpoint_can_do_is_found_out_by_asking_for_it(able: Collection[str]) -> None:
    async def scenario() -> None:
        with FakeModel(able=able) as server:
            async with chat(server.url) as model:
                expected = {name: name in able for name in ALL}
                assert await model.able() == Abilities(**expected)
                asked = len(server.requests)
                await model.able()
                assert len(server.requests) == asked
                assert not server.texts + server.forms

    asyncio.run(scenario())


def test_an_endpoint_that_refuses_a_field_does_not_have_what_it_is_for() -> None:
    async def scenario() -> None:
        with FakeModel(able=ALL, refused="top_logprobs") as server:
            async with chat(server.url) as model:
                assert not (await model.able()).logprobs
                assert (await model.able()).structured

    asyncio.run(scenario())


def test_a_model_that_was_lost_is_looked_at_again() -> None:
    async def scenario() -> None:
        with FakeModel(able=ALL) as server:
            async with chat(server.url) as model:
                await model.able()
                server.able = ()
                server.listing = Reply(status=503)
                assert await model.probe() == "server_error"
                assert model.abilities is None
                server.listing = [NAME]
                assert await model.probe() is None
                assert not (await model.able()).ways

    asyncio.run(scenario())


def test_a_model_that_is_not_there_can_do_nothing_that_is_known() -> None:
    async def scenario() -> None:
        with FakeModel() as gone:
            url = gone.url
        async with chat(url, name="m") as model:
            with pytest.raises(ModelError):
                await model.able()
            assert model.abilities is None

    asyncio.run(scenario())


# --- what it is used for ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Qwen/Qwen3-8B-FP8", 8.0),
        ("qwen2.5-coder-1.5b-instruct-q4", 1.5),
        ("Qwen3.5-35B-A3B", 35.0),
        ("gemma-3-270m-it", 0.27),
        ("gpt-oss-120b", 120.0),
        ("ministral-latest", None),
        ("v3b2", None),
    ],
)
def test_a_name_may_tell_the_size(name: str, size: float | None) -> None:
    assert billions(name) == size


HAS_ALL = Abilities(structured=True, logprobs=True, tools=True, decisions=True)
WORDS_ONLY = Abilities(structured=False, logprobs=False, tools=False, decisions=False)


@pytest.mark.parametrize(
    ("name", "able", "measured", "wanted", "role"),
    [
        ("qwen3-8b", HAS_ALL, None, "auto", "decides"),
        ("qwen3-1.7b", HAS_ALL, None, "auto", "elects"),
        ("nameless", HAS_ALL, None, "auto", "decides"),
        ("nameless", None, None, "auto", "decides"),
        ("qwen3-8b", HAS_ALL, "elects", "auto", "elects"),
        ("qwen3-1.7b", HAS_ALL, "decides", "auto", "decides"),
        ("qwen3-1.7b", HAS_ALL, "elects", "decides", "decides"),
        ("qwen3-8b", replace(HAS_ALL, structured=False), None, "auto", "elects"),
        ("qwen3-8b", WORDS_ONLY, None, "decides", "unused"),
    ],
)
def test_a_model_plays_the_part_that_is_wanted_or_measured_or_fits_its_size_if_it_can(
    name: str, able: Abilities | None, measured: Role | None, wanted: Wanted, role: Role
) -> None:
    assert role_of(name, able, measured, wanted) == role


def test_what_a_model_is_used_for_is_said_in_words(tmp_path: Path) -> None:
    async def said(measured: str) -> str:
        if measured:
            store(measured, SMALL, tmp_path)
        with FakeModel(models=[SMALL], able=("structured", "logprobs")) as server:
            async with chat(server.url) as model:
                await model.able()
                return await standing(model, tmp_path, "auto")

    assert "unused" in asyncio.run(said(""))
    assert asyncio.run(said(MEASURED)) == (
        f"{SMALL}: elects (measured); has structured output, log-probabilities; lacks tool calls, /v1/decisions"
    )


# --- an election -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("able", [("logprobs",), ("decisions",), ALL])
def test_the_cause_that_the_model_believes_in_comes_first(
    knowledge_advisor: Advisor, tmp_path: Path, second: str, able: Collection[str]
) -> None:
    alone = knowledge_advisor.ask(UNSURE)
    answer, server = answered(knowledge_advisor, tmp_path, able=able, says=believing(second))
    assert answer.causes[0].title == second
    assert sorted(causes_of(answer)[:2]) == sorted(causes_of(alone)[:2])
    assert (answer.mode, answer.model) == ("deterministic", SMALL)
    assert messages("elected", "en", model=SMALL) in answer.notices
    assert answer.findings == alone.findings
    assert [vote.path for vote in server.votes] == (
        ["/v1/decisions"] if "decisions" in able else ["/v1/chat/completions"] * CAUSES
    )


def test_a_model_that_prefers_nothing_leaves_the_program_s_order(knowledge_advisor: Advisor, tmp_path: Path) -> None:
    alone = knowledge_advisor.ask(UNSURE)
    answer, server = answered(knowledge_advisor, tmp_path, able=ALL)
    assert server.votes
    assert (causes_of(answer), answer.verdict, answer.answer) == (causes_of(alone), alone.verdict, alone.answer)
    assert not answer.notices


def test_without_probabilities_it_chooses_from_the_list_in_two_orders(
    knowledge_advisor: Advisor, tmp_path: Path, second: str
) -> None:
    answer, server = answered(knowledge_advisor, tmp_path, able=("structured",), forms=[choosing(second)])
    assert answer.causes[0].title == second
    there, back = ([line for line in asked.prompt.splitlines() if ". " in line[:3]] for asked in server.forms)
    assert [line[3:] for line in there[:-1]] == [line[3:] for line in back[-2::-1]]


def test_a_choice_for_its_place_in_the_list_cancels(knowledge_advisor: Advisor) -> None:
    draft = knowledge_advisor.prepare(UNSURE)

    async def scenario() -> Election | None:
        with FakeModel(forms=[form({"label": "A"})], able=("structured",)) as server:
            async with chat(server.url) as model:
                return await election_of(draft, model, run_inline, ["form"])

    election = asyncio.run(scenario())
    assert election is not None
    assert set(election.scores) == {0.0}


@pytest.mark.parametrize("measured", ["", '{"role": "elects", "weights": {"form": 1.0}, "bins": {}}'])
def test_what_was_not_measured_of_a_small_model_counts_nothing(
    knowledge_advisor: Advisor, tmp_path: Path, second: str, measured: str
) -> None:
    answer, server = answered(knowledge_advisor, tmp_path, measured, able=("logprobs",), says=believing(second))
    assert causes_of(answer) == causes_of(knowledge_advisor.ask(UNSURE))
    assert not server.votes


def test_the_prompt_is_short_and_all_but_its_end_is_the_same_for_all_causes(knowledge_advisor: Advisor) -> None:
    pasted = "\n".join(f"step {step} loss 0.6931 rewards/accuracies 0.5" for step in range(2_000))
    ballot = ballot_of(knowledge_advisor.prepare(replace(UNSURE, question=f"{UNSURE.question}\n{pasted}")))
    assert isinstance(ballot, Ballot)
    first, other = ("\n".join(message.content for message in ballot.of_cause(place)) for place in (0, 1))
    assert len(first) < 5_000
    shared = next(place for place, (a, b) in enumerate(zip(first, other, strict=False)) if a != b)
    assert len(first) - shared < 400


# --- how much it counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("knows", "counts"), [(True, True), (False, False)])
def test_a_model_counts_as_much_as_it_was_right(knowledge_advisor: Advisor, knows: bool, counts: bool) -> None:
    ballot = ballot_of(knowledge_advisor.prepare(UNSURE))
    assert ballot is not None
    right = ballot.causes[1].case.id
    believed = 1 if knows else 2
    scores = tuple(3.0 if place == believed else 0.0 for place in range(len(ballot.causes)))
    weights = fitted_weights([(Election(ballot=ballot, way="logprobs", scores=scores), frozenset({right}))])
    assert (weights.get("logprobs", 0.0) > 0) is counts


def test_a_measurement_sets_the_model_beside_itself_alone_and_beside_no_model(
    knowledge_advisor: Advisor, tmp_path: Path, second: str
) -> None:
    incident = Incident(
        id="a",
        thread="",
        family="trl",
        language="en",
        question={"en": UNSURE.question},
        attachments=(),
        expect="cause",
        cause={},
        required=((second,),),
        mechanism=(),
        kind="config",
    )
    alone = form({"verdict": "unclear", "hypotheses": [], "confidence": "low"})

    async def scenario() -> Measured:
        scorer, how = Scorer(knowledge_advisor.knowledge.published), How(calibrations=tmp_path)
        with FakeModel(
            models=[SMALL], able=("structured", "logprobs"), says=believing(second), forms=[alone]
        ) as server:
            async with chat(server.url) as model:
                return await measure([incident], knowledge_advisor, scorer, model, how)

    measured = asyncio.run(scenario())
    (bare,), (program,), (together,) = measured.alone, measured.program, measured.together
    assert (bare.first, program.first, together.first) == (False, False, True)
    assert "against no model: ahead in 1, behind in 0" in measured.table()
    store(measured.calibration(), measured.model, tmp_path)
    assert calibration_of(SMALL, tmp_path).ways == ("logprobs",)
