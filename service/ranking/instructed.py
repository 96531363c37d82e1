"""An exception that says itself what to set: its instruction, carried over to the user's own files. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Span
from trainmedic.kb.sentences import sentences
from trainmedic.service.dialogue.what_if import ALREADY, WhatIf, what_if

MOST = 2_000
"""Code points of a message that are looked through."""
_TELLS = regex(r"(?i)\b(?:set|setting|pass|passing|use|using|specify|specifying|add|change|switch)\b")
_OTHERWISE = regex(r"(?i)\b(?:not|n't|cannot|never|either|or|was|were|got|for debugging)\b")
# Only what is marked as code or has the form of an option: prose names settings in passing.
_SETTING = regex(
    r"[`'\"]?-{0,2}(?P<name>[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)+)[`'\"]?\s{0,2}(?:[:=]|\bto\b)\s{0,2}"
    r"[`'\"]?(?P<value>[A-Za-z0-9_+-]+(?:\.\d+)?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A setting that a message says to change. ``sentence`` is as it was printed; ``effects`` of the change."""

    sentence: str
    name: str
    span: Span
    effects: WhatIf


def instructed(evidence: Evidence, rules: RuleSet, read: Read) -> Instruction | None:
    """The one setting that the root exception says to set; None if it names several, if the run has it already, if the
    name is none of the run's framework, or if a check warns of the change."""
    for trace in evidence.tracebacks if evidence.run.options else ():
        if not trace.root:
            continue
        told = [s for s in sentences(trace.message[:MOST]) if _TELLS.search(s) and not _OTHERWISE.search(s)]
        found = {match.groups(): sentence for sentence in told for match in _SETTING.finditer(sentence)}
        if len(found) != 1:
            continue
        (((name, value), sentence),) = found.items()
        effects = what_if(evidence, {name: value}, rules, read)
        refused = any(each.why is not ALREADY for each in effects.unknown) or not effects.changed
        if not refused and effects.patch and not effects.appears:
            return Instruction(sentence=sentence.strip(), name=name, span=trace.span, effects=effects)
    return None
