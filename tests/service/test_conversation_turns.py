"""Follow-ups of a diagnosis: thanks, questions about it, fixes that did not help, upgrades, patched and new files."""

from __future__ import annotations

from collections.abc import Sequence

from tests.every_case import every_case
from tests.service.values import causes, fired
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.dialogue.statements import statements_in
from trainmedic.service.dialogue.topic import is_acknowledgement, relation_of, topic_of
from trainmedic.ui.chat.follow import FollowUp, follow_ups
from trainmedic.ui.chat.texts import examples

GLOSSARY = load_glossary()
KTO = examples("en")[0]
FILES = tuple(Attachment(name=file.name, content=str(file.content)) for file in KTO.files)
VANILLA = "openrlhf-kto-vanilla-loss-nan"
VANILLA_RULES = {"openrlhf-kto-vanilla-loss-single-class", "openrlhf-kto-vanilla-loss"}
Turns = Sequence[tuple[str, tuple[Attachment, ...]]]


def answers(advisor: Advisor, *turns: str | tuple[str, tuple[Attachment, ...]]) -> list[Answer]:
    """The answers of one conversation; it begins with the KTO example."""
    every: Turns = [(KTO.question, FILES), *((turn, ()) if isinstance(turn, str) else turn for turn in turns)]
    return [advisor.ask(Ask(question=text, attachments=files, conversation_id="c")) for text, files in every]


def button(advisor: Advisor, answer: Answer, name: str) -> FollowUp:
    sources = [Source(name=file.name, text=str(file.content), byte_count=len(file.content)) for file in FILES]
    buttons = follow_ups(answer, sources, advisor.case(answer.causes[0].case_id), "en", model=False)
    return next(item for item in buttons if item.id == name)


@every_case(
    ("message", "relation"),
    [
        ("it works now, thank you", Relation.SOLVED), ("解决了，谢谢", Relation.SOLVED),
        ("loss is fine", Relation.SOLVED), ("I removed it, loss is fine, margin is 0", Relation.NEW_SYMPTOM),
        ("it works with 1 GPU but not with 8", Relation.FOLLOW_UP),
        ("loss is fine with 1 gpu but nan with 8", Relation.FOLLOW_UP),
        ("why does the mean of nothing give NaN?", Relation.EXPLANATION),
        ("how can I confirm that?", Relation.EXPLANATION), ("为什么空集的均值是 NaN？", Relation.EXPLANATION),
        ("why is it still nan?", Relation.STILL_FAILING),
        ("It still happens after the fix. What else?", Relation.STILL_FAILING), ("还是 nan", Relation.STILL_FAILING),
        ("transformers is 4.43.1", Relation.FOLLOW_UP),
    ],
)  # fmt: skip
def test_a_follow_up_is_recognised_for_what_it_wants(message: str, relation: Relation) -> None:
    before = topic_of(parse("my openrlhf KTO run: the loss is nan from step 1"), GLOSSARY)
    assert relation_of(topic_of(parse(message), GLOSSARY), before) == relation


@every_case("message", ["thanks!", "Thanks a lot, that helps!", "ok", "hello", "谢谢你的帮助", "好的，我试试"])
def test_thanks_and_greetings_ask_nothing(message: str) -> None:
    assert is_acknowledgement(message)


@every_case("message", ["ok, but the loss is nan", "and now?", "thanks, what about ZeRO-2?", "again", ""])
def test_whatever_says_more_is_no_mere_thanks(message: str) -> None:
    assert not is_acknowledgement(message)


@every_case(
    ("message", "changes"),
    [
        ("I upgraded to 0.3.5, still nan", {"openrlhf": "0.3.5"}),
        ("upgraded openrlhf from 0.3.3 to 0.3.5", {"openrlhf": "0.3.5"}),
        ("version is 0.3.3 with --vanilla_loss", {"openrlhf": "0.3.3"}),
        ("升级到 0.3.5 了还是 nan", {"openrlhf": "0.3.5"}), ("upgraded trl to 0.12.1", {"trl": "0.12.1"}),
        ("I removed --vanilla_loss, loss is fine", {"vanilla_loss": "unset"}),
        ("I switched to ZeRO-2 and it is still nan", {"zero_stage": "2"}),
        ("学习率降到 1e-6 了还是 nan", {"learning_rate": "1e-6"}), ("I have CUDA version 12.1", {"cuda": "12.1"}),
        ("tried bf16, still nan", {}), ("it worked with transformers 4.40.0", {}), ("loss is 0.35 at step 3", {}),
    ],
)  # fmt: skip
def test_changes_that_were_made_are_read_with_their_values(message: str, changes: dict[str, str]) -> None:
    said = statements_in(message, "openrlhf", GLOSSARY, parse)
    assert {name: statement.value for name, statement in said.items()} == changes


@every_case("message", ["thanks!", "hello", "it works now, thank you"])
def test_thanks_keep_the_diagnosis_and_are_answered_shortly(advisor: Advisor, message: str) -> None:
    before, after = answers(advisor, message)
    assert (after.verdict, causes(after)) == (before.verdict, causes(before))
    assert [cause.confidence for cause in after.causes] == [cause.confidence for cause in before.causes]
    assert len(after.answer) < 300
    assert not after.missing


def test_a_question_about_the_diagnosis_is_answered_with_its_mechanism(advisor: Advisor) -> None:
    before, after = answers(advisor, "why does the mean of nothing give NaN?")
    assert (after.verdict, causes(after)) == (before.verdict, causes(before))
    assert {"cause", "confirm"} <= {section.kind for section in after.sections}
    assert "fix" not in {section.kind for section in after.sections}


def test_after_thanks_the_conversation_goes_on(advisor: Advisor) -> None:
    before, _, after = answers(advisor, "thanks!", "what if micro batch is 2")
    assert after.run.versions == before.run.versions
    assert "Supposing" in after.answer


def test_a_fix_that_did_not_help_rules_its_cause_out(advisor: Advisor) -> None:
    before, after, again = answers(advisor, "It still happens after the fix. What else?", "still nan")
    assert VANILLA not in causes(after)
    assert not VANILLA_RULES & fired(after), "the configuration is read with the fix applied"
    assert after.changes is not None
    assert [item.id for item in after.changes.ruled_out] == [VANILLA]
    assert before.causes[0].title in after.answer
    assert again.changes is not None
    ruled_out = [item.id for item in again.changes.ruled_out]
    assert ruled_out[0] == VANILLA
    assert not set(ruled_out) & set(causes(again))


def test_the_same_holds_where_the_caller_keeps_the_conversation(advisor: Advisor) -> None:
    launch, pip, log = (str(file.content) for file in FILES)
    pasted = f"{KTO.question}\n```bash\n{launch}```\n```\n{pip}```\n```\n{log}```"
    answer = advisor.ask(Ask(question="It still happens after the fix.", earlier=(pasted,)))
    assert answer.changes is not None
    assert [item.id for item in answer.changes.ruled_out] == [VANILLA]
    assert VANILLA not in causes(answer)


def test_the_fix_is_not_taken_for_tried_where_the_new_file_still_lacks_it(advisor: Advisor) -> None:
    _, after = answers(advisor, ("It still happens, this is the script", FILES[:1]))
    assert causes(after)[0] == VANILLA
    assert after.changes is not None
    assert not after.changes.ruled_out


def test_a_reported_version_takes_the_place_of_the_pasted_one(advisor: Advisor) -> None:
    _, after = answers(advisor, "I upgraded to 0.3.5")
    assert after.run.versions["openrlhf"] == "0.3.5"
    assert "openrlhf-vanilla-loss-not-accepted" in fired(after) or VANILLA_RULES.isdisjoint(fired(after))
    assert after.changes is not None
    assert {item.id for item in after.changes.cleared} >= VANILLA_RULES


def test_facts_of_a_conversation_in_words_are_not_asked_for_again(advisor: Advisor) -> None:
    turns = [
        "openrlhf kto loss is nan",
        "version is 0.3.3 with --vanilla_loss",
        "I removed it, loss is fine, margin is 0",
    ]
    for text in turns:
        answer = advisor.ask(Ask(question=text, conversation_id="words"))
    assert (answer.run.framework, answer.run.algorithm) == ("openrlhf", "kto")
    assert answer.run.versions["openrlhf"] == "0.3.3"
    assert not {"framework", "algorithm", "stage", "version:openrlhf"} & {item.fact for item in answer.missing}


def test_what_is_left_with_the_patch_applied(advisor: Advisor) -> None:
    (before,) = answers(advisor)
    patch = button(advisor, before, "patch")
    after = answers(advisor, (patch.question, patch.files))[1]
    assert not VANILLA_RULES & fired(after)
    assert VANILLA not in causes(after)
    assert after.changes is not None
    assert {item.id for item in after.changes.cleared} >= VANILLA_RULES
    assert "openrlhf-kto-kl-pairs-with-itself" in {item.id for item in after.changes.new}
    assert "same as before" not in after.answer


def test_the_upgrade_is_one_to_a_version_with_the_fix_and_really_tried(advisor: Advisor) -> None:
    (before,) = answers(advisor)
    upgrade = button(advisor, before, "upgrade")
    after = answers(advisor, (upgrade.question, upgrade.files))[1]
    assert "already applies" not in after.answer
    assert "Supposing `openrlhf`" in after.answer
    assert causes(after)[0] == VANILLA, "what is only supposed is no fact"


def test_a_new_log_of_the_same_name_replaces_the_old_one(advisor: Advisor) -> None:
    good = "{'loss': 0.5, 'grad_norm': 1.2, 'learning_rate': 5e-07, 'epoch': 0.01}\n" * 3
    _, after = answers(advisor, ("this is the new log", (Attachment(name="train.log", content=good),)))
    assert "loss_nan" not in {signal.kind for signal in after.signals if not signal.stated}
    assert after.changes is not None
    assert "series-not-finite-from-the-start" in {item.id for item in after.changes.cleared}
    assert {item.id for item in after.changes.left} >= VANILLA_RULES
