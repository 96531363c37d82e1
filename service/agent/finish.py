"""The text at the end of an investigation, verified. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainmedic.kb.messages import load_messages
from trainmedic.service.agent.budget import InvestigationStopped
from trainmedic.service.agent.toolbox import ENTRY, Toolbox
from trainmedic.service.answer.assemble import Written
from trainmedic.service.answer.citations import with_markers
from trainmedic.service.llm.prompts import Prompt
from trainmedic.service.llm.verified_text import verified_text
from trainmedic.service.pipeline import Draft

messages = load_messages("trainmedic.service.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The model's text; ``cut``: the token limit ended it."""

    text: str
    model: str
    cut: bool = False


def finish(draft: Draft, prompt: Prompt, toolbox: Toolbox, said: Said) -> Written:
    """The model's text, verified against the prompt's sources and the tools' results.

    Raises `InvestigationStopped` if there is no cause to write about and no sentence is supported by a source.
    """
    prompt = replace(prompt, sources=tuple(toolbox.sources[marker] for marker in sorted(toolbox.sources)))
    cases = toolbox.returned_cases()
    written = verified_text(draft, prompt, said.text, said.model, cut=said.cut, looked_up=cases)
    if not draft.diagnosis.causes and not written.markers:
        raise InvestigationStopped("unsupported")
    return _with_options_named(written, draft.language)


def _with_options_named(written: Written, language: str) -> Written:
    """Names instead of markers of catalogue entries, because only cases, rules and pasted places are citations."""
    entries = [source for source in written.sources if source.id.startswith(ENTRY)]
    names = {entry.marker: messages("catalogue", language, name=entry.title) for entry in entries}
    markers = tuple(marker for marker in written.markers if marker not in names)
    return replace(written, text=with_markers(written.text, names), markers=markers)
