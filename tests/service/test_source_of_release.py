"""What an answer takes from the source of the user's own release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.every_case import every_case
from tests.fake_model import hypothesis
from trainmedic.kb.errors import SourceError
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import tree_of
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.diagnosis.brief import brief_of
from trainmedic.service.diagnosis.confidence import Calibration
from trainmedic.service.diagnosis.form import DiagnosisForm
from trainmedic.service.diagnosis.proof import prove
from trainmedic.service.dialogue.request import Ask

CODE = """\
class GRPOTrainer:
    def prepare(self, args):
        if args.num_shards > args.num_groups:
            raise RuntimeError(args.num_shards, args.num_groups)
        return {value}
"""
LOG = """\
Traceback (most recent call last):
  File "/opt/env/lib/python3.11/site-packages/trl/trainer/grpo_trainer.py", line 4, in prepare
    raise RuntimeError(args.num_shards, args.num_groups)
RuntimeError: (8, 4)
"""


def released(version: str, value: str = "1") -> dict[str, bytes]:
    return {"trl/__init__.py": b"", "trl/trainer/grpo_trainer.py": CODE.format(value=value).encode()}


@pytest.fixture
def advisor(knowledge_advisor: Advisor, tmp_path: Path) -> Advisor:
    sources = Sources(tmp_path, "off")
    for version, value in (("0.16.0", "1"), ("0.17.0", "2")):
        sources.store.add(tree_of("trl", version, "wheel", released(version, value)))
    return Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, source=Library(sources))


def about(question: str = "My GRPO training crashes.", **files: str) -> Ask:
    given = {"train.log": LOG, "requirements.txt": "trl==0.17.0\n", **files}
    return Ask(question=question, attachments=tuple(Attachment(name=n, content=c) for n, c in given.items()))


def raised(answer: Answer) -> str:
    return "\n".join(section.markdown for section in answer.sections if section.kind == "raised")


@every_case(("question", "heading"), [("My GRPO training crashes.", "Raised here"), ("GRPO 训练崩溃了", "在这里抛出")])
def test_the_answer_shows_the_line_that_raised_and_its_condition(advisor: Advisor, question: str, heading: str) -> None:
    shown = raised(advisor.ask(about(question)))
    assert shown.startswith(f"### {heading}\n")
    assert "trl 0.17.0" in shown
    assert "`trl/trainer/grpo_trainer.py:4`" in shown
    assert "`args.num_shards > args.num_groups`" in shown
    assert "→ 4 " in shown


def test_without_that_release_nothing_is_shown(advisor: Advisor, knowledge_advisor: Advisor) -> None:
    assert raised(advisor.ask(about(**{"requirements.txt": "trl==0.9.0\n"}))) == ""
    assert raised(knowledge_advisor.ask(about())) == ""


def test_what_changed_on_the_way_since_the_release_that_worked_is_shown(advisor: Advisor) -> None:
    request = about("With trl 0.16.0 it worked, since upgrading to trl 0.17.0 GRPO crashes.")
    assert "```diff\n@@ -2,4 +2,4 @@" in raised(advisor.ask(request))
    facts = [fact.text for fact in brief_of(advisor.prepare(request), 4000).facts]
    assert any("GRPOTrainer.prepare changed since the release that worked:" in text for text in facts)


def test_a_model_is_told_of_the_line_from_the_start(advisor: Advisor) -> None:
    facts = [fact.text for fact in brief_of(advisor.prepare(about()), 4000).facts]
    (fact,) = [text for text in facts if text.startswith("source ")]
    assert fact.startswith(
        "source trl 0.17.0 trl/trainer/grpo_trainer.py:4 GRPOTrainer.prepare: RuntimeError is raised here "
        "if args.num_shards > args.num_groups\n"
    )


def test_names_in_the_source_of_the_user_s_release_are_known_and_cited(advisor: Advisor) -> None:
    draft = advisor.prepare(about())
    told = hypothesis(
        title="Too many shards", because="`GRPOTrainer.prepare` compares num_shards with num_zebras.", lines_for=[]
    )
    form = DiagnosisForm.model_validate(
        {"reading": "", "verdict": "cause", "sure": 50, "question": "", "reply": "", "hypotheses": [told]}
    )
    judgement = prove(form, brief_of(draft, 4000), draft, advisor.pipeline, Calibration(model="m")).judgement
    (first,) = judgement.hypotheses
    assert first.unknown == ("num_zebras",)
    assert [(each.name, each.version, each.path, each.line) for each in first.named] == [
        ("GRPOTrainer.prepare", "0.17.0", "trl/trainer/grpo_trainer.py", 2),
        ("num_shards", "0.17.0", "trl/trainer/grpo_trainer.py", 3),
    ]
    assert first.support == "unproven"
    answer = advisor.compose(replace(draft, judgement=judgement))
    assert "`num_shards` (trl 0.17.0, `trl/trainer/grpo_trainer.py:3`)" in answer.answer


def test_audit_and_diff_of_a_service_say_which_code_changed(advisor: Advisor) -> None:
    bad, good = about().attachments, (Attachment(name="requirements.txt", content="trl==0.16.0\n"),)
    compare = advisor.audit(bad, good=good).compare
    assert compare is not None
    for source in (compare.source, advisor.diff(good, bad).source):
        (found,) = source
        assert [(each.name, each.because) for each in found.changes] == [("GRPOTrainer.prepare", ("traceback",))]


def test_a_name_whose_source_cannot_be_read_is_not_known(advisor: Advisor, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> None:
        raise SourceError("the pack is damaged")

    monkeypatch.setattr(Library, "named", unreadable)
    draft = advisor.prepare(about())
    told = hypothesis(because="It compares num_zebras.", lines_for=[])
    form = DiagnosisForm.model_validate(
        {"reading": "", "verdict": "cause", "sure": 50, "question": "", "reply": "", "hypotheses": [told]}
    )
    proof = prove(form, brief_of(draft, 4000), draft, advisor.pipeline, Calibration(model="m"))
    assert proof.judgement.hypotheses[0].unknown == ("num_zebras",)
