"""The diagnosis on incidents of outside threads, beside plain rank fusion, the ranking before, and LangChain's pair.

    python -m benchmarks.outside [--side tuning|unseen]

"rank fusion" orders the candidates by the reciprocal rank fusion of our own lists alone. "before" is what the program
answered when it ranked cases alone (recorded in ``data/ranking_before.jsonl``), judged by today's pages. "stock" is
LangChain's BM25Retriever and FAISS in an EnsembleRetriever over the text of all our pages, with the default encoder,
asked with the question alone and with the question and everything attached. Every incident is asked in both languages.
A dash: the system has no verdict, no confidence or no score. Needs the ``bench`` extra. The exit code is always 0.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.retrieval import stock_over_pages
from trainmedic.service.advisor import Advisor
from trainmedic.service.settings import Settings
from trainmedic.ui.app import build_advisor
from trainmedic.ui.evaluation.causes import Share
from trainmedic.ui.evaluation.fit import Question, stated
from trainmedic.ui.evaluation.outside import (
    RISKS,
    SIDES,
    Incident,
    OutsideFigures,
    Result,
    Scorer,
    ask_all,
    coverage_at,
    lower_bound,
    outside_figures,
    read_incidents,
    risk_coverage,
    was_given,
)

LANGUAGES = ("en", "zh")
BEFORE = Path(__file__).parent / "data" / "ranking_before.jsonl"
POINTS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
SHARES = {
    "right cause first": "first",
    "right cause in three": "in_three",
    "first and answered": "first_and_answered",
    "mechanism first": "mechanism_first",
    "coverage": "coverage",
    "`high` is right": "high",
    "answered with `high`": "at_high",
    "`medium` is right": "medium",
    "false `no_fault`": "false_no_fault",
    "nothing shown": "empty",
    "asked for a given fact": "asked_given",
    "must not be answered, but was": "must_not_answered",
}
LISTS = frozenset({"first", "in_three", "mechanism_first", "coverage"})
"""The figures of a system that only orders causes."""


def ordered(
    incident: Incident,
    language: str,
    ids: Sequence[str],
    required: frozenset[str],
    mechanism: frozenset[str],
    known: frozenset[str],
    score: float = 0.0,
) -> Result:
    """The result of a system that only orders causes: ``required`` are right, ``mechanism`` state what is going on;
    ``known`` are the ids it can name."""

    def rank(wanted: frozenset[str]) -> int | None:
        return next((place for place, cause_id in enumerate(ids, start=1) if cause_id in wanted), None)

    return Result(
        incident=incident,
        language=language,
        verdict="",
        rank=rank(required),
        mechanism_rank=rank(required | mechanism),
        confidence="low",
        score=score,
        covered=bool(required & known),
        empty=not ids,
        asked_given=(),
    )


def rank_fusion(incidents: Sequence[Incident], advisor: Advisor, scorer: Scorer) -> tuple[Result, ...]:
    """Our candidates in the order of `Candidate.fused`."""
    results = []
    for incident in incidents:
        for language in LANGUAGES:
            candidates, context = advisor.candidates(incident.ask(language))
            # A mechanism is judged together with its first origin, as in an answer.
            alike = stated(Question(incident=incident, candidates=candidates, context=context), scorer)
            best = sorted(candidates, key=lambda candidate: (-candidate.fused, candidate.cause.id))
            results.append(
                ordered(
                    incident,
                    language,
                    [candidate.cause.id for candidate in best],
                    scorer.right(incident.required) | alike,
                    scorer.right(incident.mechanism),
                    frozenset(advisor.knowledge.published),
                    best[0].fused if best else 0.0,
                )
            )
    return tuple(results)


def before(incidents: Sequence[Incident], scorer: Scorer, path: Path = BEFORE) -> tuple[Result, ...]:
    """The recorded answers of the ranking that knew cases alone; incidents added since are left out."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    known = frozenset(json.loads(header)["cases"])
    answers = {(row["id"], row["language"]): row for row in map(json.loads, lines)}
    results = []
    for incident in incidents:
        for language in LANGUAGES:
            row = answers.get((incident.id, language))
            if row is None:
                continue
            ids = [cause_id for cause_id, _, _ in row["causes"]]
            _, confidence, score = row["causes"][0] if ids else ("", "low", 0.0)
            right, alike = scorer.right(incident.required), scorer.right(incident.mechanism)
            listed = ordered(incident, language, ids, right, alike, known, score)
            results.append(
                replace(
                    listed,
                    verdict=row["verdict"],
                    confidence=confidence,
                    empty=not ids and not row["fired"],
                    asked_given=tuple(fact for fact in row["missing"] if was_given(fact, incident)),
                )
            )
    return tuple(results)


def stock(incidents: Sequence[Incident], advisor: Advisor, scorer: Scorer, *, paste: bool) -> tuple[Result, ...]:
    """LangChain's pair over the text of all our pages, mechanisms and origins included; the first hit of each cause."""
    known = advisor.knowledge
    pair = stock_over_pages(known.index, known.embedder)
    results = []
    for incident in incidents:
        files = [str(attachment.content) for attachment in incident.attachments] if paste else []
        right, alike = scorer.right(incident.required), scorer.right(incident.mechanism)
        for language in LANGUAGES:
            hits = pair.invoke("\n".join((incident.question[language], *files)))
            ids = list(dict.fromkeys(hit.metadata["cause"] for hit in hits))
            results.append(ordered(incident, language, ids, right, alike, frozenset(known.published)))
    return tuple(results)


def cell(name: str, figures: OutsideFigures) -> str:
    """A share with its counts; what a word promises with the one-sided 95 % lower bound."""
    value: Share = getattr(figures, name)
    if value.value is None:
        return "–"
    bound = f", ≥ {lower_bound(value.right, value.total):.2f}" if name in ("high", "medium") else ""
    return f"{value.value:.3f} ({value.right}/{value.total}{bound})"


def row(label: str, name: str, systems: Mapping[str, Sequence[Result]], lists: Iterable[str]) -> str:
    """One figure of every system: over both languages, and English minus Chinese."""
    cells = []
    for system, results in systems.items():
        if system in lists and name not in LISTS:
            cells += ["–", "–"]
            continue
        by_language = [
            getattr(outside_figures([result for result in results if result.language == language]), name).value
            for language in LANGUAGES
        ]
        difference = "–" if None in by_language else f"{by_language[0] - by_language[1]:+.3f}"
        cells += [cell(name, outside_figures(results)), difference]
    return f"| {label} | {' | '.join(cells)} |"


def curve_of(results: Iterable[Result]) -> tuple[tuple[float, float], ...]:
    return risk_coverage([(result.score, result.first) for result in results if result.incident.expect == "cause"])


def table(systems: Mapping[str, Sequence[Result]], lists: Iterable[str], unscored: Iterable[str]) -> str:
    """The figures of all systems, then the risk-coverage curve of those that have a score."""
    names = list(systems)
    lines = [f"| | {' | '.join(f'{name} | en − zh' for name in names)} |", "|---" * (2 * len(names) + 1) + "|"]
    lines += [row(label, name, systems, lists) for label, name in SHARES.items()]
    scored = {name: curve_of(results) for name, results in systems.items() if name not in unscored}
    areas = [f"{outside_figures(systems[name]).aurc:.3f}" if name in scored else "–" for name in names]
    lines.append(f"| area under the risk–coverage curve | {' | '.join(f'{area} | ' for area in areas)}|")
    lines += ["", f"| coverage | {' | '.join(f'risk, {name}' for name in scored)} |", "|---" * (len(scored) + 1) + "|"]
    for point in POINTS:
        risks = [next(risk for coverage, risk in curve if coverage >= point) for curve in scored.values()]
        lines.append(f"| {point:.2f} | {' | '.join(f'{risk:.3f}' for risk in risks)} |")
    lines += ["", f"| risk at most | {' | '.join(f'coverage, {name}' for name in scored)} |"]
    lines.append("|---" * (len(scored) + 1) + "|")
    for risk in RISKS:
        reached = " | ".join(f"{coverage_at(curve, risk):.3f}" for curve in scored.values())
        lines.append(f"| {risk:.2f} | {reached} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outside", description=__doc__)
    parser.add_argument("--side", choices=SIDES, default="unseen")
    options = parser.parse_args(argv)
    incidents = read_incidents(Path("tests/eval/outside") / f"{options.side}.jsonl")
    advisor = build_advisor(Settings(), with_history=False)
    scorer = Scorer(advisor.knowledge.published)
    systems = {
        "product": ask_all(incidents, advisor.ask, scorer, LANGUAGES),
        "rank fusion": rank_fusion(incidents, advisor, scorer),
        "before": before(incidents, scorer),
        "stock, question": stock(incidents, advisor, scorer, paste=False),
        "stock, question and files": stock(incidents, advisor, scorer, paste=True),
    }
    stocks = [name for name in systems if name.startswith("stock")]
    print(table(systems, lists=["rank fusion", *stocks], unscored=stocks), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
