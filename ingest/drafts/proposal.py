"""The check that a write-up proposes: an option that its resolution names, as its problem has it, and the release.

It stands in a draft, so a person decides. Proposed is only what its own examples bear out.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from trainmedic.ingest.authoring.new_cause import MARKS, Answers, NewCheck, check_of
from trainmedic.ingest.authoring.rule_lint import lint_rule
from trainmedic.ingest.drafts.draft import PREFIX, Draft, block_lines
from trainmedic.ingest.drafts.sections import by_section
from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import Option
from trainmedic.kb.pages.page import read_page
from trainmedic.kb.pages.rule import read_checks
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.versions import version_key

LONGEST_RUN = 15
"""Lines of a pasted command or configuration, which the examples repeat."""
_RELEASE = regex(r"(?<![\w.])\d+\.\d+(?:\.\d+)*(?![\w.]*\d)")
_WORD = regex(r"\w+")


def proposed(draft: Draft, evidence: Evidence) -> NewCheck | None:
    """``evidence`` is that of `Draft.lines`. None where the write-up does not say enough for a check."""
    framework = next(iter(draft.values("framework")), "")
    release = next((value.split()[1] for value in draft.values("version") if value.split()[0] == framework), "")
    told = "\n".join(block.text for section, block in by_section(draft.blocks) if section in ("cause", "fix"))
    if not (framework and release and told):
        return None
    later = [found for found in _RELEASE.findall(told) if version_key(found) > version_key(release)]
    for run in _runs(draft, evidence, frozenset(_WORD.findall(told.replace("-", "_")))):
        answers = Answers(
            seen=draft.title,
            package=framework,
            introduced=release,
            fixed=later[0] if later else "",
            run=run,
            why=told,
            helps=" ".join(told.split()),
            source=draft.url,
        )
        try:
            check = check_of(answers, parse, version("trainmedic"), f"{draft.id.removeprefix(PREFIX)}-check")
            if _is_borne_out(check):
                return check
        except TrainmedicError:
            continue
    return None


def _runs(draft: Draft, evidence: Evidence, named: frozenset[str]) -> Iterator[str]:
    """The code of the problem, the named options of it marked."""
    options = {option.span: option for run in evidence.runs for option in run.options}
    line = 2  # the title is line 1
    for section, block in by_section(draft.blocks):
        rows = block_lines(block)
        first, line = line + 1, line + len(rows)
        if section == "symptom" and block.kind == "code" and len(rows) <= LONGEST_RUN:
            marked = [
                option for option in options.values() if first <= option.span.line < line and _named(option, named)
            ]
            if marked:
                yield _with_marks(block.text, marked, first)


def _named(option: Option, named: frozenset[str]) -> bool:
    return option.key.rpartition(".")[2].replace("-", "_") in named


def _with_marks(text: str, options: list[Option], first: int) -> str:
    lines = text.split("\n")
    for option in sorted(options, key=lambda option: option.span.order, reverse=True):
        span = option.span
        for number, column, mark in ((span.end_line, span.end_column, MARKS[1]), (span.line, span.column, MARKS[0])):
            row = lines[number - first]
            lines[number - first] = row[: column - 1] + mark + row[column - 1 :]
    return "\n".join(lines)


def _is_borne_out(check: NewCheck) -> bool:
    head = '---\nid: x\ntitle: {en: x}\nfamily: unsorted\nsources: [{url: "file:x", says: reporter}]\n'
    page, front = read_page(f"{head}checks:\n{check.fields}\n---\n{check.chapter}\n", "x.md")
    (rule,) = read_checks(Path("x.md"), page, front)[0].rules
    return not list(lint_rule(rule, parse))
