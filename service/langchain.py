"""The knowledge for other LangChain programs: a retriever over the cases, and tools over an `Advisor`.

The rules and the masking are the same as everywhere; nothing is stored. Importing this imports no agents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.v1 import ValidationError as ValidationErrorV1

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.language import language_of
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.case_render import render
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer import Answer, FindingView, ReportView
from trainmedic.service.question.request import Ask
from trainmedic.service.ranking.retrieve import Hit

T = TypeVar("T")
Language = Literal["auto", "en", "zh"]
Filter = Literal["framework", "family", "kind"]
MAX_FILES = 40
"""Files in one call of a tool."""
MOST = 50
"""Cases that can be asked for at once."""


class KnowledgeRetriever(BaseRetriever):
    """A question in, cases out as documents, best first.

    A document's text is the case's page as Markdown; its metadata are ``id``, ``title``, ``url`` (of the first source,
    None where there is none), ``score`` (higher is nearer; comparable within one search), ``why`` (what found it),
    ``evidence`` (the grade: reproduced, maintainer, reporter, source-read or reported), ``language`` (of the text),
    ``frameworks``, ``family`` and ``kind``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    advisor: Advisor
    """What is searched."""
    top_k: Annotated[int, Field(ge=1, le=MOST)] = 4
    """How many documents at most."""
    filters: dict[Filter, str] = Field(default_factory=dict)
    """Only cases of this framework, class of failure or kind (``fault``, ``artefact``)."""
    language: Language = "auto"
    """Of the documents; auto: the question's."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return documents(self.advisor, query, self.top_k, self.filters, self.language)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await asyncio.to_thread(documents, self.advisor, query, self.top_k, self.filters, self.language)


def documents(
    advisor: Advisor,
    query: str,
    top_k: int = 4,
    filters: Mapping[Filter, str] | None = None,
    language: Language = "auto",
) -> list[Document]:
    """The nearest cases as documents, as `KnowledgeRetriever` describes them. An empty question finds nothing."""
    if not query.strip():
        return []
    written = language_of(query) if language == "auto" else language
    found = (
        (hit, advisor.case(hit.case_id))
        for hit in advisor.search(query, top_k, dict(filters.items()) if filters else None)
    )
    return [_document(hit, case, written) for hit, case in found if case is not None]


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
    return Document(page_content=render(case, language), id=case.id, metadata=metadata)


class FileIn(BaseModel):
    """A file that was pasted."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=255, description="its name, such as train.sh or train.log")] = "attachment"
    content: Annotated[str, Field(description="its text, as it is")]


Files = Annotated[
    list[FileIn],
    Field(max_length=MAX_FILES, description="launch command, configuration, log and `pip list` of ONE run"),
]


class DiagnoseIn(BaseModel):
    """What ``diagnose`` is asked."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(description="what goes wrong, in English or Chinese, as the user said it")] = ""
    files: Files = Field(default_factory=list)
    language: Annotated[Language, Field(description="of the answer; auto: the question's")] = "auto"


class SearchIn(BaseModel):
    """What ``search`` is asked."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(min_length=1, description="a symptom, an error message, an option")]
    top_k: Annotated[int, Field(ge=1, le=MOST, description="how many cases at most")] = 5
    framework: Annotated[str | None, Field(description="only cases of this framework, such as trl or verl")] = None
    family: Annotated[str | None, Field(description="only this class of failure, such as nan-loss or oom")] = None
    kind: Annotated[Literal["fault", "artefact"] | None, Field(description="artefact: nothing is wrong")] = None


class CheckIn(BaseModel):
    """What ``check`` is asked."""

    model_config = ConfigDict(extra="forbid")

    files: Annotated[list[FileIn], Field(min_length=1, max_length=MAX_FILES, description="files of ONE run")]
    language: Annotated[Literal["en", "zh"], Field(description="of the findings")] = "en"


def knowledge_tools(advisor: Advisor) -> list[BaseTool]:
    """The tools ``diagnose``, ``search`` and ``check``, for agents and ``bind_tools``.

    Each returns text for a model to read, and as the message's artifact the value behind it: an `Answer`, documents, a
    `ReportView`. They only read, and store nothing. What is wrong with a call is returned as text too, so that a model
    can mend it.
    """

    def diagnose(question: str = "", files: list[FileIn] | None = None, language: Language = "auto") -> Told[Answer]:
        request = Ask(question=question, attachments=_attachments(files), language=language)
        answer = advisor.prepare(request).answer
        return answer_text(answer), answer

    def search(
        query: str, top_k: int = 5, framework: str | None = None, family: str | None = None, kind: str | None = None
    ) -> Told[list[Document]]:
        wanted: dict[Filter, str | None] = {"framework": framework, "family": family, "kind": kind}
        found = documents(advisor, query, top_k, {name: value for name, value in wanted.items() if value})
        return "\n".join(map(_line, found)) or "no case is near to that", found

    def check(files: list[FileIn], language: str = "en") -> Told[ReportView]:
        report = advisor.check(_attachments(files), language)
        return report_text(report), report

    return [
        _tool(diagnose, DiagnoseIn, "Find out why an LLM training run is broken and what to change."),
        _tool(search, SearchIn, "Search the known causes of broken LLM training runs; returns their ids and titles."),
        _tool(check, CheckIn, "Check launch commands, configurations, logs and package versions by rule; no search."),
    ]


Told = tuple[str, T]
"""What a model reads, and the value behind it."""


def _tool(call: Callable[..., Told[Any]], form: type[BaseModel], description: str) -> BaseTool:
    """A tool over ``call``, which also works without holding up an event loop."""

    def told(**arguments: Any) -> Told[Any]:
        try:
            return call(**arguments)
        except TrainmedicError as error:
            return f"error: {error.message}" + (f" ({error.hint})" if error.hint else ""), None

    async def told_later(**arguments: Any) -> Told[Any]:
        return await asyncio.to_thread(told, **arguments)

    return StructuredTool.from_function(
        func=told,
        coroutine=told_later,
        name=call.__name__,
        description=description,
        args_schema=form,
        response_format="content_and_artifact",
        handle_validation_error=_mistake,
    )


def _mistake(error: ValidationError | ValidationErrorV1) -> str:
    """What is wrong with a call's arguments, without repeating them: they may hold what was pasted."""
    if not isinstance(error, ValidationError):
        return "error: the arguments do not fit"
    parts = [f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}" for item in error.errors()[:5]]
    return f"error: {'; '.join(parts)}"


def answer_text(answer: Answer) -> str:
    """An answer for a model: what is settled, then the text with its sources."""
    causes = [f"{cause.rank}. {cause.case_id} (confidence {cause.confidence})" for cause in answer.causes]
    cited = [f"[{c.marker}] {c.kind} {c.id}" + (f" {c.url}" if c.url else "") for c in answer.citations]
    parts = [f"verdict: {answer.verdict}", "causes: " + ("; ".join(causes) or "none"), "", answer.answer]
    return "\n".join([*parts, "", *cited] if cited else parts)


def report_text(report: ReportView) -> str:
    """A report for a model: one line for each finding."""
    return "\n".join(map(_finding, report.findings)) or "no rule fired"


def _finding(finding: FindingView) -> str:
    at = ", ".join(f"{place.attachment}:{place.line}" for place in finding.evidence if not place.default)
    seen = f" (at {at})" if at else ""
    asks = "".join(f" Missing: {item.ask}" for item in finding.missing)
    fix = f" Fix: {finding.fix}" if finding.fix else ""
    return f"{finding.severity} {finding.rule_id} {finding.status}{seen}: {finding.message}{fix}{asks}"


def _line(document: Document) -> str:
    of = document.metadata
    return f"{of['id']}: {of['title']} ({of['evidence']}" + (f", {of['url']})" if of["url"] else ")")


def _attachments(files: list[FileIn] | None) -> tuple[Attachment, ...]:
    return tuple(Attachment(name=file.name, content=file.content) for file in files or ())
