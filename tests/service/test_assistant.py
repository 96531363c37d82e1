"""Whole answers with a model beside the advisor: what its words may change, and what happens when it fails."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest

import trainmedic.service.llm.endpoint
from tests.every_case import every_case
from tests.fake_model import NAME, SILENT, FakeModel, Reply, Request, chat, failing, form
from tests.incidents import INCIDENTS, KTO_COMMAND, Incident
from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.serialization import to_json
from trainmedic.service import pipeline
from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.assistant import Assistant
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import Delta, Draft, final_answer
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.prompts import sources_of, system_text

T = TypeVar("T")
KTO = INCIDENTS[0]
OUTSIDE = "What is the capital of France?"
RESTATED = form({"question": "OpenRLHF KTO loss is NaN with --vanilla_loss", "symptoms": ["loss NaN", "single class"]})
SETTLED = ("verdict", "language", "causes", "findings", "missing", "signals", "run", "receipt", "kb_version")
PATIENCE_S = 20.0
HEALTHY = "".join(f"{{'loss': {2 - n / 10}, 'grad_norm': 0.5, 'epoch': 0.0{n}}}\n" for n in range(1, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of one question: the pieces of text, the answer, and what the model was asked."""

    pieces: tuple[str, ...]
    answer: Answer
    requests: tuple[Request, ...]

    @property
    def streamed(self) -> str:
        """All text that was shown as it came."""
        return "".join(self.pieces)

    @property
    def prompts(self) -> list[str]:
        """What the model was shown when it was asked for a text."""
        return [each.prompt for each in self.requests if each.path.endswith("completions") and not each.is_form]

    @property
    def forms(self) -> list[str]:
        """What the model was shown when it was asked for a form."""
        return [each.prompt for each in self.requests if each.is_form]


async def parts_of(assistant: Assistant, request: Ask) -> tuple[tuple[str, ...], Answer]:
    async with asyncio.timeout(PATIENCE_S):
        parts = [part async for part in assistant.stream(request)]
    *pieces, answer = parts
    assert isinstance(answer, Answer)
    return tuple(piece.text for piece in pieces if isinstance(piece, Delta)), answer


def ask(
    advisor: Advisor,
    request: Ask,
    *script: Reply,
    fake: dict[str, Any] | None = None,
    restate: bool = True,
    **options: Any,
) -> Asked:
    """One question to an advisor whose model follows the script."""

    async def scenario() -> Asked:
        with FakeModel(*script, **(fake or {})) as server:
            async with chat(server.url, **options) as model:
                pieces, answer = await parts_of(Assistant(advisor, model, restate=restate), request)
            return Asked(pieces=pieces, answer=answer, requests=tuple(server.requests))

    return asyncio.run(scenario())


class Unclear(Advisor):
    """Finds nothing, unless the question comes in other words too."""

    def prepare(self, request: Ask, trace_id: str = "", restated: str = "") -> pipeline.Draft:
        """What the real one finds, or less of it."""
        found = super().prepare(request, trace_id, restated)
        if restated:
            return found
        return replace(found, diagnosis=replace(found.diagnosis, verdict="need_input", causes=()))


def about(incident: Incident, language: str = "en") -> Ask:
    return Ask(question=getattr(incident, language), attachments=incident.files)


def settled(answer: Answer) -> str:
    """Everything that no model may change, as it goes over the wire."""
    return to_json({name: getattr(answer, name) for name in SETTLED})


def marker_of(advisor: Advisor, request: Ask, id: str) -> int:
    return next(source.marker for source in sources_of(advisor.prepare(request)) if source.id == id)


def markers_in(text: str) -> set[int]:
    plain = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return {int(number) for number in re.findall(r"\[(\d+)\]", plain)}


def notice(name: str, language: str = "en") -> str:
    return messages("model_failed", language, why=messages(f"failures.{name}", language))


# --- what the model may change, and what not ------------------------------------------------------------------------


@every_case("language", ["en", "zh"])
@every_case("incident", INCIDENTS)
def test_only_the_text_is_the_models(knowledge_advisor: Advisor, incident: Incident, language: str) -> None:
    request = about(incident, language)
    alone = knowledge_advisor.ask(request)
    said = knowledge_advisor.knowledge.published[incident.case].section("cause", language).splitlines()[0]
    marker = marker_of(knowledge_advisor, request, incident.case)
    asked = ask(knowledge_advisor, request, Reply(said, f" [{marker}]"))
    answer = asked.answer
    assert settled(answer) == settled(alone)
    assert (answer.mode, answer.model, answer.language) == ("llm", NAME, language)
    assert said[:6] in answer.answer
    assert {"en": "English", "zh": "简体中文"}[language] in asked.prompts[0].rpartition("\n\n")[2]
    assert [c.id for c in answer.citations if c.marker == marker] == [incident.case]
    for patch in (finding.patch for finding in alone.findings if finding.patch):
        assert (patch.rstrip() in answer.answer) == (patch.rstrip() in alone.answer)


def test_the_text_is_shown_as_it_comes_with_the_receipt_before_it(knowledge_advisor: Advisor) -> None:
    asked = ask(knowledge_advisor, about(KTO), Reply("The mean ", "over an empty class ", "is NaN [1]."))
    receipt, *words = asked.pieces[:4]
    rest = asked.pieces[4:]
    assert receipt.startswith("> Read: ")
    assert words == ["\n\nThe mean ", "over an empty class ", "is NaN [1]."]
    assert asked.answer.answer.startswith(f"{receipt}\n\nThe mean ")
    assert "```diff" in "".join(rest)


# --- the text is verified -------------------------------------------------------------------------------------------


def test_a_marker_of_nothing_is_gone_and_said_to_be(knowledge_advisor: Advisor) -> None:
    asked = ask(knowledge_advisor, about(KTO), Reply("The mean over an empty class is NaN [1]", "[77", "] [", "78]."))
    assert not markers_in(asked.streamed) & {77, 78}
    assert not markers_in(asked.answer.answer) & {77, 78}
    assert messages("unknown_markers", "en", count=2) in asked.answer.notices


@every_case(
    ("language", "refuted", "kept"),
    [
        ("en", "Try to lower the learning rate [1].", "The mean over an empty class is NaN [1]."),
        ("zh", "建议降低学习率 [1]。", "空集上的均值是 NaN [1]。"),
    ],
)
def test_what_a_case_refutes_is_taken_out_and_said_to_be(
    knowledge_advisor: Advisor, language: str, refuted: str, kept: str
) -> None:
    answer = ask(knowledge_advisor, about(KTO, language), Reply(f"{kept} {refuted}")).answer
    assert kept[:8] in answer.answer
    assert refuted[:8] not in answer.answer
    assert messages("withdrawn", language, count=1) in answer.notices


@every_case("incident", INCIDENTS)
def test_every_citation_leads_to_a_case_a_rule_or_a_place(knowledge_advisor: Advisor, incident: Incident) -> None:
    request = about(incident)
    prepared = knowledge_advisor.prepare(request)
    said = " ".join(
        f"{source.title}: {source.text.splitlines()[0]} [{source.marker}]." for source in sources_of(prepared)
    )
    answer = ask(knowledge_advisor, request, Reply(said)).answer
    assert markers_in(answer.answer) <= {citation.marker for citation in answer.citations}
    assert len({citation.marker for citation in answer.citations}) == len(answer.citations)
    rules = {rule for finding in answer.findings for rule in (finding.rule_id, *finding.appears)}
    places = {f"{span.attachment or ''}:{span.line}:{span.column}" for f in answer.findings for span in f.evidence}
    known = {"case": set(knowledge_advisor.knowledge.published), "rule": rules, "input": places}
    assert [citation for citation in answer.citations if citation.id not in known[citation.kind]] == []
    assert {"case", "rule", "input"} == {citation.kind for citation in answer.citations}


def test_a_text_of_which_nothing_can_stand_is_replaced(knowledge_advisor: Advisor) -> None:
    asked = ask(knowledge_advisor, about(KTO), Reply("Try to lower the learning rate [1]."))
    alone = knowledge_advisor.ask(about(KTO))
    assert (asked.answer.mode, asked.answer.answer) == ("deterministic", alone.answer)
    assert asked.answer.notices == (notice("garbage"), messages("withdrawn", "en", count=1))
    assert asked.streamed.endswith(alone.answer)


# --- when it fails --------------------------------------------------------------------------------------------------

FAILURES = [
    ("slow", SILENT, {"first_token_s": 0.2}),
    ("server_error", failing(500), {}),
    ("garbage", Reply(""), {}),
    ("too_long", failing(400, "maximum context length is 10"), {}),
]


@every_case("language", ["en", "zh"])
@every_case(("kind", "reply", "options"), FAILURES)
def test_whatever_fails_the_composed_answer_comes_and_says_why(
    knowledge_advisor: Advisor, kind: str, reply: Reply, options: dict[str, Any], language: str
) -> None:
    request = about(KTO, language)
    alone = knowledge_advisor.ask(request)
    asked = ask(knowledge_advisor, request, reply, name=NAME, **options)
    assert settled(asked.answer) == settled(alone)
    assert (asked.answer.mode, asked.answer.model) == ("deterministic", None)
    assert (asked.answer.answer, asked.answer.citations) == (alone.answer, alone.citations)
    assert asked.answer.notices == (notice(kind, language),)
    assert "".join(asked.pieces) == alone.answer
    assert asked.answer.usage == {}


@every_case(
    ("kind", "end", "options"), [("cut", "cut", {}), ("cut", "unfinished", {}), ("slow", "hold", {"timeout_s": 1.0})]
)
def test_a_text_that_breaks_off_is_followed_by_the_composed_answer(
    knowledge_advisor: Advisor, kind: str, end: Any, options: dict[str, Any]
) -> None:
    alone = knowledge_advisor.ask(about(KTO))
    asked = ask(knowledge_advisor, about(KTO), Reply("The mean ", "over", end=end), name=NAME, **options)
    assert asked.answer.answer == alone.answer
    assert asked.answer.notices == (notice(kind),)
    said = "".join(asked.pieces)
    assert said == alone.answer or said.endswith(f"\n\n---\n\n{notice(kind)}\n\n{alone.answer}")
    if kind == "cut":
        assert "\n\nThe mean " in said


def test_where_nothing_at_all_comes_back_the_limits_hold_together(
    knowledge_advisor: Advisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainmedic.service.llm.endpoint, "COUNTING_S", 0.1)
    fake = {"forms": [SILENT], "tokenize": SILENT, "models": SILENT}
    request = Ask(question="our kto job in openrlhf broke at the first step")
    alone = knowledge_advisor.ask(request)
    assert alone.verdict == "need_input"
    assert alone.causes
    asked = ask(knowledge_advisor, request, SILENT, fake=fake, timeout_s=0.5, first_token_s=0.3)
    assert (asked.answer.mode, asked.answer.answer) == ("deterministic", alone.answer)
    assert asked.answer.notices == (notice("slow"),)


def test_a_model_nobody_serves_is_named_in_every_answer_until_it_is_left_alone(knowledge_advisor: Advisor) -> None:
    async def scenario() -> None:
        with FakeModel() as gone:
            url = gone.url
        async with chat(url) as model:
            assistant = Assistant(knowledge_advisor, model)
            said = [(await parts_of(assistant, about(KTO)))[1].notices for _ in range(4)]
        assert said == [(notice("absent"),)] * 3 + [(notice("open"),)]

    asyncio.run(scenario())


# --- when it is not asked -------------------------------------------------------------------------------------------


def test_a_deterministic_answer_is_the_advisors_and_calls_nobody(knowledge_advisor: Advisor) -> None:
    request = replace(about(KTO), mode="deterministic")
    asked = ask(knowledge_advisor, request, Reply("x"))
    alone = knowledge_advisor.ask(request)
    assert asked.requests == ()
    assert settled(asked.answer) == settled(alone)
    assert (asked.answer.mode, asked.answer.answer, "".join(asked.pieces)) == (
        "deterministic",
        alone.answer,
        alone.answer,
    )


def test_without_a_model_there_is_the_advisors_answer(knowledge_advisor: Advisor) -> None:
    pieces, answer = asyncio.run(parts_of(Assistant(knowledge_advisor), about(KTO)))
    assert "".join(pieces) == knowledge_advisor.ask(about(KTO)).answer
    assert answer.notices == (messages("no_model", "en"),)


@every_case(
    ("request_", "verdict"),
    [
        (Ask(question=OUTSIDE), "not_in_kb"),
        (Ask(question="Is this run healthy?", attachments=(Attachment(name="a.log", content=HEALTHY),)), "no_fault"),
    ],
)
def test_where_nothing_is_known_no_text_is_asked_for(knowledge_advisor: Advisor, request_: Ask, verdict: str) -> None:
    asked = ask(knowledge_advisor, request_, Reply("Paris."), fake={"forms": [RESTATED]})
    alone = knowledge_advisor.ask(request_)
    assert asked.answer.verdict == alone.verdict == verdict
    assert asked.prompts == []
    assert asked.answer.answer == alone.answer
    assert asked.answer.notices == (messages("nothing_to_write", "en"),)


# --- a change that is only supposed --------------------------------------------------------------------------------

FLAT = "kto loss does not move at all after 800 steps, no nan. lr too small?"
PAIRS = Attachment(
    name="kto.sh",
    content="deepspeed --module openrlhf.cli.train_kto \\\n   --pretrain Qwen/Qwen2.5-7B-Instruct \\\n"
    "   --micro_train_batch_size 1 \\\n   --train_batch_size 64 \\\n   --zero_stage 3 \\\n   --bf16 --flash_attn\n",
)


@every_case(
    ("asked_for", "said_first", "rule"),
    [
        ("What about ZeRO-2?", "**Supposing `zero_stage` = `2` (now `3`)**", "openrlhf-kto-kl-pairs-with-itself"),
        ("What if micro batch is 2?", "no longer found: ", "openrlhf-kto-kl-pairs-with-itself"),
        ("What if fp16 instead of bf16?", "newly found: ", "openrlhf-dtype-follows-checkpoint"),
        ("micro batch 改成 2 呢？", "**假设 `micro_batch` = `2`（现在是 `1`）**", "openrlhf-kto-kl-pairs-with-itself"),
    ],
)
def test_what_a_supposed_change_does_stands_before_the_models_words_with_its_citations(
    advisor: Advisor, asked_for: str, said_first: str, rule: str
) -> None:
    first = advisor.ask(Ask(question=FLAT, attachments=(PAIRS,)))
    request = Ask(question=asked_for, conversation_id=first.conversation_id)
    own = assemble(advisor.prepare(request))
    case = advisor.knowledge.published[own.causes[0].case_id]
    said = re.split(r"(?<=\.) |(?<=。)", case.section("cause", own.language))[0]
    marker = marker_of(advisor, request, case.id)
    rules = {each.marker: each.title for each in sources_of(advisor.prepare(request)) if each.kind == "rule"}
    too = "".join(f"\n\n- {title} is so [{number}]" for number, title in rules.items())
    asked = ask(advisor, request, Reply(said, f" [{marker}]", too))
    answer = asked.answer
    assert answer.mode == "llm"
    assert rules.keys() <= {each.marker for each in answer.citations}
    for text in (asked.streamed, answer.answer):
        assert text.index("> ") < text.index(said_first) < text.index(said[:8])
        assert text.count(said_first) == 1
    head = answer.answer.partition(said[:8])[0]
    assert asked.streamed.startswith(head), "what was streamed has the same markers"
    assert rule in {each.id for each in answer.citations if each.marker in markers_in(head)}
    assert markers_in(answer.answer) <= {each.marker for each in answer.citations}
    assert len({each.marker for each in answer.citations}) == len(answer.citations)
    assert settled(answer) == settled(own)


@every_case("mode", ["auto", "deterministic"])
def test_turns_that_were_not_read_again_are_said_whoever_writes(advisor: Advisor, mode: Any) -> None:
    first = ask(advisor, Ask(question=FLAT, attachments=(PAIRS,), mode="deterministic")).answer
    for step in range(12):
        advisor.ask(Ask(question=f"the grad norm is 0.{step}", conversation_id=first.conversation_id))
    request = Ask(question="step 5 took long", conversation_id=first.conversation_id, mode=mode)
    (unread,) = assemble(advisor.prepare(request)).notices[1:]
    answer = ask(advisor, request, Reply("KL of a pair with itself is zero [1].")).answer
    assert unread in answer.notices
    assert messages("no_model", "en") not in answer.notices


# --- another wording ------------------------------------------------------------------------------------------------


@every_case("language", ["en", "zh"])
def test_an_unclear_question_is_looked_up_in_the_models_words_too(knowledge_advisor: Advisor, language: str) -> None:
    request = about(KTO, language)
    unclear = Unclear(knowledge_advisor.knowledge, knowledge_advisor.read)
    asked = ask(unclear, request, Reply("vanilla_loss [1]."), fake={"forms": [RESTATED]})
    assert asked.answer.causes[0].case_id == KTO.case
    assert asked.answer.language == language
    assert len(asked.prompts) == len(asked.forms) == 1
    assert request.question in asked.forms[0]
    assert request.question in asked.prompts[0]
    assert "single class" not in asked.prompts[0].partition("# Settled")[2]


def test_a_clear_question_is_not_restated(knowledge_advisor: Advisor) -> None:
    asked = ask(knowledge_advisor, about(KTO), Reply("The mean is NaN [1]."), fake={"forms": [RESTATED]})
    assert asked.forms == []


def test_nothing_is_restated_where_that_is_switched_off(knowledge_advisor: Advisor) -> None:
    unclear = Unclear(knowledge_advisor.knowledge, knowledge_advisor.read)
    asked = ask(unclear, about(KTO), Reply("x"), fake={"forms": [RESTATED]}, restate=False)
    assert asked.requests == ()
    assert asked.answer.causes == ()


def test_a_restatement_that_finds_nothing_clearer_changes_nothing(knowledge_advisor: Advisor) -> None:
    request = Ask(question="our kto job in openrlhf broke at the first step")
    alone = knowledge_advisor.ask(request)
    assert alone.verdict == "need_input"
    assert alone.causes
    other = form({"question": "bake a cake", "symptoms": []})
    asked = ask(knowledge_advisor, request, Reply("The loss is NaN [1]."), fake={"forms": [other]})
    assert settled(asked.answer) == settled(alone)


def test_no_room_for_the_second_look_leaves_the_first(knowledge_advisor: Advisor) -> None:
    class Once:
        def __init__(self) -> None:
            self.calls = 0

        async def __call__(self, call: Callable[[], T]) -> T:
            self.calls += 1
            if self.calls == 2:
                raise TrainmedicError("no slot")
            return call()

    async def scenario() -> Answer:
        with FakeModel(Reply("x"), forms=[RESTATED]) as server:
            async with chat(server.url) as model:
                parts = Assistant(Unclear(knowledge_advisor.knowledge, knowledge_advisor.read), model).stream(
                    about(KTO), "", Once()
                )
                return await final_answer(parts)

    assert asyncio.run(scenario()).verdict == "need_input"


# --- what it is shown -----------------------------------------------------------------------------------------------


def test_what_did_not_fit_is_named(knowledge_advisor: Advisor) -> None:
    long = Attachment(name="notes.txt", content="\n".join(f"line {n} about nothing at all" for n in range(500)))
    request = Ask(question=KTO.en, attachments=(*KTO.files, long))
    marker = marker_of(knowledge_advisor, request, KTO.case)
    said = f"The mean over an empty class is NaN [{marker}]."
    asked = ask(knowledge_advisor, request, Reply(said), context_tokens=2600)
    (said,) = asked.answer.notices
    assert said.startswith("Not shown to the model, to fit its context: ")
    assert "notes.txt" in said
    assert "about nothing" not in asked.prompts[0]


# --- around the answer ----------------------------------------------------------------------------------------------


def test_whoever_leaves_stops_the_model(knowledge_advisor: Advisor) -> None:
    async def scenario() -> None:
        with FakeModel(Reply("The mean ", end="hold")) as server:
            async with chat(server.url) as model:
                async with aclosing(Assistant(knowledge_advisor, model).stream(about(KTO))) as parts:
                    assert isinstance(await anext(parts), Draft)
                    async for part in parts:
                        if part == Delta("model_text", "\n\nThe mean "):
                            break
                await server.until_disconnected()

    asyncio.run(scenario())


# --- how a text ends, and what is no text ---------------------------------------------------------------------------


@every_case(
    ("language", "kept", "cut"),
    [
        ("en", "The mean over an empty class is NaN [1].", " Lower the"),
        ("zh", "空集上的均值是 NaN [1]。", "然后把学习"),
    ],
)
def test_a_text_ended_by_its_limit_loses_its_last_sentence_and_says_so(
    knowledge_advisor: Advisor, language: str, kept: str, cut: str
) -> None:
    answer = ask(knowledge_advisor, about(KTO, language), Reply(kept, cut, finish="length")).answer
    assert kept[:8] in answer.answer
    assert cut.strip() not in answer.answer
    assert answer.notices[0] == messages("cut_short", language)


def test_instructions_recited_are_counted_apart_from_sentences_withdrawn(knowledge_advisor: Advisor) -> None:
    said = f"The mean over an empty class is NaN [1].\n\n{system_text()}\n\nTry to lower the learning rate [1]."
    notices = ask(knowledge_advisor, about(KTO), Reply(said)).answer.notices
    assert messages("withdrawn", "en", count=1) in notices
    assert any(each.startswith(messages("leaked", "en").partition("{")[0]) for each in notices)


def test_a_prompt_that_the_server_finds_too_long_is_made_shorter_and_asked_once_more(
    knowledge_advisor: Advisor,
) -> None:
    too_long = failing(400, "This model's maximum context length is 10 tokens")
    good = Reply("The mean over an empty class is NaN [1].")
    fake = {"tokenize": lambda text: len(text) // 2}
    asked = ask(knowledge_advisor, about(KTO), too_long, good, fake=fake, context_tokens=5000)
    assert asked.answer.mode == "llm"
    first, second = asked.prompts
    assert len(second) < len(first)
    assert any("to fit its context" in each for each in asked.answer.notices)


@every_case("name", ["[99] x.sh", "[1](http://evil.example).sh", "www.evil.example", "<b>[2]`.sh"])
def test_the_name_of_a_file_looks_like_no_citation_and_no_link(knowledge_advisor: Advisor, name: str) -> None:
    request = replace(about(KTO), attachments=(Attachment(name=name, content=KTO_COMMAND),))
    good = Reply("The mean over an empty class is NaN [1].")
    for asked in (ask(knowledge_advisor, request, good), ask(knowledge_advisor, request, failing(401))):
        known = {citation.marker for citation in asked.answer.citations}
        receipt = asked.answer.answer.partition("\n\n")[0]
        assert receipt.startswith("> Read: ")
        assert not re.search(r"[\[\]<]", receipt)
        assert re.sub(r"`[^`]*`", "", receipt).count("evil") == 0
        assert markers_in(asked.answer.answer) <= known
        assert "](http://evil" not in asked.answer.answer.partition("```")[0]
