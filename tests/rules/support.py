"""Hand-made evidence: texts with options found in them by their words, so that every span is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trainmedic.kb.engine.facts import WORDS, Facts
from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.model.evidence import Evidence, Metric, Row, Signal
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.model.run import Option, Origin, Recognised, RunConfig, Setting, Value, VersionFact
from trainmedic.kb.pages.page import read_page
from trainmedic.kb.pages.rule import read_checks

SETTINGS = (
    "vanilla_loss", "micro_batch", "gradient_accumulation", "num_gpus", "bf16", "learning_rate", "attention", "beta",
    "rpo_alpha", "modules_to_save", "loss_type", "weights_dtype", "max_length", "sequence_parallel",
    "fp16", "peft_task_type", "logging_steps",
)  # fmt: skip
WORDS_OF_TESTS = Vocabulary(
    names=frozenset((*SETTINGS, *WORDS)),
    settings=frozenset(SETTINGS),
    signals=frozenset(("loss_nan", "oom", "kl_zero")),
    concepts=frozenset(("half-precision",)),
)


def span(text: str, words: str, name: str | None = None) -> Span:
    """The place of the first occurrence of ``words`` in ``text``."""
    start = text.index(words)
    end = start + len(words)

    def position(offset: int) -> tuple[int, int]:
        return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1

    (line, column), (end_line, end_column) = position(start), position(end)
    return Span(attachment=name, line=line, column=column, end_line=end_line, end_column=end_column, text=words)


def option(
    text: str,
    words: str,
    key: str,
    value: Value = True,
    *,
    raw: str | None = None,
    origin: Origin = Origin.FLAG,
    name: str | None = "train.sh",
    scope: str = "",
) -> Option:
    """The option written as ``words``; ``raw`` is the part of it that is the value (None: a bare flag)."""
    whole = span(text, words, name)
    value_span = None
    if raw is not None:
        before = text[: text.index(words) + words.rindex(raw)]
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        end = column + len(raw) if "\n" not in raw else whole.end_column
        value_span = Span(
            attachment=name, line=line, column=column, end_line=whole.end_line, end_column=end, text=raw
        )  # fmt: skip
    return Option(
        key=key, value=value, raw=raw, span=whole, key_span=whole, value_span=value_span, origin=origin, scope=scope
    )  # fmt: skip


def setting(name: str, value: Value, written: Option | None = None, source: str = "written") -> Setting:
    """A setting that ``written`` spells, or a default."""
    return Setting(name=name, value=value, option=written, source=source, key=written.key if written else name)


def recognised(value: str, place: Span | None = None) -> Recognised:
    return Recognised(value=value, reason="the command says so", span=place)


def run(
    options: Sequence[Option] = (),
    settings: Mapping[str, Setting] | None = None,
    *,
    framework: str | None = "openrlhf",
    algorithm: str | None = "kto",
    partial: bool = False,
    anchor: Span | None = None,
    id: str = "run",
) -> RunConfig:
    return RunConfig(
        id=id,
        framework=recognised(framework) if framework else None,
        algorithm=recognised(algorithm) if algorithm else None,
        options=tuple(options),
        settings=settings or {},
        partial=partial,
        anchor=anchor,
    )


def version(package: str, exact: str | None, low: str | None = None, high: str | None = None) -> VersionFact:
    place = span(f"{package}=={exact}", f"{package}=={exact}", "pip.txt") if exact else None
    return VersionFact(package=package, exact=exact, reason="pip list", span=place, low=low, high=high)


def row(step: int, **metrics: float) -> Row:
    """A log row; ``__`` in a name stands for ``/``."""
    named = {key.replace("__", "/"): value for key, value in metrics.items()}
    line = ", ".join(f"'{key}': {value}" for key, value in named.items())
    places = {key: span(line, f"'{key}': {value}", "log.txt") for key, value in named.items()}
    return Row(
        step=step,
        metrics={key: Metric(name=key, value=value, span=places[key]) for key, value in named.items()},
        span=span(line, line, "log.txt"),
    )


def signal(kind: str, *, stated: bool = False) -> Signal:
    return Signal(kind=kind, span=span(kind, kind), stated=stated)


def evidence(
    *runs: RunConfig,
    rows: Sequence[Row] = (),
    signals: Sequence[Signal] = (),
    versions: Sequence[VersionFact] = (),
    sources: Mapping[str | None, str] | None = None,
    **more: object,
) -> Evidence:
    assert not more, more
    return Evidence(
        runs=runs or (run(),),
        rows=tuple(rows),
        signals=tuple(signals),
        versions={fact.package: fact for fact in versions},
        sources=tuple(Source(name=name, text=text, byte_count=len(text)) for name, text in (sources or {}).items()),
    )


def facts(given: Evidence) -> Facts:
    return Facts(given)


PAGE = """---
id: {id}
title: {{en: "A defect", zh: "一个缺陷"}}
family: data
sources: [{{url: "https://example.org/1", says: source, note: ""}}]
checks:
  - id: {id}
    severity: {severity}
    status: {status}
    since: 0.1.0
    applies: {applies}
    {when}
    message: {{en: "{message}", zh: "{message}"}}
    fix: {fix}
---
{body}"""


def page(
    id: str = "a-defect",
    when: str = "vanilla_loss",
    applies: str = "{framework: [openrlhf]}",
    fix: str = "[]",
    message: str = "seen",
    body: str = "",
    severity: str = "error",
    status: str = "stable",
) -> str:
    return PAGE.format(
        id=id, applies=applies, when=f"when: '{when}'" if when else "", fix=fix, message=message, body=body,
        severity=severity, status=status,
    )  # fmt: skip


def parsed(text: str, id: str = "a-defect") -> Rule:
    """The only check of a page's text."""
    checks, _ = read_checks(Path(f"/causes/kto/{id}.md"), *read_page(text, f"kto/{id}.md"), WORDS_OF_TESTS)
    (rule,) = checks.rules
    return rule


def rule(id: str = "a-defect", **parts: str) -> Rule:
    return parsed(page(id, **parts), id)


def ruleset(*rules: Rule) -> RuleSet:
    return RuleSet(rules=tuple(sorted(rules, key=lambda each: each.id)), version="test")
