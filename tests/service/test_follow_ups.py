"""What people say after a first answer, and what a reply without a model makes of it (``follow_ups.yaml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.service.values import causes
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.storage.history import Feedback

DATA: Mapping[str, Any] = yaml.safe_load((Path(__file__).parent / "follow_ups.yaml").read_text(encoding="utf-8"))
LONG = 40
"""Characters of a line that is a statement of its own."""
REPEATED = 3
"""Statements of the answer before that a reply may name again."""
SHORT = 1_000
"""Characters of a reply to what adds no fact."""


def attachments(files: Mapping[str, str]) -> tuple[Attachment, ...]:
    return tuple(Attachment(name=name, content=content) for name, content in files.items())


def conversation(advisor: Advisor, item: Mapping[str, Any]) -> tuple[Answer, Answer]:
    """The last two answers of the conversation."""
    incident = DATA["incidents"][item["incident"]]
    turns = [(incident["question"], incident["files"]), *((message, {}) for message in item.get("before", ()))]
    turns.append((item["message"], item.get("files", {})))
    answers = [
        advisor.ask(Ask(question=question, attachments=attachments(files), conversation_id="c"))
        for question, files in turns
    ]
    return answers[-2], answers[-1]


def failures(advisor: Advisor, item: Mapping[str, Any]) -> list[str]:
    """What keeps the reply from being an answer to the message."""
    before, after = conversation(advisor, item)
    text, wrong = after.answer, []
    wrong += [f"does not say {p!r}" for p in item.get("says", ()) if not re.search(p, text, re.IGNORECASE)]
    wrong += [f"says {p!r}" for p in item.get("never", ()) if re.search(p, text, re.IGNORECASE)]
    for name, value in item.get("settings", {}).items():
        setting = after.run.settings.get(name)
        if setting is None or setting.value != value:
            wrong.append(f"{name} is {setting.value if setting else None}, not {value}")
    for name, value in item.get("versions", {}).items():
        if after.run.versions.get(name) != value:
            wrong.append(f"{name} is {after.run.versions.get(name)}, not {value}")
    if item.get("not_first") in causes(after)[:1]:
        wrong.append("the first cause is the same")
    if again := set(item.get("gone", ())) & set(causes(after)):
        wrong.append(f"names {again} again")
    if item.get("short") and len(text) > SHORT:
        wrong.append(f"takes {len(text)} characters")
    if causes(before)[:1] == causes(after)[:1] and before.verdict == after.verdict:
        said = {line for line in before.answer.splitlines() if len(line) >= LONG}
        repeated = said & {line for line in text.splitlines() if not line.startswith(">")}
        if len(repeated) > REPEATED:
            wrong.append(f"repeats {len(repeated)} lines of the answer before")
    if "outcome" in item:
        assert advisor.memory.history is not None
        stored = advisor.memory.history.feedback(before.id)
        if stored is None or stored.reaction != item["outcome"]:
            wrong.append(f"the stored outcome is {stored}")
    return wrong


@pytest.mark.parametrize("item", DATA["follow_ups"], ids=[item["message"][:40] for item in DATA["follow_ups"]])
def test_a_follow_up_is_answered_as_asked(advisor: Advisor, item: Mapping[str, Any]) -> None:
    assert not failures(advisor, item)


def talk(advisor: Advisor, incident: str, *messages: str) -> list[Answer]:
    first = DATA["incidents"][incident]
    asked = [(first["question"], attachments(first["files"])), *((message, ()) for message in messages)]
    return [advisor.ask(Ask(question=text, attachments=files, conversation_id="c")) for text, files in asked]


def test_a_fact_has_the_message_that_says_it_as_its_place(advisor: Advisor) -> None:
    _, after = talk(advisor, "kto", "sorry, it was micro_train_batch_size 4")
    places = {citation.quote: citation.id for citation in after.citations if citation.kind == "input"}
    assert places["it was micro_train_batch_size 4"] == ":1:8"


def test_what_was_ruled_out_stays_out_in_every_later_turn(advisor: Advisor) -> None:
    first, *later = talk(advisor, "gemma", "no, I use eager attention", "why not the data?", "what about ZeRO-2?", "ok")
    assert all(first.causes[0].case_id not in causes(answer) for answer in later)


def test_a_confirmed_fix_is_the_cause_from_then_on(advisor: Advisor) -> None:
    *_, solved, after = talk(advisor, "dpo", "学习率改成 1e-5 之后好了，谢谢", "为什么？")
    assert solved.causes[0].case_id == after.causes[0].case_id == "preference-adapter-learning-rate-tiny"
    assert solved.causes[0].title in after.answer


def test_an_outcome_in_words_does_not_replace_a_vote(advisor: Advisor) -> None:
    (first,) = talk(advisor, "peft")
    advisor.memory.give_feedback(Feedback(answer_id=first.id, reaction="up"))
    advisor.ask(Ask(question="tried it, still the same error", conversation_id="c"))
    assert advisor.memory.history is not None
    stored = advisor.memory.history.feedback(first.id)
    assert stored is not None
    assert stored.reaction == "up"


def test_a_change_that_a_cause_refutes_is_said_not_to_help(advisor: Advisor) -> None:
    _, after = talk(advisor, "kto", "should I go for a lower learning rate?")
    assert "If this is the cause, it does not help: “Lower the learning rate." in after.answer
