"""The command line. Each module here is one verb: its docstring is the help, ``arguments`` and ``run`` do the rest.

A verb's heavy imports stand inside ``run``: ``trainmedic check`` must not pay for the embedder or the web framework.
"""

from __future__ import annotations

import argparse
import io
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from trainmedic.kb.errors import TrainmedicError

CLEAN, FINDINGS, USAGE, FAILED = 0, 1, 2, 3
"""Exit codes: nothing at or above the threshold; something; bad usage; could not run."""


def verbs() -> tuple[str, ...]:
    """The verbs there are: one module each. Names starting with an underscore are not verbs."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")))


def load(verb: str) -> ModuleType:
    """The module of one verb."""
    return import_module(f"{__name__}.{verb}")


class ShowVersion(argparse.Action):
    """Looks the version up only when it is asked for: that costs as much as all rules together."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print it and leave."""
        from importlib.metadata import version

        print(f"trainmedic {version('trainmedic')}")
        parser.exit()


def parser(wanted: Sequence[str]) -> argparse.ArgumentParser:
    """The parser with the ``wanted`` verbs; all of them for the overall help."""
    top = argparse.ArgumentParser(
        prog="trainmedic", description="Why is my LLM training run broken, and what do I change?"
    )
    top.add_argument("--version", action=ShowVersion, nargs=0, help="show the version and exit")
    commands = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in wanted:
        module = load(verb)
        text = (module.__doc__ or "").strip()
        sub = commands.add_parser(
            verb,
            help=text.split("\n")[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.arguments(sub)
        sub.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. Data goes to standard output, everything else to standard error."""
    given = list(sys.argv[1:] if argv is None else argv)
    known = verbs()
    chosen = [given[0]] if given and given[0] in known else list(known)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that is no UTF-8, or a terminal that is not: shown escaped (which JSON reads back), never a crash.
            stream.reconfigure(errors="backslashreplace")
    command: list[str] = []
    if chosen == ["watch"] and "--" in given:  # argparse would take the command's first word for the log
        cut = given.index("--")
        given, command = given[:cut], given[cut + 1 :]
    arguments = parser(chosen).parse_args(given)
    if command:
        arguments.command = command
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except TrainmedicError as error:
        print(f"trainmedic: {error.message}" + (f" ({error.hint})" if error.hint else ""), file=sys.stderr)
        return USAGE if error.kind == "invalid" else FAILED
    except BrokenPipeError:
        # The reader (head, less) has gone; that is no failure of ours, but the interpreter would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLEAN
    except KeyboardInterrupt:
        return FAILED
