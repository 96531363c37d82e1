"""Prometheus metrics of requests, answers, feedback, model calls and the process.

Labels have few values: routes and never paths, verdicts, rules, outcomes. docs/run/deployment.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector

from trainmedic.service.answer.schema import Answer
from trainmedic.service.api.memory import ProcessTreeMemory
from trainmedic.service.storage.history import Feedback

if TYPE_CHECKING:
    from trainmedic.service.llm.model_calls import ModelCall

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From a question without files to the deadline of a model's text."""
# A second series for each counter, which no one queries.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counters and durations in a registry of their own; an `Observer` of answers and feedback."""

    def __init__(self) -> None:
        # Not the library's global one: tests and several applications in one process would collide.
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests by route and status", "route", "code")
        self.in_progress = Gauge(
            "trainmedic_requests_in_progress", "Requests that are being answered", registry=self.registry
        )
        self.duration = self._histogram("request_duration_seconds", "Time to the whole response", "route")
        self.answers = self._counter("answers", "Answers by verdict", "verdict")
        self.stages = self._histogram("answer_stage_duration_seconds", "Time of one stage of an answer", "stage")
        self.fired = self._counter("rule_fired", "Findings by rule", "rule", "severity")
        self.feedback = self._counter("feedback", "Feedback", "reaction")
        self.model_calls = self._counter("model_calls", "Calls of the model by outcome", "outcome")
        self.model_duration = self._histogram("model_call_duration_seconds", "Time of a call of the model")
        self.model_first_token = self._histogram("model_first_token_seconds", "Time to the model's first token")
        self.model_tokens = self._counter("model_tokens", "Tokens read and written by the model", "direction")
        self.checks = Gauge(
            "trainmedic_check_ok", "1 if a part that /readyz checks works", ["check"], registry=self.registry
        )
        self.deleted = self._counter("answers_deleted", "Answers deleted by their owners")
        ProcessCollector(namespace="trainmedic", registry=self.registry)
        self.registry.register(ProcessTreeMemory())

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"trainmedic_{name}_total", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"trainmedic_{name}", text, labels, buckets=SECONDS, registry=self.registry)

    def show_versions(self, versions: Callable[[], Mapping[str, str]]) -> None:
        """Export the versions that are served at the time of a scrape."""
        self.registry.register(_Versions(versions))

    def on_answer(self, answer: Answer) -> None:
        """Count the answer, and each rule that fired in it."""
        self.answers.labels(verdict=answer.verdict).inc()
        for stage, milliseconds in answer.timings_ms.items():
            self.stages.labels(stage=stage).observe(milliseconds / 1000)
        for finding in answer.findings:
            if finding.status == "fired":
                self.fired.labels(rule=finding.rule_id, severity=finding.severity).inc()

    def on_feedback(self, feedback: Feedback) -> None:
        """Count the feedback."""
        self.feedback.labels(reaction=feedback.reaction).inc()

    def on_model_call(self, call: ModelCall) -> None:
        """Count a call of the model."""
        self.model_calls.labels(outcome=call.outcome).inc()
        self.model_duration.observe(call.duration_s)
        if call.first_token_s is not None:
            self.model_first_token.observe(call.first_token_s)
        self.model_tokens.labels(direction="input").inc(call.input_tokens)
        self.model_tokens.labels(direction="output").inc(call.output_tokens)

    def on_deletion(self, answer_ids: Collection[str]) -> None:
        """Count the answers."""
        self.deleted.inc(len(answer_ids))


class _Versions:
    """``trainmedic_info``: always 1, with the versions as labels."""

    def __init__(self, versions: Callable[[], Mapping[str, str]]) -> None:
        self._versions = versions

    def collect(self) -> Iterable[GaugeMetricFamily]:
        values = self._versions()
        family = GaugeMetricFamily("trainmedic_info", "The versions that are served", labels=list(values))
        family.add_metric(list(values.values()), 1)
        yield family
