"""What the knowledge covers and where it has gaps, as one Markdown page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from trainmedic.ingest.authoring.case_lint import FAMILIES, FRAMEWORKS
from trainmedic.kb.engine.mechanism import MechanismSet
from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.model.case import EVIDENCE_GRADES, Case
from trainmedic.kb.pages.case import CaseSet

NO_MECHANISMS = MechanismSet()
FEW = 5
"""A framework or class with fewer cases is listed as a gap."""
HEAD = """# What is covered

Every case and every rule is
a page of its own under [kb/cases](../kb/cases) and [kb/rules](../kb/rules); each names the other. A mechanism, under
[kb/mechanisms](../kb/mechanisms), names the cases and rules that are instances of it.
"""


class Pages:
    """Links to the pages by kind and id."""

    def __init__(self, paths: Mapping[tuple[str, str], str]) -> None:
        self._paths = paths

    def case(self, case_id: str) -> str:
        return self._link("case", case_id)

    def rule(self, rule_id: str) -> str:
        return self._link("rule", rule_id)

    def mechanism(self, mechanism_id: str) -> str:
        return self._link("mechanism", mechanism_id)

    def folder(self, case: Case) -> str:
        parts = self._paths.get(("case", case.id), "").split("/")
        return parts[-2] if len(parts) > 1 else case.frameworks[0]

    def _link(self, kind: str, page: str) -> str:
        return f"[{page}](../{self._paths[kind, page]})" if (kind, page) in self._paths else page


def coverage(caseset: CaseSet, ruleset: RuleSet, mechanisms: MechanismSet = NO_MECHANISMS) -> str:
    """The page. Built-in pages only: links are relative to `docs/`."""
    # A case and a rule may have the same id.
    links = {("case", case_id): page.name for case_id, page in caseset.pages.items()}
    links |= {("rule", rule.id): rule.page.name for rule in ruleset.rules}
    links |= {("mechanism", mechanism_id): page.name for mechanism_id, page in mechanisms.pages.items()}
    pages = Pages(links)
    cases = sorted(caseset.published, key=lambda case: case.id)
    rules = sorted(ruleset.rules, key=lambda rule: rule.id)
    parts = [HEAD, _totals(cases, rules, mechanisms), _matrix(cases), _mechanisms(mechanisms, pages)]
    parts += [_by_framework(cases, rules, pages), _rules(rules, pages)]
    return "\n".join([*parts, _gaps(cases, pages)])


def _totals(cases: Sequence[Case], rules: Sequence[Rule], mechanisms: MechanismSet) -> str:
    grades = Counter(case.evidence for case in cases)
    severities = Counter(rule.severity.value for rule in rules)
    both = sum(
        1 for case in cases if case.title.en and case.title.zh and all(case.symptoms.get(x) for x in ("en", "zh"))
    )
    threads = {source.url for case in cases for source in case.sources}
    refuted = sum(len(case.refutations) for case in cases)
    lines = [
        "| what | number |",
        "|---|---|",
        f"| cases | {len(cases)} |",
        *(f"| … evidence: {grade} | {grades[grade]} |" for grade in EVIDENCE_GRADES),
        f"| … that explain a display, where nothing is wrong | {sum(case.kind == 'artefact' for case in cases)} |",
        f"| … in English and Chinese | {both} |",
        f"| … that a rule detects | {sum(bool(case.rules) for case in cases)} |",
        f"| sources named by cases | {len(threads)} |",
        f"| refutations | {refuted} |",
        f"| mechanisms | {len(mechanisms.mechanisms)} |",
        f"| … origins | {sum(len(mechanism.origins) for mechanism in mechanisms.mechanisms)} |",
        f"| rules | {len(rules)} |",
        *(f"| … severity: {name} | {severities[name]} |" for name in ("error", "warning", "info")),
        "",
    ]
    return "\n".join(lines)


def _matrix(cases: Sequence[Case]) -> str:
    """Cases by class of failure and framework; a case of several frameworks counts in each."""
    counts = Counter((case.family, framework) for case in cases for framework in case.frameworks)
    lines = ["## Cases by class and framework", "", f"| class | {' | '.join(FRAMEWORKS)} | all |"]
    lines.append("|---" * (len(FRAMEWORKS) + 2) + "|")
    for family in FAMILIES:
        cells = (str(counts[family, framework] or "·") for framework in FRAMEWORKS)
        total = sum(case.family == family for case in cases)
        lines.append(f"| {family} | {' | '.join(cells)} | {total} |")
    sums = (str(sum(framework in case.frameworks for case in cases)) for framework in FRAMEWORKS)
    return "\n".join([*lines, f"| all | {' | '.join(sums)} | {len(cases)} |", ""])


def _mechanisms(mechanisms: MechanismSet, pages: Pages) -> str:
    lines = ["## Mechanisms", "", "| mechanism | class | origins | cases |", "|---|---|---|---|"]
    for mechanism in mechanisms.mechanisms:
        title = f"{pages.mechanism(mechanism.id)}<br>{_cell(mechanism.title.en)}<br>{_cell(mechanism.title.zh)}"
        named = ", ".join(pages.case(case) for case in mechanism.all_cases) or "–"
        lines.append(f"| {title} | {mechanism.family} | {len(mechanism.origins)} | {named} |")
    return "\n".join([*lines, ""])


def _by_framework(cases: Sequence[Case], rules: Sequence[Rule], pages: Pages) -> str:
    lines = ["## Cases", ""]
    severity = {rule.id: rule.severity.value for rule in rules}
    folders = sorted({pages.folder(case) for case in cases})
    for folder in folders:
        lines += [f"### {folder}", "", "| case | class | evidence | sources | rules |", "|---|---|---|---|---|"]
        for case in cases:
            if pages.folder(case) == folder:
                detectors = ", ".join(f"{pages.rule(rule)} ({severity.get(rule, '?')})" for rule in case.rules) or "–"
                title = f"{pages.case(case.id)}<br>{_cell(case.title.en)}<br>{_cell(case.title.zh)}"
                lines.append(f"| {title} | {case.family} | {case.evidence} | {len(case.sources)} | {detectors} |")
        lines.append("")
    return "\n".join(lines)


def _rules(rules: Sequence[Rule], pages: Pages) -> str:
    lines = ["## Rules", "", "| rule | severity | frameworks | cases |", "|---|---|---|---|"]
    for rule in rules:
        applies = ", ".join(rule.applies.get("framework", ())) or "all"
        named = ", ".join(pages.case(case) for case in rule.cases)
        lines.append(
            f"| {pages.rule(rule.id)}<br>{_cell(rule.title.en)} | {rule.severity.value} | {applies} | {named} |"
        )
    return "\n".join([*lines, ""])


def _gaps(cases: Sequence[Case], pages: Pages) -> str:
    by_framework = Counter(framework for case in cases for framework in case.frameworks)
    by_family = Counter(case.family for case in cases)
    lines = ["## Gaps", ""]
    lines += [f"- class {family}: {by_family[family]} cases" for family in FAMILIES if by_family[family] < FEW]
    lines += [
        f"- framework {framework}: {by_framework[framework]} cases"
        for framework in FRAMEWORKS
        if by_framework[framework] < FEW
    ]
    thin = [case for case in cases if len(case.sources) < 2]
    lines += _listed("cases with a single source", thin, pages)
    lines += _listed(
        "cases that nobody confirmed (evidence: reported)", [c for c in cases if c.evidence == "reported"], pages
    )
    lines += ["", "Cases without a rule, and why:", ""]
    lines += [f"- {pages.case(case.id)}: {_cell(case.no_rule)}" for case in cases if not case.rules]
    return "\n".join(lines) + "\n"


def _listed(what: str, cases: Iterable[Case], pages: Pages) -> list[str]:
    links = [pages.case(case.id) for case in cases]
    return [f"- {what} ({len(links)}): {', '.join(links)}"] if links else []


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
