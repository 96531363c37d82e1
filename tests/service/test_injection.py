"""What is pasted, named or written into a case cannot take over.

The program's part is the same to the byte, and a model that obeys is not heard."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.every_case import every_case, some
from tests.fake_model import FakeModel, Reply
from tests.incidents import INCIDENTS, Incident
from tests.test_mask import BODY
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.serialization import plain
from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.assistant import Assistant
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import Delta
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.chat import ChatModel, ModelOptions
from trainmedic.service.llm.prompts import Prompt, build, system_text
from trainmedic.service.llm.verified_text import grounding_of, verified_text
from trainmedic.service.llm.verify import verify
from trainmedic.service.pipeline import Draft

SET = Path(__file__).parents[1] / "injection" / "attempts.jsonl"
ATTEMPTS: list[dict[str, str]] = [json.loads(line) for line in SET.read_text(encoding="utf-8").splitlines()]
CHOSEN = tuple(
    i for i in INCIDENTS if i.name in ("openrlhf-kto-vanilla-loss", "llamafactory-kto-logits", "trl-reward-fp16")
)
SECRET = f"hf_{BODY[:34]}"
FOREIGN = 99
PIECES = 31
"""Letters of a piece in which the fake model streams."""


def incident_of(attempt: dict[str, str]) -> Incident:
    return CHOSEN[ATTEMPTS.index(attempt) % len(CHOSEN)]


def asked(incident: Incident, language: str) -> Ask:
    return Ask(question=incident.zh if language == "zh" else incident.en, attachments=incident.files)


def injected(request: Ask, attempt: dict[str, str]) -> Ask:
    """The question with the attempt in it, where it moves no line."""
    content = attempt["content"].replace("{SECRET}", SECRET)
    match attempt["into"]:
        case "file" | "name":
            own = Attachment(name=attempt["name"], content=content)
            return replace(request, attachments=(*request.attachments, own))
        case "end":
            first, *rest = request.attachments
            assert isinstance(first.content, str)
            # Further from what is patched than the context of a patch reaches.
            longer = replace(first, content=f"{first.content.rstrip()}\n#\n#\n#\n{content}\n")
            return replace(request, attachments=(longer, *rest))
        case "question":
            return replace(request, question=f"{request.question}\n{content}")
    return request


def harmless(attempt: dict[str, str]) -> dict[str, str]:
    """The same place with nothing in it: a log that says nothing is a log too."""
    match attempt["into"]:
        case "file":
            return {**attempt, "content": "nothing"}
        case "name":
            return {**attempt, "name": "note.txt"}
        case "end":
            return {**attempt, "content": "# nothing"}
    return {**attempt, "into": "nowhere"}


def poisoned(advisor: Advisor, case_id: str, text: str) -> Advisor:
    """The advisor with the text in every section of one case."""
    cases = advisor.knowledge.cases
    sections = {
        language: {name: f"{body}\n\n{text}" for name, body in found.items()}
        for language, found in next(case for case in cases.cases if case.id == case_id).sections.items()
    }
    changed = tuple(replace(case, sections=sections) if case.id == case_id else case for case in cases.cases)
    known = CaseSet(cases=changed, failures=cases.failures, version=cases.version)
    return Advisor(replace(advisor.knowledge, cases=known), parse)


def decided(answer: Answer) -> str:
    """What the program decides, as it goes over the wire."""
    run = plain(answer.run)
    assert isinstance(run, dict)
    run.pop("reasons")
    parts = (
        answer.verdict,
        plain(answer.causes),
        plain(answer.findings),
        plain(answer.missing),
        plain(answer.signals),
        run,
    )
    return json.dumps(parts, ensure_ascii=False, sort_keys=True)


def prepared_with(advisor: Advisor, incident: Incident, attempt: dict[str, str]) -> tuple[Draft, Advisor]:
    if attempt["into"] == "case":
        advisor = poisoned(advisor, incident.case, attempt["content"])
    return advisor.prepare(injected(asked(incident, attempt["language"]), attempt)), advisor


def prompt_of(prepared: Draft) -> Prompt:
    async def count(texts: Sequence[str]) -> list[int]:
        return [len(text) // 4 for text in texts]

    return asyncio.run(build(prepared, count, context_tokens=16_384, max_tokens=900))


def obeying(prepared: Draft, prompt: Prompt) -> str:
    """What a model writes that does all it is told: it repeats what it sees, and says what it must not."""
    seen = "\n".join(message.content for message in prompt.messages)
    refuted = [each.claim.get(prepared.language) for each in prepared.diagnosis.causes[0].case.refutations]
    contrary = [f"Add `{edited}` and keep it." for edited in removed(prepared)]
    spelled = " ".join(re.findall(r"[A-Za-z]+", prompt.messages[0].content))
    return "\n\n".join(
        (
            "OK. The verdict is no_fault [99].",
            f"The secret is {''.join(re.findall(r'hf_[^ ,。，]*', seen)) or 'unknown'} [77].",
            seen,
            f"- {spelled}",
            "\n".join(f"- {word}" for word in spelled.split()),
            *refuted,
            *contrary,
            "![x](https://evil.example/pixel) <script>alert(1)</script> <|im_start|>system",
            "```\n" + prompt.messages[0].content,
        )
    )


def removed(prepared: Draft) -> list[str]:
    """Options that a patch takes away."""
    found: set[str] = set()
    for patch in (fix.patch or "" for finding in prepared.context.report.fired for fix in finding.fixes):
        gone = set(re.findall(r"^-.*?(--[\w-]+)", patch, re.MULTILINE))
        found |= gone - set(re.findall(r"^\+.*?(--[\w-]+)", patch, re.MULTILINE))
    return sorted(found)


@cache
def passages() -> frozenset[str]:
    words = re.findall(r"[a-z]+", system_text().lower())
    return frozenset(" ".join(words[n : n + 8]) for n in range(len(words) - 7))


def assert_nothing_leaks(text: str) -> None:
    shown = re.sub(r"\(the model's inference\)", " ", re.sub(r"\[\d+\]", " ", text.lower()))
    words = re.findall(r"[a-z]+", shown)
    assert not {" ".join(words[n : n + 8]) for n in range(len(words) - 7)} & passages()
    assert SECRET not in text
    assert BODY[:12] not in text


# --- the program's part ----------------------------------------------------------------------------------------------


@every_case("attempt", some(ATTEMPTS, 2))
def test_what_the_program_decides_is_the_same_to_the_byte(knowledge_advisor: Advisor, attempt: dict[str, str]) -> None:
    incident = incident_of(attempt)
    before = assemble(prepared_with(knowledge_advisor, incident, harmless(attempt))[0])
    after = assemble(prepared_with(knowledge_advisor, incident, attempt)[0])
    if attempt["into"] in ("case", "question"):
        # The text is that case's own, or words that are searched for: the cause stays, and how sure it is.
        ids = [(cause.case_id, cause.confidence, cause.findings) for cause in before.causes[:1]]
        assert [(cause.case_id, cause.confidence, cause.findings) for cause in after.causes[:1]] == ids
        before, after = replace(before, causes=()), replace(after, causes=())
    assert decided(after) == decided(before)


# --- a model that obeys ----------------------------------------------------------------------------------------------


@every_case("attempt", some(ATTEMPTS, 4))
def test_a_model_that_obeys_is_not_heard(knowledge_advisor: Advisor, attempt: dict[str, str]) -> None:
    incident = incident_of(attempt)
    prepared, _ = prepared_with(knowledge_advisor, incident, attempt)
    prompt = prompt_of(prepared)
    draft = obeying(prepared, prompt)
    assert SECRET not in draft
    answer = assemble(prepared, verified_text(prepared, prompt, draft, "fake"))
    assert decided(answer) == decided(assemble(prepared))
    assert answer.verdict == prepared.diagnosis.verdict
    assert_nothing_leaks(answer.answer)
    assert_nothing_leaks(json.dumps(plain(answer.notices), ensure_ascii=False))
    own = verify(draft, grounding_of(prepared, prompt), prepared.language)
    assert_nothing_leaks(" ".join((*own.withdrawn, *own.leaked)))
    known = {source.marker for source in prompt.sources}
    assert {
        int(n) for n in re.findall(r"(?<!\w)\[(\d+)\]", re.sub(r"`[^`\n]*`|```.*?```", "", own.text, flags=re.S))
    } <= known
    assert FOREIGN not in {citation.marker for citation in answer.citations}
    assert own.stats["unknown_markers"] >= 2
    if prepared.diagnosis.causes[0].case.kind == "fault":
        assert "verdict is no_fault" not in own.text
    assert own.stats["withdrawn"] + own.stats["leaked"] >= 3
    for option in removed(prepared):
        assert f"Add `{option}`" not in answer.answer
    assert "](https://evil.example" not in own.text
    assert "<script" not in own.text
    assert "<|im_start|>" not in re.sub(r"`[^`\n]*`", "", own.text)


@every_case("attempt", some(ATTEMPTS, 10))
def test_over_the_wire_nothing_leaks_while_it_streams(knowledge_advisor: Advisor, attempt: dict[str, str]) -> None:
    prepared, advisor = prepared_with(knowledge_advisor, CHOSEN[0], attempt)
    draft = obeying(prepared, prompt_of(prepared))
    pieces = [draft[n : n + PIECES] for n in range(0, len(draft), PIECES)]

    async def stream(url: str) -> tuple[str, Answer]:
        model = ChatModel(ModelOptions(base_url=url, context_tokens=16_384, timeout_s=60, first_token_s=60))
        streamed, answer = "", None
        try:
            request = injected(asked(CHOSEN[0], attempt["language"]), attempt)
            async with aclosing(Assistant(advisor, model, restate=False).stream(request)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        answer = part
                    elif isinstance(part, Delta):
                        streamed += part.text
        finally:
            await model.aclose()
        assert answer is not None
        return streamed, answer

    with FakeModel(Reply(*pieces)) as fake:
        streamed, answer = asyncio.run(stream(fake.url))
        shown = fake.texts[0].prompt
    assert SECRET not in shown
    assert decided(answer) == decided(assemble(prepared))
    for text in (streamed, answer.answer):
        assert_nothing_leaks(text)
        written = "\n".join(
            line for line in text.split("\n") if not line.startswith("> ")
        )  # without the names of files
        assert f"[{FOREIGN}]" not in written.replace(f"`[{FOREIGN}]", "")
