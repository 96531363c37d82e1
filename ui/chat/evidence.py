"""An answer as the HTML beside the chat. Pure: the same answer gives the same text, everything pasted is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from trainmedic.kb.frameworks.profiles import title
from trainmedic.service.answer import (
    Answer,
    CauseView,
    Citation,
    FindingView,
    RefutationView,
    RunView,
    SignalView,
    StepView,
)
from trainmedic.ui.chat.excerpt import Excerpt, excerpts
from trainmedic.ui.chat.spark import spark
from trainmedic.ui.chat.texts import HERE, Language, Words, path_of, words
from trainmedic.ui.chat.uploads import WaitingFile

STEPS = {"high": 3, "medium": 2, "low": 1}
"""Bars filled for a confidence."""
REFUTED_SHOWN = 4
PACKAGES = {
    "flash-attn": "FlashAttention",
    "megatron": "Megatron-LM",
    "nccl": "NCCL",
    "ray": "Ray",
    "torch": "PyTorch",
}
"""Names of packages that are not frameworks, as their projects write them."""
LONGEST_ACRONYM = 5
MAX_PATCHES = 1
"""Patches shown open; the others are behind a fold."""
EMPHASIS = re.compile(r"(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])")
TICKED = re.compile(r"`([^`\n]+)`")
SETTLED = ("answered", "no_fault")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingExcerpts:
    """One finding with the excerpts of the user's text that it points at; ``defaulted``: it rests on a default too."""

    finding: FindingView
    excerpts: tuple[Excerpt, ...]
    defaulted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedSource:
    """A citation with the grade of its case; ``citation.quote`` is what the page shows on hover."""

    citation: Citation
    grade: str | None


@cache
def environment() -> Environment:
    """The templates, everything escaped; a name that is missing is an error, never a blank."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["size"] = size
    made.filters["inline"] = inline
    made.filters["lines"] = lines
    made.filters["fact"] = fact_name
    made.filters["framework"] = framework_name
    return made


def render(template: str, language: Language, **values: object) -> str:
    """One template in one language."""
    page = environment().get_template(template)
    return page.render(t=words(language), language=language, path=path_of, **values).strip()


def panel(answer: Answer, texts: Mapping[str | None, str], language: Language, rules: int = 0) -> str:
    """The evidence above the sources: facts of the run, findings, patch, metrics, causes, what does not help.

    ``texts`` are the masked texts that were read, by name (None: the question). ``rules`` is how many there are.
    """
    related, aside, unsure = sorted_findings(answer)
    causes = answer.causes
    return render(
        "panel.html",
        language,
        a=answer,
        facts=facts(answer.run),
        findings=[shown(finding, texts) for finding in related],
        aside=[shown(finding, texts) for finding in aside],
        unsure=unsure,
        patches=patches((*related, *aside)),
        max_patches=MAX_PATCHES,
        signals=signals(answer.signals),
        sparks=sparks(answer, language),
        causes=[(cause, reasons(cause, language)) for cause in causes],
        steps=STEPS,
        refuted=refuted(answer),
        refuted_shown=REFUTED_SHOWN,
        rules=rules,
        counts=counts(answer.findings),
        pasted=any(each.name is not None for each in answer.receipt.inputs),
    )


def tail(answer: Answer, language: Language) -> str:
    """The evidence whose content depends on the answer's text: its sources, what was read, how it was made."""
    return render("tail.html", language, a=answer, citations=cited(answer))


def steps(found: Sequence[StepView], language: Language) -> str:
    """The steps of an investigation, as they come; nothing where there are none."""
    return render("steps.html", language, steps=found) if found else ""


def chips(inputs: Sequence[WaitingFile], language: Language) -> str:
    """What each file that waits to be sent was recognised as, with a button that takes it away."""
    return render("chips.html", language, inputs=inputs) if inputs else ""


def after(answer: Answer, language: Language, follow: Sequence[object], *, feedback: bool) -> str:
    """What stands under an answer: questions to go on with, and whether it helped."""
    return render("after.html", language, a=answer, follow=follow, feedback=feedback)


def sorted_findings(answer: Answer) -> tuple[list[FindingView], list[FindingView], list[FindingView]]:
    """Findings about the question, the other ones that fired, and those that could not be decided.

    A finding is about the question where a cause rests on it. Without any such, errors and warnings are shown openly
    as long as no cause was found.
    """
    fired = [each for each in answer.findings if each.status == "fired"]
    unsure = [each for each in answer.findings if each.status != "fired"]
    named = {rule for cause in answer.causes for rule in cause.findings}
    related = [each for each in fired if each.rule_id in named]
    if not related and answer.verdict not in SETTLED:
        related = [each for each in fired if each.severity != "info"]
    first = answer.causes[0].findings if answer.causes else []
    related.sort(key=lambda each: each.rule_id not in first)
    return related, [each for each in fired if each not in related], unsure


def shown(finding: FindingView, texts: Mapping[str | None, str]) -> FindingExcerpts:
    """A finding with its places."""
    defaulted = any(span.default for span in finding.evidence)
    return FindingExcerpts(finding=finding, excerpts=excerpts(finding.evidence, texts), defaulted=defaulted)


def patches(findings: Iterable[FindingView]) -> list[FindingView]:
    """The findings that bring a patch, each diff once."""
    found: dict[str, FindingView] = {}
    for finding in findings:
        if finding.patch:
            found.setdefault(finding.patch, finding)
    return list(found.values())


def counts(findings: Iterable[FindingView]) -> dict[str, int]:
    """How many rules fired, and how many could not tell."""
    statuses = [finding.status for finding in findings]
    return {"fired": statuses.count("fired"), "unsure": statuses.count("cannot_tell")}


def facts(run: RunView) -> list[str]:
    """The run in a few words: framework with its version, algorithm, model, versions that often matter."""
    framework, versions = run.framework, run.versions
    found = []
    if framework:
        found.append(f"{framework_name(framework)} {versions.get(framework, '')}".strip())
    if algorithm := run.algorithm:
        found.append(algorithm.upper() if len(algorithm) <= LONGEST_ACRONYM else algorithm)
    found += [run.model.rstrip("/").rpartition("/")[2]] if run.model else []
    found += [f"{name} {versions[name]}" for name in ("torch", "transformers", "deepspeed") if name in versions]
    return found


def signals(found: Iterable[SignalView]) -> list[SignalView]:
    """Each kind of signal once: the first seen in a log, else the one that the question states."""
    kept: dict[str, SignalView] = {}
    for signal in sorted(found, key=lambda each: each.stated):
        kept.setdefault(signal.kind, signal)
    return list(kept.values())


def sparks(answer: Answer, language: Language) -> list[object]:
    """The metrics to draw; answers of older versions have none."""
    drawn = (spark(series, words(language)) for series in answer.series)
    return [each for each in drawn if each is not None]


def reasons(cause: CauseView, language: Language) -> tuple[list[str], list[str]]:
    """What speaks for a cause and what against it, in words."""
    t = words(language)
    why = [t["why_for"][name] for name in cause.why if name in t["why_for"]]
    against = [t["why_against"][name] for name in cause.why if name in t["why_against"]]
    return why, against


def refuted(answer: Answer) -> list[RefutationView]:
    """What does not help against the first cause, where that is more than a guess."""
    causes = answer.causes
    if not causes or (answer.verdict not in SETTLED and causes[0].confidence == "low"):
        return []
    return list(causes[0].refutations)


def cited(answer: Answer) -> list[CitedSource]:
    """The citations with what the page shows on hover: the grade of a case, and a quote."""
    causes = {cause.case_id: cause for cause in answer.causes}
    findings = {finding.rule_id: finding for finding in answer.findings}
    sources = []
    for citation in answer.citations:
        quote, grade = citation.quote, None
        if citation.kind == "case" and citation.id in causes:
            cause = causes[citation.id]
            quote, grade = quote or first_sentences(cause.cause), cause.evidence_grade
        elif citation.kind == "rule" and citation.id in findings:
            quote = quote or findings[citation.id].message
        sources.append(CitedSource(citation=replace(citation, quote=quote), grade=grade))
    return sources


def first_sentences(text: str, limit: int = 220) -> str:
    """The beginning of a text, up to the end of a sentence where one is near."""
    text = EMPHASIS.sub(r"\1", " ".join(text.split()))
    if len(text) <= limit:
        return text
    ends = [text.rfind(mark, 0, limit) + len(mark.rstrip()) for mark in (". ", "。", "；", "; ")]
    end = max(ends)
    return text[:end] if end > limit // 3 else text[: limit - 1] + "…"


def inline(text: str) -> Markup:
    """A text with what stands between single ticks as code; everything in it escaped."""
    parts = TICKED.split(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in enumerate(parts)
    )


def lines(count: int, t: Words) -> str:
    """A number of lines in words."""
    return str(t["read_line"] if count == 1 else t["read_lines"].format(count=f"{count:,}"))


def size(count: int) -> str:
    """Bytes as people read them."""
    return f"{count} B" if count < 1024 else f"{count / 1024:.0f} KiB" if count < 2**20 else f"{count / 2**20:.1f} MiB"


def framework_name(framework: str) -> str:
    """The framework's name as its project writes it."""
    return PACKAGES.get(framework) or title(framework)


def fact_name(fact: str) -> str:
    """The name that a missing fact is answered under: ``micro_batch`` of ``setting:micro_batch``."""
    return fact.rpartition(":")[2]
