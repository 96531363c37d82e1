"""Checks made on a run in which nothing is wrong, with the values read. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Status
from trainmedic.service.answer.learning_rate import far_below
from trainmedic.service.answer.messages import messages
from trainmedic.service.ranking.features import Context

TRENDS = ("loss", "reward", "kl")
"""Metrics shown from the first to the last value."""
RANGES = ("grad_norm", "learning_rate")
"""Metrics shown as least and greatest value."""
LEAST_ROWS, FALLS = 5, 0.01
"""Rows of a quarter of a log, and the share by which its mean is below that of the quarter before."""
MAX_UNCHECKED = 3
MAX_SETTINGS, MAX_VERSIONS = 5, 4
KEY_SETTINGS = ("learning_rate", "micro_batch", "gradient_accumulation", "max_length", "epochs", "bf16", "fp16", "beta")
"""Settings named with their values, the most telling first."""


def checkup(context: Context, language: str) -> Iterator[str]:
    """One line for each thing checked, then what could not be."""
    evidence, report = context.evidence, context.report
    if evidence.rows:
        yield messages("checkup.rows", language, count=len(evidence.rows))
    for name in (*TRENDS, *RANGES):
        values = metric_values(evidence, name)
        if not values:
            continue
        start, end = (values[0], values[-1]) if name in TRENDS else (min(values), max(values))
        joiner = " → " if name in TRENDS else "–"
        yield f"`{name}` {start:.4g}" if start == end else f"`{name}` {start:.4g}{joiner}{end:.4g}"
    settings = {name: s for name, s in evidence.run.settings.items() if not s.is_default}
    if settings:
        named = [f"`{settings[name].key} {settings[name].value}`" for name in KEY_SETTINGS if name in settings]
        counted = messages("checkup.settings", language, count=len(settings))
        yield counted + _values(named[:MAX_SETTINGS], language)
    if text := far_below(context, language):
        yield text
    exact = [f"{name} {fact.exact}" for name, fact in sorted(evidence.versions.items()) if fact.exact]
    if exact:
        counted = messages("checkup.versions", language, count=len(exact))
        yield counted + _values(exact[:MAX_VERSIONS], language)
    yield messages("checkup.findings", language, count=len(report.fired))
    if not evidence.rows:
        yield messages("checkup.no_log", language)
    if not evidence.run.options:
        yield messages("checkup.no_config", language)
    for item in evidence.receipt.inputs:
        if item.truncated:
            yield messages("checkup.cut", language, name=item.name or messages("question", language))
    unsure = [finding for finding in report.findings if finding.status is Status.CANNOT_TELL]
    for finding in unsure[:MAX_UNCHECKED]:
        yield messages("checkup.unsure", language, title=finding.title.get(language))


def still_falls(evidence: Evidence, language: str) -> str:
    """Whether the loss still falls at the end of the log, for who asks whether to stop; empty without a log."""
    values = metric_values(evidence, "loss")
    quarter = len(values) // 4
    if quarter < LEAST_ROWS:
        return ""
    before, end = (sum(part) / quarter for part in (values[-2 * quarter : -quarter], values[-quarter:]))
    falls = before - end > FALLS * abs(before)
    body = messages(f"checkup.{'falls' if falls else 'level'}", language, before=f"{before:.4g}", end=f"{end:.4g}")
    evaluated = any(row.evaluation for row in evidence.rows)
    return body if evaluated else f"{body} {messages('checkup.no_evaluation', language)}"


def _values(names: Sequence[str], language: str) -> str:
    """The end of a line that lists what it counts."""
    joiner = "、" if language == "zh" else ", "
    return messages("checkup.values", language, values=joiner.join(names)) if names else ""


def metric_values(evidence: Evidence, name: str) -> list[float]:
    """The finite values of a metric over the training rows, in order."""
    rows = (row for row in evidence.rows if not row.evaluation and name in row.metrics)
    return [value for row in rows if math.isfinite(value := row.metrics[name].value)]
