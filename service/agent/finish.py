"""The answer at the end of an investigation, with the model's text verified. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainmedic.kb.lazy import regex
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.service.advisor import PreparedAnswer
from trainmedic.service.agent.budget import InvestigationStopped
from trainmedic.service.agent.toolbox import ENTRY, Toolbox
from trainmedic.service.answer.layout import Sections
from trainmedic.service.answer.schema import Answer, Citation, Section, markdown
from trainmedic.service.llm.prompts import Prompt
from trainmedic.service.llm.verified_answer import grounding_of, text_notices, verified_answer
from trainmedic.service.llm.verify import complete, verify

messages = load_messages("trainmedic.service.agent")

_CODE = regex(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
# Not followed by a parenthesis: that would be a link.
_MARKER = regex(r"\[(\d{1,4})\](?!\()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The model's text; ``cut``: the token limit ended it."""

    text: str
    model: str
    cut: bool = False


def finish(prepared: PreparedAnswer, prompt: Prompt, toolbox: Toolbox, draft: Draft) -> tuple[Answer, Sections]:
    """The answer with the model's text, verified against the prompt's sources and the tools' results; and the program's
    own sections after that text.

    Raises `InvestigationStopped` if there is no cause to write about and no sentence is supported by a source.
    """
    prompt = replace(prompt, sources=tuple(toolbox.sources[marker] for marker in sorted(toolbox.sources)))
    cases = toolbox.returned_cases()
    if prepared.answer.causes:
        answer, tail = verified_answer(prepared, prompt, draft.text, draft.model, cut=draft.cut, looked_up=cases)
    else:
        answer, tail = _appended(prepared, prompt, draft, cases), ()
    if answer.mode == "deterministic":
        return answer, tail
    return _name_options(answer), tail


def _appended(prepared: PreparedAnswer, prompt: Prompt, draft: Draft, looked_up: Sequence[Case]) -> Answer:
    """The template answer, which says that no cause is known, followed by the model's text."""
    composed, language = prepared.answer, prepared.answer.language
    text = complete(draft.text) if draft.cut else draft.text
    checked = verify(text, grounding_of(prepared, prompt, looked_up), language)
    if not checked.citations:
        raise InvestigationStopped("unsupported")
    by_marker = {source.marker: source for source in prompt.sources}
    citations = {(citation.kind, citation.id): citation for citation in composed.citations}
    numbers = {}
    for marker in checked.citations:
        source = by_marker[marker]
        if (source.kind, source.id) not in citations:
            citations[(source.kind, source.id)] = Citation(
                marker=1 + max((citation.marker for citation in citations.values()), default=0),
                kind=source.kind,
                id=source.id,
                title=source.title,
                url=source.url,
                quote=source.quote,
            )
        numbers[marker] = citations[(source.kind, source.id)].marker
    body = _replace_markers(checked.text, {marker: f"[{number}]" for marker, number in numbers.items()})
    model_text = Section(kind="model_text", body=body, markers=tuple(numbers.values()))
    sections = (*composed.sections, Section(kind="added", body=messages("added", language)), model_text)
    return replace(
        composed,
        answer=markdown(sections),
        sections=sections,
        mode="llm",
        model=draft.model,
        citations=tuple(citations.values()),
        notices=text_notices(checked, prompt, language, cut=draft.cut),
    )


def _name_options(answer: Answer) -> Answer:
    """Replace markers of catalogue entries by names, because only cases, rules and pasted places are citations."""
    entries = [citation for citation in answer.citations if citation.id.startswith(ENTRY)]
    names = {entry.marker: messages("catalogue", answer.language, name=entry.title) for entry in entries}
    citations = tuple(citation for citation in answer.citations if citation not in entries)
    sections = tuple(
        _name_options_in(section, names) if section.kind == "model_text" else section for section in answer.sections
    )
    return replace(answer, answer=markdown(sections), sections=sections, citations=citations)


def _name_options_in(section: Section, names: Mapping[int, str]) -> Section:
    markers = tuple(marker for marker in section.markers if marker not in names)
    return replace(section, body=_replace_markers(section.body, names), markers=markers)


def _replace_markers(text: str, replacements: Mapping[int, str]) -> str:
    """Replace some markers outside of code."""
    # Indices such as x[1] in code are no citations.
    parts = _CODE.split(text)
    for n in range(0, len(parts), 2):
        parts[n] = _MARKER.sub(lambda match: replacements.get(int(match[1]), match[0]), parts[n])
    return "".join(parts)
