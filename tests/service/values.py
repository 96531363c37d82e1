"""Small hand-made knowledge for tests of ranking and composition."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Literal, cast

from trainmedic.kb.model.case import Case, Question, Refutation
from trainmedic.kb.model.evidence import Evidence, InputReceipt, Receipt, Signal
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Fix, Missing, Reference, Report, Safety, Severity, Status, Text
from trainmedic.kb.model.run import Option, Origin, Recognised, RunConfig, Setting, VersionFact
from trainmedic.kb.parse.logs.signal_kinds import BENIGN
from trainmedic.service.dialogue.conversation import Message
from trainmedic.service.dialogue.intent import Intent
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.features import NAMES, NONE_NAMES, Candidate, Context
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.weights import Weights


def both(text: str) -> Text:
    return Text(en=text, zh=f"中{text}")


def span(text: str = "--bad", line: int = 3, attachment: str | None = "train.sh", default: bool = False) -> Span:
    return Span(
        attachment=attachment,
        line=line,
        column=2,
        end_line=line,
        end_column=2 + len(text),
        text=text,
        default=default,
    )


def case(id: str = "case-a", kind: str = "fault", **changes: object) -> Case:
    values: dict[str, object] = {
        "id": id,
        "title": both(f"title of {id}"),
        "kind": kind,
        "family": "nan-loss",
        "frameworks": ("trl",),
        "evidence": "maintainer",
        "reviewed": "2026-11-21",
        "sections": {
            "en": {"cause": f"cause of {id}", "fix": f"fix of {id}", "confirm": "look at `grad_norm`"},
            "zh": {"cause": f"{id} 的原因", "fix": f"{id} 的修复", "confirm": "看 `grad_norm`"},
        },
        "sources": (Reference(url="https://example.org/1", says="maintainer"),),
        "signals": ("loss_nan",),
        "rules": ("rule-a",),
        "refutations": (Refutation(claim=both("lower the LR"), why=both("the gradient is NaN already")),),
    }
    return Case(**(values | changes))  # type: ignore[arg-type]


def finding(id: str = "rule-a", status: Status = Status.FIRED, **changes: object) -> Finding:
    values: dict[str, object] = {
        "rule_id": id,
        "title": both(f"title of {id}"),
        "severity": Severity.ERROR,
        "status": status,
        "message": both(f"{id} says so"),
        "run_id": "run",
        "symptoms": ("loss_nan",),
        "cases": ("case-a",),
        "evidence": (span(),),
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


def patched() -> Fix:
    return Fix(
        text=both("drop --bad"), safety=Safety.SAFE, patch="--- a/train.sh\n+++ b/train.sh\n", clears=("rule-a",)
    )


def evidence(
    *kinds: str, framework: str | None = "trl", versions: dict[str, str] | None = None, options: bool = True
) -> Evidence:
    option = Option(key="bad", value=True, raw=None, span=span(), key_span=span(), value_span=None, origin=Origin.FLAG)
    run = RunConfig(
        id="run",
        framework=Recognised(value=framework, reason="said so") if framework else None,
        options=(option,) if options else (),
        settings={"bad": Setting(name="bad", value=True, option=option, source="written", key="bad")}
        if options
        else {},
    )
    return Evidence(
        question="why?",
        runs=(run,),
        signals=tuple(Signal(kind=kind, span=span("nan", 9, "train.log")) for kind in kinds),
        versions={
            name: VersionFact(package=name, exact=exact, reason="pip list") for name, exact in (versions or {}).items()
        },
        receipt=Receipt(
            inputs=(InputReceipt(name="train.sh", kind="command", bytes=10, lines=3, read=True, truncated=False),)
        ),
    )


def context(found: Evidence, *findings: Finding, concepts: dict[str, float] | None = None, **intent: object) -> Context:
    symptoms = frozenset(signal.kind for signal in found.signals) - BENIGN
    values: dict[str, object] = {
        "symptoms": symptoms,
        "complains": bool(symptoms),
        "vague": not found.run.options,
        "domain_score": 3.0 if found.run.options or found.signals else 0.0,
    }
    return Context(
        evidence=found,
        report=Report(findings=findings, ruleset_version="r1"),
        intent=Intent(**(values | intent)),  # type: ignore[arg-type]
        concepts=concepts or {},
        case_concepts={},
    )


WEIGHTS = Weights(
    bias=-3.2,
    weights={
        **dict.fromkeys(NAMES, 0.0),
        "fused": 1.3,
        "rule_fired": 5.0,
        "rule_unsure": 1.0,
        "rule_clear": -0.8,
        "concepts": 1.6,
        "focus": 1.0,
        "symptom": 1.0,
        "symptom_missed": -1.5,
        "support": 1.5,
        "holds": 2.0,
        "contradiction": -2.0,
        "excluded": -4.0,
        "fails": -3.0,
        "framework_match": 0.8,
        "framework_clash": -2.5,
        "algorithm_match": 0.6,
        "algorithm_clash": -1.5,
        "family_match": 0.8,
        "family_clash": -2.0,
        "version_inside": 0.8,
        "version_outside": -2.5,
        "worked_before": -2.0,
        "tried": -2.0,
        "already_so": -2.0,
        "settings": 0.8,
        "healthy_log": -1.0,
    },
    none=dict.fromkeys(NONE_NAMES, 0.0),
    answer=0.5,
    artefact=0.5,
    high=0.8,
    medium=0.6,
    plausible=0.05,
    field=1.0,
)
"""Weights of the tests' own: what is tested is the reasoning, not the fit."""


def scored(one: Case, fused: float = 1.0) -> Candidate:
    return Candidate(cause=one, fused=fused)


def missing(fact: str) -> Missing:
    return Missing(fact=fact, why=both(f"why {fact}"), ask=both(f"ask {fact}"))


def question(fact: str) -> Question:
    return Question(fact=fact, ask=both(f"ask {fact}"), why=both(f"why {fact}"))


def draft_of(
    diagnosis: Diagnosis, shared: Context, language: Literal["en", "zh"] = "en", *, same: bool = False
) -> Draft:
    """``same``: the previous answer of the conversation had the same verdict and first cause."""
    causes = tuple(cause.case.id for cause in diagnosis.causes[:1])
    before = Turn(question="", attachments=(), answer_id="", verdict=diagnosis.verdict, causes=causes)
    knowledge = SimpleNamespace(published={})
    return Draft(
        id="answer",
        conversation_id="conversation",
        request=Ask(question=""),
        knowledge=cast(Knowledge, knowledge),
        message=Message(evidence=shared.evidence, question="", turns=(before,) if same else ()),
        context=shared,
        diagnosis=diagnosis,
        language=language,
    )
