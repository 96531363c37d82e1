"""The knowledge in other LangChain programs: retriever, tools, and the examples of the documentation."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from tests.every_case import every_case
from tests.incidents import INCIDENTS
from trainmedic.kb.errors import StoreError
from trainmedic.kb.model.report_view import ReportView
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.store.vectors import Vectors
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.ui.langchain import KnowledgeRetriever, documents, knowledge_tools, vector_store

ROOT = Path(__file__).parent.parent.parent
GUIDE = ROOT / "docs" / "connect" / "python.md"
KTO = INCIDENTS[0]
FILES = [{"name": file.name, "content": str(file.content)} for file in KTO.files]
SECRET = "hf_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"


@pytest.fixture
def retriever(knowledge_advisor: Advisor) -> KnowledgeRetriever:
    return KnowledgeRetriever(advisor=knowledge_advisor)


@pytest.fixture
def tools(knowledge_advisor: Advisor) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in knowledge_tools(knowledge_advisor)}


def called(tool: BaseTool, **arguments: Any) -> ToolMessage:
    message = tool.invoke({"type": "tool_call", "id": "call-1", "name": tool.name, "args": arguments})
    assert isinstance(message, ToolMessage)
    return message


# --- retriever ------------------------------------------------------------------------------------------------------


def test_a_question_finds_cases_as_documents_with_all_that_is_known_of_them(
    retriever: KnowledgeRetriever, knowledge_advisor: Advisor
) -> None:
    found = retriever.invoke("KTO loss is nan with vanilla_loss in OpenRLHF")
    assert len(found) == 4
    first = found[0]
    case = knowledge_advisor.case(KTO.case)
    assert case is not None
    assert first.id == KTO.case
    assert first.page_content.startswith(f"# {case.title.en}\n")
    assert case.section("fix", "en") in first.page_content
    assert first.metadata | {"score": 0, "why": []} == {
        "id": case.id,
        "title": case.title.en,
        "url": case.sources[0].url,
        "score": 0,
        "why": [],
        "evidence": case.evidence,
        "language": "en",
        "frameworks": list(case.frameworks),
        "family": case.family,
        "kind": case.kind,
    }
    assert any("vanilla_loss" in why for why in first.metadata["why"])
    scores = [document.metadata["score"] for document in found]
    assert scores == sorted(scores, reverse=True)


def test_a_chinese_question_finds_chinese_documents_unless_told_otherwise(knowledge_advisor: Advisor) -> None:
    question = "用 OpenRLHF 做 KTO，loss 一直是 nan，开了 vanilla_loss"
    chinese = documents(knowledge_advisor, question)[0]
    english = documents(knowledge_advisor, question, language="en")[0]
    assert chinese.id == english.id == KTO.case
    assert (chinese.metadata["language"], english.metadata["language"]) == ("zh", "en")
    assert "## 修复" in chinese.page_content
    assert "## Fix" in english.page_content


def test_passages_are_found_by_their_meaning_and_name_their_causes(knowledge_advisor: Advisor) -> None:
    passages = vector_store(knowledge_advisor)
    found, cosine = passages.similarity_search_with_score("loss is nan in KTO training with OpenRLHF", k=1)[0]
    assert 0.4 < cosine <= 1.0
    assert all(case in knowledge_advisor.knowledge.published for case in found.metadata["cases"])


def test_there_is_no_vector_store_before_the_passages_are_embedded(knowledge_advisor: Advisor) -> None:
    knowledge = knowledge_advisor.knowledge
    nothing = Vectors(knowledge.embedder.identity.dimension)
    words = Advisor(replace(knowledge, index=replace(knowledge.index, vectors=nothing)), parse)
    with pytest.raises(StoreError, match="not embedded yet"):
        vector_store(words)


@every_case(("name", "value"), [("framework", "verl"), ("family", "oom"), ("kind", "artefact")])
def test_filters_leave_only_what_they_ask_for(name: Any, value: str, knowledge_advisor: Advisor) -> None:
    found = KnowledgeRetriever(advisor=knowledge_advisor, filters={name: value}, top_k=10).invoke("loss or memory")
    assert found
    for document in found:
        held = document.metadata["frameworks" if name == "framework" else name]
        assert value in held if name == "framework" else value == held


@every_case("wrong", [{"top_k": 0}, {"top_k": 51}, {"filters": {"colour": "red"}}, {"language": "fr"}])
def test_a_retriever_with_impossible_options_is_refused(wrong: dict[str, Any], knowledge_advisor: Advisor) -> None:
    with pytest.raises(ValidationError):
        KnowledgeRetriever(advisor=knowledge_advisor, **wrong)


# --- tools ----------------------------------------------------------------------------------------------------------


def test_diagnose_gives_a_text_to_read_and_the_whole_answer(tools: dict[str, BaseTool]) -> None:
    message = called(tools["diagnose"], question=KTO.en, files=FILES)
    answer = message.artifact
    assert isinstance(answer, Answer)
    assert (answer.verdict, answer.causes[0].case_id) == ("answered", KTO.case)
    assert message.status == "success"
    assert f"verdict: answered\ncauses: 1. {KTO.case} (confidence " in message.text
    assert answer.answer in message.text
    for citation in answer.citations:
        assert f"[{citation.marker}] {citation.kind} {citation.id}" in message.text


def test_diagnose_stores_nothing_and_masks_what_it_repeats(advisor: Advisor) -> None:
    diagnose = knowledge_tools(advisor)[0]
    pasted = [{"name": "train.sh", "content": f"export HF_TOKEN={SECRET}\n{FILES[0]['content']}"}]
    message = called(diagnose, question=f"loss is nan {SECRET}", files=pasted)
    assert SECRET not in message.text
    assert sum(masked.count for masked in message.artifact.receipt.masked) == 2
    assert advisor.memory.history is not None
    assert advisor.memory.history.turns(message.artifact.conversation_id) == ()


def test_check_gives_a_line_for_each_finding_and_the_report(tools: dict[str, BaseTool]) -> None:
    message = called(tools["check"], files=FILES)
    assert isinstance(message.artifact, ReportView)
    assert len(message.text.split("\n")) == len(message.artifact.findings) > 0
    line = next(line for line in message.text.split("\n") if KTO.rule in line)
    assert line.startswith(f"warning {KTO.rule} fired (at train.sh:18): ")
    assert " Fix: " in line
    chinese = called(tools["check"], files=FILES, language="zh").text
    assert re.search(r"[\u4e00-\u9fff]", chinese)


def test_search_gives_a_line_for_each_case_with_its_source(tools: dict[str, BaseTool]) -> None:
    message = called(tools["search"], query="KTO loss is nan with vanilla_loss", framework="openrlhf", top_k=2)
    first, second = message.artifact
    assert message.text.split("\n")[0] == f"{KTO.case}: {first.metadata['title']} (" + (
        f"{first.metadata['evidence']}, {first.metadata['url']})"
    )
    assert "openrlhf" in second.metadata["frameworks"]
    assert called(tools["search"], query="loss", framework="nothing").text == "no similar case"


def test_a_call_that_does_not_fit_is_answered_with_what_is_wrong_and_nothing_pasted(tools: dict[str, BaseTool]) -> None:
    wrong = called(tools["check"], files=[{"name": "a", "content": 7, "secret": SECRET}])
    assert wrong.status == "error"
    assert "files.0.content: Input should be a valid string" in wrong.text
    assert SECRET not in wrong.text
    assert called(tools["check"], files=[]).text.startswith("error: files: ")
    assert called(tools["search"], query="loss", top_k=1000).text.startswith("error: top_k: ")


def test_all_tools_work_in_an_event_loop(tools: dict[str, BaseTool]) -> None:
    async def scenario() -> tuple[Any, Any, Any]:
        return await asyncio.gather(
            tools["diagnose"].ainvoke({"question": KTO.en, "files": FILES}),
            tools["search"].ainvoke({"query": KTO.en}),
            tools["check"].ainvoke({"files": FILES}),
        )

    diagnosed, found, checked = asyncio.run(scenario())
    assert KTO.case in diagnosed
    assert KTO.case in found
    assert KTO.rule in checked


class Scripted(BaseChatModel):
    """A model that calls one tool, then says what it was told."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            said = AIMessage(content=last.text)
        else:
            call = {"name": "diagnose", "args": {"question": KTO.en, "files": FILES}, "id": "call-1"}
            said = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=said)])


# --- documentation --------------------------------------------------------------------------------------------------


def test_the_examples_of_the_guide_run(
    knowledge_advisor: Advisor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trainmedic.ui.app.build_advisor", lambda settings, with_history: knowledge_advisor)
    examples = re.findall(
        r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8").partition("\n## LangChain\n")[2], re.S
    )
    assert len(examples) == 8
    space: dict[str, Any] = {}
    for number, example in enumerate(examples, start=1):
        exec(compile(example, f"{GUIDE.name} example {number}", "exec"), space)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{KTO.case} {space['found'][0].metadata['evidence']} http")
    assert "verdict: answered" in printed
    assert "openrlhf-kto-vanilla-loss-single-class fired" in printed
    question = "KTO loss is nan"
    assert question in space["chain"].invoke(question).to_string()
    said = space["make_agent"](Scripted()).invoke({"messages": [("user", "why?")]})["messages"][-1].text
    assert f"causes: 1. {KTO.case}" in said


def test_importing_it_brings_no_agents_and_no_model_client() -> None:
    heavy = ("langchain", "langgraph", "langchain_openai", "openai", "fastapi", "torch")
    code = f"import sys, trainmedic.ui.langchain; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
