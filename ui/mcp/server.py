"""The MCP server: nine read-only tools over the advisor, for any transport.

The library speaks the protocol revisions 2026-07-28 and, for older clients, 2025-11-25 and before
(https://modelcontextprotocol.io/specification). A failed call is a tool error that begins with one of the REST API's
codes and never repeats the client's input.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, Tool, ToolAnnotations
from pydantic import Field, ValidationError

from trainmedic.kb.errors import InvalidRequest, NotFound, TooLarge, TrainmedicError
from trainmedic.kb.mask import mask
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import ReportView
from trainmedic.kb.pages.render import render_cause, render_rule
from trainmedic.kb.trace import trace_of
from trainmedic.service.access.principals import ANYBODY
from trainmedic.service.answer.schema import Answer, AuditView, DiffView, MessagesView, StepView
from trainmedic.service.api.resources import Hits
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS, Ask
from trainmedic.ui.doctor.answering import page
from trainmedic.ui.doctor.collect import Collected, collect
from trainmedic.ui.doctor.target import Target
from trainmedic.ui.mcp import source
from trainmedic.ui.mcp.local_files import LocalFiles
from trainmedic.ui.mcp.shapes import CasePage, File, PastedFile, RulePage, narrowed
from trainmedic.ui.present.page import Page, page_of

if TYPE_CHECKING:
    from trainmedic.ui.context import AppContext

MAX_QUESTION = 100_000
MAX_CHARACTERS = 4 * 1024 * 1024
"""Code points of all files in one call; a model passes them on, so they are smaller than uploads."""
MAX_QUERY = 10_000
MAX_DEFECTS = 50
"""Defects in one result; the most harmful come first."""
MAX_ID = 200
# The list changes only with a new release of the service.
HOUR_MS = 3_600_000
# Lets a client call the tools without asking its user each time.
READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
INSTRUCTIONS = """\
trainmedic finds out why an LLM training run is broken and what to change, in English and Chinese.
Call `diagnose` once, with the user's own words and everything at hand: launch command, configs, log tail, pip list, \
or `run_dir` where it is offered. Its answer is one page. Act on the first cause only if the verdict is `answered`; \
for `need_input` ask the user for what `missing` names; `not_in_kb` means that no case covers it: do not present a \
guess as trainmedic's. Propose nothing that `avoid` names.
Call `check_config` for files before a run, `audit_packages` for a pip list or lock file, `diff` for a run that \
fails and one that works, `explain_message` for one error message, `search_cases` to look something up, and \
`get_case` and `explain_rule` for the pages behind an id. Call `source` for the code of the release that the user \
runs: what it does is written there, not in what you remember of another release. \
Secrets in the input are masked; nothing is executed.
"""
TITLES = {
    "diagnose": "Diagnose a training run",
    "check_config": "Check configuration with the rules",
    "audit_packages": "Audit packages for known defects",
    "diff": "Compare a failing run with one that works",
    "explain_message": "Explain an error message",
    "search_cases": "Search known cases",
    "get_case": "Read a case",
    "explain_rule": "Explain a rule",
    "source": "Read the source of a release",
}
log = logging.getLogger("trainmedic.mcp")

Files = Annotated[
    list[File] | None, Field(description=f"files of ONE run; at most {MAX_CHARACTERS} characters together")
]
AnswerLanguage = Annotated[
    Literal["auto", "en", "zh"], Field(description="language of the answer; auto follows the question")
]
TextLanguage = Annotated[Literal["en", "zh"], Field(description="language of the texts")]
# Limits are stated in the schemas and enforced by `Tools._files`: the library's own error would repeat the input.
Id = Annotated[str, Field(json_schema_extra={"maxLength": MAX_ID})]


PASTED_FILE = PastedFile.model_json_schema()


class Server(MCPServer[Any]):
    """The library's server, with errors in our vocabulary. It refuses arguments that a tool does not have."""

    reads_files = False

    async def list_tools(self) -> list[Tool]:
        """The tools, whose schemas admit no further arguments, and paths only if the server reads files."""
        tools = await super().list_tools()
        for tool in tools:
            tool.input_schema = {**tool.input_schema, "additionalProperties": False}
            definitions = tool.input_schema.get("$defs", {})
            if "File" in definitions and not self.reads_files:
                tool.input_schema["$defs"] = {**definitions, "File": PASTED_FILE}
            if not self.reads_files:
                properties = tool.input_schema["properties"].items()
                tool.input_schema["properties"] = {name: value for name, value in properties if name != "run_dir"}
        return tools

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call the tool. Raises `ToolError` with ``code: message`` and nothing of the input."""
        for tool in await self.list_tools():
            # A misnamed argument, such as `files`, would lose what it holds without a word.
            if tool.name == name and (unknown := arguments.keys() - tool.input_schema["properties"].keys()):
                known = ", ".join(tool.input_schema["properties"])
                count = "an unknown argument" if len(unknown) == 1 else f"{len(unknown)} unknown arguments"
                raise ToolError(error_line(InvalidRequest(count, hint=f"this tool takes: {known}")))
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            # Without the cause, whose text repeats the input.
            raise ToolError(refusal(name, error)) from None


def refusal(name: str, error: ToolError) -> str:
    """The message for a failed call. Unexpected errors go to the log, masked."""
    cause = error.__cause__
    if isinstance(cause, TrainmedicError):
        return error_line(cause)
    if isinstance(cause, ValidationError):
        errors = cause.errors(include_input=False, include_url=False, include_context=False)[:5]
        parts = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in errors]
        return error_line(InvalidRequest("; ".join(parts)))
    if cause is None:
        return error_line(NotFound(f"no tool {name[:MAX_ID]!r}"))
    log.error("unexpected error in tool %s\n%s", name, trace_of(cause))
    return "internal: something went wrong on our side"


def error_line(error: TrainmedicError) -> str:
    """An error as one line: code, message, hint. Masked and cut, because a message may repeat the input."""
    hint = f" ({error.hint})" if error.hint else ""
    return mask(f"{error.code}: {error.message[:1000]}{hint}".encode("utf-8", "replace").decode("utf-8")).text


def owner_of(ctx: Context[Any, Any]) -> str:
    """Whose conversation a call belongs to: the key's over HTTP, no one's over standard input."""
    request = ctx.request_context.request
    principal = getattr(getattr(request, "state", None), "principal", ANYBODY)
    return str(principal.id)


class Tools:
    """The functions behind the tools. Each raises `TrainmedicError` for an invalid call."""

    def __init__(self, context: AppContext, local: LocalFiles) -> None:
        self._context = context
        self._advisor = context.advisor
        self._local = local

    async def diagnose(
        self,
        ctx: Context[Any, Any],
        question: Annotated[
            str, Field(description="the user's own words", json_schema_extra={"maxLength": MAX_QUESTION})
        ] = "",
        attachments: Files = None,
        language: AnswerLanguage = "auto",
        conversation_id: Annotated[str | None, Field(description="of an earlier answer, for a follow-up to it")] = None,
        mode: Annotated[
            Literal["auto", "deterministic", "investigate"],
            Field(
                description="deterministic: without a language model; investigate: let it look further, step by step"
            ),
        ] = "auto",
        run_dir: Annotated[
            str,
            Field(
                description="a run's folder below one of the server's: its configs, logs and versions are found there"
            ),
        ] = "",
    ) -> Page:
        """Find out why an LLM training run is broken, or whether it is, on one page: cause, evidence line by line, \
the smallest patch, what does not help, and what to ask the user for where that is not enough."""
        collected = await self._collected(run_dir) if run_dir else None
        files = await self._files(attachments, question)
        if collected is not None:
            files = (*files, *collected.attachments)[:MAX_ATTACHMENTS]
        if conversation_id is not None and not (
            0 < len(conversation_id) <= 64 and conversation_id.replace("-", "").replace("_", "").isalnum()
        ):
            raise InvalidRequest("conversation_id: not one of this service")
        request = Ask(
            question=question,
            attachments=files,
            conversation_id=conversation_id,
            language=language,
            mode=mode,
            owner=owner_of(ctx),
        )
        async with aclosing(self._context.answerer.stream(request, "", self._context.executor)) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    # The text is not streamed: the protocol reports progress, not partial results.
                    return page_of(part) if collected is None else page(collected, part, checks_only=False)
                if isinstance(part, StepView):
                    await ctx.report_progress(part.number, None, part.what)
        raise AssertionError("a stream ends with its answer")

    async def check_config(
        self,
        attachments: Annotated[
            list[File], Field(description=f"files of ONE run; at most {MAX_CHARACTERS} characters together")
        ],
        language: TextLanguage = "en",
    ) -> ReportView:
        """Check launch scripts, configs and a pip list against every rule, before or after a run. No search, no \
language model, nothing stored."""
        files, advisor = await self._some_files(attachments), self._advisor
        return await self._context.executor(lambda: advisor.check(files, language))

    async def audit_packages(
        self,
        attachments: Annotated[
            list[File],
            Field(
                description=f"package lists (pip list, requirements, lock files) and files of ONE run; at most "
                f"{MAX_CHARACTERS} characters together"
            ),
        ],
        language: TextLanguage = "en",
    ) -> AuditView:
        """The known defects of the installed packages, such as silently wrong losses, hangs and crashes, with the \
releases that have them, workarounds, and the versions to change to. Nothing stored."""
        files, advisor = await self._some_files(attachments), self._advisor
        view = await self._context.executor(lambda: advisor.audit(files, language))
        return replace(view, defects=view.defects[:MAX_DEFECTS])

    async def diff(
        self,
        good: Annotated[list[File], Field(description="files of the run that works")],
        bad: Annotated[
            list[File],
            Field(description=f"files of the run that fails; at most {MAX_CHARACTERS} characters in both together"),
        ],
        language: TextLanguage = "en",
    ) -> DiffView:
        """Compare a run that works with one that fails (configs, effective settings, package versions, curves): what \
differs, and what each difference does; those that explain the failure come first. Nothing stored."""
        files = await self._files([*good, *bad])
        works, fails = files[: len(good)], files[len(good) :]
        if not works or not fails:
            raise InvalidRequest("good, bad: at least one file each")
        advisor = self._advisor
        return await self._context.executor(lambda: advisor.diff(works, fails, language))

    async def explain_message(
        self,
        message: Annotated[
            str, Field(description="the message or traceback", json_schema_extra={"maxLength": MAX_QUESTION})
        ] = "",
        attachments: Files = None,
        language: TextLanguage = "en",
    ) -> MessagesView:
        """Explain an error message or warning of a training framework: which code prints it, under which condition \
and with which of the run's values, which releases have it, and what to change if that is known. No diagnosis."""
        files = await self._files(attachments, message)
        if not message.strip() and not files:
            raise InvalidRequest("message: a message, or attachments")
        advisor = self._advisor
        return await self._context.executor(lambda: advisor.explain(message, files, language))

    async def search_cases(
        self,
        query: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": MAX_QUERY})],
        framework: Annotated[str | None, Field(description="only cases of this framework, such as trl")] = None,
        top_k: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": 50})] = 10,
        language: TextLanguage = "en",
    ) -> Hits:
        """The known cases nearest to a text in English or Chinese: symptoms, error messages, option names."""
        if not query.strip() or len(query) > MAX_QUERY:
            raise InvalidRequest(f"query: between 1 and {MAX_QUERY} characters")
        if not 1 <= top_k <= 50:
            raise InvalidRequest("top_k: between 1 and 50")
        advisor, filters = self._advisor.snapshot(), {"framework": framework} if framework else None
        hits = await self._context.executor(lambda: advisor.search(query, top_k, filters))
        return Hits.of(hits, advisor.knowledge.cases, language)

    async def get_case(self, case_id: Id, language: TextLanguage = "en") -> CasePage:
        """One case, mechanism or origin by its id: symptom, cause, fix, what does not help, how to confirm, versions, \
sources."""
        advisor = self._advisor.snapshot()
        case = advisor.case(case_id)
        if case is None:
            raise NotFound(f"no case {case_id[:MAX_ID]!r}", hint="search_cases finds them")
        return CasePage(
            id=case.id,
            title=case.title.get(language),
            kind=case.kind,
            family=case.family,
            frameworks=list(case.frameworks),
            evidence=case.evidence,
            rules=list(case.rules),
            markdown=render_cause(case, advisor.knowledge.mechanisms, language),
        )

    async def explain_rule(self, rule_id: Id, language: TextLanguage = "en") -> RulePage:
        """One rule by its id: what it finds, why that matters, what to do, and a paste on which it fires."""
        rule = self._advisor.knowledge.rules.get(rule_id)
        if rule is None:
            raise NotFound(f"no rule {rule_id[:MAX_ID]!r}", hint="findings name the rules that made them")
        return RulePage(
            id=rule.id,
            title=rule.title.get(language),
            severity=rule.severity.value,
            status=rule.status,
            frameworks=list(rule.applies.get("framework", ())),
            cases=list(rule.cases),
            when=rule.when,
            markdown=render_rule(rule, language),
        )

    async def source(
        self,
        action: source.Action,
        package: source.Package,
        version: source.Version = "",
        pattern: source.Pattern = "",
        path: source.File = "",
        symbol: source.Symbol = "",
        lines: source.Range = "",
        before: source.Before = "",
    ) -> source.SourcePage:
        """The code of a package at the release that the user runs, as text with file and line; what changed since an \
earlier one. Nothing is imported or run."""
        wanted = source.Wanted(action, package, version, pattern, path, symbol, lines, before)
        library = self._advisor.source
        if library is None:
            raise NotFound("no source is at hand here")
        return await self._context.executor(lambda: source.looked_up(library, wanted))

    async def _collected(self, run_dir: str) -> Collected:
        """What the folder holds of a run; no process, whose files may lie elsewhere. Raises what `LocalFiles` does."""
        folder = self._local.folder(run_dir)
        return await self._context.executor(lambda: collect(Target(folder=folder, words=("folder", run_dir))))

    async def _some_files(self, files: list[File]) -> tuple[Attachment, ...]:
        if not files:
            raise InvalidRequest("attachments: at least one file")
        return await self._files(files)

    async def _files(self, files: list[File] | None, question: str = "") -> tuple[Attachment, ...]:
        """The attachments, of which those with a path are read here. Raises `TooLarge` and what `LocalFiles` does."""
        files = files or []
        if len(files) > MAX_ATTACHMENTS:
            raise TooLarge(f"{len(files)} attachments; at most {MAX_ATTACHMENTS} in one call")
        if len(question) > MAX_QUESTION:
            raise TooLarge(f"the question is longer than {MAX_QUESTION} characters", hint="send logs as attachments")
        if sum(len(file.content or "") + len(file.name) for file in files) > MAX_CHARACTERS:
            raise TooLarge(
                f"the attachments are longer than {MAX_CHARACTERS} characters", hint="send the end of the log"
            )
        return tuple([await self._file(file) for file in files])

    async def _file(self, file: File) -> Attachment:
        path = file.path
        if path is not None and file.content is None:
            return await self._context.executor(lambda: self._local.read(path))
        if path is not None or file.content is None or not file.name:
            raise InvalidRequest("attachments: name and content, or path")
        return Attachment(name=file.name, content=file.content)


def make_server(context: AppContext, roots: Sequence[Path] = ()) -> Server:
    """A server over one advisor; it holds no state of its own.

    ``roots`` are folders whose files it reads by their path: only for a client on this machine.
    """
    server = Server(
        name="trainmedic",
        title="trainmedic",
        description="Why is my LLM training run broken, and what do I change?",
        instructions=INSTRUCTIONS,
        version=version("trainmedic"),
        log_level="WARNING",
        cache_hints={"tools/list": CacheHint(ttl_ms=HOUR_MS, scope="public")},
    )
    server.reads_files = bool(roots)
    tools = Tools(context, LocalFiles(roots))
    for name, title in TITLES.items():
        server.tool(name=name, title=title, annotations=READS, structured_output=True)(
            narrowed(name, getattr(tools, name))
        )
    return server
