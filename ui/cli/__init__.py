"""The command line. Each module here is one verb: its docstring is the help, ``arguments`` and ``run`` do the rest.
Further verbs live next door (`kb.plugins`).

Heavy imports go inside ``run``, so that ``trainmedic check`` does not load the embedder or the web framework.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from trainmedic.kb import plugins
from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.lazy import regex

EXTRA = regex(r'extra == "([\w-]+)"')
CLEAN, FINDINGS, USAGE, FAILED = 0, 1, 2, 3
"""Exit codes."""
DISTRIBUTIONS = {
    "bs4": "beautifulsoup4",
    "faiss": "faiss-cpu",
    "markdown_it": "markdown-it-py",
    "opentelemetry": "opentelemetry-sdk",
    "pydantic_core": "pydantic",
    "pythonjsonlogger": "python-json-logger",
    "slack_sdk": "slack-bolt",
    "starlette": "fastapi",
}
"""The distributions of modules that are named otherwise, or that another one brings."""


_ORDER = (
    *("check", "ask", "doctor", "audit", "diff", "effective", "explain", "search", "watch"),
    *("kb", "ingest", "review", "index", "eval", "serve", "mcp", "slack", "skills", "llm", "admin", "config"),
)
"""The verbs as help lists them: a run, the knowledge, a service. Those of other packages follow."""


def _rank(verb: str) -> tuple[int, str]:
    return (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)


def verbs() -> tuple[str, ...]:
    """Our own verbs; modules whose name starts with an underscore are not verbs."""
    names = (path.stem for path in Path(__file__).parent.iterdir())
    return tuple(sorted(name for name in names if not name.startswith("_")))


def load(verb: str) -> ModuleType:
    """The module of a verb, which may live next door."""
    if verb in verbs():
        return import_module(f"{__name__}.{verb}")
    module: ModuleType = plugins.load(plugins.COMMANDS, verb)
    return module


class ShowVersion(argparse.Action):
    """Looks the version up on demand, because that takes as long as running all the rules."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"trainmedic {version('trainmedic')}")
        parser.exit()


def parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """A parser of the named verbs only: importing all of them is slow."""
    top = argparse.ArgumentParser(
        prog="trainmedic", description="Why is my LLM training run broken, and what do I change?"
    )
    top.add_argument("--version", action=ShowVersion, nargs=0, help="show the version and exit")
    commands = top.add_subparsers(prog="trainmedic", dest="verb", metavar="VERB", required=True)
    for verb in sorted(names, key=_rank):
        try:
            add_verb(commands, verb, load(verb))
        except ModuleNotFoundError as error:
            if len(names) == 1:
                raise
            commands.add_parser(verb, help=missing(error))
    return top


def add_verb(commands: argparse._SubParsersAction[argparse.ArgumentParser], verb: str, module: ModuleType) -> None:
    text = (module.__doc__ or "").strip()
    sub = commands.add_parser(
        verb,
        help=text.split("\n")[0],
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.set_defaults(run=module.run)
    module.arguments(sub)


def extra_of(module: str) -> str:
    """The first extra of ours that installs a module; empty if none does."""
    from importlib.metadata import requires

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    wanted = canonicalize_name(DISTRIBUTIONS.get(module, module))
    for requirement in map(Requirement, requires("trainmedic") or ()):
        if requirement.name == wanted and requirement.marker:
            return next(iter(EXTRA.findall(str(requirement.marker))), "")
    return ""


def missing(error: ModuleNotFoundError) -> str:
    """The package that is not installed, and how to install it. Raises the error again if no extra of ours does."""
    package = (error.name or "").partition(".")[0]
    extra = extra_of(package)
    if not extra:
        raise error
    return f"the package {package} is not installed (pip install 'trainmedic[{extra}]')"


def command() -> NoReturn:
    """The installed command: `main` as a process.

    A verb with ``FREES_NOTHING`` ends without freeing all that it loaded, which would take a tenth of its time. It has
    no thread, no child and no file open, and its output is flushed.
    """
    code = main()
    verb = sys.modules.get(f"{__name__}.{sys.argv[1]}") if len(sys.argv) > 1 else None
    if getattr(verb, "FREES_NOTHING", False):
        with suppress(OSError):  # no one reads it
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. Data goes to standard output, everything else to standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    names = verbs()
    # Looking for the verbs next door takes as long as a check.
    if not words or words[0] not in names:
        names = tuple(sorted({*names, *plugins.registered(plugins.COMMANDS)}))
    if words and words[0] in names:
        names = (words[0],)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name or the terminal may not be UTF-8: escape (JSON reads it back) instead of crashing.
            stream.reconfigure(errors="backslashreplace")
    if "_ARGCOMPLETE" in os.environ:  # the shell asks how a line may go on
        with suppress(ModuleNotFoundError):
            import argcomplete

            argcomplete.autocomplete(parser(names))
    command: list[str] = []
    if names == ("watch",) and "--" in words:  # argparse would take the command's first word for the log
        cut = words.index("--")
        words, command = words[:cut], words[cut + 1 :]
    try:
        arguments = parser(names).parse_args(words)
        if command:
            arguments.command = command
        # Flushed here, so that a closed pipe is noticed below and not when the interpreter exits.
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except TrainmedicError as error:
        print(f"trainmedic: {error.message}" + (f" ({error.hint})" if error.hint else ""), file=sys.stderr)
        return USAGE if error.kind == "invalid" else FAILED
    except ModuleNotFoundError as error:
        print(f"trainmedic: {missing(error)}", file=sys.stderr)
        return FAILED
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        if error.errno == errno.ENOSPC:
            print("trainmedic: no space left for the output", file=sys.stderr)
        # The reader (head, less) closed the pipe. That is not a failure, but the interpreter would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLEAN if error.errno == errno.EPIPE else FAILED
    except KeyboardInterrupt:
        return FAILED
