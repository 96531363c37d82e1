"""The differential of an answer, and what the text makes of it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.every_case import every_case
from tests.incidents import INCIDENTS
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, DifferentialNode
from trainmedic.service.dialogue.request import Ask

MASKED = "trl SFT with train_on_responses_only: loss is 0 from the very first step, all labels are -100. Why?"
FAULTY = (
    "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: full\ntemplate: llama3\noutput_dir: o\n"
)
HEALTHY = "\n".join(
    f"{{'loss': {2 - 0.03 * n:.2f}, 'grad_norm': {0.6 + 0.01 * (n % 5):.2f}, 'epoch': {n / 100}}}" for n in range(30)
)
CLIMB = "\n".join(
    f"{{'loss': {1.9 + 0.01 * n:.2f}, 'grad_norm': {1.7 * 1.3**n:.1f}, 'epoch': {n / 100}}}" for n in range(20)
)


def asked(advisor: Advisor, question: str, language: str = "en", **files: str) -> Answer:
    attachments = tuple(Attachment(name=name.replace("_", "."), content=text) for name, text in files.items())
    return advisor.ask(Ask(question=question, attachments=attachments, language="zh" if language == "zh" else "en"))


def walk(nodes: tuple[DifferentialNode, ...]) -> Iterator[DifferentialNode]:
    for node in nodes:
        yield node
        yield from walk(node.nodes)


def section(answer: Answer, kind: str) -> str:
    return "\n".join(section.body for section in answer.sections if section.kind == kind)


@every_case("incident", INCIDENTS)
def test_the_first_cause_is_in_the_tree_with_its_rule_and_the_place(advisor: Advisor, incident: object) -> None:
    question, files = incident.en, incident.files  # type: ignore[attr-defined]
    answer = advisor.ask(Ask(question=question, attachments=files))
    node = next(node for node in walk(answer.differential.nodes) if node.id == answer.causes[0].case_id)
    places = {(s.attachment, s.line, s.column) for reason in node.supports for s in reason.evidence}
    assert incident.place in places  # type: ignore[attr-defined]
    assert answer.differential.nodes[0].probability == max(node.probability for node in answer.differential.nodes)


def test_levels_nest_and_probabilities_add_up(advisor: Advisor) -> None:
    tree = asked(advisor, MASKED).differential
    assert sum(node.probability for node in tree.nodes) + tree.other <= 1.001
    mechanism = tree.nodes[0]
    assert (mechanism.level, mechanism.id) == ("mechanism", "no-trained-token")
    assert {node.level for node in mechanism.nodes} >= {"origin"}
    for origin in mechanism.nodes:
        assert origin.probability <= mechanism.probability + 0.001
        assert sum(case.probability for case in origin.nodes) <= origin.probability + 0.001
        assert {case.level for case in origin.nodes} <= {"case"}
        assert origin.id.startswith("no-trained-token.") or origin.level == "case"


def test_an_origin_says_whether_it_holds_and_where(advisor: Advisor) -> None:
    config = FAULTY.replace("llama3", "qwen") + "learning_rate: 1.0e-3\n"
    tree = asked(advisor, "the loss climbs and training diverges", a_yaml=config, train_log=CLIMB).differential
    origins = {node.id: node for node in walk(tree.nodes) if node.level == "origin"}
    origin = origins["update-blow-up.learning-rate-too-large"]
    assert origin.state == "holds"
    assert any(span.text == "learning_rate: 1.0e-3" for reason in origin.supports for span in reason.evidence)
    assert {node.state for node in walk(tree.nodes) if node.level == "case"} == {None}


def test_what_speaks_against_a_case_is_said(advisor: Advisor) -> None:
    incident = INCIDENTS[0]
    files = (*incident.files, Attachment(name="pip.txt", content="openrlhf==0.9.0\n"))
    tree = advisor.ask(Ask(question=incident.en, attachments=files)).differential
    node = next(node for node in walk(tree.nodes) if node.id == incident.case)
    against = " ".join(reason.text for reason in node.contradicts)
    assert "openrlhf 0.9.0 is not one of the affected versions" in against


def test_excluded_mechanisms_name_the_observation(advisor: Advisor) -> None:
    tree = asked(
        advisor, "loss is nan", train_log="{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.0}\n" * 12
    ).differential
    excluded = {item.id: item for item in tree.excluded}
    assert "update-blow-up" in excluded
    assert excluded["update-blow-up"].excluded_by[0].text


def test_what_is_going_on_leads_when_its_origin_is_open(advisor: Advisor) -> None:
    for language in ("en", "zh"):
        answer = asked(advisor, MASKED, language)
        assert answer.verdict == "answered"
        assert answer.causes[0].confidence == "low"
        assert answer.causes[0].mechanism is not None
        assert answer.causes[0].mechanism.title in section(answer, "lead")
        origins = [item for section in answer.sections if section.kind == "origins" for item in section.items]
        assert len(origins) >= 2
        changes = "Fix: " if language == "en" else "改法："
        assert all(changes in item for item in origins)


def test_faults_of_a_config_that_nobody_complains_about_lead_the_answer(advisor: Advisor) -> None:
    answer = asked(advisor, "", a_yaml=FAULTY)
    assert answer.verdict != "not_in_kb"
    assert section(answer, "lead") == "**1 problem in your config:**"
    assert "template: llama3" in section(answer, "problems")
    assert "+template: qwen" in section(answer, "diff")
    assert "1 problem" not in section(asked(advisor, "the loss is nan", a_yaml=FAULTY), "lead")


def test_a_healthy_run_gets_a_check_up_with_values(advisor: Advisor) -> None:
    answer = asked(advisor, "does this look normal?", train_log=HEALTHY)
    assert answer.verdict == "no_fault"
    items = next(section for section in answer.sections if section.kind == "checkup").items
    assert "30 log rows read" in items
    assert "`loss` 2 → 1.13" in items
    assert "`grad_norm` 0.6–0.64" in items
    assert "0 findings" in items
    assert any(item.startswith("not checked") for item in items)


def test_an_answer_that_asks_back_says_what_speaks_for_each_cause_and_its_change(advisor: Advisor) -> None:
    questions = (
        "CUDA out of memory at step 300 on a long sample, qwen2.5 7b full finetune zero3, why?",
        "training loss becomes nan after a few hundred steps",
        "GRPO reward collapses",
    )
    answers = [answer for question in questions if (answer := asked(advisor, question)).verdict == "need_input"]
    items = [item for answer in answers for part in answer.sections if part.kind == "other" for item in part.items]
    assert items
    assert all("Fix: " in item for item in items)
    assert any("Evidence: " in item for item in items)


@every_case(
    ("tried", "held_against_it"),
    [
        ("turned gradient checkpointing off, no change", False),
        ("tried turning gradient checkpointing on, no change", True),
    ],
)
def test_only_the_try_of_a_fix_itself_speaks_against_its_cause(
    advisor: Advisor, tried: str, held_against_it: bool
) -> None:
    answer = asked(advisor, f"trl SFT of a 7B model on 8xA100, batch 4: CUDA out of memory. I {tried}.")
    node = next(node for node in walk(answer.differential.nodes) if node.id == "log-activations-do-not-fit")
    assert any("did not help" in reason.text for reason in node.contradicts) is held_against_it


def test_a_setting_that_is_said_is_evidence_with_its_place(advisor: Advisor) -> None:
    answer = asked(advisor, "trl SFT runs out of memory,\n8xA100, gradient checkpointing is off")
    node = next(node for node in walk(answer.differential.nodes) if node.id == "activations-memory.checkpointing-off")
    places = {(place.attachment, place.line, place.column) for reason in node.supports for place in reason.evidence}
    assert (None, 2, 9) in places
