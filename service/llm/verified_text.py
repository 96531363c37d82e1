"""A model's text, verified against its sources and against what the program has found. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.frameworks.catalogue import is_option
from trainmedic.kb.model.case import Case
from trainmedic.kb.projection import project
from trainmedic.service.answer.assemble import Written
from trainmedic.service.answer.citations import Citations, shown_name
from trainmedic.service.answer.layout import beginning
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.passages import Sections
from trainmedic.service.answer.schema import Citation
from trainmedic.service.llm.prompts import Prompt, Source, without_identities
from trainmedic.service.llm.verify import Denial, Grounding, Verification, complete, denials_of, verify
from trainmedic.service.pipeline import Draft

MAX_FLAGGED = 10
"""Names in one notice; the rest is counted."""


def verified_text(
    draft: Draft, prompt: Prompt, text: str, model: str, *, cut: bool = False, looked_up: Sequence[Case] = ()
) -> Written:
    """The model's text, verified; without text if no sentence of it could be kept. Pure.

    ``cut``: the token limit ended the text, so that its last sentence is incomplete. ``looked_up`` are further cases
    that the model has read. A text about a question without a cause follows the program's own.
    """
    language = draft.language
    # A sentence that the token limit cut could say the opposite of what was meant.
    checked = verify(complete(text) if cut else text, grounding_of(draft, prompt, looked_up), language)
    notices = text_notices(checked, prompt, language, cut=cut)
    if not checked.text:
        return Written(notices=(failure_notice("garbage", language), *notices))
    follows = not draft.diagnosis.causes
    return Written(
        text=checked.text if follows else checked.text.rstrip(),
        markers=tuple(checked.citations),
        sources=tuple(project(Citation, source) for source in prompt.sources),
        notices=notices,
        model=model,
        follows=follows,
    )


def opening_sections(draft: Draft, sources: Sequence[Source]) -> Sections:
    """The sections before a text that a model writes from these sources."""
    given = tuple(project(Citation, source) for source in sources)
    return beginning(draft, Citations(draft.language, given))


def grounding_of(draft: Draft, prompt: Prompt, looked_up: Sequence[Case] = ()) -> Grounding:
    """The sources and claims that the model's sentences are checked against."""
    evidence = draft.context.evidence
    corpus = "\n".join((evidence.question, *(source.text for source in evidence.sources)))
    return Grounding(
        sources=prompt.sources,
        corpus=f"{corpus}\n{without_identities(corpus, draft)}",  # the model has seen the second one
        known=is_option,
        denials=denials(draft, looked_up),
        protected=(prompt.messages[0].content,),
    )


def denials(draft: Draft, looked_up: Sequence[Case] = ()) -> tuple[Denial, ...]:
    """What the text must not say: claims that a listed or looked-up case refutes, and the opposite of a finding."""
    language = draft.language
    causes = [cause.case for cause in draft.diagnosis.causes]
    return denials_of(causes, draft.context.report.fired, language, also=looked_up)


def text_notices(checked: Verification, prompt: Prompt, language: str, *, cut: bool = False) -> tuple[str, ...]:
    """Notices about changes to the model's text, and about sources that did not fit into the prompt."""
    notices = [messages("cut_short", language)] if cut else []
    if checked.withdrawn:
        notices.append(messages("withdrawn", language, count=len(checked.withdrawn)))
    if checked.leaked:
        notices.append(messages("leaked", language, count=len(checked.leaked)))
    if checked.flagged:
        notices.append(messages("flagged", language, names=_listed(checked.flagged, language)))
    if unknown := checked.stats.get("unknown_markers", 0):
        notices.append(messages("unknown_markers", language, count=unknown))
    if prompt.left_out:
        notices.append(messages("left_out", language, what=", ".join(map(shown_name, prompt.left_out))))
    return tuple(notices)


def _listed(names: Sequence[str], language: str) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:MAX_FLAGGED])
    more = len(names) - MAX_FLAGGED
    return messages("and_more", language, names=shown, count=more) if more > 0 else shown


def failure_notice(kind: str, language: str) -> str:
    """The notice for a `ModelError` of this kind."""
    return messages("model_failed", language, why=messages(f"failures.{kind}", language))
