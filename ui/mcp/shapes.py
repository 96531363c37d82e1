"""Arguments and results of the tools; tests keep a snapshot of the schemas.

A result is a part of what the REST API returns, because a model pays for every token that it reads: no end columns,
settings, signals or series. `PARTS` and `RESULTS` name the fields.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import reduce, wraps
from inspect import signature
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import FindingView, HorizonView, ReportView
from trainmedic.service.answer import schema as answer
from trainmedic.service.answer.schema import CurveView, DifferenceView, DiffView, EffectView
from trainmedic.service.api.resources import Hits
from trainmedic.ui.present.page import Page

# JSON has no NaN and no infinity.
NumberText = Annotated[str, BeforeValidator(lambda value: f"{value:.6g}")]
PARTS: Mapping[type, str] = {
    Span: "attachment line column text default",
    FindingView: "rule_id title severity status message fix patch clears appears evidence missing cases",
    HorizonView: "package asked read_up_to message",
    answer.ConditionValueView: "name value",
    answer.MessageView: "package kind evidence text condition values place first_release last_release in_version "
    "advice others",
    answer.DefectView: "id package version title effect affected certain workaround link",
    DifferenceView: "kind name good bad good_place bad_place effects",
    EffectView: "kind id title fix explains",
    CurveView: "metric step good bad whole bad_place",
}
"""Of these the named fields alone; anything else is returned whole."""
_RUN, _INPUTS = "run.framework run.algorithm run.versions", "receipt.inputs receipt.masked"
RESULTS: Mapping[str, tuple[type, str]] = {
    "diagnose": (Page, " ".join(field.name for field in fields(Page))),
    "check_config": (ReportView, f"findings horizon {_RUN} {_INPUTS} ruleset_version"),
    "audit_packages": (answer.AuditView, f"defects changes packages horizon patch {_INPUTS}"),
    "diff": (DiffView, "differences source curves findings defects horizon"),
    "explain_message": (answer.MessagesView, "messages"),
    "search_cases": (Hits, "hits kb_version"),
}
"""By tool; ``run.framework`` is a field of the result itself."""
NOTES: Mapping[str, str] = {
    "FindingView.severity": "error, warning or info",
    "FindingView.status": "fired, or cannot_tell because of what is missing",
    "FindingView.patch": "a unified diff of the user's own text",
    "FindingView.clears": "rules that no longer fire once the patch is applied",
    "FindingView.appears": "rules that fire only then",
    "Page.conversation_id": "send it with a follow-up question; earlier files still apply",
    "Page.verdict": "answered; need_input: ask the user for what is missing; not_in_kb: no case covers it; "
    "no_fault: nothing is wrong here; explained: the question was about no incident. Act on the first cause only if it "
    "is answered",
    "Page.patch": "a unified diff of the user's own text",
    "Page.avoid": "remedies that do not help, and why: do not propose them",
    "Page.missing": "what would decide: ask the user for it",
    "Page.not_found": "what was looked for in run_dir in vain",
    "AdviceView.cases": "get_case reads them",
    "DefectView.certain": "false: the configuration or the exact version decides",
}


class PastedFile(BaseModel):
    """A pasted file."""

    model_config = ConfigDict(extra="forbid", title="File")

    name: str = Field(description="its name, such as train.sh")
    content: str = Field(description="its text")


class File(BaseModel):
    """A file: its name and its text, or its path below one of the server's folders, where the server reads it."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field("", description="its name, such as train.sh")
    content: str | None = Field(None, description="its text")
    path: str | None = Field(None, description="instead of both: where the server finds it; spares sending a long log")


class CasePage(BaseModel):
    """One case: symptom, cause, fix, what does not help, how to confirm, sources."""

    id: str
    title: str
    kind: str = Field(description="fault, or artefact: it merely looks wrong")
    family: str
    frameworks: list[str]
    evidence: str = Field(description="how well it is established")
    rules: list[str]
    markdown: str


class RulePage(BaseModel):
    """One rule: what it finds, why that matters, what to do, and pastes on which it fires or stays silent."""

    id: str
    title: str
    severity: str
    status: str
    frameworks: list[str]
    cases: list[str]
    when: str = Field(description="its condition; empty if a program decides")
    markdown: str


def result_of(tool: str) -> type[BaseModel]:
    """The result type of the tool, as `RESULTS` has it."""
    return _part(*RESULTS[tool], {})


def narrowed(tool: str, call: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    """The tool's function, which returns the part of its result that `RESULTS` names."""
    if tool not in RESULTS:
        return call
    result = result_of(tool)

    @wraps(call)
    async def narrow(*args: Any, **kwargs: Any) -> BaseModel:
        return result.model_validate(await call(*args, **kwargs))

    narrow.__signature__ = signature(call, eval_str=True).replace(return_annotation=result)  # type: ignore[attr-defined]
    return narrow


def _part(kind: type, named: str, made: dict[type, Any]) -> type[BaseModel]:
    """A model of some fields of a dataclass, read from the attributes of one."""
    title = kind.__name__.removesuffix("View")
    models: dict[str, Any] = {}
    for path in (field.split(".") for field in named.split()):
        name, owner = path[-1], reduce(lambda of, step: _hints(of)[step], path[:-1], kind)
        hint = NumberText if kind is CurveView and name in ("good", "bad") else _narrow(_hints(owner)[name], made)
        alias: AliasPath | None = AliasPath(path[0], *path[1:]) if len(path) > 1 else None
        note = NOTES.get(f"{owner.__name__}.{name}")
        models[name] = (hint, Field(validation_alias=alias, description=note))
    model: type[BaseModel] = create_model(
        title, __config__=ConfigDict(from_attributes=True), __doc__=kind.__doc__, **models
    )
    made[kind] = model
    return model


def _narrow(hint: Any, made: dict[type, Any]) -> Any:
    if hint in PARTS:
        return made[hint] if hint in made else _part(hint, PARTS[hint], made)
    if is_dataclass(hint) or not (arguments := get_args(hint)):
        return hint
    origin = get_origin(hint)
    if origin is Annotated:
        return Annotated[(_narrow(arguments[0], made), *hint.__metadata__)]
    inner = tuple(_narrow(argument, made) for argument in arguments)
    if origin in (Union, UnionType):
        return reduce(operator.or_, inner)
    return origin[inner] if origin is tuple else hint


def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
