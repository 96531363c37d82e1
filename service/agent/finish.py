"""The answer at the end of an investigation: its text verified like any other. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.service.advisor import PreparedAnswer
from trainmedic.service.agent.budget import InvestigationStopped
from trainmedic.service.agent.toolbox import ENTRY, Toolbox
from trainmedic.service.answer import Answer, Citation, Section, markdown
from trainmedic.service.composition.compose import Sections
from trainmedic.service.llm.prompts import Prompt
from trainmedic.service.llm.verified_answer import grounding_of, text_notices, verified_answer
from trainmedic.service.llm.verify import complete, verify

messages = load_messages("trainmedic.service.agent")

_CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
_MARKER = re.compile(r"\[(\d{1,4})\](?!\()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the model wrote; ``cut`` where it came to its longest text before it had ended."""

    text: str
    model: str
    cut: bool = False


def finished(prepared: PreparedAnswer, prompt: Prompt, toolbox: Toolbox, draft: Draft) -> tuple[Answer, Sections]:
    """The answer with the model's text, verified against the prompt's sources and what the tools returned; and the
    program's own parts, which stand behind that text.

    Raises `InvestigationStopped` if there is no cause to write about and no sentence is supported by a source.
    """
    prompt = replace(prompt, sources=tuple(toolbox.sources[marker] for marker in sorted(toolbox.sources)))
    cases = toolbox.looked_up()
    if prepared.answer.causes:
        answer, tail = verified_answer(prepared, prompt, draft.text, draft.model, cut=draft.cut, looked_up=cases)
    else:
        answer, tail = _added(prepared, prompt, draft, cases), ()
    if answer.mode == "deterministic":
        return answer, tail
    return _named(answer), tail


def _added(prepared: PreparedAnswer, prompt: Prompt, draft: Draft, looked_up: Sequence[Case]) -> Answer:
    """The composed answer, which says that no cause is known, and behind it what was found out."""
    composed, language = prepared.answer, prepared.answer.language
    text = complete(draft.text) if draft.cut else draft.text
    checked = verify(text, grounding_of(prepared, prompt, looked_up), language)
    if not checked.citations:
        raise InvestigationStopped("unsupported")
    by_marker = {source.marker: source for source in prompt.sources}
    citations = {(each.kind, each.id): each for each in composed.citations}
    numbers = {}
    for marker in checked.citations:
        source = by_marker[marker]
        if (source.kind, source.id) not in citations:
            citations[(source.kind, source.id)] = Citation(
                marker=1 + max((each.marker for each in citations.values()), default=0),
                kind=source.kind,
                id=source.id,
                title=source.title,
                url=source.url,
                quote=source.quote,
            )
        numbers[marker] = citations[(source.kind, source.id)].marker
    body = _remarked(checked.text, {marker: f"[{number}]" for marker, number in numbers.items()})
    written = Section(kind="model_text", body=body, markers=tuple(numbers.values()))
    sections = (*composed.sections, Section(kind="added", body=messages("added", language)), written)
    return replace(
        composed,
        answer=markdown(sections),
        sections=sections,
        mode="llm",
        model=draft.model,
        citations=tuple(citations.values()),
        notices=text_notices(checked, prompt, language, cut=draft.cut),
    )


def _named(answer: Answer) -> Answer:
    """Markers of catalogue entries as their names: a citation is a case, a rule or a pasted place, nothing else."""
    entries = [citation for citation in answer.citations if citation.id.startswith(ENTRY)]
    names = {each.marker: messages("catalogue", answer.language, name=each.title) for each in entries}
    kept = tuple(citation for citation in answer.citations if citation not in entries)
    sections = tuple(
        _renamed(section, names) if section.kind == "model_text" else section for section in answer.sections
    )
    return replace(answer, answer=markdown(sections), sections=sections, citations=kept)


def _renamed(section: Section, names: Mapping[int, str]) -> Section:
    markers = tuple(marker for marker in section.markers if marker not in names)
    return replace(section, body=_remarked(section.body, names), markers=markers)


def _remarked(text: str, shown: Mapping[int, str]) -> str:
    """The text with other words for some of its markers; code stays as it is."""
    parts = _CODE.split(text)
    for n in range(0, len(parts), 2):
        parts[n] = _MARKER.sub(lambda match: shown.get(int(match[1]), match[0]), parts[n])
    return "".join(parts)
