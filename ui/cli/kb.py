"""Look at the knowledge: lint, list, show, new, coverage.

lint   check every page: format, links, both languages, and all examples executed
list   the cases and rules there are
show   one case or rule as Markdown
new    write the skeleton of a case or rule page
coverage  what is covered by framework and class, with links and gaps (docs/coverage.md)
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

PAGE_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's sub-verbs."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    lint = actions.add_parser("lint", help="check every page")
    lint.add_argument("--kb", action="append", default=[], metavar="FOLDER", help="check your own pages too")
    listing = actions.add_parser("list", help="what there is")
    listing.add_argument("--kind", choices=("cases", "rules"))
    listing.add_argument("--language", choices=("en", "zh"), default="en")
    show = actions.add_parser("show", help="one page")
    show.add_argument("id")
    show.add_argument("--language", choices=("en", "zh"), default="en")
    new = actions.add_parser("new", help="a skeleton page")
    new.add_argument("kind", choices=("case", "rule"))
    new.add_argument("id", help="lower-case words joined by dashes")
    new.add_argument("--folder", required=True, type=Path, help="where the page goes")
    actions.add_parser("coverage", help="what is covered, as Markdown")


def run(options: argparse.Namespace) -> int:
    """Do one of them."""
    actions = {"lint": _lint, "list": _list, "show": _show, "new": _new, "coverage": _coverage}
    return actions[options.action](options)


def _lint(options: argparse.Namespace) -> int:
    from trainmedic.ingest.authoring.originality import kept
    from trainmedic.kb.frameworks.canonical import SETTINGS
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.case_lint import lint_cases
    from trainmedic.kb.pages.rule import load_rules
    from trainmedic.kb.pages.rule_lint import lint_rules
    from trainmedic.kb.parse import parse
    from trainmedic.kb.parse.signals import KINDS

    folders = (*(Path(folder) for folder in options.kb), *_configured())
    cases, rules = load_cases(folders), load_rules(folders)
    links = {case.id: case.rules for case in cases.cases}
    read = kept()
    found = lint_rules(rules, parse, links, read)
    problems = [f"{each.page}:{each.line}: {each.rule_id}: {each.message}" for each in found]
    problems += lint_cases(cases, rules, signals=KINDS, settings=SETTINGS, read=read)
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    print(f"{len(cases.cases)} cases, {len(rules.rules)} rules, {len(problems)} problems", file=sys.stderr)
    return 1 if problems else 0


def _configured() -> tuple[Path, ...]:
    """The folders of a team's own pages that the settings name."""
    from trainmedic.service.settings import load_settings

    return load_settings().extra_pages


def _coverage(_: argparse.Namespace) -> int:
    from trainmedic.ingest.authoring.coverage import coverage
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.rule import load_rules

    sys.stdout.write(coverage(load_cases(), load_rules()))
    return 0


def _list(options: argparse.Namespace) -> int:
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.rule import load_rules

    folders = _configured()
    if options.kind != "rules":
        for case in sorted(load_cases(folders).cases, key=lambda case: case.id):
            sys.stdout.write(f"case  {case.id}  {case.title.get(options.language)}  [{case.evidence}]\n")
    if options.kind != "cases":
        for rule in sorted(load_rules(folders).rules, key=lambda rule: rule.id):
            sys.stdout.write(f"rule  {rule.id}  {rule.title.get(options.language)}  [{rule.severity.value}]\n")
    return 0


def _show(options: argparse.Namespace) -> int:
    from trainmedic.kb.errors import NotFound
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.case_render import render as render_case
    from trainmedic.kb.pages.rule import load_rules
    from trainmedic.kb.pages.rule_render import render as render_rule

    folders = _configured()
    case = next((case for case in load_cases(folders).cases if case.id == options.id), None)
    if case is not None:
        sys.stdout.write(render_case(case, options.language) + "\n")
        return 0
    rule = next((rule for rule in load_rules(folders).rules if rule.id == options.id), None)
    if rule is None:
        raise NotFound(f"no case and no rule {options.id!r}", hint="trainmedic kb list")
    sys.stdout.write(render_rule(rule, options.language) + "\n")
    return 0


def _new(options: argparse.Namespace) -> int:
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.pages.case_skeleton import skeleton as case_skeleton
    from trainmedic.kb.pages.rule_render import skeleton as rule_skeleton

    if not PAGE_ID.fullmatch(options.id):
        raise InvalidRequest(f"{options.id!r} is no page id", hint="lower-case words joined by dashes")
    path = options.folder / f"{options.id}.md"
    if path.exists():
        raise InvalidRequest(f"{path} is already there")
    options.folder.mkdir(parents=True, exist_ok=True)
    text = case_skeleton(options.id) if options.kind == "case" else rule_skeleton(options.id)
    path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{path}\n")
    return 0
