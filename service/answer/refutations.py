"""A case's refutations, except remedies that a fired rule recommends on the same evidence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case, Refutation
from trainmedic.kb.model.report import Finding
from trainmedic.kb.negation import ADVICE
from trainmedic.kb.parse.said.remedies import subjects
from trainmedic.service.ranking.fix_values import changed_by

_CLAUSE = regex(r"[;,:()]|\.(?=\s|$)|\band\b|\bor\b(?! (?:less|below|lower|fewer|more|above|higher|later|newer))|\n")
_DIRECTION = regex(
    r"\b(?:(?P<down>lower|reduc|decreas|smaller|shorter|shorten|fewer|less\b|below\b|halv|harder"
    r"|half (?:the|of)|(?:third|quarter|fifth|tenth) of)"
    r"|(?P<up>rais|increas|larger|enlarg|bigger|higher|longer|lengthen|more\b|above\b|doubl)"
    r"|(?P<off>disabl|remov|drop\b|leave out|without|(?:turn|switch)\w* \S{0,40} ?off|(?:turn|switch)\w* off)"
    r"|(?P<on>enabl|(?:turn|switch)\w* on|add\b)"
    r"|(?P<new>upgrad|updat|newer\b|later\b|install\b)|(?P<old>downgrad))",
    re.IGNORECASE,
)
_CLIP = regex(r"\bclip\w*(?: the)? gradients?\b|\bclip(?:ping)? (?:\S+ ){0,2}harder|\bgradient clipping", re.IGNORECASE)
_SPAN = regex(r"`([^`\n]+)`")
_VALUED = regex(r"^-{0,2}[\w.-]+(?:\s*[:=]\s*|\s+)\S+$")
_WORD = regex(r"[a-z][a-z0-9-]+")
_PACKAGES = frozenset((*profiles(), "torch", "flash-attn"))

Advice = tuple[str, str]
"""A setting, concept or package, and the direction that it should go."""


def refutations_of(case: Case, fired: Iterable[Finding]) -> tuple[Refutation, ...]:
    """The refutations of a case that no fired finding contradicts."""
    fixes = [fix for finding in fired for fix in finding.fixes]
    recommended = {advice for fix in fixes for advice in (*advised(fix.text.en), *_of_patch(fix.patch or ""))}
    spelled = " ".join(fix.text.en for fix in fixes)
    return tuple(
        each
        for each in case.refutations
        if recommended.isdisjoint(advised(each.claim.en)) or not _as_spelled(each.claim.en, spelled)
    )


def _as_spelled(claim: str, recommended: str) -> bool:
    """False where a claim is about one way to write a value that no one recommends: `--vanilla_loss false`."""
    written = [span for span in _SPAN.findall(claim) if _VALUED.search(span)]
    return not written or any(span in recommended for span in written)


@lru_cache(maxsize=4096)
def advised(text: str) -> frozenset[Advice]:
    """The changes that a text recommends, clause by clause."""
    found: set[Advice] = set()
    for clause in _CLAUSE.split(text):
        if ADVICE.within(clause):
            continue
        match = _DIRECTION.search(clause)
        if _CLIP.search(clause) and (match is None or match[0] == "harder"):
            found.add(("max_grad_norm", "down"))
        if match is None:
            continue
        direction = str(match.lastgroup)
        if direction in ("new", "old"):
            names = [name for name in _WORD.findall(clause[match.end() :].lower())[:3] if name in _PACKAGES][:1]
        else:
            settings, concepts = subjects(clause)
            names = list(settings or concepts)
        found |= {(name, direction) for name in names}
    return frozenset(found)


def _of_patch(patch: str) -> Iterator[Advice]:
    for name, (before, after) in changed_by(patch).items():
        ranks = [_rank(before), _rank(after)]
        if None in ranks or ranks[0] == ranks[1]:
            continue
        switch = {before, after} <= {None, "true", "false", "True", "False"}
        rises = ranks[0] < ranks[1]  # type: ignore[operator]
        direction = ("on" if rises else "off") if switch else ("up" if rises else "down")
        yield from ((setting, direction) for setting in subjects(name)[0])


def _rank(value: str | None) -> float | None:
    """A number, or a switch that is on (1) or off or not there (0)."""
    if value is None or value.lower() in ("true", "false"):
        return float(value is not None and value.lower() == "true")
    try:
        return float(value)
    except ValueError:
        return None
