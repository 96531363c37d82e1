"""Which version of a package worked and which broke: "0.6 is fine, 0.7 breaks", "since upgrading from a to b"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.kb.language import lowered
from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.readers.versions import VERSION

_WORKS = (
    r"(?:works?|worked|working|(?:trains?|trained|runs?|ran) (?:fine|well|ok(?:ay)?|normally|correctly))(?![a-z_])"
    r"|(?:is|was|are|were) (?:all )?(?:fine|ok(?:ay)?|good|not affected|unaffected)|fine|ok(?:ay)?(?![a-z])"
    r"|(?:has|had|have|with|shows?) no (?:such )?(?:issues?|problems?|errors?|nan)|(?:does not|doesn't|did not|didn't) "
    r"(?:happen|occur|have (?:this|the) (?:issue|problem|bug))"
    r"|正常|没问题|没有问题|没这个问题|可以(?!吗)|能跑|就好了|好的|没事"
)
_FAILS = r"(?<![A-Za-z])(?:no longer|not|never|n't|stopped|fails?|breaks?|broken)(?![A-Za-z])|不正常|不可以|不能|没法"
_SOLVES = (
    r"(?:fix(?:es|ed)|solv(?:es|ed)|resolv(?:es|ed)|help(?:s|ed)|works?|worked|goes? away|went away|disappear(?:s|ed)"
    r"|is gone|gone|was fine|is fine|好了|正常|解决|没问题|就没|消失)"
)
_GOOD_AFTER = regex(
    r"[\s`'\")）]{0,3}(?:版本|版|之后|以后|后|it |this |everything |all |that |就|是|都|上|下|时|的话"
    rf"|一切|训练|跑){{0,3}}\s?(?:{_WORKS})",
    re.IGNORECASE,
)
_BAD_AFTER = regex(
    r"[\s`'\")）]{0,3}"
    r"(?:(?:it |this |that )?(?:breaks?|broke|fails?|failed|hangs?|crash\w*|gives?|does(?: not|n't)|has|shows?"
    r"|is (?:broken|not|worse|slow)|not any ?more|no longer|ooms?|nan)"
    r"|版?本?(?:就|会|不行|不能|报错|卡|崩|出现|炸|有问题|变))",
    re.IGNORECASE,
)
_GOOD_BEFORE = regex(
    r"(?:(?:works?|worked|fine|ok(?:ay)?|good|no (?:issue|problem|error)s?|trains?|runs?|ran)(?: \w+)? "
    r"(?:with|on|in|under|using|for|at)|(?:last|known) (?:good|working)(?: version)?(?: is| was|:)?"
    r"|(?:之前|原来|以前)(?:用|的|是)?)[\s`'\":]{0,3}(?:version |版本)?$",
    re.IGNORECASE,
)
_WITH = regex(r"(?<![a-z])(?:with|in|on|under|using)[\s`'\"]{1,3}$", re.IGNORECASE)
_WORKED = regex(r"[^.;\n]{1,40}(?<![A-Za-z])(?:worked|was (?:fine|ok|normal)|ran fine|trained fine)(?![a-z])")
_BAD_BEFORE = regex(
    r"(?:(?:not|n't|fails?|breaks?|broken) (?:with|on|in|under|using|for)|i have|i am on|i'm on|currently(?: on)?"
    r"|now on|现在(?:是|用的是|用)?) ?(?:version )?$",
    re.IGNORECASE,
)
_BACK = regex(
    r"(?:downgrad\w+|revert\w*|roll(?:ed|ing)? ?back|went back|going back|pinn?(?:ed|ing)?|install\w*"
    r"|upgrad\w+|updat\w+|switch\w*|mov(?:ed|ing) to|降级?|回退|退回|降|升级?|换|装)"
    r"[^.;,。；，\n]{0,24}$",
    re.IGNORECASE,
)
_SOLVED = regex(rf"[^.;。；\n]{{0,24}}?(?<![A-Za-z])(?:{_SOLVES})", re.IGNORECASE)
_NOT_SOLVED = regex(r"not|n't|no (?:change|effect)|没用|无效|不行|还是|依旧|仍", re.IGNORECASE)
_CLAUSE = regex(r"[,;，。；\n]|\.\s|(?<![a-z])(?:but|while|whereas|however)(?![a-z])|但|而|可")
_DOTTED = rf"v?(?=[0-9]{{1,4}}\.[0-9]){VERSION}"
_NAME = r"(?:[A-Za-z][\w -]{1,24}?[ =]{1,2})?"
_TO = r"to|->|=>|→|升级?到|升至|更新到|换到|换成|降级?到|降至|降回|到"
_MOVE = regex(
    rf"(?:(?:from|从|由)\s{{0,2}}{_NAME}(?P<old>{_DOTTED})\s{{0,2}}(?:{_TO})"
    rf"|(?<![\w.])(?P<older>{_DOTTED})\s{{0,2}}(?:->|=>|→))\s{{0,2}}{_NAME}(?P<new>{_DOTTED})"
)
_HOW = 40
"""Characters before a change of version, in the same clause, that say what was done."""
_CLAUSE_ENDS = ".;。；\n"
_BARE = regex(rf"(?<![\w.=/-])(?P<version>{_DOTTED})(?![\w%/]|\.[0-9])")
_DOWN = regex(r"downgrad|revert|roll|降|回退|退回", re.IGNORECASE)
_REACH = 48


@dataclass(frozen=True, slots=True)
class Move:
    """A change of version: ``good`` and ``broken`` as ranges of offsets into the text."""

    how: str
    good: tuple[int, int]
    broken: tuple[int, int]


def moves(text: str) -> Iterator[Move]:
    """The changes from one version to another that are said to have broken the run or repaired it."""
    end = 0
    for match in _MOVE.finditer(lowered(text)):
        before = text[max(end, match.start() - _HOW) : match.start()]
        start = match.start() - len(before) + 1 + max(before.rfind(mark) for mark in _CLAUSE_ENDS)
        end = match.end()
        how = text[start:end]
        repaired = _solved(text, end)
        old, new = match.span("old" if match["old"] else "older"), match.span("new")
        if repaired or _DOWN.search(how) is None:
            yield Move(how, *((new, old) if repaired else (old, new)))


def bare(text: str) -> Iterator[tuple[int, int, bool]]:
    """Versions without a package that are said to work or to break: their offsets, and whether they work."""
    for match in _BARE.finditer(text):
        if worked(text, *match.span()):
            yield (*match.span(), True)
        elif _BAD_AFTER.match(text, match.end()) or _BAD_BEFORE.search(
            text[max(0, match.start() - 24) : match.start()]
        ):
            yield (*match.span(), False)


def worked(text: str, start: int, end: int) -> bool:
    """Whether the version named in ``text[start:end]`` is said to be one with which the run works."""
    after = text[end : end + _REACH]
    clause = _CLAUSE.split(after, maxsplit=1)[0]
    if (good := _GOOD_AFTER.match(clause)) is not None and re.search(_FAILS, good[0]) is None:
        return True
    before = _CLAUSE.split(text[max(0, start - _REACH) : start])[-1]
    if _GOOD_BEFORE.search(before) is not None and re.search(_FAILS, before) is None:
        return True
    if _WITH.search(before) is not None and _WORKED.match(clause) is not None and re.search(_FAILS, clause) is None:
        return True
    return _BACK.search(before) is not None and _solved(text, end)


def _solved(text: str, end: int) -> bool:
    match = _SOLVED.match(text, end, end + _REACH)
    return match is not None and _NOT_SOLVED.search(match[0]) is None
