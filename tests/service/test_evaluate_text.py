"""The figures over a model's texts count what the verification found, what failed, and how long it took."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fake_model import FakeModel, Reply, failing, form
from tests.incidents import INCIDENTS
from trainmedic.service.advisor import Advisor
from trainmedic.service.llm.chat import ChatModel, ModelOptions
from trainmedic.service.llm.prompts import sources_of
from trainmedic.ui.cli import main
from trainmedic.ui.evaluation.causes import Evaluation, Item, Share, request_of
from trainmedic.ui.evaluation.texts import TextFigures, evaluate_texts

KTO = INCIDENTS[0]
ITEM = Item(id="kto", question=KTO.en, attachments=KTO.files, verdict="answered", cases=(KTO.case,))
NOTHING = Item(id="cake", question="How do I bake a cake?", verdict="not_in_kb")
GOOD = "The flag `--vanilla_loss` was blamed for NaN by a maintainer [{case}]. "
BAD = (
    "My cat sat on the keyboard again [{case}]. Lower the learning rate [77]. "
    "Keep `--vanilla_loss`. Try `--magic_wand`."
)


def written(advisor: Advisor, *pieces: str) -> Reply:
    """The model's text about `ITEM`, whose citations are of the case that is expected."""
    sources = sources_of(advisor.prepare(request_of(ITEM)))
    marker = next(source.marker for source in sources if source.id == KTO.case)
    return Reply(*(piece.replace("{case}", str(marker)) for piece in pieces))


def evaluated(advisor: Advisor, *items: Item, script: tuple[Reply, ...]) -> tuple[Evaluation, TextFigures]:
    async def measured(url: str) -> tuple[Evaluation, TextFigures]:
        model = ChatModel(ModelOptions(base_url=url, context_tokens=16_384, timeout_s=60, first_token_s=60))
        try:
            return await evaluate_texts(items, advisor, model, parallel=2)
        finally:
            await model.aclose()

    empty = {"question": "baking a cake", "symptoms": []}
    with FakeModel(*script, forms=(form(empty),)) as fake:
        return asyncio.run(measured(fake.url))


def test_citations_sentences_and_names_are_counted(knowledge_advisor: Advisor) -> None:
    evaluation, figures = evaluated(knowledge_advisor, ITEM, script=(written(knowledge_advisor, GOOD, BAD),))
    assert evaluation.overall.first == Share(right=1, total=1)
    assert figures.texts == 1
    assert figures.citation_precision == Share(right=1, total=3)
    assert figures.unsupported == Share(right=2, total=3)
    assert (figures.unknown_markers, figures.withdrawn, figures.flagged) == (1, 2, 1)
    assert figures.failures == {}
    assert figures.first_token_ms is not None
    assert figures.total_ms is not None
    assert figures.total_ms >= figures.first_token_ms


def test_failures_are_counted_by_kind_and_the_answer_still_counts(knowledge_advisor: Advisor) -> None:
    items = (ITEM, replace(ITEM, id="again"))
    evaluation, figures = evaluated(knowledge_advisor, *items, script=(failing(400), failing(400)))
    assert evaluation.overall.first == Share(right=2, total=2)
    assert figures.failures == {"refused": 2}
    assert (figures.texts, figures.first_token_ms, figures.total_ms) == (0, None, None)


def test_a_question_with_nothing_to_write_about_is_no_failure(knowledge_advisor: Advisor) -> None:
    evaluation, figures = evaluated(knowledge_advisor, NOTHING, script=(written(knowledge_advisor, GOOD),))
    assert evaluation.overall.verdict == Share(right=1, total=1)
    assert (figures.texts, figures.unasked, figures.failures) == (0, 1, {})


@pytest.fixture
def _indexed(knowledge_folder: Path, knowledge_advisor: Advisor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index exists: building it is not what is tested here."""
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(knowledge_folder))


@pytest.mark.usefixtures("_indexed")
def test_the_command_line_measures_the_model_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], knowledge_advisor: Advisor
) -> None:
    questions = tmp_path / "questions.jsonl"
    files = [{"name": file.name, "content": file.content} for file in KTO.files]
    expect = {"verdict": "answered", "cases": [KTO.case]}
    questions.write_text(json.dumps({"id": "a", "question": KTO.en, "attachments": files, "expect": expect}))
    with FakeModel(written(knowledge_advisor, GOOD)) as fake:
        monkeypatch.setenv("TRAINMEDIC_MODEL_BASE_URL", fake.url)
        monkeypatch.setenv("TRAINMEDIC_MODEL_CONTEXT_TOKENS", "16384")
        monkeypatch.setenv("TRAINMEDIC_MODEL_TIMEOUT_S", "60")
        assert main(["eval", "--set", str(questions), "--llm"]) == 0
        assert "citation precision     1.000 (1/1)" in capsys.readouterr().out
        assert main(["eval", "--set", str(questions), "--llm", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["texts"]["texts"] == 1


@pytest.mark.usefixtures("_indexed")
def test_without_a_model_it_says_what_to_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text("")
    assert main(["eval", "--set", str(questions), "--llm"]) != 0
    assert "TRAINMEDIC_MODEL_BASE_URL" in capsys.readouterr().err
