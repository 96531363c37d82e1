"""One draft becomes an answer in one place, whoever wrote the text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.incidents import INCIDENTS
from trainmedic.kb.serialization import plain
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import Written, assemble
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Citation
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.pipeline import Draft

SOURCE = Citation(marker=3, kind="case", id="case-a", title="A")
TEXT = Written(text="So it is [3].", markers=(3,), sources=(SOURCE,), model="m", notices=("flagged",))
FAILED = Written(notices=("the model failed",))
OF_THE_WRITER = {"answer", "sections", "citations", "mode", "model", "notices", "usage", "steps"}


@pytest.fixture
def draft(knowledge_advisor: Advisor) -> Draft:
    return knowledge_advisor.prepare(Ask(question=INCIDENTS[0].en, attachments=INCIDENTS[0].files))


@pytest.mark.parametrize("written", [TEXT, FAILED, replace(TEXT, follows=True)])
def test_the_writer_decides_about_the_text_alone(draft: Draft, written: Written) -> None:
    own, other = plain(assemble(draft)), plain(assemble(draft, written))
    assert isinstance(own, dict)
    assert isinstance(other, dict)
    assert {name for name in own if own[name] != other[name]} <= OF_THE_WRITER


def test_what_a_reader_must_know_of_a_draft_follows_what_is_said_of_the_text(draft: Draft) -> None:
    lost = replace(draft, recalled=False)
    notice = messages("not_stored", "en")
    assert assemble(lost).notices == (messages("no_model", "en"), notice)
    assert assemble(lost, FAILED).notices == ("the model failed", notice)
    assert assemble(lost, TEXT).notices == ("flagged", notice)


def test_without_a_text_of_a_model_the_program_s_own_stands(draft: Draft) -> None:
    own, failed = assemble(draft), assemble(draft, replace(FAILED, model="m"))
    assert (failed.sections, failed.mode, failed.model) == (own.sections, "deterministic", None)


def test_a_model_s_sources_keep_their_markers_before_it_and_are_numbered_anew_after_it(draft: Draft) -> None:
    among, after = assemble(draft, TEXT), assemble(draft, replace(TEXT, follows=True))
    assert SOURCE in among.citations
    assert len({item.marker for item in among.citations}) == len(among.citations)
    (moved,) = [item for item in after.citations if item.id == "case-a"]
    assert after.sections[-1].body == f"So it is [{moved.marker}]."
    assert after.sections[:-2] == assemble(draft).sections
