"""What a model is told of a question, and what the program proves of what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.fake_model import hypothesis
from tests.incidents import INCIDENTS, KTO_COMMAND
from trainmedic.kb.audit.audit import DefectMatch
from trainmedic.kb.engine.mechanism import Statement
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Text
from trainmedic.kb.model.run import VersionFact
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.diagnosed import harmless_text
from trainmedic.service.diagnosis.brief import Brief, brief_of, cost
from trainmedic.service.diagnosis.confidence import CAREFUL, Calibration, calibration_of, store
from trainmedic.service.diagnosis.form import DiagnosisForm
from trainmedic.service.diagnosis.names import names, occurs, visible
from trainmedic.service.diagnosis.prompt import instructions, prompt_of
from trainmedic.service.diagnosis.proof import Proof, prove
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.judgement import Hypothesis, Support

KTO = INCIDENTS[0]
ROOM = 10_000
LOG = "".join(f"{{'loss': {0.7 - n / 1000:.4f}, 'grad_norm': 0.5, 'epoch': 0.{n:03}}}\n" for n in range(400))


def drafted(advisor: Advisor, *files: Attachment, question: str = KTO.en) -> Draft:
    return advisor.prepare(Ask(question=question, attachments=files or KTO.files))


def filled(**changes: Any) -> DiagnosisForm:
    """A form whose first hypothesis has these fields."""
    fields: Mapping[str, Any] = {"reading": "", "verdict": "cause", "sure": 96, "question": "", "reply": ""}
    return DiagnosisForm.model_validate({**fields, "hypotheses": [hypothesis(**{"lines_for": [], **changes})]})


def edit(setting: str, value: str) -> dict[str, str]:
    return {"file": "train.sh", "setting": setting, "line": "", "value": value}


def rewrite(line: str, value: str) -> dict[str, str]:
    return {"file": "", "setting": "", "line": line, "value": value}


class Case:
    """One draft with its brief, and how a form about it is proved."""

    def __init__(self, advisor: Advisor, draft: Draft) -> None:
        self.advisor, self.draft = advisor, draft
        self.brief: Brief = brief_of(draft, ROOM)

    def proof(self, form: DiagnosisForm) -> Proof:
        return prove(form, self.brief, self.draft, self.advisor.pipeline, Calibration(model="m"))

    def first(self, **hypothesis: Any) -> Hypothesis:
        return self.proof(filled(**hypothesis)).judgement.hypotheses[0]

    def candidate(self, case_id: str) -> str:
        return next(each.id for each in self.brief.candidates if each.cause.case.id == case_id)

    def line(self, text: str) -> str:
        return next(line.id for line in self.brief.lines if text in line.text)


@pytest.fixture(scope="module")
def kto(knowledge_advisor: Advisor) -> Case:
    return Case(knowledge_advisor, drafted(knowledge_advisor))


# --- the brief -------------------------------------------------------------------------------------------------------


def test_ids_are_unique_and_candidates_are_not_in_the_order_of_belief(kto: Case) -> None:
    brief = kto.brief
    ids = [*brief.by_id, *(candidate.id for candidate in brief.candidates)]
    assert len(brief.by_id) == len(brief.lines) + len(brief.facts)
    assert len(set(ids)) == len(ids)
    cases = [candidate.cause.case.id for candidate in brief.candidates]
    assert cases == sorted(cases)
    assert kto.draft.diagnosis.causes[0].case.id in cases


def test_what_the_program_computed_is_told_as_facts_with_their_places(kto: Case) -> None:
    told = "\n".join(fact.text for fact in kto.brief.facts)
    assert "check fired" in told
    assert "in effect: bf16 = false (not written)" in told
    assert "checked, not so here: " in told
    fired = next(fact for fact in kto.brief.facts if fact.text.startswith("check fired"))
    assert fired.spans[0].attachment == "train.sh"


def test_an_option_that_the_question_names_is_told_with_its_value_at_the_users_release(
    knowledge_advisor: Advisor,
) -> None:
    command = Attachment(
        name="run.sh", content="pip install trl==1.9.0\ntrl sft --model_name_or_path m --seed 1 --seed 2"
    )
    asked = "Does `packing_strategy` matter, and what is ddp_timeout? My --eval-packing is not set."
    facts = brief_of(drafted(knowledge_advisor, command, question=asked), ROOM).facts
    told = [fact.text for fact in facts]
    assert "in effect: packing_strategy = bfd, default of trl 1.9.0" in told
    assert "in effect: eval_packing = not set, default of trl 1.9.0" in told
    assert "without effect: seed = 1 (overridden): run.sh:2 sets it to 2" in told
    assert sum(text.startswith("in effect: ") for text in told) < 30


def test_of_a_long_log_the_lines_that_something_was_read_from_come_first(knowledge_advisor: Advisor) -> None:
    log = Attachment(name="train.log", content=f"{LOG}{{'loss': nan, 'grad_norm': nan, 'epoch': 0.400}}\n{LOG}")
    brief = brief_of(drafted(knowledge_advisor, *KTO.files, log), ROOM)
    shown = [line for line in brief.lines if line.source == "train.log"]
    assert any("nan" in line.text for line in shown)
    assert len(shown) < 200
    assert {line.number: line.text for line in shown}[401].startswith("{'loss': nan")


@pytest.mark.parametrize("tokens", [1_500, 3_000, 6_000])
def test_a_brief_keeps_its_size_and_the_user_s_words(knowledge_advisor: Advisor, tokens: int) -> None:
    log = Attachment(name="train.log", content=LOG * 4)
    draft = drafted(knowledge_advisor, *KTO.files, log)
    brief = brief_of(draft, tokens)
    assert sum(cost(item.text) for item in brief.lines) <= tokens // 2 + cost(KTO.en)
    assert brief.lines[-1].text == KTO.en.strip()
    assert cost(prompt_of(draft, brief)[1].content) < 1.6 * max(tokens, 2_500)


def test_the_same_question_has_the_same_prompt_and_all_prompts_begin_alike(kto: Case) -> None:
    again = Case(kto.advisor, drafted(kto.advisor))
    assert prompt_of(kto.draft, kto.brief) == prompt_of(again.draft, again.brief)
    assert prompt_of(kto.draft, kto.brief)[0].content == instructions()


def test_a_later_turn_begins_as_the_one_before(advisor: Advisor) -> None:
    prompts = []
    for question in (KTO.en, "I tried that, the loss is still NaN."):
        draft = advisor.prepare(Ask(question=question, attachments=KTO.files, conversation_id="c"))
        prompts.append(prompt_of(draft, brief_of(draft, ROOM))[1].content)
        advisor.memory.remember(draft.asked, advisor.compose(draft))
    files, later = (
        prompt[: prompt.index("# Conversation") if n else prompt.rindex("# <data")] for n, prompt in enumerate(prompts)
    )
    assert KTO_COMMAND.splitlines()[0] in files
    assert later.startswith(files)


def test_a_later_turn_tells_what_was_answered_before(advisor: Advisor) -> None:
    first = advisor.ask(Ask(question=KTO.en, attachments=KTO.files))
    draft = advisor.prepare(Ask(question="No, I use bf16.", conversation_id=first.conversation_id))
    told = prompt_of(draft, brief_of(draft, ROOM))[1].content
    assert first.causes[0].title in told.partition("# Facts")[0]
    assert KTO.en[:40] in told


def test_neither_secrets_nor_people_are_told(knowledge_advisor: Advisor) -> None:
    secret = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz12345678"
    log = Attachment(name="a.log", content=f"alice@gpu-07:~$ HF_TOKEN={secret} bash train.sh\nloss: nan\n")
    draft = drafted(knowledge_advisor, *KTO.files, log)
    told = prompt_of(draft, brief_of(draft, ROOM))[1].content
    assert secret not in told
    assert "alice" not in told


# --- what is proved --------------------------------------------------------------------------------------------------


def test_a_candidate_whose_check_fired_is_proven(kto: Case) -> None:
    first = kto.first(candidate=kto.candidate(KTO.case), lines_for=[kto.line("--vanilla_loss")])
    assert (first.support, first.cause.case.id if first.cause else "") == ("proven", KTO.case)
    assert first.points[0].spans[0].attachment == "train.sh"


def test_a_model_s_own_words_are_supported_by_lines_that_exist_and_unproven_without(kto: Case) -> None:
    line = kto.line("--max_len")
    assert kto.first(lines_for=[line]).support == "supported"
    assert kto.first(lines_for=["L999", "F999", "C1"]).support == "unproven"
    assert kto.first(lines_for=["L999", line]).points[0].id == line


def test_a_name_that_nothing_knows_is_pointed_out_and_not_proven(kto: Case) -> None:
    invented = kto.first(because="`frobnicate_grads` is on in 7.41.2.", lines_for=[kto.line("--max_len")])
    assert set(invented.unknown) == {"frobnicate_grads", "7.41.2"}
    assert invented.support == "unproven"
    function = kto.first(because="`frobnicate_grads` divides by zero.", lines_for=[kto.line("--max_len")])
    assert (function.unknown, function.support) == (("frobnicate_grads",), "supported")
    assert invented.title


def test_the_names_of_files_and_rounded_numbers_of_a_log_are_known(knowledge_advisor: Advisor) -> None:
    log = Attachment(name="run_a03.log", content="{'loss': 1.3371, 'grad_norm': 0.927384, 'epoch': 0.1}\n" * 3)
    known = Case(knowledge_advisor, drafted(knowledge_advisor, log, question="loss does not fall"))
    assert known.first(because="run_a03.log: grad_norm is 0.93, not 0.89.").unknown == ("0.89",)


def test_special_tokens_and_stars_of_code_can_be_copied_from_an_answer() -> None:
    told = harmless_text("use <|im_start|>user and </s> with **kwargs, **now**, not <script src=x>")
    assert told == "use `<|im_start|>`user and `</s>` with `**kwargs`, now, not ‹script src=x›"


def test_a_value_that_is_recommended_need_not_have_been_seen_but_its_option_must_exist(kto: Case) -> None:
    assert kto.first(change="Set `learning_rate` to 3.25e-7.").unknown == ()
    assert kto.first(change="Set `frobnicate_grads` to 3.25e-7.").unknown == ("frobnicate_grads",)


def test_an_edit_is_made_in_memory_and_all_checks_run_again(kto: Case) -> None:
    first = kto.first(edits=[edit("vanilla_loss", "")])
    assert first.trial is not None
    assert "-   --vanilla_loss" in first.trial.patch
    assert "openrlhf-kto-vanilla-loss" in {effect.rule_id for effect in first.trial.clears}
    assert first.support == "proven", "a change that clears the finding about the question proves the cause"


def test_an_edit_that_the_framework_would_refuse_is_no_fix_and_the_model_is_told(kto: Case) -> None:
    proof = kto.proof(filled(edits=[edit("frobnicate_grads", "true")]))
    (first,) = proof.judgement.hypotheses
    assert first.trial is None
    assert first.refused[0][0] == "frobnicate_grads"
    assert any("frobnicate_grads" in objection for objection in proof.objections)


SCRIPT = """from trl import SFTConfig, SFTTrainer
def main():
    config = SFTConfig(output_dir="out", per_device_train_batch_size=2)
    trainer = SFTTrainer(model="m", args=config)
    trainer.train()
"""


@pytest.fixture(scope="module")
def program(knowledge_advisor: Advisor) -> Case:
    files = (Attachment(name="train.py", content=SCRIPT), Attachment(name="run.log", content="{'loss': 1.0}\n"))
    return Case(knowledge_advisor, drafted(knowledge_advisor, *files, question="The SFT loss of TRL is nan."))


def test_a_line_of_a_program_is_replaced_at_its_indentation(program: Case) -> None:
    line = program.line("trainer = SFTTrainer")
    first = program.first(edits=[rewrite(line, 'trainer = SFTTrainer(model="m", args=config)\ntrainer.model.float()')])
    assert first.trial is not None
    assert "+    trainer.model.float()\n" in first.trial.patch
    assert program.first(edits=[rewrite(program.line("trainer.train()"), "")]).trial.patch.count("\n-") == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("trainer = SFTTrainer", "trainer = SFTTrainer(", "could not be read"),
        ("{'loss': 1.0}", "{'loss': 0.5}", "not a line of a configuration"),
        ("The SFT loss", "The loss is fine.", "not a line of a configuration"),
    ],
)
def test_what_cannot_be_read_any_more_or_is_no_program_is_not_edited(
    program: Case, text: str, value: str, why: str
) -> None:
    first = program.first(edits=[rewrite(program.line(text), value)])
    assert first.trial is None
    assert why in first.refused[0][1]


def test_a_line_that_was_shown_cut_is_not_replaced(knowledge_advisor: Advisor) -> None:
    long = SCRIPT + "PROMPT = '" + "x" * 400 + "'\n"
    case = Case(knowledge_advisor, drafted(knowledge_advisor, Attachment(name="train.py", content=long)))
    first = case.first(edits=[rewrite(case.line("PROMPT"), "PROMPT = ''")])
    assert (first.trial, "not shown whole" in first.refused[0][1]) == (None, True)


def test_a_line_of_a_script_beside_its_command_is_replaced(knowledge_advisor: Advisor) -> None:
    script = Attachment(name="run.sh", content="NNODES=2\n\n\n" + KTO_COMMAND)
    case = Case(knowledge_advisor, drafted(knowledge_advisor, script))
    first = case.first(edits=[rewrite(case.line("NNODES"), "export NNODES=2")])
    assert first.trial is not None
    assert "+export NNODES=2" in first.trial.patch


def test_a_candidate_that_the_evidence_excludes_is_handed_back_and_its_words_stay(knowledge_advisor: Advisor) -> None:
    pinned = Attachment(name="pip.txt", content="openrlhf==0.3.8\n")
    command = Attachment(name="train.sh", content=KTO_COMMAND.replace(" \\\n   --vanilla_loss", ""))
    case = Case(knowledge_advisor, drafted(knowledge_advisor, command, pinned))
    outside = next(c for c in case.brief.candidates if c.cause.features["version_outside"])
    proof = case.proof(filled(candidate=outside.id))
    assert [objection for objection in proof.objections if outside.id in objection]
    (first,) = proof.judgement.hypotheses
    assert (first.cause, first.title) == (None, "A micro-batch of one class")


def test_a_candidate_that_its_own_check_or_its_mechanism_speaks_against_is_handed_back(kto: Case) -> None:
    clear = kto.proof(filled(candidate=kto.candidate("openrlhf-kto-micro-batch-one")))
    assert "its own check looked and is clear" in clear.objections[0]
    belief = next(each for each in kto.draft.diagnosis.differential.mechanisms if each.causes)
    said = Statement(says=Text(en="the loss is finite", zh="loss 是有限值"), weight=1.0, spans=())
    weighed = replace(belief.weighed, excluded_by=(said,))
    differential = replace(kto.draft.diagnosis.differential, mechanisms=(replace(belief, weighed=weighed),))
    draft = replace(kto.draft, diagnosis=replace(kto.draft.diagnosis, differential=differential))
    case = Case(kto.advisor, draft)
    inside = next(
        c for c in case.brief.candidates if differential.belief(c.cause) and not c.cause.features["rule_clear"]
    )
    proof = case.proof(filled(candidate=inside.id))
    assert any("the loss is finite" in objection for objection in proof.objections)


def test_an_edit_that_brings_up_an_error_is_no_fix(kto: Case) -> None:
    first = kto.first(edits=[edit("micro_train_batch_size", "1")])
    assert first.trial is None
    assert "NaN on every step" in first.refused[0][1]


def test_without_a_configuration_there_is_nothing_to_edit_and_nothing_to_object(knowledge_advisor: Advisor) -> None:
    draft = knowledge_advisor.prepare(Ask(question="KTO loss is NaN with OpenRLHF."))
    proof = Case(knowledge_advisor, draft).proof(filled(edits=[edit("learning_rate", "1e-6")]))
    assert (proof.objections, proof.judgement.hypotheses[0].trial) == ((), None)


def test_a_defect_of_the_installed_release_whose_condition_holds_proves_its_cause(kto: Case) -> None:
    defects = (c for c in kto.brief.candidates if c.cause.case.level == "defect" and not c.cause.findings)
    candidate = next(c for c in defects if kto.first(candidate=c.id).cause)  # one that the evidence does not exclude
    case = candidate.cause.case
    defect = next(each for each in kto.advisor.knowledge.defects.all if each.id == case.id)
    match = DefectMatch(defect=defect, version=VersionFact(package=defect.package, exact="0.3.3", reason="said"))
    known = Case(kto.advisor, replace(kto.draft, defects=(match,)))
    assert known.first(candidate=candidate.id).support == "proven"


def test_what_cannot_be_seen_in_a_model_s_text_is_taken_out() -> None:
    assert visible("a\u200bb\u202ec 的\r\nd\u2028e") == "abc 的\nd\ne"


def test_a_cause_without_a_hypothesis_is_none(kto: Case) -> None:
    form = replace_form(filled(), hypotheses=[])
    assert kto.proof(form).judgement.verdict == "need_input"


def replace_form(form: DiagnosisForm, **changes: Any) -> DiagnosisForm:
    return DiagnosisForm.model_validate({**form.model_dump(), **changes})


# --- how sure --------------------------------------------------------------------------------------------------------


def test_a_model_that_was_never_measured_is_never_high() -> None:
    careful = calibration_of("somebody/never-measured-13b")
    assert (careful.measured, careful.bins) == (False, CAREFUL)
    supports: tuple[Support, ...] = ("proven", "supported", "unproven")
    for support in supports:
        hypothesis = Hypothesis(title="t", because="b", support=support)
        (graded,) = careful.graded([hypothesis], 97)
        assert graded.confidence != "high"


def test_high_is_what_was_right_nineteen_times_in_twenty() -> None:
    measured = Calibration(model="m", bins={"90/proven": (99, 100), "90/supported": (90, 100)})
    supports: tuple[Support, ...] = ("proven", "supported")
    hypotheses = (Hypothesis(title="t", because="b", support=support) for support in supports)
    proven, supported = (measured.graded([hypothesis], 97)[0] for hypothesis in hypotheses)
    assert (proven.confidence, supported.confidence) == ("high", "medium")


def test_the_probabilities_of_all_hypotheses_are_at_most_one() -> None:
    hypotheses = [Hypothesis(title=str(n), because="b", support="supported") for n in range(3)]
    graded = Calibration(model="m").graded(hypotheses, 97)
    values = [each.probability for each in graded]
    assert values == sorted(values, reverse=True)
    assert sum(values) <= 1.0


def test_a_calibration_measured_here_comes_before_the_one_shipped(tmp_path: Any) -> None:
    store('{"bins": {"90/proven": [40, 40]}}', "My/Model 7B", tmp_path / "calibrations")
    assert calibration_of("My/Model 7B", tmp_path / "calibrations").probability("90/proven") > 0.95
    (tmp_path / "calibrations" / "my-model-7b.json").write_text('{"bins": {"90/proven": "all"}}', encoding="utf-8")
    assert not calibration_of("My/Model 7B", tmp_path / "calibrations").measured


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("set `lr` to 5e-7 on 16 GPUs", ["5e-7"]),
        ("trl 0.19.1 ignores max_prompt_length", ["0.19.1", "max_prompt_length"]),
        ("e.g. 3 of 8 ranks, see https://x.y/v1.2.3", []),
        ("actor.optim.lr and --bf16", ["actor.optim.lr", "--bf16"]),
        ("see line 153, the log:1042-1050 and 第 70 行", []),
    ],
)
def test_names_are_options_versions_and_values_but_no_counts(text: str, found: list[str]) -> None:
    assert [name for name in names(text) if name != "lr"] == found


@pytest.mark.parametrize(
    ("name", "text", "there"),
    [
        ("5e-7", "learning_rate 0.0000005", True),
        ("5e-7", "learning_rate 5e-07", True),
        ("1.2", "torch 11.25", False),
        ("4.46", "transformers==4.46.2", True),
        ("max-len", "--max_len 8192", True),
        ("v0.19.0", "trl 0.19", True),
        ("0.00", "beta 0.0", True),
    ],
)
def test_a_name_occurs_however_it_is_spelt(name: str, text: str, there: bool) -> None:
    assert occurs(name, text) is there
