"""``trainmedic kb new``: the page of a cause from five answers, or the skeleton of a mechanism."""

from __future__ import annotations

import argparse
import shlex
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidRequest

if TYPE_CHECKING:
    from trainmedic.ingest.authoring.new_cause import Answers

QUESTIONS = {
    "seen": "1/5 What goes wrong, in one sentence, as a user sees it?",
    "releases": "2/5 Which package, the first release with it, the first without? ? for one of them if unknown\n"
    "      PACKAGE 0.11.0 0.12.0",
    "run": "3/5 The shortest command or config that shows it, with [[ ]] around what matters; then an empty line.\n"
    "      tune run full_finetune_single_device --config llama3/8B_full [[packed=True]]",
    "why": "4/5 Why does it happen? On a second line, what helps besides an upgrade; then an empty line.",
    "source": "5/5 Where can others read it?\n      https://github.com/…/issues/123",
}
SEVERAL_LINES = ("run", "why")
CAUSES = Path("kb", "causes")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=("cause", "mechanism"), default="cause")
    parser.add_argument("id", nargs="?", help="lower-case words joined by dashes (from the first answer)")
    parser.add_argument("--folder", type=Path, help="where the page goes (kb/causes/<framework> in this repository)")
    parser.add_argument("--new-folder", action="store_true", help="create the folder if it does not exist")
    parser.add_argument("--seen", metavar="TEXT", help="answer to question 1: what goes wrong")
    parser.add_argument("--releases", metavar="TEXT", help="answer to 2: package, first release with it, first without")
    parser.add_argument(
        "--run", dest="pasted", metavar="TEXT", help="answer to 3: command or config, or a file with it"
    )
    parser.add_argument("--why", metavar="TEXT", help="answer to 4: why it happens; a second line says what helps")
    parser.add_argument("--source", metavar="URL", help="answer to 5: where others can read it")


def run(options: argparse.Namespace) -> int:
    from importlib.metadata import version

    from trainmedic.ingest.authoring.new_cause import page_of
    from trainmedic.kb.pages.page import is_page_id
    from trainmedic.kb.parse.pipeline import parse

    if (options.id is not None or options.kind == "mechanism") and not is_page_id(options.id or ""):
        raise InvalidRequest(f"{options.id!r} is not a page id", hint="lower-case words joined by dashes")
    if options.kind == "mechanism":
        return _mechanism(options)
    answers = _answers(options)
    try:
        page = page_of(answers, parse, date.today(), version("trainmedic"), options.id or "")
    except InvalidRequest:
        print(f"with your answers: {_again(answers)}", file=sys.stderr)
        raise
    for known in _citing(answers.source):
        print(f"{known} cites {answers.source} already: one cause is one page", file=sys.stderr)
    folder = options.folder or (CAUSES / page.framework if CAUSES.is_dir() else Path())
    path = _written(folder, page.id, page.text, new_folder=options.new_folder or options.folder is None)
    problems = _problems(path)
    sys.stdout.write("".join(f"{problem}\n" for problem in problems) + f"{path}\n")
    return 1 if problems else 0


def _answers(options: argparse.Namespace) -> Answers:
    from trainmedic.ingest.authoring.new_cause import Answers

    given = {"run": options.pasted} | {name: getattr(options, name) for name in QUESTIONS if name != "run"}
    said = {name: _asked(name) if given[name] is None else given[name].strip() for name in QUESTIONS}
    if empty := [name for name, text in said.items() if not text]:
        raise InvalidRequest(f"no answer to: {QUESTIONS[empty[0]].splitlines()[0]}")
    if "\n" not in said["run"] and len(said["run"]) < 256 and Path(said["run"]).is_file():
        said["run"] = Path(said["run"]).read_text(encoding="utf-8")
    package, *releases = said["releases"].split()
    introduced, fixed = (release if release != "?" else "" for release in (*releases, "?", "?")[:2])
    why, _, helps = said["why"].partition("\n")
    return Answers(
        seen=said["seen"],
        package=package.lower(),
        introduced=introduced,
        fixed=fixed,
        run=said["run"],
        why=why,
        helps=" ".join(helps.split()),
        source=said["source"],
    )


def _again(answers: Answers) -> str:
    """The command that gives these answers once more, to be corrected."""
    releases = (answers.package, answers.introduced or "?", answers.fixed or "?")
    said = {
        "seen": answers.seen,
        "releases": " ".join(releases),
        "run": answers.run,
        "why": f"{answers.why}\n{answers.helps}",
        "source": answers.source,
    }
    return " ".join(("trainmedic kb new", *(f"--{name} {shlex.quote(text.strip())}" for name, text in said.items())))


def _asked(name: str) -> str:
    print(QUESTIONS[name], file=sys.stderr)
    lines: list[str] = []
    for line in sys.stdin:
        if not line.strip() and lines:
            break
        lines += [line] if line.strip() else []
        if lines and name not in SEVERAL_LINES:
            break
    return "".join(lines).strip()


def _citing(source: str) -> list[str]:
    """The built-in pages with this source."""
    from trainmedic.kb.pages.page import KNOWLEDGE

    pages = sorted(path for kind in ("causes", "defects") for path in KNOWLEDGE.joinpath(kind).glob("*/*.*"))
    texts = ((path, path.read_bytes()) for path in pages if path.suffix in (".md", ".yaml"))
    return [path.stem for path, text in texts if f'"{source}"'.encode() in text]


def _problems(path: Path) -> tuple[str, ...]:
    """Of the page alone; whether its id is taken needs all pages."""
    from trainmedic.ingest.authoring.lint import Standards, lint
    from trainmedic.kb.engine.rule import RuleSet
    from trainmedic.kb.engine.vocabulary import vocabulary
    from trainmedic.kb.pages.case import CaseSet, read_case
    from trainmedic.kb.pages.page import PageError, read_page
    from trainmedic.kb.pages.rule import read_checks
    from trainmedic.kb.parse.pipeline import parse

    try:
        page, front = read_page(path.read_text(encoding="utf-8"), path.as_posix())
        case, bare = read_case(path, page, front)
        checks, _ = read_checks(path, page, front)
    except PageError as error:
        return (str(error.problem),)
    cases = CaseSet(cases=(case,), pages={case.id: bare})
    found = lint(RuleSet(rules=checks.rules), cases, parse, vocabulary(), standards=Standards(today=date.today()))
    return tuple(map(str, found))


def _mechanism(options: argparse.Namespace) -> int:
    from importlib.resources import files

    if options.folder is None:
        raise InvalidRequest("--folder is needed for a mechanism")
    template = files("trainmedic.ingest.authoring").joinpath("skeletons", "mechanism.md").read_text(encoding="utf-8")
    text = template.format(id=options.id, folder=options.folder.resolve().name)
    sys.stdout.write(f"{_written(options.folder, options.id, text, new_folder=options.new_folder)}\n")
    return 0


def _written(folder: Path, page_id: str, text: str, *, new_folder: bool) -> Path:
    from trainmedic.kb.pages.page import suggestion

    path = folder / f"{page_id}.md"
    if path.exists():
        raise InvalidRequest(f"{path} already exists", hint="give the id of the page: trainmedic kb new cause ID")
    if not folder.is_dir() and not new_folder:
        siblings = {entry.name for entry in folder.parent.glob("*") if entry.is_dir()}
        message = f"the folder {folder} does not exist{suggestion(folder.name, siblings)}"
        raise InvalidRequest(message, hint="--new-folder creates it")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
