"""The knowledge for other LangChain programs: a retriever over the cases, and tools over an `Advisor`.

The rules and the masking are the same as everywhere; nothing is stored. Importing this imports no agents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.v1 import ValidationError as ValidationErrorV1

from trainmedic.kb.errors import StoreError, TrainmedicError
from trainmedic.kb.language import language_of
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import FindingView, ReportView
from trainmedic.kb.pages.render import render_case
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.ranking.retrieve import Hit

T = TypeVar("T")
Language = Literal["auto", "en", "zh"]
Filter = Literal["framework", "family", "kind"]
MAX_FILES = 40
"""Files in one call of a tool."""
MOST = 50
"""The most cases in one call."""


class KnowledgeRetriever(BaseRetriever):
    """A question in, cases out as documents, best first.

    A document's text is the case's page as Markdown; its metadata are ``id``, ``title``, ``url`` (of the first source,
    or None), ``score`` (higher is nearer; comparable within one search), ``why`` (the reasons),
    ``evidence`` (the grade: reproduced, maintainer, reporter, source-read or reported), ``language`` (of the text),
    ``frameworks``, ``family`` and ``kind``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    advisor: Advisor
    """Provides the knowledge to search."""
    top_k: Annotated[int, Field(ge=1, le=MOST)] = 4
    """The most documents returned."""
    filters: dict[Filter, str] = Field(default_factory=dict)
    """Only cases of this framework, class of failure or kind (``fault``, ``artefact``)."""
    language: Language = "auto"
    """Language of the documents; auto: the question's."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return documents(self.advisor, query, self.top_k, self.filters, self.language)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await asyncio.to_thread(documents, self.advisor, query, self.top_k, self.filters, self.language)


def vector_store(advisor: Advisor) -> InMemoryVectorStore:
    """A copy of the passages of all pages as a vector store, searched by the knowledge's own embedder.

    Raises `StoreError` while they are not embedded yet.
    """
    knowledge = advisor.snapshot().knowledge
    pieces = knowledge.index.chunks
    if knowledge.index.words_only:
        raise StoreError("the passages are not embedded yet", hint="trainmedic index status")

    store = InMemoryVectorStore(cast(Embeddings, knowledge.embedder))
    for piece, vector in zip(pieces, knowledge.index.vectors.rows(), strict=True):
        metadata = {"cases": piece.cases, "part": piece.part, "language": piece.language}
        store.store[piece.id] = {"id": piece.id, "vector": vector, "text": piece.text, "metadata": metadata}
    return store


def documents(
    advisor: Advisor,
    query: str,
    top_k: int = 4,
    filters: Mapping[Filter, str] | None = None,
    language: Language = "auto",
) -> list[Document]:
    """The nearest cases as documents, see `KnowledgeRetriever`. An empty question finds nothing."""
    advisor = advisor.snapshot()
    if not query.strip():
        return []
    page_language = language_of(query) if language == "auto" else language
    hits = (
        (hit, advisor.case(hit.case_id))
        for hit in advisor.search(query, top_k, dict(filters.items()) if filters else None)
    )
    return [_document(hit, case, page_language) for hit, case in hits if case is not None]


def _document(hit: Hit, case: Case, language: str) -> Document:
    metadata = {
        "id": case.id,
        "title": case.title.get(language),
        "url": case.sources[0].url if case.sources else None,
        "score": round(hit.score, 6),
        "why": list(hit.why),
        "evidence": case.evidence,
        "language": "zh" if language == "zh" else "en",
        "frameworks": list(case.frameworks),
        "family": case.family,
        "kind": case.kind,
    }
    return Document(page_content=render_case(case, language), id=case.id, metadata=metadata)


class FileIn(BaseModel):
    """A pasted file."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=255, description="its name, such as train.sh or train.log")] = "attachment"
    content: Annotated[str, Field(description="its text, unchanged")]


Files = Annotated[
    list[FileIn],
    Field(max_length=MAX_FILES, description="launch command, configuration, log and `pip list` of ONE run"),
]


class DiagnoseIn(BaseModel):
    """The arguments of ``diagnose``."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(description="the problem in the user's own words, English or Chinese")] = ""
    files: Files = Field(default_factory=list)
    language: Annotated[Language, Field(description="language of the answer; auto: the question's")] = "auto"


class SearchIn(BaseModel):
    """The arguments of ``search``."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(min_length=1, description="a symptom, an error message, an option")]
    top_k: Annotated[int, Field(ge=1, le=MOST, description="how many cases at most")] = 5
    framework: Annotated[str | None, Field(description="only cases of this framework, such as trl or verl")] = None
    family: Annotated[str | None, Field(description="only this class of failure, such as nan-loss or oom")] = None
    kind: Annotated[Literal["fault", "artefact"] | None, Field(description="artefact: nothing is wrong")] = None


class CheckIn(BaseModel):
    """The arguments of ``check``."""

    model_config = ConfigDict(extra="forbid")

    files: Annotated[list[FileIn], Field(min_length=1, max_length=MAX_FILES, description="files of ONE run")]
    language: Annotated[Literal["en", "zh"], Field(description="language of the findings")] = "en"


def knowledge_tools(advisor: Advisor) -> list[BaseTool]:
    """The tools ``diagnose``, ``search`` and ``check``, for agents and ``bind_tools``.

    Each returns text for a model to read, and as the message's artifact the value behind it: an `Answer`, documents, a
    `ReportView`. They are read-only and store nothing. Errors of a call are returned as text, so that the model can
    correct it.
    """

    def diagnose(
        question: str = "", files: list[FileIn] | None = None, language: Language = "auto"
    ) -> ToolResult[Answer]:
        request = Ask(question=question, attachments=_attachments(files), language=language)
        answer = advisor.compose(advisor.prepare(request))
        return answer_text(answer), answer

    def search(
        query: str, top_k: int = 5, framework: str | None = None, family: str | None = None, kind: str | None = None
    ) -> ToolResult[list[Document]]:
        filters: dict[Filter, str | None] = {"framework": framework, "family": family, "kind": kind}
        cases = documents(advisor, query, top_k, {name: value for name, value in filters.items() if value})
        return "\n".join(map(_line, cases)) or "no similar case", cases

    def check(files: list[FileIn], language: str = "en") -> ToolResult[ReportView]:
        report = advisor.check(_attachments(files), language)
        return report_text(report), report

    return [
        _tool(diagnose, DiagnoseIn, "Find out why an LLM training run is broken and what to change."),
        _tool(search, SearchIn, "Search the known causes of broken LLM training runs; returns their ids and titles."),
        _tool(check, CheckIn, "Check launch commands, configurations, logs and package versions by rule; no search."),
    ]


ToolResult = tuple[str, T]
"""The text for the model, and the value behind it."""


def _tool(call: Callable[..., ToolResult[Any]], form: type[BaseModel], description: str) -> BaseTool:
    """A tool over ``call``; its async form runs in a thread."""

    def invoke(**arguments: Any) -> ToolResult[Any]:
        try:
            return call(**arguments)
        except TrainmedicError as error:
            return f"error: {error.message}" + (f" ({error.hint})" if error.hint else ""), None

    async def ainvoke(**arguments: Any) -> ToolResult[Any]:
        return await asyncio.to_thread(invoke, **arguments)

    return StructuredTool.from_function(
        func=invoke,
        coroutine=ainvoke,
        name=call.__name__,
        description=description,
        args_schema=form,
        response_format="content_and_artifact",
        handle_validation_error=_argument_error,
    )


def _argument_error(error: ValidationError | ValidationErrorV1) -> str:
    """The problems of a call's arguments, without the arguments themselves, which may hold secrets."""
    if not isinstance(error, ValidationError):
        return "error: invalid arguments"
    parts = [f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors()[:5]]
    return f"error: {'; '.join(parts)}"


def answer_text(answer: Answer) -> str:
    """An answer for a model: verdict and causes, then the text with its sources."""
    causes = [f"{cause.rank}. {cause.case_id} (confidence {cause.confidence})" for cause in answer.causes]
    cited = [f"[{c.marker}] {c.kind} {c.id}" + (f" {c.url}" if c.url else "") for c in answer.citations]
    parts = [f"verdict: {answer.verdict}", "causes: " + ("; ".join(causes) or "none"), "", answer.answer]
    return "\n".join([*parts, "", *cited] if cited else parts)


def report_text(report: ReportView) -> str:
    """A report for a model: one line per finding."""
    return "\n".join(map(_finding, report.findings)) or "no rule fired"


def _finding(finding: FindingView) -> str:
    places = ", ".join(f"{place.attachment}:{place.line}" for place in finding.evidence if not place.default)
    where = f" (at {places})" if places else ""
    asks = "".join(f" Missing: {item.ask}" for item in finding.missing)
    fix = f" Fix: {finding.fix}" if finding.fix else ""
    return f"{finding.severity} {finding.rule_id} {finding.status}{where}: {finding.message}{fix}{asks}"


def _line(document: Document) -> str:
    of = document.metadata
    return f"{of['id']}: {of['title']} ({of['evidence']}" + (f", {of['url']})" if of["url"] else ")")


def _attachments(files: list[FileIn] | None) -> tuple[Attachment, ...]:
    return tuple(Attachment(name=file.name, content=file.content) for file in files or ())
