"""Patches: a fix's edits as a unified diff of the user's own text, and what the rules say once it is applied.

Nothing is written anywhere: the patched text is read and checked in memory. The reader is handed in.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from trainmedic.kb.engine.checker import fired_rules
from trainmedic.kb.engine.edits import apply, resolve
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.model.report import Edit, Finding, Fix, Report, Safety, Severity, Text

_LOGGED = frozenset(("log", "metrics", "traceback"))
_HUNK = regex(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
_CONTEXT = 3
_MOST_COMPARED = 1_000
"""Lines between the first and the last change that are compared line by line."""
_LONGEST_PATCH = 400_000
"""Characters beyond which a fix has its text alone: each fix of a line of a megabyte would repeat the line twice."""


def unified_diff(before: str, after: str, name: str | None) -> str:
    """A unified diff that ``patch -p1`` takes; empty where nothing differs.

    Only the lines around the changes are compared: a long log with a command in it must not take minutes.
    """
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    most = min(len(old), len(new)) - same
    alike = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    first, cut = max(0, same - _CONTEXT), max(0, alike - _CONTEXT)
    old, new = old[first : len(old) - cut], new[first : len(new) - cut]
    path = (name or "question").lstrip("/")
    if max(len(old), len(new)) > _MOST_COMPARED:
        hunks = _whole(old, new, same - first, alike - cut)
    else:
        hunks = [*difflib.unified_diff(old, new, n=_CONTEXT)][2:]
    lines = [f"--- a/{path}\n", f"+++ b/{path}\n", *(_HUNK.sub(partial(_shifted, first), line) for line in hunks)]
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """The lines with their breaks; only ``\\n`` is one, as everywhere."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]


def _whole(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> list[str]:
    """One hunk that replaces everything between ``head`` and ``tail`` lines of context."""
    removed, added = old[head : len(old) - tail], new[head : len(new) - tail]
    changed = [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    context = [f" {line}" for line in old[:head]], [f" {line}" for line in old[len(old) - tail :]]
    return [f"@@ -1,{len(old)} +1,{len(new)} @@\n", *context[0], *changed, *context[1]]


def _shifted(lines: int, header: re.Match[str]) -> str:
    return f"@@ -{int(header[1]) + lines}{header[2] or ''} +{int(header[3]) + lines}{header[4] or ''} @@"


def patched(edits: Iterable[Edit], sources: Sequence[Source]) -> tuple[Source, ...]:
    accepted, _ = resolve(edits)
    by_name: dict[str | None, list[Edit]] = {}
    for edit in accepted:
        by_name.setdefault(edit.span.attachment, []).append(edit)
    return tuple(
        replace(source, text=apply(by_name[source.name], source.text)) if source.name in by_name else source
        for source in sources
    )


def with_patches(report: Report, evidence: Evidence, ruleset: RuleSet, read: Read) -> Report:
    """The report with every fix's patch, the rules that it clears and those that it brings up.

    ``read`` is called once for each different set of edits, with the sources of ``evidence`` (masked) after the edits;
    what holds nothing but logged lines is not read again. The log is that of the run before the patch: it still counts
    for what a patch ``clears``, but only the configuration itself decides what ``appears``.
    """
    fired = frozenset(finding.rule_id for finding in report.fired)
    known: dict[tuple[Edit, ...], Fix] = {}

    def complete(fix: Fix) -> Fix:
        if not fix.edits:
            return fix
        if fix.edits not in known:
            sources = patched(fix.edits, evidence.sources)
            after = reread(evidence, sources, read)
            patch = _patch(evidence.sources, sources)
            known[fix.edits] = replace(
                fix,
                patch=patch if len(patch) <= _LONGEST_PATCH else None,
                clears=tuple(sorted(fired - fired_rules(after, ruleset, fired))),
                appears=tuple(sorted(_appearing(evidence, after, ruleset, fired))),
            )
        done = known[fix.edits]
        return replace(fix, patch=done.patch, clears=done.clears, appears=done.appears)

    def finished(finding: Finding) -> Finding:
        return replace(finding, fixes=tuple(complete(fix) for fix in finding.fixes)) if finding.fixes else finding

    repair = _repair(report)
    findings = tuple(finished(finding) for finding in report.findings)
    repair = complete(repair) if repair is not None else None
    appearing = {name for fix in known.values() for name in fix.appears}
    titles = {rule.id: rule.title for rule in ruleset.rules if rule.id in appearing}
    return replace(report, findings=findings, repair=repair, titles=titles)


def _appearing(before: Evidence, after: Evidence, ruleset: RuleSet, fired: frozenset[str]) -> frozenset[str]:
    """The rules that fire on the configuration after an edit, and fired neither on it nor on the run before."""
    old, new = unstarted(before), unstarted(after)
    found = fired_rules(new, ruleset) - fired
    return found - fired_rules(old, ruleset, found) if found else found


def reread(evidence: Evidence, sources: Sequence[Source], read: Read) -> Evidence:
    """The evidence with the configuration of ``sources``, and with what the logs said before.

    ``sources`` are those of ``evidence`` after edits; what holds nothing but logged lines is not read again.
    """
    logs = _logs(evidence)
    fresh = read(*_paste([source for source in sources if source.name not in logs]))
    log_regions = tuple(region for region in evidence.regions if region.source in logs)
    regions = (*fresh.regions, *log_regions)
    return replace(evidence, runs=fresh.runs, versions=fresh.versions, regions=regions, sources=tuple(sources))


def unstarted(evidence: Evidence) -> Evidence:
    """The evidence without anything that a run has shown: as if it were not started yet."""
    logs = _logs(evidence)
    return replace(
        evidence,
        rows=(),
        tracebacks=(),
        signals=(),
        regions=tuple(region for region in evidence.regions if region.kind not in _LOGGED),
        sources=tuple(source for source in evidence.sources if source.name not in logs),
    )


def _logs(evidence: Evidence) -> frozenset[str | None]:
    """Attachments of logged lines alone: no options, no versions, no prose."""
    logged = {region.source for region in evidence.regions if region.kind in _LOGGED and not region.options}
    other = {region.source for region in evidence.regions if region.kind not in _LOGGED or region.options}
    other |= {fact.span.attachment for fact in evidence.versions.values() if fact.span is not None}
    return frozenset(logged - other - {None})


def safe_edits(report: Report, name: str | None) -> tuple[Edit, ...]:
    """The edits of one source that may be applied unread: of fired findings' safe fixes, each whole or not at all.

    A fix that meets an earlier one is left out: applying and checking again offers it again.
    """
    fixes = [fix for finding in report.fired for fix in finding.fixes if fix.safety is Safety.SAFE]
    return tuple(edit for edit in _compatible(fixes) if edit.span.attachment == name)


def _repair(report: Report) -> Fix | None:
    """The first repairing edit of each fault as one; None if that is no more than one of them."""
    faults = [f for f in report.fired if f.concludes == "fault" and f.severity is not Severity.INFO]
    firsts = [next((fix for fix in finding.fixes if fix.edits and fix.repairs), None) for finding in faults]
    fixes = [fix for fix in firsts if fix is not None]
    edits = _compatible(fixes)
    if len({fix.edits for fix in fixes}) < 2:
        return None
    safe = all(fix.safety is Safety.SAFE for fix in fixes)
    return Fix(text=Text(en="", zh=""), safety=Safety.SAFE if safe else Safety.UNSAFE, edits=edits)


def _compatible(fixes: Iterable[Fix]) -> tuple[Edit, ...]:
    """The edits of the fixes that can be made together, each fix whole or not at all; the earlier one wins."""
    accepted: tuple[Edit, ...] = ()
    for fix in fixes:
        together, dropped = resolve((*accepted, *fix.edits))
        if not dropped:
            accepted = together
    return accepted


def _paste(sources: Sequence[Source]) -> tuple[str, tuple[Attachment, ...]]:
    question = next((source.text for source in sources if source.name is None), "")
    return question, tuple(Attachment(name=s.name, content=s.text) for s in sources if s.name is not None)


def _patch(before: Sequence[Source], after: Sequence[Source]) -> str:
    return "".join(unified_diff(old.text, new.text, old.name) for old, new in zip(before, after, strict=True))
