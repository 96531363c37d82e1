"""Measure the answers to a set of questions: right cause first, in the first three, verdicts, false answers.

The questions are those of --set, by default the ones of a checkout.
With --model a served language model is measured on outside incidents: alone, and with trainmedic.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainmedic.service.advisor import Advisor
    from trainmedic.ui.evaluation.model import Measured
    from trainmedic.ui.evaluation.outside import Incident, Scorer


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", type=Path, default=Path("tests/eval"), metavar="PATH", help="JSONL of questions, or a folder of them"
    )
    parser.add_argument("--split", choices=("all", "tune", "held_out"), default="all")
    parser.add_argument("--outside", type=Path, metavar="FILE", help="measure incidents of outside threads instead")
    parser.add_argument(
        "--replay", action="store_true", help="with --outside: answer what is asked back, as far as the thread does"
    )
    parser.add_argument("--misses", action="store_true", help="list the questions answered wrongly")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--fit", type=Path, metavar="FILE", help="with --outside: fit the ranking on it, write it to FILE"
    )
    parser.add_argument(
        "--taught", type=Path, metavar="FILE", help="with --fit: fit it on messages that readers labelled, too"
    )
    parser.add_argument(
        "--model",
        metavar="URL",
        help="with --outside: measure the model served there, alone and with trainmedic, and store its calibration",
    )
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="with --model: so many incidents, at random")
    parser.add_argument(
        "--parallel", type=int, default=1, metavar="N", help="with --model: questions asked at once (1)"
    )
    parser.add_argument(
        "--alone", type=int, default=0, metavar="N", help="with --model: ask it alone for the first N only"
    )
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="with --model: of one answer (120)")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.cli._input import Unreadable
    from trainmedic.ui.cli._service import advisor_of
    from trainmedic.ui.evaluation.causes import evaluate, misses, read_items, table

    if options.outside is not None:
        return _outside(options)
    if not options.set.exists():
        raise Unreadable(f"no questions: {options.set} does not exist", hint="--set names a JSONL file of questions")
    items = [item for item in read_items(options.set) if options.split in ("all", item.split)]
    evaluation = evaluate(items, advisor_of(options).ask)
    if options.json:
        sys.stdout.write(to_json({"overall": evaluation.overall, "groups": evaluation.groups}, indent=2) + "\n")
    else:
        sys.stdout.write(table(evaluation))
    if options.misses:
        sys.stdout.write(misses(evaluation))
    return 0


def _outside(options: argparse.Namespace) -> int:
    """Every incident, asked in both languages."""
    from trainmedic.ui.cli._input import Unreadable
    from trainmedic.ui.cli._service import advisor_of
    from trainmedic.ui.evaluation.outside import (
        Scorer,
        ask_all,
        outside_table,
        read_incidents,
        sampled,
    )

    if not options.outside.exists():
        raise Unreadable(f"{options.outside} does not exist")
    advisor = advisor_of(options)
    incidents = read_incidents(options.outside)
    if options.fit is not None:
        from trainmedic.ui.evaluation.fit import fitted

        note = f"{len(incidents)} incidents of {options.outside.name}"
        if options.taught is not None:
            taught = [incident for incident in read_incidents(options.taught) if incident.question]
            note += f", {len(taught)} labelled messages of {options.taught.name}"
            incidents = (*incidents, *taught)
        note += f", knowledge {advisor.knowledge.cases.version}"
        options.fit.write_text(fitted(incidents, advisor, note), encoding="utf-8")
        print(f"{options.fit}: fitted on {len(incidents)} incidents", file=sys.stderr)
        return 0
    scorer = Scorer(advisor.knowledge.published)
    if options.model:
        from trainmedic.service.diagnosis.confidence import store
        from trainmedic.ui.cli._service import settings_of

        measured = asyncio.run(_measured(options, sampled(incidents, options.sample), advisor, scorer))
        sys.stdout.write(measured.table())
        path = store(measured.calibration(), measured.model, settings_of(options).calibrations)
        print(f"{path}: how often {measured.model} was right", file=sys.stderr)
        return 0
    if options.replay:
        from trainmedic.service.advisor import Advisor
        from trainmedic.service.storage.history import History
        from trainmedic.service.storage.memory import Memory
        from trainmedic.ui.evaluation.replay import replay, replay_table

        remembering = Advisor(advisor.knowledge, advisor.read, Memory(History("sqlite://")))
        sys.stdout.write(replay_table(replay(incidents, remembering.ask, scorer, ("en", "zh"))))
        return 0
    results = ask_all(incidents, advisor.ask, scorer, ("en", "zh"))
    sys.stdout.write(outside_table(results))
    if options.misses:
        for result in results:
            if result.incident.expect == "cause" and not result.answered:
                sys.stdout.write(f"{result.incident.id} {result.language}: {result.verdict} rank {result.rank}\n")
    return 0


async def _measured(
    options: argparse.Namespace, incidents: Sequence[Incident], advisor: Advisor, scorer: Scorer
) -> Measured:
    from trainmedic.ui.cli._service import settings_of
    from trainmedic.ui.evaluation.model import How, measure, model_at

    settings = settings_of(options)
    how = How(
        timeout_s=options.timeout,
        parallel=options.parallel,
        alone=options.alone,
        role=settings.model.role,
        calibrations=settings.calibrations,
    )
    model = model_at(options.model, how)
    try:
        return await measure(incidents, advisor, scorer, model, how)
    finally:
        await model.aclose()
