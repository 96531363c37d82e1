"""Prometheus metrics of requests, answers and feedback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from trainmedic.service.answer import Answer
from trainmedic.service.storage.history import Feedback


class Metrics:
    """Counters and durations in a registry of their own; an `Observer` of answers and feedback."""

    def __init__(self) -> None:
        # Not the library's global one: tests and several applications in one process would collide.
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "trainmedic_requests_total", "Requests by route and status", ["route", "code"], registry=self.registry
        )
        self.duration = Histogram(
            "trainmedic_request_duration_seconds", "Time to the whole response", ["route"], registry=self.registry
        )
        self.answers = Counter("trainmedic_answers_total", "Answers by verdict", ["verdict"], registry=self.registry)
        self.fired = Counter(
            "trainmedic_rule_fired_total", "Findings by rule", ["rule", "severity"], registry=self.registry
        )
        self.feedback = Counter("trainmedic_feedback_total", "Feedback", ["reaction"], registry=self.registry)

    def on_answer(self, answer: Answer) -> None:
        """Count the answer, and each rule that fired in it."""
        self.answers.labels(verdict=answer.verdict).inc()
        for finding in answer.findings:
            if finding.status == "fired":
                self.fired.labels(rule=finding.rule_id, severity=finding.severity).inc()

    def on_feedback(self, feedback: Feedback, previous: Feedback | None, answer: Mapping[str, Any]) -> None:
        """Count the feedback."""
        self.feedback.labels(reaction=feedback.reaction).inc()
