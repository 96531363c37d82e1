"""Show the effective settings, secrets masked, and the file that some of them come from."""

from __future__ import annotations

import argparse
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.service.configuration import effective, settings_file
    from trainmedic.ui.cli._service import settings_of

    file = settings_file()
    settings = {**effective(settings_of(options)), "config_file": None if file is None else str(file.resolve())}
    if options.json:
        sys.stdout.write(to_json(settings, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{name} = {'' if value is None else value}\n" for name, value in settings.items()))
    return 0
