"""Sentences that must be removed: they recommend what a case refutes, or contradict what a finding changes. Pure.

Each clause is read by itself: "lower the learning rate" is advice, "lowering it does not help" and "if you lower it"
are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from trainmedic.kb import negation
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Finding
from trainmedic.kb.sentences import sentences
from trainmedic.service.llm.verify import vocabulary
from trainmedic.service.llm.verify.blocks import blocks
from trainmedic.service.llm.verify.vocabulary import option_named
from trainmedic.service.llm.verify.words import content

REFUTED = 0.6
"""The share of a refuted claim's words that a recommendation must contain to count as that claim."""
CACHED_TEXTS = 4096
"""Texts of cases whose advice is cached: there are about a thousand."""
_FALSE = frozenset({"false", "0", "off", "no", "none", "null", "disabled"})
_TRUE = frozenset({"true", "1", "on", "yes", "enabled"})
_FLAG = r"(?<![\w-])--([A-Za-z][\w.\-]*)(?:(?:=|[ \t]+)(?!-)['\"]?([^\s\\'\"]+))?"
_PAIR = r"(?<![\w.\-])['\"]?([A-Za-z_][\w.\-]*)['\"]?\s?[:=]\s?['\"]?([^\s,'\"\\)}]+)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """What no sentence may recommend; one of three forms.

    A claim: its ``words``, those of them that must all occur (``exact``: numbers, true, false) and the directions of
    its change (``turns``, see `vocabulary.TURNS`); a sentence with ``least`` of the words makes that claim. An
    ``option`` of a finding with the correct ``values`` (none: it must be removed). Or, if there is a fault, the
    statement that there is none (``health``).
    """

    words: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()
    least: int = 0
    option: str = ""
    values: frozenset[str] = frozenset()
    health: bool = False


class _Advice(NamedTuple):
    words: frozenset[str]
    turns: frozenset[str]


def denials_of(
    cases: Sequence[Case], fired: Sequence[Finding], language: str, *, also: Sequence[Case] = ()
) -> tuple[Denial, ...]:
    """What the cases refute, and what the findings' patches change. ``also`` are cases that only refute.

    A claim that the first case itself recommends is no denial, and a claim that resembles advice of its own case is
    recognised only by more words than that advice shares with it.
    """
    denials: list[Denial] = []
    first: list[_Advice] = []
    for number, case in enumerate((*cases, *also)):
        advice = _advice_of(case, language) if case.refutations or not number else []
        first = first if number else advice
        claims = [claim for refutation in case.refutations for claim in claimed(refutation.claim.get(language))]
        denials += [
            _narrowed(claim, advice) for claim in claims if not number or not any(_is_claim(a, [claim]) for a in first)
        ]
    if cases and cases[0].kind == "fault":
        # An artefact is healthy by definition, so only a fault forbids saying so.
        denials.append(Denial(health=True))
    fix_texts = " ".join(case.section("fix", language) for case in cases for language in ("en", "zh")).casefold()
    values = _correct_values(fired, fix_texts)
    denials += [Denial(option=name, values=frozenset(values[name])) for name in values]
    return tuple(dict.fromkeys(denials))


def _correct_values(fired: Sequence[Finding], fix_texts: str) -> dict[str, set[str]]:
    """Option → the values that the findings' patches give it; empty for an option that they remove."""
    correct: dict[str, set[str]] = {}
    for finding in fired:
        advice = " ".join(f"{fix.text.en} {fix.text.zh}" for fix in finding.fixes).casefold()
        for fix in finding.fixes:
            for name, value in changed(fix.patch or "").items():
                values = correct.setdefault(name, set())
                if value:
                    # A value that another fix of the finding or the case mentions is correct too.
                    values |= {value, *re.findall(r"[a-z0-9][a-z0-9_.+\-]*[a-z0-9]", f"{advice} {fix_texts}")}
    return correct


def claimed(claim: str) -> Iterator[Denial]:
    """The recommendations in a claim; without any, the whole claim."""
    clauses_of_advice = [clause for clause in clauses(claim) if advises(clause)]
    for clause in clauses_of_advice or [claim]:
        # Without the direction: "raise" and "lower" are compared apart, in `turns`.
        words = _topic(clause)
        if len(words) < 2:  # "halve it"
            words = _topic(claim)
        exact = frozenset(w for w in words if w[0].isdigit() or w in ("true", "fals", "false", "none"))
        if words:
            yield Denial(words=words, exact=exact, turns=_turns(clause))


def _advice_of(case: Case, language: str) -> list[_Advice]:
    texts = [case.section(name, language) for name in ("cause", "fix", "confirm")]
    texts += [refutation.why.get(language) for refutation in case.refutations]
    return [advice for text in texts for advice in _advice_in(text)]


@lru_cache(maxsize=CACHED_TEXTS)
def _advice_in(text: str) -> tuple[_Advice, ...]:
    bodies = (block.body for block in blocks(text) if block.kind == "text")
    return tuple(
        _advice(clause)
        for body in bodies
        for sentence in sentences(body)
        for clause in _recommendations(sentence, _advising(clauses(sentence)))
    )


def _advice(clause: str) -> _Advice:
    return _Advice(content(clause), _turns(clause))


def _narrowed(claim: Denial, advice: Sequence[_Advice]) -> Denial:
    """The claim, such that its case's own advice does not count as that claim unless it has every word of it."""
    shared = [len(item.words & claim.words) for item in advice if _is_claim(item, [claim])]
    return replace(claim, least=min(max(shared) + 1, len(claim.words))) if shared else claim


def changed(patch: str) -> dict[str, str]:
    """Option → the value that a patch gives it, empty if the patch removes it. Moved lines are no change."""
    before, after = (
        {name: value for line in _lines(patch, sign) for name, value in _assignments(line)} for sign in "-+"
    )
    removed = {name: "" for name in before if name not in after}
    return removed | {name: value for name, value in after.items() if before.get(name) != value}


def _lines(patch: str, sign: str) -> Iterator[str]:
    for line in patch.split("\n"):
        if line.startswith(sign) and not line.startswith(sign * 3):
            yield line[1:]


def _assignments(line: str) -> list[tuple[str, str]]:
    flags = [(name, (value or "true").casefold()) for name, value in re.findall(_FLAG, line)]
    return flags or [(name, value.casefold()) for name, value in re.findall(_PAIR, line)]


def clauses(sentence: str) -> list[str]:
    """The sentence's clauses; code does not divide."""
    parts, end = [], 0
    for match in vocabulary.CLAUSE_BREAK.finditer(sentence):
        if match[1] is not None:
            parts.append(sentence[end : match.start()])
            end = match.end()
    return [part for part in (*parts, sentence[end:]) if part.strip()]


def advises(clause: str) -> bool:
    """Whether a clause recommends something: not a condition, not a description, not negated."""
    if vocabulary.CONDITION.search(clause) or negation.ADVICE.within(clause):
        return False
    if vocabulary.ADVICE.search(clause):
        return True
    return vocabulary.ADVICE_ZH.search(clause) is not None and vocabulary.CAUSES_ZH.search(clause) is None


def denied(sentence: str, denials: Sequence[Denial]) -> bool:
    """Whether the sentence recommends what is refuted, or contradicts a finding."""
    parts = clauses(sentence)
    advising = _advising(parts)
    claims = [denial for denial in denials if denial.words]
    if claims and any(_is_claim(_advice(clause), claims) for clause in _recommendations(sentence, advising)):
        return True
    # A condition ("if the loss is fine") states nothing.
    stated = [part for part in parts if not vocabulary.CONDITION.search(part)]
    if any(denial.health for denial in denials) and any(_calls_healthy(part) for part in stated):
        return True
    options = [denial for denial in denials if denial.option]
    return any(
        any(_contradicts(part, sentence, denial) for part in advising)
        or any(_calls_harmless(part, denial) for part in stated)
        for denial in options
    )


def _advising(parts: Sequence[str]) -> list[str]:
    """The clauses that recommend something that the next two clauses do not take back."""
    return [
        part
        for n, part in enumerate(parts)
        if advises(part) and not any(vocabulary.TAKES_BACK.search(later) for later in parts[n + 1 : n + 3])
    ]


def _recommendations(sentence: str, advising: list[str]) -> list[str]:
    """The advising clauses, and the whole sentence if nothing in it is negated."""
    return [*advising, sentence] if advising and not negation.ADVICE.within(sentence) else advising


def line_denied(line: str, denials: Sequence[Denial]) -> bool:
    """Whether a line of code sets an option that a finding removes, or sets it to a wrong value."""
    code = line.lstrip()
    # A single hyphen begins a line that a patch removes.
    if code[:1] in ("#", "") or (code.startswith("-") and not code.startswith("--")):
        return False
    for denial in denials:
        name = option_named(denial.option, line) if denial.option else None
        if name is None:
            continue
        match = vocabulary.VALUE.match(line[name.end() :])
        value = match[2].casefold() if match else ""
        # The option must go; setting it to false amounts to the same.
        if not denial.values and value not in _FALSE:
            return True
        if denial.values and value and _differs(value, denial.values):
            return True
    return False


def _is_claim(advice: _Advice, claims: Sequence[Denial]) -> bool:
    return any(
        claim.exact <= advice.words
        and (not claim.turns or bool(claim.turns & advice.turns))
        and len(advice.words & claim.words) >= max(claim.least, REFUTED * len(claim.words))
        for claim in claims
    )


def _topic(text: str) -> frozenset[str]:
    return content(vocabulary.ANY_TURN.sub(" ", text))


def _turns(text: str) -> frozenset[str]:
    return frozenset(name for name, pattern in vocabulary.TURNS.items() if pattern.search(text))


def _contradicts(clause: str, sentence: str, denial: Denial) -> bool:
    name = option_named(denial.option, clause)
    if name is None:
        return False
    match = vocabulary.VALUE.match(clause[name.end() :])
    value = match[2].rstrip(".").casefold() if match and _is_value(match) else ""
    removes = vocabulary.REMOVES.search(clause) is not None
    if not denial.values:
        adds = vocabulary.TURNS["on"].search(clause) is not None and not removes and value not in _FALSE
        # A newer release may accept the option: that is another fix of the same finding.
        return adds and not vocabulary.NEWER.search(sentence)
    if value:
        return _differs(value, denial.values)
    # Without a value, only removing a switch that must be on contradicts the finding.
    return bool(denial.values & _TRUE) and removes


def _is_value(match: re.Match[str]) -> bool:
    value = match[2]
    return bool(match[1]) or any(c.isdecimal() or c == "_" for c in value) or value.casefold() in _FALSE | _TRUE


def _differs(value: str, correct: frozenset[str]) -> bool:
    if value in correct or (value in _TRUE and correct & _TRUE):
        return False
    try:
        return not any(float(value) == float(other) for other in correct if other[0].isdecimal() or other[0] == ".")
    except ValueError:
        return True


def _calls_healthy(clause: str) -> bool:
    return vocabulary.HEALTHY.search(clause) is not None and not negation.ADVICE.within(
        vocabulary.HEALTHY.sub(" ", clause)
    )


def _calls_harmless(clause: str, denial: Denial) -> bool:
    name = option_named(denial.option, clause)
    if name is None or vocabulary.HARMLESS.search(clause, name.end()) is None:
        return False
    # "without it everything is fine" says the opposite.
    return not re.search(r"\bwithout\b|去掉|移除|删", clause, re.IGNORECASE | re.ASCII)
