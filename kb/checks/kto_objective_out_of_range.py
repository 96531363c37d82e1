"""KTO outside the ranges of TRL's documentation: learning rate, class weights, a missing class.

Class counts are seldom pasted, so weights and classes are judged by the trainers' own warnings, which know the data:
TRL's about the weight ratio (``trl/trainer/kto_trainer.py``, v0.8 to v1.9) and LLaMA-Factory's about data of one class
(``src/llamafactory/data/processor/feedback.py`` @v0.9.2). A condition cannot search a log's text, hence this module.
"""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.values import UNKNOWN, Fact, Result, is_number, show
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.model.report import Term

LOW, HIGH, BETA = 5e-7, 5e-6, 0.1
_RATE = {
    "en": "learning rate {rate} at beta {beta}; full fine-tuning wants {low:g} to {high:g}, normally not above 1e-6",
    "zh": "学习率 {rate}、beta {beta}；全参数训练应在 {low:g} 到 {high:g}，一般不超过 1e-6",
}
_CLASSES = {
    "en": "the trainer warns that the two classes are out of balance (weight × count should be between 1:1 and 4:3)",
    "zh": "训练器警告两类样本不平衡（“权重 × 样本数”之比应在 1:1 到 4:3，且两类都要有）",
}
_WARNINGS = (
    regex(r"desirable\s+and\s+undesirable\s+losses\s+don't\s+seem\s+to\s+be\s+in\s+an\s+ideal\s+range"),
    regex(r"dataset\s+only\s+has\s+one\s+preference\s+type"),
)


def check(facts: Facts) -> Outcome:
    """Fires on full fine-tuning at beta 0.1 with a learning rate outside [5e-7, 5e-6], or on one of the warnings."""
    warned = [span for source in facts.evidence.sources for span in _warnings(source)]
    beta, rate, full = facts.name("beta"), facts.name("learning_rate"), _full(facts)
    terms = (
        _term(f"beta == {BETA}", _same(beta.value, BETA), beta),
        _term("all weights are trained", full.value if isinstance(full.value, bool) else None, full),
        _term(f"learning_rate outside [{LOW:g}, {HIGH:g}]", _outside(rate.value), rate),
    )
    values = [term.value for term in terms]
    out_of_range = False if False in values else None if None in values else True
    if warned or out_of_range:
        config = [span for term in terms for span in term.evidence] if out_of_range else []
        return Outcome(
            value=True,
            evidence=tuple(dict.fromkeys([*config, *warned])),
            user_provided=True,
            terms=terms,
            values={
                f"problem_{language}": _problem(language, rate if out_of_range else None, beta, bool(warned))
                for language in _RATE
            },
        )
    if out_of_range is False:
        return Outcome(value=False, terms=terms)
    pairs = list(zip((beta, full, rate), values, strict=True))
    return Outcome(
        value=None,
        evidence=tuple(dict.fromkeys(span for fact, value in pairs if value for span in fact.spans)),
        missing=tuple(dict.fromkeys(name for fact, value in pairs if value is None for name in fact.missing)),
        user_provided=any(fact.user_provided for fact, value in pairs if value),
        terms=terms,
    )


def _problem(language: str, rate: Fact | None, beta: Fact, warned: bool) -> str:
    """What is wrong, in words: the learning rate, the classes, or both."""
    said = [_CLASSES[language]] if warned else []
    if rate is not None:
        measured = {"rate": show(rate.value), "beta": show(beta.value), "low": LOW, "high": HIGH}
        said.insert(0, _RATE[language].format(**measured))
    return ("；" if language == "zh" else "; ").join(said)


def _full(facts: Facts) -> Fact:
    """Whether every weight is trained. The tuner is derived from a PEFT switch or a LoRA rank where none is written."""
    tuner = facts.name("tuner")
    if tuner.value is UNKNOWN:
        return tuner
    return Fact(value=tuner.value == "full", spans=tuner.spans, seen=tuner.seen, user_provided=tuner.user_provided)


def _outside(rate: Result) -> bool | None:
    return not LOW <= rate <= HIGH if is_number(rate) else None


def _same(value: Result, wanted: float) -> bool | None:
    return value == wanted if is_number(value) else None


def _term(text: str, value: bool | None, fact: Fact) -> Term:
    return Term(text=text, value=value, seen=fact.seen, evidence=fact.spans)


def _warnings(source: Source) -> list[Span]:
    """Where a trainer's own warning stands in a text."""
    matches = (match for pattern in _WARNINGS for match in pattern.finditer(source.text))
    return [_span(source, match.start(), match.end()) for match in sorted(matches, key=lambda match: match.start())]


def _span(source: Source, start: int, end: int) -> Span:
    line, column = _place(source.text, start)
    end_line, end_column = _place(source.text, end)
    return Span(
        attachment=source.name,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        text=source.text[start:end],
    )


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1
