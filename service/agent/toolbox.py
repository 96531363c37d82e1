"""The agent's tools. They read the knowledge and the masked texts of one question; nothing here changes the answer.

Every result is text for the model and adds sources, numbered on from the prompt's, against which the model's text is
verified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel

from trainmedic.kb.mask import mask
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Source as Pasted
from trainmedic.kb.model.place import Span
from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.option_lookup import catalogue_name, describe_option
from trainmedic.service.agent.tool_schemas import CheckChanged, GetCase, LookUpOption, ReadLog, SearchCases
from trainmedic.service.answer.citations import place, quote
from trainmedic.service.dialogue.what_if import Effect, WhatIf, what_if
from trainmedic.service.llm.prompts.build import without_identities
from trainmedic.service.llm.prompts.data_marks import delimited
from trainmedic.service.llm.prompts.sources import Source, case_text, more_text
from trainmedic.service.pipeline import Draft

messages = load_messages("trainmedic.service.agent")

MAX_CASES = 4
"""Cases in the result of a search."""
SUMMARY = 240
"""Code points of each case in the result of a search."""
MAX_LINES = 40
"""Lines in one result of ``read_log``."""
MAX_LINE = 240
MAX_EFFECTS = 12
"""Findings of one kind listed for a change."""
MAX_ARGUMENT = 80
"""Code points of an argument in the summary of a step."""
ENTRY = "option "
"""The prefix of the ids of catalogue entries; no rule's id contains a space."""
# Look-alikes: a step must not format the page, open a link or end a table cell.
_PLAIN = str.maketrans({"`": "'", "<": "‹", ">": "›", "[": "(", "]": ")", "|": "/", "*": "·"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of one call: ``text`` for the model, ``summary`` for the user, and whether the call succeeded."""

    text: str
    summary: str
    ok: bool = True


@dataclass(slots=True)
class Toolbox:
    """The tools of one question. ``mark`` delimits pasted text, and no pasted text contains it."""

    advisor: Advisor
    prepared: Draft
    mark: str
    sources: dict[int, Source]
    first: int = 1
    """The lowest marker for new sources; sources that did not fit into the prompt keep theirs."""

    @property
    def language(self) -> str:
        return self.prepared.language

    def run(self, name: str, form: BaseModel) -> ToolResult:
        """Run the tool that `TOOL_SCHEMAS` lists by this name; ``form`` holds its valid arguments."""
        tool: Callable[[BaseModel], ToolResult] = getattr(self, name)
        return tool(form)

    def search_cases(self, form: SearchCases) -> ToolResult:
        """The cases nearest to the query."""
        framework = (form.framework or "").strip().casefold()
        filters = {"framework": framework} if framework else None
        hits = self.advisor.search(form.query, top_k=MAX_CASES, filters=filters)
        cases = [case for hit in hits if (case := self.advisor.case(hit.case_id)) is not None]
        lines = [self._case(case, f"cause: {_cut(case.section('cause', self.language), SUMMARY)}") for case in cases]
        summary = messages("searched", self.language, query=plain(form.query), count=len(cases))
        return ToolResult(text="\n".join(lines) or "No case was found.", summary=summary)

    def get_case(self, form: GetCase) -> ToolResult:
        """One whole case."""
        case = self.advisor.case(form.case_id)
        if case is None:
            return self.refused("get_case", f"There is no case {plain(form.case_id)}. search_cases shows ids.")
        text = self._case(case, f"{case_text(case, self.language)}\n{more_text(case, self.language)}")
        return ToolResult(text=text, summary=messages("read_case", self.language, title=case.title.get(self.language)))

    def check_changed(self, form: CheckChanged) -> ToolResult:
        """The rules over the configuration with other values: the findings that clear, appear and stay."""
        effects = what_if(self.prepared.context.evidence, form.values, self.advisor.knowledge.rules, self.advisor.read)
        problems = [f"{plain(change.name)}: {change.why.get(self.language)}" for change in effects.unknown]
        if not effects.changed:
            names = ", ".join(plain(name) for name in form.changes)
            summary = messages("not_changed", self.language, names=names)
            text = "\n".join([messages("nothing_changed", self.language), *problems])
            return ToolResult(text=text, summary=summary, ok=False)
        changes = _changes(effects)
        before = ", ".join(f"{c.name} = {c.before}" for c in effects.changed if c.before is not None)
        lines = [f"changed: {changes}", *([f"before: {self._data(before)}"] if before else [])]
        lines += self._effect_lines(effects)
        lines += [f"not changed: {problem}" for problem in problems]
        counts = {"count": len(effects.clears), "appears": len(effects.appears), "stays": len(effects.stays)}
        summary = messages("checked", self.language, changes=changes, **counts)
        return ToolResult(text="\n".join(lines), summary=summary)

    def suppose(self) -> None:
        """Add sources for the change that the question supposes; the answer describes it before the model's text."""
        if self.prepared.supposed is not None:
            self._effect_lines(self.prepared.supposed)

    def look_up_option(self, form: LookUpOption) -> ToolResult:
        """One option in the catalogue of a framework."""
        framework = catalogue_name(form.framework)
        if framework is None:
            return self.refused("look_up_option", f"There is no catalogue of {plain(form.framework)}.")
        # The user's own release, unless the model asks about another.
        pasted = self.prepared.context.evidence.versions.get(framework)
        version = (form.version or "").strip() or (pasted.exact if pasted else None)
        option = describe_option(framework, form.option, version, self.language)
        name = f"{framework} {plain(option.version)} {plain(option.option)}"
        # Sentences are verified against it as against a rule; in the answer its name replaces the marker.
        marker = self._source("rule", f"{ENTRY}{name}", name, option.text)
        summary = messages(
            "looked_up",
            self.language,
            option=plain(option.option),
            framework=f"{framework} {plain(option.version)}",
            outcome=messages("exists" if option.exists else "missing", self.language),
        )
        return ToolResult(text=f"[{marker}] {plain(option.text, len(option.text))}", summary=summary)

    def read_log(self, form: ReadLog) -> ToolResult:
        """Lines of a pasted text, masked."""
        pasted = self._pasted(form.attachment)
        if pasted is None:
            names = self._data(", ".join(source.name for source in self._texts() if source.name))
            return self.refused("read_log", f"No pasted text has that name. There is: {names}")
        lines = pasted.text.split("\n")
        first, last = form.first_line, min(form.last_line, len(lines), form.first_line + MAX_LINES - 1)
        if last < first:
            return self.refused("read_log", f"It has {len(lines)} lines.")
        # A log may hold lines of a megabyte, such as progress bars or dumped tensors.
        excerpt = [line[:MAX_LINE] for line in lines[first - 1 : last]]
        text = "\n".join(excerpt)
        span = Span(
            attachment=pasted.name, line=first, column=1, end_line=last, end_column=len(excerpt[-1]) + 1, text=text
        )
        id = f"{pasted.name or ''}:{first}:1"
        title = place(span, self.language)
        marker = self._source("input", id, title, text, quoted=quote(span) or None)
        numbered = "\n".join(f"{first + n}: {line}" for n, line in enumerate(excerpt))
        name = plain(pasted.name) if pasted.name else messages("question", self.language)
        summary = messages("read_lines", self.language, first=first, last=last, name=name)
        return ToolResult(text=f"[{marker}] lines {first} to {last}\n{self._data(numbered)}", summary=summary)

    def refused(self, tool: str, why: str) -> ToolResult:
        """The result of a call that failed, with the reason for the model."""
        return ToolResult(text=why, summary=messages("refused", self.language, tool=plain(tool)), ok=False)

    def _texts(self) -> Sequence[Pasted]:
        return [source for source in self.prepared.context.evidence.sources if source.text.strip()]

    def _pasted(self, name: str) -> Pasted | None:
        key = name.strip().casefold()
        for source in self._texts():
            if (source.name or "").casefold() == key or (source.name is None and key == "question"):
                return source
        return None

    def returned_cases(self) -> tuple[Case, ...]:
        """The cases that tools have returned, without the causes."""
        causes = {cause.case.id for cause in self.prepared.diagnosis.causes}
        ids = [source.id for source in self.sources.values() if source.kind == "case" and source.id not in causes]
        return tuple(case for id in ids if (case := self.advisor.case(id)) is not None)

    def _effect_lines(self, change: WhatIf) -> list[str]:
        changes = _changes(change)
        return [
            line
            for kind in ("clears", "appears", "stays", "logged")
            for line in self._rule_lines(kind, getattr(change, kind), changes)
        ]

    def _rule_lines(self, message: str, effects: Sequence[Effect], changes: str) -> list[str]:
        """One line for each rule that a change affects; the sentence is also added to the rule's source."""
        sentence = messages(message, self.language, changes=changes)
        lines = []
        for effect in effects[:MAX_EFFECTS]:
            title = effect.title.get(self.language)
            marker = self._source("rule", effect.rule_id, title, f"{title}\n{sentence}")
            lines.append(f"[{marker}] {effect.rule_id} ({effect.severity.value}): {title} {sentence}")
        return lines + ([f"… and {len(effects) - MAX_EFFECTS} more: {sentence}"] if len(effects) > MAX_EFFECTS else [])

    def _case(self, case: Case, text: str) -> str:
        """A part of a case as a source."""
        title = case.title.get(self.language)
        marker = self._source("case", case.id, title, text, url=case.sources[0].url if case.sources else None)
        return f"[{marker}] case {case.id}: {title}\n{text}"

    def _source(
        self, kind: str, id: str, title: str, text: str, *, url: str | None = None, quoted: str | None = None
    ) -> int:
        """The marker of a source; the text is added to a source that is already known."""
        for marker, known in self.sources.items():
            if (known.kind, known.id) == (kind, id):
                if text not in known.text:
                    self.sources[marker] = replace(known, text=f"{known.text}\n{text}")
                return marker
        # Never reuses a marker, even of a source that did not fit: the model may have seen it.
        marker = max([self.first - 1, *self.sources]) + 1
        self.sources[marker] = Source(marker=marker, kind=kind, id=id, title=title, text=text, url=url, quote=quoted)  # type: ignore[arg-type]
        return marker

    def _data(self, text: str) -> str:
        return delimited(self.mark, without_identities(text, self.prepared))


def plain(text: str, length: int = MAX_ARGUMENT) -> str:
    """Text of the model that is safe to show: one line, masked, without Markdown."""
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * length])
    return _cut(" ".join(mask(line).text.translate(_PLAIN).split()), length)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _changes(what_if: WhatIf) -> str:
    return ", ".join(f"{plain(change.name)} = {plain(change.after)}" for change in what_if.changed)


def shown_arguments(arguments: Mapping[str, object]) -> dict[str, str]:
    """A call's arguments as shown in a step."""
    return {plain(str(name)): plain(_flat(value), 200) for name, value in list(arguments.items())[:8]}


def _flat(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {item}" for name, item in list(value.items())[:8])
    return str(value)
