"""Work with the knowledge base: lint, list, show, new, anchors, sources, update.

lint      check pages and lists of defects (all, or the given ones): format, links, both languages; run the
          rules' examples
list      list causes, mechanisms and checks, known defects, or the names that pages use (signals, settings, concepts)
show      print one case, mechanism, origin (mechanism.origin), rule or known defect as Markdown
new       ask five questions and write the page of a cause, with a check; or the skeleton of a mechanism
anchors   what of the pages rests on source that is read again at every release
sources   the source code of packages that answers quote: list, fetch, export, import
update    read the releases of the known packages that came since, and report what changed
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainmedic.ui.cli import _anchors, _new, _sources, _update
from trainmedic.ui.cli._input import folders_of

if TYPE_CHECKING:
    from trainmedic.kb.model.page import PageProblem


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    lint = actions.add_parser("lint", help="check pages")
    lint.add_argument("page", nargs="*", type=Path, metavar="PAGE", help="pages or lists of defects (all)")
    lint.add_argument(
        "--kb", action="append", default=[], type=Path, metavar="FOLDER", help="folder with your own pages"
    )
    listing = actions.add_parser("list", help="list cases, mechanisms and rules")
    kinds = ("cases", "rules", "mechanisms", "defects", "signals", "settings", "concepts")
    listing.add_argument("--kind", choices=kinds)
    listing.add_argument("--language", choices=("en", "zh"), default="en", help="language of the output")
    show = actions.add_parser("show", help="print one page")
    show.add_argument("id", help="id of a case, mechanism, origin, rule or known defect")
    show.add_argument("--language", choices=("en", "zh"), default="en", help="language of the output")
    _new.arguments(actions.add_parser("new", help="write a page from five answers"))
    _anchors.arguments(
        actions.add_parser("anchors", help="show which claims are anchored to source, and which are not")
    )
    _sources.arguments(actions.add_parser("sources", help="manage the stored source code of packages"))
    _update.arguments(actions.add_parser("update", help="show what changed in newer releases of the known packages"))


def run(options: argparse.Namespace) -> int:
    own = {"lint": _lint, "list": _list, "show": _show, "new": _new.run, "anchors": _anchors.run}
    return {**own, "sources": _sources.run, "update": _update.run}[options.action](options)


def _lint(options: argparse.Namespace) -> int:
    from datetime import date

    from trainmedic.ingest.authoring.lint import Standards, lint
    from trainmedic.kb.engine.vocabulary import vocabulary
    from trainmedic.kb.glossary.terms import load_glossary
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.mechanism import load_mechanisms
    from trainmedic.kb.pages.page import discover
    from trainmedic.kb.pages.rule import load_rules
    from trainmedic.kb.parse.pipeline import parse

    folders = list({folder.resolve(): folder for folder in (*options.kb, *folders_of(()))}.values())
    team = tuple(folders)
    lists, pages = _divided(options.page)
    defects, listed = _defect_problems(lists, folders) if lists or not pages else ((), 0)
    if lists and not pages:
        return _reported(defects, _count(listed, "defect"))
    only: set[str] | None = None
    if pages:
        only, loose = _selected(pages, folders)
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
        standards=Standards(team={name for folder in team for _, name in discover(folder)}, today=date.today()),
    )
    known = f"{len(cases.cases)} cases, {len(rules.rules)} rules, {len(mechanisms.mechanisms)} mechanisms"
    checked = known if only is None else _count(len(only), "page")
    return _reported((*problems, *defects), f"{checked}, {_count(listed, 'defect')}" if listed else checked)


def _reported(problems: Sequence[PageProblem], checked: str) -> int:
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    print(f"{checked}, {_count(len(problems), 'problem')}", file=sys.stderr)
    return 1 if problems else 0


def _divided(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The paths with lists of defects, and those of pages. A folder may hold both."""
    from trainmedic.kb.pages.defect import DEFECTS, discover_defects

    built_in = DEFECTS.resolve()
    lists = [path for path in paths if path.resolve().is_relative_to(built_in) or any(discover_defects([path]))]
    pages = [path for path in paths if path not in lists or (path.is_dir() and any(path.rglob("*.md")))]
    return lists, [path for path in pages if not path.resolve().is_relative_to(built_in)]


def _defect_problems(paths: Sequence[Path], folders: Sequence[Path]) -> tuple[tuple[PageProblem, ...], int]:
    """The problems of the lists at these paths (none given: of all), and how many defects were read."""
    from trainmedic.ingest.authoring.defect_lint import lint_spots
    from trainmedic.kb.engine.vocabulary import vocabulary
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.pages.defect import DEFECTS, discover_defects, load_defects
    from trainmedic.ui.releases import sources_here

    for path in paths:
        if not path.exists():
            raise InvalidRequest(f"{path} does not exist")
    roots = [root.resolve() for root in (DEFECTS, *folders)]
    loose = [path for path in paths if not any(path.resolve().is_relative_to(root) for root in roots)]
    lists = {path.resolve(): name for path, name in discover_defects((*roots, *loose))}
    only = {name for path, name in lists.items() if not paths or any(path.is_relative_to(p.resolve()) for p in paths)}
    packages = {path.parent.name for path, name in lists.items() if name in only}
    loaded = load_defects(packages, (*folders, *loose), vocabulary())
    chosen = [defect for defect in loaded.all if loaded.places[defect.id] in only]
    found = (*loaded.failures, *lint_spots(chosen, loaded.places, sources_here().store))
    problems = tuple(sorted(problem for problem in found if problem.page in only))
    return problems, sum(name in only for name in loaded.places.values())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _selected(paths: list[Path], folders: list[Path]) -> tuple[set[str], list[Path]]:
    """The names of the given pages, and the paths that are in none of the folders."""
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.pages.case import CAUSES
    from trainmedic.kb.pages.mechanism import MECHANISMS
    from trainmedic.kb.pages.page import discover

    roots = (CAUSES, MECHANISMS.folder, *folders)
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
    folders = folders_of(())
    if options.kind == "defects":
        from trainmedic.kb.pages.defect import load_defects

        for defects in load_defects(folders=folders).by_package.values():
            for defect in defects:
                releases = f"{defect.package} {defect.affected}".rstrip()
                sys.stdout.write(f"defect  {defect.id}  {defect.title.get(options.language)}  [{releases}]\n")
    if options.kind in (None, "mechanisms"):
        from trainmedic.kb.pages.mechanism import load_mechanisms

        for mechanism in load_mechanisms(folders).mechanisms:
            sys.stdout.write(f"mechanism  {mechanism.id}  {mechanism.title.get(options.language)}\n")
    if options.kind in (None, "cases"):
        for case in load_cases(folders).cases:
            needs = ", ".join(f"needs: {language}" for language in ("en", "zh") if language not in case.languages)
            marks = ", ".join(filter(None, (_marks(case.evidence, case.status), needs)))
            sys.stdout.write(f"case  {case.id}  {case.title.get(options.language)}  [{marks}]\n")
    if options.kind in (None, "rules"):
        for rule in load_rules(folders).rules:
            marks = _marks(rule.severity.value, rule.status)
            sys.stdout.write(f"rule  {rule.id}  {rule.title.get(options.language)}  [{marks}]\n")
    return 0


def _marks(grade: str, status: str) -> str:
    """A page's grade, and its status unless answers may use it."""
    return grade if status in ("published", "stable") else f"{grade}, {status}"


def _show(options: argparse.Namespace) -> int:
    from trainmedic.kb.errors import NotFound
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.defect import load_defects
    from trainmedic.kb.pages.defect_causes import with_defects
    from trainmedic.kb.pages.mechanism import load_mechanisms
    from trainmedic.kb.pages.page import suggestion
    from trainmedic.kb.pages.render import render_case, render_mechanism, render_rule
    from trainmedic.kb.pages.rule import load_rules

    folders = folders_of(())
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
    if rule is not None:
        sys.stdout.write(render_rule(rule, options.language) + "\n")
        return 0
    causes = with_defects(cases, load_defects(folders=folders))
    defect = causes.get(options.id)
    if defect is None:
        known = {cause.id for cause in causes.cases} | {rule.id for rule in rules.rules}
        known |= {mechanism.id for mechanism in mechanisms.mechanisms}
        message = f"no case, mechanism, rule or defect {options.id!r}{suggestion(options.id, known)}"
        raise NotFound(message, hint="trainmedic kb list")
    sys.stdout.write(render_case(defect, options.language) + "\n")
    return 0
