"""Ask why a run is broken, with the files that belong to it.

Examples: trainmedic ask "loss is nan from the first step" -f train.sh -f train.log
          trainmedic ask "and with ZeRO-2?" --server https://medic.example.com --key KEY_FILE --conversation ID

With --server a service answers, and its conversation can be continued: its id is printed to standard error.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidRequest, TrainmedicError
from trainmedic.ui.cli._input import attachments, key_of, question, read_releases

if TYPE_CHECKING:
    from trainmedic.service.answer.schema import Answer, StepView
    from trainmedic.service.dialogue.request import Ask


MODES = "deterministic: no model; investigate: the model looks things up first (its steps go to standard error)"


class ServiceFailed(TrainmedicError):
    """The service that was asked did not answer."""

    code = "service_failed"
    kind = "unavailable"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "question", nargs="?", default="", metavar="QUESTION", help="what you see; - reads standard input"
    )
    parser.add_argument("-f", "--file", action="append", default=[], metavar="FILE", help="config, log, pip list …")
    parser.add_argument("--json", action="store_true", help="print the whole answer object as JSON")
    parser.add_argument(
        "--why", action="store_true", help="also print what was considered, with the evidence for and against each"
    )
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")
    parser.add_argument("--mode", choices=("auto", "deterministic", "investigate"), default="auto", help=MODES)
    parser.add_argument("--server", metavar="URL", help="ask this service instead of the installed knowledge")
    parser.add_argument("--key", metavar="KEY_FILE", help="file with the key of that service")
    parser.add_argument("--conversation", metavar="ID", help="with --server: continue this conversation")
    parser.add_argument(
        "--top-k", type=int, default=5, choices=range(1, 21), metavar="N", help="number of causes to list (1–20)"
    )


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.service.dialogue.request import Ask
    from trainmedic.ui.cli._service import answer_of

    if options.conversation and not options.server:
        raise InvalidRequest("--conversation needs --server", hint="the command itself remembers nothing")
    read_releases()
    request = Ask(
        question=question(options.question),
        attachments=attachments(options.file),
        conversation_id=options.conversation,
        language=options.language,
        top_k=options.top_k,
        mode=options.mode,
    )
    answer = _by_service(options, request) if options.server else answer_of(options, request, _print_step)
    sys.stdout.write(to_json(answer, indent=2) + "\n" if options.json else answer.answer + "\n")
    if options.why and not options.json:
        from trainmedic.ui.present.text import differential

        sys.stdout.write(f"\n{differential(answer.differential, answer.language)}")
    return 0


def _by_service(options: argparse.Namespace, request: Ask) -> Answer:
    """Raises `ServiceFailed`."""
    from trainmedic.kb.mask import mask
    from trainmedic.ui.client import Client, ServiceError
    from trainmedic.ui.diagnosing import masked_texts

    try:
        with Client(options.server, api_key=key_of(options)) as client:
            answer = client.ask(
                mask(request.question).text,
                masked_texts(request.attachments),
                conversation_id=request.conversation_id,
                language=request.language,
                top_k=request.top_k,
                mode=request.mode,
            )
    except ServiceError as error:
        raise ServiceFailed(mask(str(error)).text) from None
    print(f"conversation: {answer.conversation_id}", file=sys.stderr)
    return answer


def _print_step(step: StepView) -> None:
    print(f"{step.number}. {step.what}", file=sys.stderr, flush=True)
