"""What the tools do: they read the knowledge and the masked paste of one question, and nothing else.

Every result is text for the model and, numbered on from the prompt's, the sources that its sentences are held against
afterwards. Nothing here changes the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainmedic.kb.mask import mask
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.place import Source as Pasted
from trainmedic.kb.model.place import Span
from trainmedic.service.advisor import Advisor, PreparedAnswer
from trainmedic.service.agent.option_lookup import catalogue_of, looked_up
from trainmedic.service.agent.tool_schemas import CheckChanged, GetCase, LookUpOption, ReadLog, SearchCases
from trainmedic.service.composition.compose import place, quote
from trainmedic.service.llm.prompts.sources import Source, case_text, more_text
from trainmedic.service.what_if.apply import Effect, WhatIf, what_if

messages = load_messages("trainmedic.service.agent")

FOUND = 4
"""Cases of one search."""
SUMMARY = 240
"""Code points of a case in a search's result."""
LINES = 40
"""Lines of one reading."""
MAX_LINE = 240
EFFECTS = 12
"""Findings of one kind listed after a change."""
SHOWN = 80
"""Code points of what the model gave that a step repeats."""
ENTRY = "option "
"""How the ids of catalogue entries begin; no rule's has a blank."""
_PLAIN = str.maketrans({"`": "'", "<": "‹", ">": "›", "[": "(", "]": ")", "|": "/", "*": "·"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What came of one call: ``text`` for the model, ``what`` for the reader, and whether it could be done."""

    text: str
    what: str
    ok: bool = True


@dataclass(slots=True)
class Toolbox:
    """The tools of one question. ``mark`` closes off what was pasted; no pasted text contains it."""

    advisor: Advisor
    prepared: PreparedAnswer
    mark: str
    sources: dict[int, Source]
    first: int = 1
    """The lowest marker that may be handed out: what the prompt left out keeps its number."""

    @property
    def language(self) -> str:
        """The answer's language."""
        return self.prepared.answer.language

    def search_cases(self, form: SearchCases) -> ToolResult:
        """The cases nearest to the words, each under a marker."""
        framework = (form.framework or "").strip().casefold()
        filters = {"framework": framework} if framework else None
        hits = self.advisor.search(form.query, top_k=FOUND, filters=filters)
        cases = [case for hit in hits if (case := self.advisor.case(hit.case_id)) is not None]
        lines = []
        for case in cases:
            summary = f"cause: {_cut(case.section('cause', self.language), SUMMARY)}"
            marker = self._source("case", case.id, case.title.get(self.language), summary, url=_url(case))
            lines.append(f"[{marker}] case {case.id}: {case.title.get(self.language)}\n{summary}")
        what = messages("searched", self.language, query=plain(form.query), count=len(cases))
        return ToolResult(text="\n".join(lines) or "No case was found.", what=what)

    def get_case(self, form: GetCase) -> ToolResult:
        """One case in full."""
        case = self.advisor.case(form.case_id)
        if case is None:
            return self.refused("get_case", f"There is no case {plain(form.case_id)}. search_cases shows ids.")
        title = case.title.get(self.language)
        text = f"{case_text(case, self.language)}\n{more_text(case, self.language)}"
        marker = self._source("case", case.id, title, text, url=_url(case))
        what = messages("read_case", self.language, title=title)
        return ToolResult(text=f"[{marker}] case {case.id}: {title}\n{text}", what=what)

    def check_changed(self, form: CheckChanged) -> ToolResult:
        """The rules over the configuration with other values: what clears, appears and stays."""
        found = what_if(self.prepared.context.evidence, form.written, self.advisor.knowledge.rules)
        problems = [f"{plain(each.name)}: {each.why.get(self.language)}" for each in found.unknown]
        if not found.changed:
            names = ", ".join(plain(name) for name in form.changes)
            what = messages("not_changed", self.language, names=names)
            text = "\n".join([messages("nothing_changed", self.language), *problems])
            return ToolResult(text=text, what=what, ok=False)
        changes = _changes(found)
        before = ", ".join(f"{each.name} = {each.before}" for each in found.changed if each.before is not None)
        lines = [f"changed: {changes}", *([f"before: {self._data(before)}"] if before else [])]
        lines += self._told(found)
        what = messages(
            "checked",
            self.language,
            changes=changes,
            count=len(found.clears),
            appears=len(found.appears),
            stays=len(found.stays),
        )
        return ToolResult(text="\n".join([*lines, *(f"not changed: {problem}" for problem in problems)]), what=what)

    def suppose(self) -> None:
        """Lay out what a change does that the question supposes: it is said before the model's text, under markers."""
        if self.prepared.supposed is not None:
            self._told(self.prepared.supposed)

    def look_up_option(self, form: LookUpOption) -> ToolResult:
        """One option in a framework's catalogue."""
        framework = catalogue_of(form.framework)
        if framework is None:
            return self.refused("look_up_option", f"There is no catalogue of {plain(form.framework)}.")
        pasted = self.prepared.context.evidence.versions.get(framework)
        version = (form.version or "").strip() or (pasted.exact if pasted else None)
        found = looked_up(framework, form.option, version, self.language)
        name = f"{framework} {plain(found.version)} {plain(found.option)}"
        # Sentences are held against it like against a rule; instead of a citation it gets its name.
        marker = self._source("rule", f"{ENTRY}{name}", name, found.text)
        what = messages(
            "looked_up",
            self.language,
            option=plain(found.option),
            framework=f"{framework} {plain(found.version)}",
            outcome=messages("exists" if found.exists else "missing", self.language),
        )
        return ToolResult(text=f"[{marker}] {plain(found.text, len(found.text))}", what=what)

    def read_log(self, form: ReadLog) -> ToolResult:
        """Lines of a pasted text, as they were masked."""
        pasted = self._pasted(form.attachment)
        if pasted is None:
            names = self._data(", ".join(each.name for each in self._given() if each.name))
            return self.refused("read_log", f"Nothing of that name was pasted. There is: {names}")
        lines = pasted.text.split("\n")
        first, last = form.first_line, min(form.last_line, len(lines), form.first_line + LINES - 1)
        if last < first:
            return self.refused("read_log", f"It has {len(lines)} lines.")
        shown = [line[:MAX_LINE] for line in lines[first - 1 : last]]
        text = "\n".join(shown)
        span = Span(
            attachment=pasted.name, line=first, column=1, end_line=last, end_column=len(shown[-1]) + 1, text=text
        )
        id = f"{pasted.name or ''}:{first}:1"
        title = place(span, self.language)
        marker = self._source("input", id, title, text, quoted=quote(span) or None)
        numbered = "\n".join(f"{first + n}: {line}" for n, line in enumerate(shown))
        name = plain(pasted.name) if pasted.name else messages("question", self.language)
        what = messages("read_lines", self.language, first=first, last=last, name=name)
        return ToolResult(text=f"[{marker}] lines {first} to {last}\n{self._data(numbered)}", what=what)

    def refused(self, tool: str, why: str) -> ToolResult:
        """A call that could not be carried out, and why, for the model."""
        return ToolResult(text=why, what=messages("refused", self.language, tool=plain(tool)), ok=False)

    def _given(self) -> Sequence[Pasted]:
        return [each for each in self.prepared.context.evidence.sources if each.text.strip()]

    def _pasted(self, name: str) -> Pasted | None:
        wanted = name.strip().casefold()
        for each in self._given():
            if (each.name or "").casefold() == wanted or (each.name is None and wanted == "question"):
                return each
        return None

    def looked_up(self) -> tuple[Case, ...]:
        """The cases beside the causes that tools have returned."""
        causes = {cause.case.id for cause in self.prepared.diagnosis.causes}
        ids = [source.id for source in self.sources.values() if source.kind == "case" and source.id not in causes]
        return tuple(case for each in ids if (case := self.advisor.case(each)) is not None)

    def _told(self, found: WhatIf) -> list[str]:
        """Lines on everything that a change does."""
        changes = _changes(found)
        return [line for message, effects in _effects(found) for line in self._concerned(message, effects, changes)]

    def _concerned(self, message: str, effects: Sequence[Effect], changes: str) -> list[str]:
        """One line for each rule that a change concerns; its source says so too."""
        sentence = messages(message, self.language, changes=changes)
        lines = []
        for effect in effects[:EFFECTS]:
            title = effect.title.get(self.language)
            marker = self._source("rule", effect.rule_id, title, f"{title}\n{sentence}")
            lines.append(f"[{marker}] {effect.rule_id} ({effect.severity.value}): {title} {sentence}")
        return lines + ([f"… and {len(effects) - EFFECTS} more: {sentence}"] if len(effects) > EFFECTS else [])

    def _source(
        self, kind: str, id: str, title: str, text: str, *, url: str | None = None, quoted: str | None = None
    ) -> int:
        """The marker of a source: its own where it is known already, and then it says more."""
        for marker, known in self.sources.items():
            if (known.kind, known.id) == (kind, id):
                if text not in known.text:
                    self.sources[marker] = replace(known, text=f"{known.text}\n{text}")
                return marker
        marker = max([self.first - 1, *self.sources]) + 1
        self.sources[marker] = Source(marker=marker, kind=kind, id=id, title=title, text=text, url=url, quote=quoted)  # type: ignore[arg-type]
        return marker

    def _data(self, text: str) -> str:
        return f"<data-{self.mark}>{text}</data-{self.mark}>"


def plain(text: str, length: int = SHOWN) -> str:
    """What a model gave, as it may be repeated: one line, masked, without anything that means something in Markdown."""
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * length])
    return _cut(" ".join(mask(line).text.translate(_PLAIN).split()), length)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _url(case: Case) -> str | None:
    return case.sources[0].url if case.sources else None


def _changes(found: WhatIf) -> str:
    return ", ".join(f"{plain(each.name)} = {plain(each.after)}" for each in found.changed)


def _effects(found: WhatIf) -> Sequence[tuple[str, Sequence[Effect]]]:
    return (
        ("clears", found.clears),
        ("appears", found.appears),
        ("stays", found.stays),
        ("logged", found.logged),
    )


def arguments_of(given: Mapping[str, object]) -> dict[str, str]:
    """A call's arguments as a step shows them."""
    return {plain(str(name)): plain(_flat(value), 200) for name, value in list(given.items())[:8]}


def _flat(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {each}" for name, each in list(value.items())[:8])
    return str(value)
