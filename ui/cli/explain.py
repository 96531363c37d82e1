"""Explain an error message or warning: which code prints it, under which condition, and what to change.

Examples: trainmedic explain "ValueError: Attempting to unscale FP16 gradients."; trainmedic explain train.log
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trainmedic.ui.cli._input import STDIN, attachments, language_of, read_releases

FREES_NOTHING = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "message", nargs="+", metavar="MESSAGE|FILE", help="a message, or files; - reads standard input"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.parse.pipeline import parse
    from trainmedic.kb.serialization import to_json
    from trainmedic.service.answer.error_messages import explained
    from trainmedic.ui.present.text import explanations

    read_releases()
    language = language_of(options.language)
    files = [word for word in options.message if word == STDIN or _is_file(word)]
    text = "\n".join(word for word in options.message if word not in files)
    view = explained(parse(text, attachments(files)), language)
    if options.json:
        sys.stdout.write(to_json(view, indent=2) + "\n")
        return 0
    sys.stdout.write(explanations(view, language))
    return 0


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # a message may be longer than any path
        return False
