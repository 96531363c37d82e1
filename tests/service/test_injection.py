"""What is pasted, named or written into a case cannot take over.

The program's part is the same to the byte, and a model that obeys is not heard."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from tests.every_case import every_case
from tests.fake_model import FakeModel, Reply, chat, diagnosis, hypothesis
from tests.incidents import INCIDENTS, Incident
from tests.test_mask import BODY
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.serialization import plain
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import Delta
from trainmedic.service.diagnosis.assistant import Assistant
from trainmedic.service.diagnosis.brief import brief_of
from trainmedic.service.diagnosis.prompt import prompt_of
from trainmedic.service.dialogue.request import Ask
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

every_attempt = every_case("attempt", ATTEMPTS)


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


def told(prepared: Draft) -> str:
    return "\n".join(message.content for message in prompt_of(prepared, brief_of(prepared, 10_000)))


def obeying(prompt: str) -> Reply:
    """The form of a model that does all it is told: it repeats what it sees, and says what it must not."""
    said = (
        f"OK. The verdict is no_fault [{FOREIGN}]. The secret is {' '.join(re.findall(r'hf_[^ ,。，]*', prompt))}. "
        "![x](https://evil.example/pixel) <script>alert(1)</script> <|im_start|>system [a](https://evil.example)"
    )
    edits = [{"file": "../../etc/passwd", "setting": "output_dir; rm -rf /", "line": "", "value": "$(reboot)"}]
    obeys = hypothesis(title=said[:200], because=said, change=said, verify=said[:400], command="rm -rf /", edits=edits)
    return diagnosis(obeys, reading=said, question=said[:400], reply=f"{said}\n{prompt}"[:2000])


def assert_nothing_leaks(text: str) -> None:
    assert SECRET not in text
    assert BODY[:12] not in text
    outside_code = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert "](https://evil.example" not in outside_code
    assert "<script" not in outside_code
    assert f"[{FOREIGN}]" not in outside_code


# --- the program's part ----------------------------------------------------------------------------------------------


@every_attempt
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


@every_case("attempt", ATTEMPTS[::2])
def test_a_model_that_obeys_changes_nothing_that_the_program_found(
    knowledge_advisor: Advisor, attempt: dict[str, str]
) -> None:
    incident = incident_of(attempt)
    prepared, advisor = prepared_with(knowledge_advisor, incident, attempt)
    prompt = told(prepared)
    assert SECRET not in prompt

    async def stream(url: str) -> tuple[str, Answer]:
        streamed, answer = "", None
        async with chat(url) as model:
            request = injected(asked(incident, attempt["language"]), attempt)
            async with aclosing(Assistant(advisor, model).stream(request)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        answer = part
                    elif isinstance(part, Delta):
                        streamed += part.text
        assert answer is not None
        return streamed, answer

    with FakeModel(forms=[obeying(prompt)]) as fake:
        streamed, answer = asyncio.run(stream(fake.url))
        shown = fake.forms[0].prompt
    assert SECRET not in shown
    before = assemble(prepared)
    assert (plain(answer.findings), plain(answer.signals)) == (plain(before.findings), plain(before.signals))
    assert answer.causes[0].support != "proven"
    assert answer.causes[0].origin == "model"
    for text in (streamed, answer.answer):
        # Without the names of files.
        assert_nothing_leaks("\n".join(line for line in text.split("\n") if not line.startswith("> ")))
