"""What each part of the diagnosis contributes: the same questions with one left out, and LangChain's stock pair.

    python -m benchmarks.ablations [--split held_out]

Our own variants leave something out of the retrieval or of the facts that ranking uses; the weights stay those fitted
for the whole. "words only" and "meaning only" order the cases by one list and have no verdict, like the stock pair
(BM25 and the default encoder in an EnsembleRetriever over the same chunks), which is queried twice: with the question
alone, and with the question and all files. Needs the ``bench`` extra. The exit code is always 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.retrieval import stock_over_pages
from trainmedic.kb.engine.facts import FactBook
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.query import Facets, Query, build_query
from trainmedic.service.dialogue.request import Ask, safely_named
from trainmedic.service.pipeline import Pipeline
from trainmedic.service.ranking.retrieve import Hit, retrieve
from trainmedic.service.settings import Settings
from trainmedic.ui.app import build_advisor
from trainmedic.ui.evaluation.causes import Item, Share, evaluate, read_items, share

QUESTIONS = Path("tests/eval")
TOP = 20
Order = Callable[[Item], Sequence[str]]


class NoRules(Pipeline):
    def check(self, evidence: Evidence, book: FactBook | None = None) -> Report:
        return Report(ruleset_version="")


class NoFacets(Pipeline):
    def hits(self, query: Query, leave_out: Collection[str]) -> tuple[Hit, ...]:
        return Pipeline.hits(self, replace(query, facets=Facets()), leave_out)


class WithoutRules(Advisor):
    @property
    def pipeline(self) -> Pipeline:
        return NoRules(self.knowledge, self.read)


class WithoutFacets(Advisor):
    """Ignores the recognised framework, algorithm, model, versions and settings."""

    @property
    def pipeline(self) -> Pipeline:
        return NoFacets(self.knowledge, self.read)


def without_facets(advisor: Advisor) -> Advisor:
    weights = advisor.knowledge.weights
    facets = ("framework_", "algorithm_", "family_", "version_", "settings")
    values = {name: 0.0 if name.startswith(facets) else value for name, value in weights.weights.items()}
    return WithoutFacets(replace(advisor.knowledge, weights=replace(weights, weights=values)), advisor.read)


def one_list(advisor: Advisor, rank: str) -> Order:
    """The order of one list alone; ``rank`` is ``lexical_rank`` or ``dense_rank``."""

    def order(item: Item) -> Sequence[str]:
        known = advisor.knowledge
        evidence = parse(item.question, safely_named(item.attachments))
        query = build_query(evidence, Report(), evidence.question, glossary=known.glossary)
        hits = retrieve(query, known.index, known.embedder, top_k=len(known.cases.cases))
        ranks = [(getattr(hit, rank), hit.case_id) for hit in hits if getattr(hit, rank) is not None]
        return [case for _, case in sorted(ranks)]

    return order


def stock(advisor: Advisor, *, paste: bool) -> Order:
    """LangChain's pair over the text of all our pages."""
    pair = stock_over_pages(advisor.knowledge.index, advisor.knowledge.embedder)

    def order(item: Item) -> Sequence[str]:
        files = [str(attachment.content) for attachment in item.attachments] if paste else []
        hits = pair.invoke("\n".join((item.question, *files)))
        return list(dict.fromkeys(hit.metadata["cause"] for hit in hits))

    return order


def ordered(items: Sequence[Item], order: Order) -> tuple[Share, Share]:
    """How often the right cause is first, and among the first three, of the questions that have one."""
    orders = [(item, order(item)) for item in items if item.cases]
    return (
        share(bool(set(cases[:1]) & set(item.cases)) for item, cases in orders),
        share(bool(set(cases[:3]) & set(item.cases)) for item, cases in orders),
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablations", description=__doc__)
    parser.add_argument("--split", choices=("all", "tune", "held_out"), default="held_out")
    options = parser.parse_args(argv)
    items = [item for item in read_items(QUESTIONS) if options.split in ("all", item.split)]
    advisor = build_advisor(Settings(), with_history=False)
    whole: Mapping[str, Callable[[Ask], object]] = {
        "everything": advisor.ask,
        "no rules": WithoutRules(advisor.knowledge, advisor.read).ask,
        "no facets": without_facets(advisor).ask,
    }
    print("| variant | first | in three | f1 | false answers |\n|---|---|---|---|---|")
    for name, ask in whole.items():
        figures = evaluate(items, ask).overall  # type: ignore[arg-type]
        print(f"| {name} | {figures.first} | {figures.in_three} | {figures.f1} | {figures.false_answers} |", flush=True)
    orders: Mapping[str, Order] = {
        "meaning only (our encoder and texts)": one_list(advisor, "dense_rank"),
        "words only (our lexical index and glossary)": one_list(advisor, "lexical_rank"),
        "stock pair, question alone": stock(advisor, paste=False),
        "stock pair, question and everything pasted": stock(advisor, paste=True),
    }
    for name, order in orders.items():
        first, three = ordered(items, order)
        print(f"| {name} | {first} | {three} | – | – |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
