"""The answer with a model's verified text between the program's own sections. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainmedic.kb.frameworks.catalogue import is_option
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Text
from trainmedic.service.advisor import PreparedAnswer
from trainmedic.service.answer.citations import Citations, shown_name
from trainmedic.service.answer.error_messages import messages_section
from trainmedic.service.answer.layout import Sections, appended, opening
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer, Citation, Section, markdown
from trainmedic.service.llm.prompts import Prompt, Source, without_identities
from trainmedic.service.llm.verify import Denial, Grounding, Verification, complete, denials_of, verify

MAX_FLAGGED = 10
"""Names in one notice; the rest is counted."""


def verified_answer(
    prepared: PreparedAnswer,
    prompt: Prompt,
    draft: str,
    model: str,
    *,
    cut: bool = False,
    looked_up: Sequence[Case] = (),
) -> tuple[Answer, Sections]:
    """The answer with the model's text, verified; and the program's own sections after that text. Pure.

    ``cut``: the token limit ended the text, so that its last sentence is incomplete. ``looked_up`` are further cases
    that the model has read. If no sentence of the model's could be kept, the answer is the composed one, with notices
    that say so.
    """
    composed, context = prepared.answer, prepared.context
    language = composed.language
    # A sentence that the token limit cut could say the opposite of what was meant.
    checked = verify(complete(draft) if cut else draft, grounding_of(prepared, prompt, looked_up), language)
    if not checked.text:
        return replace(
            composed, notices=(failure_notice("garbage", language), *text_notices(checked, prompt, language, cut=cut))
        ), ()
    citations = ModelCitations(prompt.sources, language)
    head = (*opening(prepared.diagnosis, context, citations, prepared.supposed), *compared(composed, folded=False))
    model_text = Section(kind="model_text", body=checked.text.rstrip(), markers=tuple(checked.citations))
    sections = [*head, model_text]
    citations.use(checked.citations)
    printed = messages_section(prepared.printed, prepared.cases, citations, language)
    similar = (section for section in composed.sections if section.kind == "similar")
    after = (*appended(prepared.diagnosis, context, citations), *printed, *similar, *compared(composed, folded=True))
    tail = tuple(sorted(after, key=lambda section: section.folded))
    sections += tail
    answer = replace(
        composed,
        answer=markdown(sections),
        sections=tuple(sections),
        mode="llm",
        model=model,
        citations=citations.all(),
        notices=text_notices(checked, prompt, language, cut=cut),
    )
    return answer, tail


def opening_sections(prepared: PreparedAnswer, sources: Sequence[Source]) -> Sections:
    """The sections before a text that a model writes from these sources."""
    citations = ModelCitations(sources, prepared.answer.language)
    head = opening(prepared.diagnosis, prepared.context, citations, prepared.supposed)
    return (*head, *compared(prepared.answer, folded=False))


def compared(answer: Answer, *, folded: bool) -> Sections:
    """What differs from a run that works, which the program says whoever writes the text."""
    return tuple(item for item in answer.sections if item.kind == "differences" and item.folded == folded)


def grounding_of(prepared: PreparedAnswer, prompt: Prompt, looked_up: Sequence[Case] = ()) -> Grounding:
    """The sources and claims that the model's sentences are checked against."""
    evidence = prepared.context.evidence
    corpus = "\n".join((evidence.question, *(source.text for source in evidence.sources)))
    return Grounding(
        sources=prompt.sources,
        corpus=f"{corpus}\n{without_identities(corpus, prepared)}",  # the model has seen the second one
        known=is_option,
        denials=denials(prepared, looked_up),
        protected=(prompt.messages[0].content,),
    )


def denials(prepared: PreparedAnswer, looked_up: Sequence[Case] = ()) -> tuple[Denial, ...]:
    """What the text must not say: claims that a listed or looked-up case refutes, and the opposite of a finding."""
    language = prepared.answer.language
    causes = [cause.case for cause in prepared.diagnosis.causes]
    return denials_of(causes, prepared.context.report.fired, language, also=looked_up)


class ModelCitations(Citations):
    """Citations of an answer that a model wrote.

    The prompt's sources keep the markers that the model was given; anything else cited gets a higher number.
    """

    def __init__(self, sources: Sequence[Source], language: str) -> None:
        # Above the model's own markers, so that none of them changes its meaning.
        super().__init__(language, first=max((source.marker for source in sources), default=0) + 1)
        self._known = {(source.kind, source.id): source for source in sources}
        self._by_marker = {source.marker: source for source in sources}

    def rule_page(self, rule_id: str, title: Text) -> int:
        """The marker of a rule that did not fire."""
        source = self._known.get(("rule", rule_id))
        if source is not None:
            self.use((source.marker,))
        return super().rule_page(rule_id, title)

    def use(self, markers: Sequence[int]) -> None:
        """Cite the sources with these markers."""
        for source in (self._by_marker[marker] for marker in markers):
            self.found[(source.kind, source.id)] = Citation(
                marker=source.marker,
                kind=source.kind,
                id=source.id,
                title=source.title,
                url=source.url,
                quote=source.quote,
            )


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
