"""Patches: a fix's edits as a unified diff of the user's own text, and what the rules say once it is applied.

Nothing is written anywhere: the patched text is parsed and checked in memory. The parser is handed in.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kb.model.evidence import Evidence
from kb.model.place import Attachment, Source
from kb.model.report import Edit, Finding, Fix, Report, Safety
from kb.rules.edits import apply, resolve
from kb.rules.engine import check
from kb.rules.page import RuleSet

Parse = Callable[[str, Sequence[Attachment]], Evidence]
"""`kb.parse.parse`: question and attachments → evidence."""


def unified_diff(before: str, after: str, name: str | None) -> str:
    """A unified diff that ``patch -p1`` takes; empty where nothing differs."""
    path = name or "question"
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}", n=3
    )
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def patched(edits: Iterable[Edit], sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources after the edits."""
    kept, _ = resolve(edits)
    by_name: dict[str | None, list[Edit]] = {}
    for edit in kept:
        by_name.setdefault(edit.span.attachment, []).append(edit)
    return tuple(
        replace(source, text=apply(by_name[source.name], source.text)) if source.name in by_name else source
        for source in sources
    )


def with_patches(report: Report, evidence: Evidence, ruleset: RuleSet, parse: Parse) -> Report:
    """The report with every fix's patch, the rules that it clears and those that fire only then.

    ``parse`` is called once for each different set of edits, with the sources of ``evidence`` (masked) after the edits.
    """
    fired = {finding.rule_id for finding in report.fired}
    known: dict[tuple[Edit, ...], Fix] = {}

    def complete(fix: Fix) -> Fix:
        if not fix.edits:
            return fix
        if fix.edits not in known:
            after = patched(fix.edits, evidence.sources)
            then = {finding.rule_id for finding in check(parse(*_paste(after)), ruleset).fired}
            known[fix.edits] = replace(
                fix,
                patch=_patch(evidence.sources, after),
                clears=tuple(sorted(fired - then)),
                appears=tuple(sorted(then - fired)),
            )
        done = known[fix.edits]
        return replace(fix, patch=done.patch, clears=done.clears, appears=done.appears)

    def finished(finding: Finding) -> Finding:
        return replace(finding, fixes=tuple(complete(fix) for fix in finding.fixes)) if finding.fixes else finding

    return replace(report, findings=tuple(finished(finding) for finding in report.findings))


def safe_edits(report: Report, name: str | None) -> tuple[Edit, ...]:
    """The edits of one source that may be applied unread: of fired findings' safe fixes, each whole or not at all.

    A fix that meets an earlier one is left out: applying and checking again offers it anew.
    """
    kept: tuple[Edit, ...] = ()
    for fix in (fix for finding in report.fired for fix in finding.fixes if fix.safety is Safety.SAFE):
        together, dropped = resolve((*kept, *fix.edits))
        if not dropped:
            kept = together
    return tuple(edit for edit in kept if edit.span.attachment == name)


def _paste(sources: Sequence[Source]) -> tuple[str, tuple[Attachment, ...]]:
    question = next((source.text for source in sources if source.name is None), "")
    return question, tuple(Attachment(name=s.name, content=s.text) for s in sources if s.name is not None)


def _patch(before: Sequence[Source], after: Sequence[Source]) -> str:
    return "".join(unified_diff(old.text, new.text, old.name) for old, new in zip(before, after, strict=True))
