"""Whole answers with a model that decides: what it may change, what is shown, and what happens when it fails."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.fake_model import (
    NAME,
    SILENT,
    FakeModel,
    Reply,
    Request,
    calling,
    chat,
    diagnosis,
    failing,
    form,
    hypothesis,
)
from tests.incidents import INCIDENTS, KTO_COMMAND, Incident
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.serialization import to_json
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import tree_of
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answering import Delta, Draft, Stage
from trainmedic.service.diagnosis.assistant import Assistant
from trainmedic.service.diagnosis.confidence import store
from trainmedic.service.dialogue.request import Ask

KTO = INCIDENTS[0]
FOUND = ("language", "findings", "signals", "run", "receipt", "kb_version", "differential", "defects", "messages")
"""What no model may change."""
PATIENCE_S = 20.0
SECRET = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz12345678"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of one question."""

    parts: tuple[Any, ...]
    answer: Answer
    requests: tuple[Request, ...]

    @property
    def streamed(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Delta))

    @property
    def prompts(self) -> list[str]:
        return [each.prompt for each in self.requests if each.path.endswith("completions")]


def ask(
    advisor: Advisor, request: Ask, *forms: Reply, script: tuple[Reply, ...] = (), fake: Any = None, **options: Any
) -> Asked:
    """One question to an advisor whose model fills these forms."""

    async def scenario() -> Asked:
        with FakeModel(*script, forms=forms, **(fake or {})) as server:
            async with chat(server.url, **options) as model:
                async with asyncio.timeout(PATIENCE_S):
                    parts = [part async for part in Assistant(advisor, model).stream(request)]
            answer = parts[-1]
            assert isinstance(answer, Answer)
            return Asked(parts=tuple(parts[:-1]), answer=answer, requests=tuple(server.requests))

    return asyncio.run(scenario())


def about(incident: Incident, language: str = "en") -> Ask:
    return Ask(question=getattr(incident, language), attachments=incident.files)


def found(answer: Answer) -> str:
    """What the program found, as it goes over the wire."""
    return to_json({name: getattr(answer, name) for name in FOUND})


def failed(kind: str, language: str = "en") -> str:
    return messages("model_failed", language, why=messages(f"failures.{kind}", language))


def sections_of(answer: Answer, kind: str) -> str:
    return "\n".join(section.body for section in answer.sections if section.kind == kind)


def markers_in(text: str) -> set[int]:
    plain = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return {int(number) for number in re.findall(r"\[(\d+)\]", plain)}


# --- the model decides, the program finds ----------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_the_cause_is_the_model_s_and_the_findings_are_the_program_s(
    knowledge_advisor: Advisor, incident: Incident, language: str
) -> None:
    request = about(incident, language)
    alone = knowledge_advisor.ask(request)
    answer = ask(knowledge_advisor, request, diagnosis(hypothesis())).answer
    assert found(answer) == found(alone)
    assert (answer.mode, answer.model, answer.verdict) == ("llm", NAME, "answered")
    first = answer.causes[0]
    assert (first.title, first.origin, first.support) == ("A micro-batch of one class", "model", "supported")
    assert first.case_id not in knowledge_advisor.knowledge.published
    assert [cause.case_id for cause in answer.causes[1:3]] == [cause.case_id for cause in alone.causes[:2]]
    assert "A micro-batch of one class" in sections_of(answer, "lead")


def test_the_spine_is_composed_with_the_diff_that_was_checked(knowledge_advisor: Advisor) -> None:
    edits = [{"file": "train.sh", "setting": "vanilla_loss", "line": "", "value": ""}]
    told = hypothesis(edits=edits, change="Leave out `--vanilla_loss`.", verify="The first loss is finite.")
    asked = ask(knowledge_advisor, about(KTO), diagnosis(told))
    kinds = [section.kind for section in asked.answer.sections if not section.folded]
    order = ["receipt", "lead", "confidence", "because", "diff", "change", "verify"]
    assert [kind for kind in kinds if kind in order] == order
    assert "-   --vanilla_loss" in sections_of(asked.answer, "diff")
    assert asked.streamed == asked.answer.answer
    assert asked.answer.causes[0].support == "proven"


@pytest.mark.parametrize(
    ("message", "shows_the_patch"), [("Is it safe to resume?", False), ("Where do I put it?", True)]
)
def test_a_follow_up_gets_its_reply_and_what_stands_is_one_line(
    advisor: Advisor, message: str, shows_the_patch: bool
) -> None:
    edits = [{"file": "train.sh", "setting": "vanilla_loss", "line": "", "value": ""}]
    first = ask(advisor, about(KTO), diagnosis(hypothesis(edits=edits))).answer
    again = diagnosis(hypothesis(edits=edits, title="The micro-batch holds one class"), reply="Yes, from step 0.")
    request = Ask(question=message, conversation_id=first.conversation_id)
    asked = ask(advisor, request, again)
    shown = [section.kind for section in asked.answer.sections if not section.folded]
    assert shown.index("reply") < shown.index("unchanged")
    assert not {"lead", "because", "change"} & set(shown)
    assert ("diff" in shown) is shows_the_patch
    assert (
        "Yes, from step 0."
        in ask(advisor, Ask(question="And?", conversation_id=first.conversation_id), again).prompts[0]
    )


def test_every_marker_leads_to_a_citation(knowledge_advisor: Advisor) -> None:
    told = hypothesis(lines_for=["L1", "L4", "F1"], because="It is so [77] because of L4.")
    answer = ask(knowledge_advisor, about(KTO), diagnosis(told, hypothesis(title="Another [88]"))).answer
    known = {citation.marker for citation in answer.citations}
    assert markers_in(answer.answer) <= known
    assert len(known) == len(answer.citations)
    assert not {77, 88} & markers_in(answer.answer)


def test_code_with_brackets_can_be_copied(knowledge_advisor: Advisor) -> None:
    told = hypothesis(because="Mask labels[0] as [77] says, in `a[1]`.", change="batch['x'] is empty.")
    answer = ask(knowledge_advisor, about(KTO), diagnosis(told)).answer.answer
    assert "Mask `labels[0]` as ［77］ says, in `a[1]`." in answer
    assert "`batch['x']` is empty." in answer


@pytest.mark.parametrize("written", ["![x](https://evil.example/p)", "<script>alert(1)</script>", "[a](http://e.x)"])
def test_what_a_model_writes_becomes_no_link_and_no_tag(knowledge_advisor: Advisor, written: str) -> None:
    told = hypothesis(title=written, because=written, change=written, verify=written, command=f"echo {written}\n```\n")
    answer = ask(knowledge_advisor, about(KTO), diagnosis(told, told, question=written, reply=written)).answer
    outside_code = re.sub(r"```.*?```|`[^`\n]*`", "", answer.answer, flags=re.DOTALL)
    assert "](http" not in outside_code
    assert "<script" not in outside_code


def test_an_objection_is_sent_back_once_and_the_second_answer_counts(knowledge_advisor: Advisor) -> None:
    wrong = hypothesis(edits=[{"file": "train.sh", "setting": "frobnicate_grads", "line": "", "value": "1"}])
    asked = ask(knowledge_advisor, about(KTO), diagnosis(wrong), diagnosis(hypothesis(title="Better")))
    assert len(asked.prompts) == 2
    assert "frobnicate_grads" in asked.prompts[1].rpartition("The program checked your answer")[2]
    assert asked.answer.causes[0].title == "Better"
    assert asked.answer.usage["prompt_tokens"] == 200
    again = ask(knowledge_advisor, about(KTO), diagnosis(wrong), diagnosis(wrong))
    assert len(again.prompts) == 2
    assert "frobnicate_grads" in sections_of(again.answer, "against")


@pytest.mark.parametrize(
    ("said", "verdict", "kind"),
    [
        ("unclear", "need_input", "ask"),
        ("healthy", "no_fault", "lead"),
        ("explanation", "explained", "reply"),
        ("other_field", "not_in_kb", "lead"),
    ],
)
def test_each_verdict_has_its_own_answer(knowledge_advisor: Advisor, said: str, verdict: str, kind: str) -> None:
    told = () if said in ("explanation", "other_field") else (hypothesis(),)
    reply = diagnosis(*told, verdict=said, question="Which release?", reply="Beta weighs the KL term.")
    answer = ask(knowledge_advisor, about(KTO), reply).answer
    assert answer.verdict == verdict
    assert sections_of(answer, kind)
    assert bool(answer.causes) == bool(told)


def test_a_conversation_goes_on_from_what_the_model_said(advisor: Advisor) -> None:
    first = ask(advisor, about(KTO), diagnosis(hypothesis())).answer
    request = Ask(question="Why not the learning rate?", conversation_id=first.conversation_id)
    asked = ask(advisor, request, diagnosis(hypothesis(), reply="It is 5e-7 already."))
    assert "answered (answered): A micro-batch of one class" in asked.prompts[0]
    assert sections_of(asked.answer, "reply") == "It is 5e-7 already."


def test_what_was_measured_of_a_model_here_decides_how_sure_its_answers_are(
    knowledge_advisor: Advisor, tmp_path: Path
) -> None:
    store('{"bins": {"90/supported": [99, 100]}}', NAME, tmp_path)

    async def asked(**measured: Any) -> str:
        with FakeModel(forms=[diagnosis(hypothesis())]) as server:
            async with chat(server.url) as model:
                parts = [part async for part in Assistant(knowledge_advisor, model, **measured).stream(about(KTO))]
        assert isinstance(parts[-1], Answer)
        return parts[-1].causes[0].confidence

    assert asyncio.run(asked(calibrations=tmp_path)) == "high"
    assert asyncio.run(asked()) == "medium"


# --- an investigation ------------------------------------------------------------------------------------------------


def test_an_investigation_shows_its_steps_and_its_results_can_be_cited(knowledge_advisor: Advisor) -> None:
    request = replace(about(KTO), mode="investigate")
    calls = (
        calling("check_changed", changes={"vanilla_loss": False}),
        calling("read_log", attachment="train.sh", first_line=1, last_line=3),
        calling("look_up_option", framework="openrlhf", option="vanilla_loss"),
        calling("search_cases", query="KTO NaN"),
        Reply("enough"),
    )
    asked = ask(knowledge_advisor, request, diagnosis(hypothesis(lines_for=["F99", "F33"])), script=calls)
    steps = [part for part in asked.parts if isinstance(part, StepView)]
    assert [step.tool for step in steps] == ["check_changed", "read_log", "look_up_option", "search_cases"]
    assert all(step.ok for step in steps)
    assert asked.answer.steps == tuple(steps)
    assert asked.answer.mode == "llm"
    # What was found is a fact like any other.
    found = re.findall(r"^F(\d+)", "\n".join(step.result for step in steps), re.MULTILINE)
    assert len(set(found)) == len(found)


def test_the_source_of_the_user_s_release_is_read_and_cited(knowledge_advisor: Advisor, tmp_path: Path) -> None:
    sources = Sources(tmp_path, "off")
    code = b"class KTOTrainer:\n    def loss(self):\n        return self.vanilla_loss\n"
    for version in ("0.6.0", "0.6.1"):
        sources.store.add(tree_of("openrlhf", version, "wheel", {"openrlhf/kto.py": code, "openrlhf/__init__.py": b""}))
    own = Attachment(name="pip.txt", content="openrlhf==0.6.0\n")
    library = Library(sources)
    advisor = Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, source=library)
    request = replace(about(KTO), mode="investigate")
    request = replace(request, attachments=(*request.attachments, own))
    calls = (
        calling("grep_source", package="openrlhf", pattern="vanilla_loss"),
        calling("read_source", package="openrlhf", symbol="KTOTrainer.loss"),
        calling("diff_source", package="openrlhf", before="0.6.0", after="0.6.1", symbol="KTOTrainer"),
        calling("changes", package="openrlhf", before="0.6.0", after="0.5.0"),
        Reply("enough"),
    )
    steps = ask(advisor, request, diagnosis(hypothesis()), script=calls).answer.steps
    library.close()
    assert [step.ok for step in steps] == [True, True, True, False]
    assert "source openrlhf 0.6.0: 1 line\nopenrlhf/kto.py:3: return self.vanilla_loss" in steps[0].result
    assert "source openrlhf 0.6.0 openrlhf/kto.py:2-3 KTOTrainer.loss" in steps[1].result
    assert "trainmedic kb sources fetch openrlhf==0.5.0" in steps[3].result


@pytest.mark.parametrize(
    "call",
    [
        calling("open_shell", command="rm -rf /"),
        calling("read_log", attachment="/etc/passwd", first_line=1, last_line=3),
        calling("read_log", attachment="train.sh", first_line=0, last_line=3),
        calling("get_case", case_id="nothing"),
        calling("read_source", package="openrlhf", version="0.0.1", symbol="Nothing"),
        Reply(calls=[("search_cases", "{broken")]),
    ],
)
def test_a_call_that_makes_no_sense_is_a_failed_step_and_the_answer_comes(
    knowledge_advisor: Advisor, call: Reply
) -> None:
    request = replace(about(KTO), mode="investigate")
    asked = ask(knowledge_advisor, request, diagnosis(hypothesis()), script=(call, Reply("enough")))
    (step,) = asked.answer.steps
    assert not step.ok
    assert asked.answer.causes[0].title == "A micro-batch of one class"


def test_an_investigation_ends_by_itself(knowledge_advisor: Advisor) -> None:
    request = replace(about(KTO), mode="investigate")
    asked = ask(knowledge_advisor, request, diagnosis(hypothesis()), script=(calling("search_cases", query="x"),))
    assert len(asked.answer.steps) == 6
    assert [step.ok for step in asked.answer.steps] == [True, *[False] * 5], "the same call is made once"
    assert asked.answer.mode == "llm"


# --- when it fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("kind", "reply", "options"),
    [
        ("slow", SILENT, {"timeout_s": 0.3}),
        ("server_error", failing(500), {}),
        ("garbage", Reply(""), {}),
        ("garbage", form({"verdict": "cause"}), {}),
        ("too_long", failing(400, "maximum context length is 10"), {}),
    ],
)
def test_whatever_fails_the_program_s_answer_comes_and_says_why(
    knowledge_advisor: Advisor, kind: str, reply: Reply, options: dict[str, Any], language: str
) -> None:
    alone = knowledge_advisor.ask(about(KTO, language))
    asked = ask(knowledge_advisor, about(KTO, language), reply, name=NAME, **options)
    assert (asked.answer.mode, asked.answer.model, asked.answer.answer) == ("deterministic", None, alone.answer)
    assert asked.answer.notices[0] == failed(kind, language)
    assert asked.streamed == alone.answer


def test_a_second_answer_that_fails_leaves_the_first(knowledge_advisor: Advisor) -> None:
    wrong = hypothesis(edits=[{"file": "train.sh", "setting": "frobnicate_grads", "line": "", "value": "1"}])
    asked = ask(knowledge_advisor, about(KTO), diagnosis(wrong), failing(500))
    assert (asked.answer.mode, asked.answer.causes[0].title) == ("llm", "A micro-batch of one class")


def test_a_model_nobody_serves_is_left_alone_after_a_while(knowledge_advisor: Advisor) -> None:
    async def scenario() -> list[tuple[str, ...]]:
        with FakeModel() as gone:
            url = gone.url
        notices = []
        async with chat(url) as model:
            for _ in range(4):
                parts = [part async for part in Assistant(knowledge_advisor, model).stream(about(KTO))]
                assert isinstance(parts[-1], Answer)
                notices.append(parts[-1].notices)
        return notices

    assert asyncio.run(scenario()) == [(failed("absent"),)] * 3 + [(failed("open"),)]


def test_whoever_leaves_stops_the_model(knowledge_advisor: Advisor) -> None:
    async def scenario() -> None:
        with FakeModel(forms=[SILENT]) as server:
            async with chat(server.url) as model:
                stream = Assistant(knowledge_advisor, model).stream(about(KTO))
                async with aclosing(stream) as parts:
                    assert isinstance(await anext(parts), Draft)
                    assert isinstance(await anext(parts), Stage)
                    waiting = asyncio.ensure_future(anext(parts))
                    await server.until_held()
                    waiting.cancel()
                    await asyncio.gather(waiting, return_exceptions=True)
                await server.until_disconnected()

    asyncio.run(scenario())


# --- when it is not asked --------------------------------------------------------------------------------------------


def test_the_findings_are_there_before_the_model_is_asked(knowledge_advisor: Advisor) -> None:
    asked = ask(knowledge_advisor, about(KTO), diagnosis(hypothesis()))
    draft = asked.parts[0]
    assert isinstance(draft, Draft)
    assert found(draft.answer) == found(asked.answer)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_deterministic_answer_is_the_program_s_and_calls_nobody(knowledge_advisor: Advisor, language: str) -> None:
    request = replace(about(KTO, language), mode="deterministic")
    asked = ask(knowledge_advisor, request, diagnosis(hypothesis()))
    assert asked.requests == ()
    assert asked.answer.answer == knowledge_advisor.ask(request).answer
    assert asked.answer.notices == (messages("as_asked", language),)


def test_thanks_need_no_model(advisor: Advisor) -> None:
    first = advisor.ask(about(KTO))
    asked = ask(advisor, Ask(question="Thanks!", conversation_id=first.conversation_id), diagnosis(hypothesis()))
    assert asked.requests == ()


# --- what it is shown ------------------------------------------------------------------------------------------------


def test_no_secret_ever_reaches_the_model(knowledge_advisor: Advisor) -> None:
    pasted = Attachment(name=f"run-{SECRET}.sh", content=f"export HF_TOKEN={SECRET}\n{KTO_COMMAND}")
    request = Ask(question=f"KTO loss NaN, my token is {SECRET}", attachments=(pasted,), mode="investigate")
    look = calling("read_log", attachment="question", first_line=1, last_line=2)
    asked = ask(knowledge_advisor, request, diagnosis(hypothesis()), script=(look, Reply("x")))
    assert asked.requests
    assert SECRET not in "".join(json.dumps(request.body) for request in asked.requests)
    assert SECRET not in to_json(asked.answer)


@pytest.mark.parametrize("name", ["[99] x.sh", "[1](http://evil.example).sh", "www.evil.example", "<b>[2]`.sh"])
def test_the_name_of_a_file_looks_like_no_citation_and_no_link(knowledge_advisor: Advisor, name: str) -> None:
    request = replace(about(KTO), attachments=(Attachment(name=name, content=KTO_COMMAND),))
    for reply in (diagnosis(hypothesis(lines_for=["L4"])), failing(401)):
        answer = ask(knowledge_advisor, request, reply).answer
        receipt = answer.answer.partition("\n\n")[0]
        assert receipt.startswith("> Read: ")
        assert not re.search(r"[\[\]<]", receipt)
        assert markers_in(answer.answer) <= {citation.marker for citation in answer.citations}
        assert "](http://evil" not in answer.answer.partition("```")[0]
