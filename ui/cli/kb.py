"""Work with the knowledge base: lint, list, show, new, coverage.

lint      check pages (all, or the given ones): format, links, both languages; run the rules' examples
list      list cases, mechanisms and rules, or the names that pages use (signals, settings, concepts)
show      print one case, mechanism, origin (mechanism.origin) or rule as Markdown
new       write the skeleton of a case, mechanism or rule page
coverage  print what is covered by framework and class, with links and gaps, as Markdown
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    lint = actions.add_parser("lint", help="check pages")
    lint.add_argument("page", nargs="*", type=Path, metavar="PAGE", help="pages or folders of pages (all)")
    lint.add_argument("--kb", action="append", default=[], type=Path, metavar="FOLDER", help="a folder of your pages")
    listing = actions.add_parser("list", help="list cases, mechanisms and rules")
    listing.add_argument("--kind", choices=("cases", "rules", "mechanisms", "signals", "settings", "concepts"))
    listing.add_argument("--language", choices=("en", "zh"), default="en")
    show = actions.add_parser("show", help="print one page")
    show.add_argument("id")
    show.add_argument("--language", choices=("en", "zh"), default="en")
    new = actions.add_parser("new", help="write a skeleton page")
    new.add_argument("kind", choices=("case", "mechanism", "rule"))
    new.add_argument("id", help="lower-case words joined by dashes; names the problem, not the remedy")
    new.add_argument("--folder", required=True, type=Path, help="where the page goes")
    new.add_argument("--new-folder", action="store_true", help="create the folder if it does not exist")
    actions.add_parser("coverage", help="print what is covered, as Markdown")


def run(options: argparse.Namespace) -> int:
    actions = {"lint": _lint, "list": _list, "show": _show, "new": _new, "coverage": _coverage}
    return actions[options.action](options)


def _lint(options: argparse.Namespace) -> int:
    from datetime import date

    from trainmedic.ingest.authoring.lint import lint
    from trainmedic.kb.engine.vocabulary import vocabulary
    from trainmedic.kb.glossary.terms import load_glossary
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.mechanism import load_mechanisms
    from trainmedic.kb.pages.rule import load_rules
    from trainmedic.kb.parse.pipeline import parse

    folders = [*options.kb, *_configured()]
    only: set[str] | None = None
    if options.page:
        only, loose = _selected(options.page, folders)
        folders += loose
    cases, rules, mechanisms = load_cases(folders), load_rules(folders), load_mechanisms(folders)
    problems = lint(
        rules,
        cases,
        parse,
        vocabulary(),
        mechanisms=mechanisms,
        glossary=load_glossary(),
        only=only,
        today=date.today(),
    )
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    known = f"{len(cases.cases)} cases, {len(rules.rules)} rules, {len(mechanisms.mechanisms)} mechanisms"
    checked = known if only is None else _count(len(only), "page")
    print(f"{checked}, {_count(len(problems), 'problem')}", file=sys.stderr)
    return 1 if problems else 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _selected(paths: list[Path], folders: list[Path]) -> tuple[set[str], list[Path]]:
    """The names of the given pages, and the paths that are in none of the folders."""
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.pages.case import CASES
    from trainmedic.kb.pages.mechanism import MECHANISMS
    from trainmedic.kb.pages.page import discover
    from trainmedic.kb.pages.rule import RULES

    roots = (CASES.folder, RULES.folder, MECHANISMS.folder, *folders)
    names = {path.resolve(): name for root in roots for path, name in discover(root)}
    selected: set[str] = set()
    loose: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InvalidRequest(f"{path} does not exist")
        below = [names[page] for page in names if page.is_relative_to(path.resolve())]
        if not below:
            loose.append(path)
            below = [name for _, name in discover(path)]
        selected.update(below)
    return selected, loose


def _configured() -> tuple[Path, ...]:
    from trainmedic.service.settings import load_settings

    return load_settings().extra_pages


def _coverage(_: argparse.Namespace) -> int:
    from trainmedic.ingest.authoring.coverage import coverage
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.mechanism import load_mechanisms
    from trainmedic.kb.pages.rule import load_rules

    sys.stdout.write(coverage(load_cases(), load_rules(), load_mechanisms()))
    return 0


def _list(options: argparse.Namespace) -> int:
    from trainmedic.kb.engine.vocabulary import vocabulary
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.rule import load_rules

    if options.kind in ("signals", "settings"):
        words = vocabulary()
        names = words.signals if options.kind == "signals" else words.settings
        sys.stdout.write("".join(f"{name}\n" for name in sorted(names)))
        return 0
    if options.kind == "concepts":
        from trainmedic.kb.glossary.terms import load_glossary

        for concept in load_glossary().concepts.values():
            wordings = concept.zh if options.language == "zh" else concept.en
            sys.stdout.write(f"{concept.id}  {concept.kind}  {', '.join(wordings[:4])}\n")
        return 0
    folders = _configured()
    if options.kind in (None, "mechanisms"):
        from trainmedic.kb.pages.mechanism import load_mechanisms

        for mechanism in load_mechanisms(folders).mechanisms:
            sys.stdout.write(f"mechanism  {mechanism.id}  {mechanism.title.get(options.language)}\n")
    if options.kind in (None, "cases"):
        for case in load_cases(folders).cases:
            sys.stdout.write(f"case  {case.id}  {case.title.get(options.language)}  [{case.evidence}]\n")
    if options.kind in (None, "rules"):
        for rule in load_rules(folders).rules:
            sys.stdout.write(f"rule  {rule.id}  {rule.title.get(options.language)}  [{rule.severity.value}]\n")
    return 0


def _show(options: argparse.Namespace) -> int:
    from trainmedic.kb.errors import NotFound
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.mechanism import load_mechanisms
    from trainmedic.kb.pages.page import suggestion
    from trainmedic.kb.pages.render import render_case, render_mechanism, render_rule
    from trainmedic.kb.pages.rule import load_rules

    folders = _configured()
    cases = load_cases(folders)
    case = cases.get(options.id)
    if case is not None:
        sys.stdout.write(render_case(case, options.language) + "\n")
        return 0
    mechanisms = load_mechanisms(folders)
    place = mechanisms.find(options.id)
    if place is not None:
        sys.stdout.write(render_mechanism(*place, options.language))
        return 0
    rules = load_rules(folders)
    rule = rules.get(options.id)
    if rule is None:
        known = {case.id for case in cases.cases} | {rule.id for rule in rules.rules}
        known |= {mechanism.id for mechanism in mechanisms.mechanisms}
        message = f"no case, mechanism or rule {options.id!r}{suggestion(options.id, known)}"
        raise NotFound(message, hint="trainmedic kb list")
    sys.stdout.write(render_rule(rule, options.language) + "\n")
    return 0


def _new(options: argparse.Namespace) -> int:
    from datetime import date
    from importlib.metadata import version

    from trainmedic.ingest.authoring.skeleton import skeleton
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.pages.page import is_page_id, suggestion

    folder: Path = options.folder
    if not is_page_id(options.id):
        raise InvalidRequest(f"{options.id!r} is not a page id", hint="lower-case words joined by dashes")
    path = folder / f"{options.id}.md"
    if path.exists():
        raise InvalidRequest(f"{path} already exists")
    if not folder.is_dir() and not options.new_folder:
        siblings = {entry.name for entry in folder.parent.glob("*") if entry.is_dir()}
        message = f"the folder {folder} does not exist{suggestion(folder.name, siblings)}"
        raise InvalidRequest(message, hint="--new-folder creates it")
    folder.mkdir(parents=True, exist_ok=True)
    text = skeleton(options.kind, options.id, version("trainmedic"), date.today(), folder.resolve().name)
    path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{path}\n")
    return 0
