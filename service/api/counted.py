"""Every answer and every feedback counted once, whatever channel it went through: the API, the pages, Slack, MCP."""

from __future__ import annotations

from contextlib import aclosing

from trainmedic.service.advisor import Advisor, Ask
from trainmedic.service.answer import Answer
from trainmedic.service.answering import Answerer, Parts, Run
from trainmedic.service.api.limits import Metrics
from trainmedic.service.history import Feedback


class Counting:
    """An asker of which every whole answer is counted, with what fired in it."""

    def __init__(self, asker: Answerer, metrics: Metrics) -> None:
        self._asker = asker
        self._metrics = metrics

    async def stream(self, request: Ask, trace_id: str, run: Run) -> Parts:
        """What the asker gives, unchanged."""
        async with aclosing(self._asker.stream(request, trace_id, run)) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    self._count(part)
                yield part

    def _count(self, answer: Answer) -> None:
        self._metrics.answers.labels(verdict=answer.verdict).inc()
        for finding in answer.findings:
            if finding.status == "fired":
                self._metrics.fired.labels(rule=finding.rule_id, severity=finding.severity).inc()


class CountingAdvisor(Advisor):
    """An advisor of which every feedback that was stored is counted."""

    def __init__(self, advisor: Advisor, metrics: Metrics) -> None:
        super().__init__(advisor.knowledge, advisor.history)
        self._advisor = advisor
        self._metrics = metrics

    def give_feedback(self, feedback: Feedback) -> None:
        """Give it to the advisor, then count. Raises `NotFound` for an unknown answer."""
        self._advisor.give_feedback(feedback)
        self._metrics.feedback.labels(reaction=feedback.reaction).inc()
