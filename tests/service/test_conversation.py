"""Messages of one conversation: suppositions, missing facts, corrected files, other topics, and very long ones."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.every_case import every_case, some
from tests.service.values import causes, fired
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.schema import CauseView
from trainmedic.service.diagnosis.brief import brief_of
from trainmedic.service.dialogue.conversation import MAX_TURNS
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.pipeline import Draft
from trainmedic.ui.openai.routes import Completion

CONVERSATIONS = Path(__file__).parent / "conversations.jsonl"
ITEMS: list[dict[str, Any]] = [json.loads(line) for line in CONVERSATIONS.read_text(encoding="utf-8").splitlines()]
SCRIPT = (
    "deepspeed --module openrlhf.cli.train_kto \\\n   --pretrain Qwen/Qwen2.5-7B-Instruct \\\n"
    "   --micro_train_batch_size 1 \\\n   --train_batch_size 64 \\\n   --zero_stage 3 \\\n   --bf16 --flash_attn\n"
)
KTO = Attachment(name="kto.sh", content=SCRIPT)
PAIRS = "openrlhf-kto-kl-pairs-with-itself"
FLAT = "kto loss does not move at all after 800 steps, no nan. lr too small?"


def files(turn: Mapping[str, Any]) -> tuple[Attachment, ...]:
    return tuple(Attachment(**each) for each in turn["attachments"])


def told(advisor: Advisor, turns: Sequence[Mapping[str, Any]], conversation: str) -> Draft:
    """The last turn's answer, with all that it rests on."""
    for turn in turns:
        request = Ask(question=turn["question"], attachments=files(turn), conversation_id=conversation)
        prepared = advisor.prepare(request)
        advisor.memory.remember(prepared.asked, assemble(prepared))
    return prepared


def said(advisor: Advisor, *questions: str) -> Draft:
    turns: list[dict[str, Any]] = [{"question": question, "attachments": []} for question in questions]
    turns[0]["attachments"] = [{"name": KTO.name, "content": SCRIPT}]
    return told(advisor, turns, "c")


def alike(shown: Sequence[CauseView], advisor: Advisor) -> set[str]:
    """The ids of causes, and of the cases of the mechanism that each states or belongs to."""
    ids = {cause.case_id for cause in shown}
    for cause in shown:
        mechanism = advisor.knowledge.mechanisms.get(cause.mechanism.id) if cause.mechanism is not None else None
        ids.update(mechanism.all_cases if mechanism is not None else ())
    return ids


@every_case("item", some(ITEMS, 3))
def test_the_second_message_is_answered_for_what_it_is(advisor: Advisor, item: Mapping[str, Any]) -> None:
    expected = item["expect"]
    prepared = told(advisor, item["turns"], item["id"])
    answer, found = assemble(prepared), causes(assemble(prepared))
    if "first" in expected:
        assert alike(answer.causes[:1], advisor) & set(expected["first"]), found
    assert not set(found[:1]) & set(expected.get("not_first", ()))
    assert set(expected.get("fires", ())) <= fired(answer)
    assert not fired(answer) & set(expected.get("silent", ()))
    assert not {signal.kind for signal in answer.signals} & set(expected.get("no_signal", ()))
    if expected.get("as_alone"):
        last = item["turns"][-1]
        alone = advisor.ask(Ask(question=last["question"], attachments=files(last)))
        assert (answer.verdict, found[:1]) == (alone.verdict, causes(alone)[:1])
    if "changes" in expected:
        assert prepared.supposed is not None
        made = {change.name: change.after for change in prepared.supposed.changed}
        assert made == expected["changes"]
        assert set(expected.get("clears", ())) <= {effect.rule_id for effect in prepared.supposed.clears}
        assert set(expected.get("stays", ())) <= {effect.rule_id for effect in prepared.supposed.stays}
    else:
        assert prepared.supposed is None


def test_the_answer_says_first_what_a_supposed_change_does_and_the_rest_stays(advisor: Advisor) -> None:
    before = assemble(said(advisor, FLAT))
    after = assemble(said(advisor, FLAT, "what about with ZeRO-2 instead?"))
    start = after.answer.index("**Supposing `zero_stage` = `2` (now `3`)**")
    assert start < after.answer.index(before.causes[0].title)
    assert "still found: " in after.answer
    assert "The check behind the likeliest cause still fires with it." in after.answer
    assert (after.verdict, causes(after)[0]) == (before.verdict, causes(before)[0])
    # There are more words to search for: near equals may change places, and a faint one may be added.
    assert sorted(causes(after)[: len(before.causes)]) == sorted(causes(before))
    cited = {citation.id for citation in after.citations if citation.kind == "rule"}
    assert PAIRS in cited


def test_what_is_supposed_is_no_fact_then_or_later(advisor: Advisor) -> None:
    supposed = said(advisor, FLAT, "with transformers 4.44.0?")
    assert "transformers" not in assemble(supposed).run.versions
    assert assemble(supposed).run.settings["zero_stage"].value == 3
    later = told(advisor, [{"question": "it is openrlhf 0.5.2", "attachments": []}], "c")
    assert "transformers" not in assemble(later).run.versions
    assert assemble(later).run.versions["openrlhf"] == "0.5.2"


def test_a_fact_beside_a_supposition_counts(advisor: Advisor) -> None:
    prepared = said(advisor, FLAT, "It is openrlhf 0.5.2. What about ZeRO-2?")
    assert assemble(prepared).run.versions["openrlhf"] == "0.5.2"
    assert prepared.supposed is not None
    assert [change.name for change in prepared.supposed.changed] == ["zero_stage"]
    assert assemble(prepared).receipt.inputs[0].bytes == len("It is openrlhf 0.5.2. What about ZeRO-2?")


def test_a_change_is_supposed_without_a_configuration_too(advisor: Advisor) -> None:
    told(advisor, [{"question": "my loss is nan", "attachments": []}], "n")
    prepared = told(advisor, [{"question": "what about ZeRO-2?", "attachments": []}], "n")
    assert "Supposing `zero_stage` = `2`" in assemble(prepared).answer
    assert "zero_stage" not in assemble(prepared).run.settings


def test_the_first_message_may_paste_and_suppose_at_once(advisor: Advisor) -> None:
    prepared = advisor.prepare(Ask(question=f"{FLAT}\nWhat if micro batch is 2?", attachments=(KTO,)))
    assert prepared.supposed is not None
    assert [effect.rule_id for effect in prepared.supposed.clears] == [PAIRS]
    assert assemble(prepared).causes[0].case_id == "openrlhf-kto-micro-batch-one"


def test_a_pasted_value_cannot_write_into_the_answer(advisor: Advisor) -> None:
    answer = assemble(said(advisor, FLAT, "and if I set --output_dir x`<script>`?")).answer
    assert "<script>" not in answer


def test_the_model_is_told_what_the_rules_say_of_the_supposed_change(advisor: Advisor) -> None:
    prepared = said(advisor, FLAT, "what if micro batch is 2")

    told = "\n".join(fact.text for fact in brief_of(prepared, 10_000).facts)
    assert "micro_batch 1 -> 2" in told
    assert f"supposed change, clears: {PAIRS}" in told
    assert "supposed change, the first cause: falls" in told


def test_after_another_topic_a_follow_up_belongs_to_that_topic(advisor: Advisor) -> None:
    told(advisor, [{"question": FLAT, "attachments": [{"name": KTO.name, "content": SCRIPT}]}], "t")
    told(advisor, [{"question": "different question: my trl GRPO reward is flat", "attachments": []}], "t")
    answer = assemble(told(advisor, [{"question": "reward_std is 0 in most groups, trl 0.19", "attachments": []}], "t"))
    assert answer.run.framework == "trl"
    assert "openrlhf-kto-micro-batch-one" not in causes(answer)
    assert [item.name for item in answer.receipt.inputs] == [None, "message-2"]


def test_a_conversation_of_thirty_turns_is_read_within_a_budget_and_says_so(advisor: Advisor) -> None:
    first = said(advisor, FLAT)
    for number in range(30):
        said_now = ["the grad norm is 0.{}", "what about ZeRO-{}?", "step {} took long"][number % 3].format(number % 3)
        request = Ask(question=said_now, conversation_id="c")
        prepared = advisor.prepare(request)
        advisor.memory.remember(prepared.asked, assemble(prepared))
    answer = assemble(prepared)
    assert len(prepared.earlier) <= MAX_TURNS
    assert answer.run.framework == assemble(first).run.framework is not None, "the first paste is still read"
    assert assemble(first).run.settings.keys() <= answer.run.settings.keys()
    assert any("not read again" in notice for notice in answer.notices)
    alone = [spent(advisor, Ask(question=f"{FLAT} {n}", attachments=(KTO,))) for n in range(9)]
    long = [spent(advisor, Ask(question=f"the grad norm is 0.{n}", conversation_id="c")) for n in range(9)]
    assert min(long) <= 2.5 * min(alone), "more than twice, with room for another machine's rounding"


def spent(advisor: Advisor, request: Ask) -> float:
    """Seconds of this thread: other programs must not count."""
    started = time.thread_time()
    advisor.prepare(request)
    return time.thread_time() - started


def test_huge_earlier_turns_do_not_add_up(advisor: Advisor, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 40_000
    monkeypatch.setattr("trainmedic.service.dialogue.conversation.MAX_CHARACTERS", most)
    lines = "{'loss': 1.0, 'grad_norm': 0.5, 'learning_rate': 1e-06, 'epoch': 0.01}\n"
    log = lines * (most // 3 // len(lines))
    for number in range(6):
        turn = {"question": f"log {number}", "attachments": [{"name": f"{number}.log", "content": log}]}
        prepared = told(advisor, [turn], "h")
    read = sum(len(each.content) for turn in prepared.earlier for each in turn.attachments)
    assert 0 < read <= most
    assert any("not read again" in notice for notice in assemble(prepared).notices)


def completion(*texts: tuple[str, str]) -> Completion:
    return Completion.model_validate({"messages": [{"role": role, "content": text} for role, text in texts]})


def test_in_a_chat_completion_earlier_user_messages_count_and_the_assistants_do_not(advisor: Advisor) -> None:
    request = completion(
        ("system", "You are a pirate. transformers is 4.40.0."),
        ("user", f"{FLAT}\n```bash\n{SCRIPT}```"),
        ("assistant", "Your transformers is 4.41.0 and the cause is ZeRO-3."),
        ("user", "openrlhf 0.5.2"),
        ("assistant", "Thanks."),
        ("user", "what about with ZeRO-2 instead?"),
    ).question()
    prepared = advisor.prepare(request)
    assert assemble(prepared).run.versions["openrlhf"] == "0.5.2"
    assert "transformers" not in assemble(prepared).run.versions
    assert prepared.supposed is not None
    assert {change.name: change.after for change in prepared.supposed.changed} == {"zero_stage": "2"}
    assert PAIRS in {effect.rule_id for effect in prepared.supposed.stays}
    assert assemble(prepared).causes[0].case_id == "openrlhf-kto-micro-batch-one"


def test_a_message_that_brings_nothing_is_not_told_the_answer_again(advisor: Advisor) -> None:
    first = assemble(said(advisor, FLAT))
    for question in (
        "will that cost me any speed",
        "and which of you is the expert here",
        "what about ZeRO-2 instead?",
    ):
        sections = assemble(said(advisor, question)).sections
        assert f"the likeliest cause is **{first.causes[0].title}**" in sections[-1].body
        assert not {"lead", "fix", "cause", "refuted"} & {section.kind for section in sections}
    command = "deepspeed --module openrlhf.cli.train_kto --pretrain m --vanilla_loss --micro_train_batch_size 1"
    turns = [{"question": q, "attachments": []} for q in ("openrlhf kto loss nan", f"here is the command: {command}")]
    answer = assemble(told(advisor, turns, "pasted"))
    assert "openrlhf-kto-vanilla-loss-single-class" in fired(answer)
    assert "lead" in {section.kind for section in answer.sections}


def test_a_bare_switch_is_supposed_away(advisor: Advisor) -> None:
    command = Attachment(
        name="a.sh",
        content="deepspeed --module openrlhf.cli.train_kto --pretrain m --vanilla_loss --micro_train_batch_size 1",
    )
    first = {"question": "loss is nan", "attachments": [{"name": command.name, "content": command.content}]}
    supposed = told(advisor, [first, {"question": "ok and without --vanilla_loss?", "attachments": []}], "w").supposed
    assert supposed is not None
    assert "openrlhf-kto-vanilla-loss-single-class" in {effect.rule_id for effect in supposed.clears}
