"""Ask a stored answer's question again under the version of the knowledge that answered it.

ANSWER is the id of an answer, or a file with its JSON; the question and the files come from the history. Says so if the
version is not kept any more. Exit code 1: the verdict or the causes differ from those of then.

Example: trainmedic replay answer.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("answer", metavar="ANSWER", help="id of an answer, or a file with its JSON")
    parser.add_argument("--version", metavar="ID", help="ask under this version instead")
    parser.add_argument("--json", action="store_true", help="the whole answer object")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.cli._service import settings_of
    from trainmedic.ui.replay import replay

    replayed = replay(settings_of(options), _id_of(options.answer), options.version)
    answer = replayed.answer
    print(f"asked again under the version {replayed.version}, knowledge {answer.kb_version}", file=sys.stderr)
    for line in replayed.differences:
        print(line, file=sys.stderr)
    sys.stdout.write(to_json(answer, indent=2) + "\n" if options.json else answer.answer + "\n")
    return 1 if replayed.differences else 0


def _id_of(word: str) -> str:
    """The id in a file, or the word itself."""
    import json

    from trainmedic.kb.errors import InvalidRequest

    path = Path(word)
    if not path.is_file():
        return word
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{word} is no answer: {error}") from error
