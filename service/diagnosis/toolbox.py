"""Tools for a model to look things up before it decides. Everything only reads; each result is a fact with an id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from trainmedic.kb.errors import Forbidden, InvalidRequest, NotFound, SourceError
from trainmedic.kb.identities import Identities, mask_identities
from trainmedic.kb.mask import mask
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.sources.library import Library, LookedUp
from trainmedic.kb.sources.selection import canonical
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.citations import plain_text
from trainmedic.service.answer.text import split
from trainmedic.service.diagnosis.brief import CAUSE_WORDS, Fact
from trainmedic.service.diagnosis.option_lookup import catalogue_name, describe_option
from trainmedic.service.diagnosis.tool_forms import (
    Changes,
    CheckChanged,
    DiffSource,
    GetCase,
    GrepSource,
    LookUpOption,
    ReadLog,
    ReadSource,
    SearchCases,
)
from trainmedic.service.dialogue.what_if import WhatIf, what_if
from trainmedic.service.pipeline import Draft

messages = load_messages("trainmedic.service.diagnosis")

MAX_CASES = 6
"""Cases in the result of a search."""
MAX_LINES = 60
"""Lines in one result of ``read_log``."""
MAX_LINE = 400
MAX_EFFECTS = 12
"""Findings of one kind listed for a change."""
MAX_ARGUMENT = 80
"""Code points of an argument in the summary of a step."""
MAX_CASE = 6_000
"""Code points of a whole case."""
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
    """The tools of one question; ``facts`` grows by what they find, numbered on from the brief's ``count``."""

    advisor: Advisor
    draft: Draft
    known: Identities
    count: int
    facts: list[Fact] = field(default_factory=list)

    @property
    def language(self) -> str:
        return self.draft.language

    def run(self, name: str, form: BaseModel) -> ToolResult:
        """Run the tool that `TOOL_SCHEMAS` lists by this name; ``form`` holds its valid arguments."""
        tool: Callable[[BaseModel], ToolResult] = getattr(self, name)
        try:
            return tool(form)
        except (InvalidRequest, NotFound, Forbidden, SourceError) as error:
            return self.refused(name, f"{error.message} ({error.hint})" if error.hint else error.message)

    def search_cases(self, form: SearchCases) -> ToolResult:
        """The cases nearest to the query."""
        hits = self.advisor.search(form.query, top_k=MAX_CASES)
        cases = [case for hit in hits if (case := self.advisor.case(hit.case_id)) is not None]
        lines = [self._fact(_in_short(case, self.language)) for case in cases]
        summary = messages("searched", self.language, query=plain(form.query), count=len(cases))
        return ToolResult(text="\n".join(lines) or "No case was found.", summary=summary)

    def get_case(self, form: GetCase) -> ToolResult:
        """One whole case."""
        case = self.advisor.case(form.case_id)
        if case is None:
            return self.refused("get_case", f"There is no case {plain(form.case_id)}. search_cases shows ids.")
        names = ("cause", "fix", "confirm")
        parts = [case.title.get(self.language), *(f"{n}: {plain_text(case.section(n, self.language))}" for n in names)]
        parts += [f"does not help: {item.claim.get(self.language)}" for item in case.refutations]
        summary = messages("read_case", self.language, title=case.title.get(self.language))
        return ToolResult(text=self._fact("\n".join(parts)[:MAX_CASE]), summary=summary)

    def check_changed(self, form: CheckChanged) -> ToolResult:
        """The rules over the configuration with other values: the findings that clear, appear and stay."""
        effects = what_if(self.draft.context.evidence, form.values, self.advisor.knowledge.rules, self.advisor.read)
        problems = [f"{plain(change.name)}: {change.why.get(self.language)}" for change in effects.unknown]
        if not effects.changed:
            summary = messages("not_changed", self.language, names=", ".join(plain(name) for name in form.changes))
            text = "\n".join([messages("nothing_changed", self.language), *problems])
            return ToolResult(text=text, summary=summary, ok=False)
        changes = ", ".join(f"{plain(change.name)} = {plain(change.after)}" for change in effects.changed)
        lines = [self._fact(line) for line in self._effects(effects, changes)]
        lines += [f"not changed: {problem}" for problem in problems]
        counts = {"count": len(effects.clears), "appears": len(effects.appears), "stays": len(effects.stays)}
        summary = messages("checked", self.language, changes=changes, **counts)
        return ToolResult(text="\n".join(lines) or "No finding changes.", summary=summary)

    def look_up_option(self, form: LookUpOption) -> ToolResult:
        """One option in the catalogue of a framework."""
        framework = catalogue_name(form.framework)
        if framework is None:
            return self.refused("look_up_option", f"There is no catalogue of {plain(form.framework)}.")
        # The user's own release, unless the model asks about another.
        pasted = self.draft.context.evidence.versions.get(framework)
        version = (form.version or "").strip() or (pasted.exact if pasted else None)
        option = describe_option(framework, form.option, version, self.language)
        summary = messages(
            "looked_up",
            self.language,
            option=plain(option.option),
            framework=f"{framework} {plain(option.version)}",
            outcome=messages("exists" if option.exists else "missing", self.language),
        )
        return ToolResult(text=self._fact(plain(option.text, len(option.text))), summary=summary)

    def read_log(self, form: ReadLog) -> ToolResult:
        """Lines of a pasted text, masked."""
        source = self._source(form.attachment)
        if source is None:
            names = ", ".join(source.name for source in self._sources() if source.name)
            return self.refused("read_log", f"No pasted text has that name. There is: {names}")
        lines = source.text.split("\n")
        first, last = form.first_line, min(form.last_line, len(lines), form.first_line + MAX_LINES - 1)
        if last < first:
            return self.refused("read_log", f"It has {len(lines)} lines.")
        # A log may hold lines of a megabyte, such as progress bars or dumped tensors.
        shown = [line[:MAX_LINE] for line in lines[first - 1 : last]]
        end, text = len(shown[-1]) + 1, "\n".join(shown)
        span = Span(attachment=source.name, line=first, column=1, end_line=last, end_column=end, text=text)
        numbered = "\n".join(f"{first + n}: {line}" for n, line in enumerate(shown))
        name = plain(source.name) if source.name else messages("question", self.language)
        summary = messages("read_lines", self.language, first=first, last=last, name=name)
        return ToolResult(text=self._fact(numbered, (span,)), summary=summary)

    def grep_source(self, form: GrepSource) -> ToolResult:
        """Lines of a release that match."""
        version = self._release(form.package, form.version)
        found = self._source_at_hand.grep(form.package, version, form.pattern, form.below)
        return self._told(found, "grepped", form.package, version, pattern=plain(form.pattern))

    def read_source(self, form: ReadSource) -> ToolResult:
        """A symbol or lines of a release."""
        version = self._release(form.package, form.version)
        found = self._source_at_hand.read(form.package, version, form.path, form.symbol, form.lines)
        return self._told(found, "read_source", form.package, version, what=plain(form.symbol or form.path))

    def diff_source(self, form: DiffSource) -> ToolResult:
        """Changes in a symbol or file."""
        found = self._source_at_hand.diff(form.package, form.before, form.after, form.path, form.symbol)
        what = plain(form.symbol or form.path)
        return self._told(found, "compared_source", form.package, form.before, after=plain(form.after), what=what)

    def changes(self, form: Changes) -> ToolResult:
        """Changes between two releases."""
        found = self._source_at_hand.changes(form.package, form.before, form.after, form.about)
        return self._told(found, "compared_releases", form.package, form.before, after=plain(form.after))

    @property
    def _source_at_hand(self) -> Library:
        if self.advisor.source is None:
            raise NotFound("no source is at hand here")
        return self.advisor.source

    def _release(self, package: str, version: str | None) -> str:
        """The one named, the user's own, or what is at hand. Raises `NotFound`."""
        pasted = self.draft.context.evidence.versions.get(canonical(package))
        release = version or (pasted.exact if pasted else None) or self._source_at_hand.at_hand(package)
        if release is None:
            raise NotFound(f"the user's version of {plain(package)} is not known, and none is at hand")
        return release

    def _told(self, found: LookedUp, name: str, package: str, version: str, **values: str) -> ToolResult:
        summary = messages(name, self.language, package=plain(package), version=plain(version), **values)
        return ToolResult(text=self._fact(f"source {found.text}"), summary=summary)

    def refused(self, tool: str, why: str) -> ToolResult:
        """The result of a call that failed, with the reason for the model."""
        return ToolResult(text=why, summary=messages("refused", self.language, tool=plain(tool)), ok=False)

    def _sources(self) -> Sequence[Source]:
        return [source for source in self.draft.context.evidence.sources if source.text.strip()]

    def _source(self, name: str) -> Source | None:
        key = name.strip().casefold()
        for source in self._sources():
            if (source.name or "").casefold() == key or (source.name is None and key == "question"):
                return source
        return None

    def _effects(self, change: WhatIf, changes: str) -> list[str]:
        lines = []
        for kind in ("clears", "appears", "stays", "logged"):
            effects = getattr(change, kind)
            sentence = messages(kind, self.language, changes=changes)
            lines += [f"{effect.title.get(self.language)}: {sentence}" for effect in effects[:MAX_EFFECTS]]
        return lines

    def _fact(self, text: str, spans: tuple[Span, ...] = ()) -> str:
        """The text under an id of its own, as the model is shown it."""
        fact = Fact(id=f"F{self.count + len(self.facts) + 1}", text=text, spans=spans)
        self.facts.append(fact)
        return f"{fact.id} {mask_identities(text, self.known)}"


def _in_short(case: Case, language: str) -> str:
    cause = plain_text(split(case.section("cause", language), CAUSE_WORDS)[0])
    return f"case {case.id}: {case.title.get(language)} | cause: {' '.join(cause.split())}"


def plain(text: str, length: int = MAX_ARGUMENT) -> str:
    """Text of the model that is safe to show: one line, masked, without Markdown."""
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * length])
    line = " ".join(mask(line).text.translate(_PLAIN).split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def shown_arguments(arguments: Mapping[str, object]) -> dict[str, str]:
    """A call's arguments as shown in a step."""
    return {plain(str(name)): plain(_flat(value), 200) for name, value in list(arguments.items())[:8]}


def _flat(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {item}" for name, item in list(value.items())[:8])
    return str(value)
