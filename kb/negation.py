"""Negation in English and Chinese: whether the words around a place say that it is not so. Pure.

Texts negate differently, so each kind of text has a `Negation` of its own: what users say of their run, what they say
of their set-up, advice, quoted lines of a log. They share the method and most words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainmedic.kb.lazy import regex

NOT = ("no", "not", "never", "without")
IS_NOT = ("isn't", "isnt", "aren't", "wasn't", "doesn't")
OTHER_CONTRACTIONS = ("weren't", "don't", "didn't", "doesnt", "hasn't", "haven't")
ANY_CONTRACTION = ("[A-Za-z]+n't",)
NEITHER = ("neither", "nor")
INSTEAD = ("instead of", "rather than")
NO_LONGER = ("no longer",)
NOT_ZH = ("没有", "没", "不是", "未")
NOT_ANY_MORE_ZH = ("不会", "不再", "并非")
AVOID = ("avoid", "avoids", "avoiding", "prevent", "prevents", "preventing")
SENTENCE_BREAKS = r"[,，;；!！?？。\n]|\.(?=\s|$)"


NOTHING = regex("(?!)")


def _words(english: Sequence[str], chinese: Sequence[str]) -> re.Pattern[str]:
    """English words as whole words, Chinese ones anywhere."""
    whole = rf"(?<![A-Za-z0-9_])(?:{'|'.join(english)})(?![A-Za-z0-9_])"
    return regex("|".join((whole, *chinese)), re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """How one kind of text negates.

    ``words`` negate what follows them, ``after`` what precedes them. ``exceptions`` hold a negating word but negate
    nothing ("not only"). ``breaks`` end the clause that a negation applies to; at most ``reach`` characters lie between
    it and what it negates, and ``window`` characters are looked at.
    """

    words: re.Pattern[str]
    after: re.Pattern[str] = NOTHING
    exceptions: re.Pattern[str] = NOTHING
    breaks: re.Pattern[str] = NOTHING
    reach: int = 28
    window: int = 28

    def precedes(self, text: str, start: int, floor: int = 0) -> bool:
        """Whether a negation before ``start``, but not before ``floor``, applies to what begins at ``start``."""
        clause = text[max(floor, start - self.window) : start]
        ends = [match.end() for match in self.breaks.finditer(clause)]
        clause = self._without_exceptions(clause[ends[-1] :] if ends else clause)
        return any(len(clause) - match.end() <= self.reach for match in self.words.finditer(clause))

    def follows(self, text: str, end: int) -> bool:
        """Whether a negation right behind ``end`` applies to what ends there."""
        return self.after.match(text, end, end + self.window) is not None

    def within(self, text: str) -> bool:
        """Whether anything in the text is negated."""
        return self.words.search(self._without_exceptions(text)) is not None

    def _without_exceptions(self, text: str) -> str:
        return self.exceptions.sub(lambda match: " " * len(match[0]), text)


RUN = Negation(
    words=_words(
        (
            *(*NOT, *IS_NOT, *OTHER_CONTRACTIONS, *NEITHER, *INSTEAD, *NO_LONGER, *AVOID),
            *("none", "instead", "unlike", "free of"),
        ),
        (*NOT_ZH, *NOT_ANY_MORE_ZH, "并不", "无", "非", "避免", "防止", "而不是", "排除"),
    ),
    exceptions=regex(
        r"not (?:only|just)|no (?:matter|idea|reason|clue)|don't know|do not know|not sure|不仅|不只|没想到|没搞懂"
        r"|没明白|不知|未知|不明|无缘无故|没法|没办法|无[法论]|非常",
        re.IGNORECASE,
    ),
    breaks=regex(
        rf"{SENTENCE_BREAKS}|(?<![A-Za-z])(?:but|yet|however|although|though|and then|then|until|because|since|so|while"
        r"|when|after)(?![A-Za-z])|但|却|可是|不过|然而|只是|结果|就|因为|所以|之后|后来",
        re.IGNORECASE,
    ),
)
"""Negation in words about a run: "no nan", "没有 nan", "how to avoid OOM"."""

INSIDE_SYMPTOM = Negation(words=_words((*NOT, *IS_NOT, *NO_LONGER), ("没", "不是", "未", *NOT_ANY_MORE_ZH)))
"""Between the words of a symptom: "the loss is not nan"."""

INSIDE_HANG = Negation(words=_words(("[A-Za-z]*n't", "not", "never", "no"), ("没有", "不会", "不是")))
"""The same for a run that hangs, which is itself said with a negation ("没反应", "不动了")."""

SETUP = Negation(
    words=_words(
        (*NOT, *NEITHER, *ANY_CONTRACTION, "non", "disabled", "turned off"), (*NOT_ZH, "不用", "不开", "无", "非")
    ),
    after=regex(
        r"[^\n,;，。；！？!?、]{0,6}(?:\b(?:is|are|was) (?:off|disabled|false)\b|没开|没用|关着|关掉|都没)",
        re.IGNORECASE,
    ),
    exceptions=regex(
        r"\b(?:not only|no matter|no idea|why not|whether or not)\b|不是说|没问题|没有?明显", re.IGNORECASE
    ),
    breaks=regex(r"[\n,;，。；！？!?、:：]"),
    reach=14,
    window=26,
)
"""Negation in words about a set-up: "without offload", "packing is off", "没开 packing"."""

ADVICE = Negation(
    words=_words(
        (
            *(*NOT, *NEITHER, *INSTEAD, *ANY_CONTRACTION),
            *("cannot", "useless", "pointless", "nothing", "hardly", "stop", "avoid[A-Za-z]*", "refrain[A-Za-z]*"),
        ),
        ("不", "没", "无", "勿", "别", "并非", "而非", "避免"),
    ),
    exceptions=regex(
        "不(?:妨|断|错|同|稳|收敛|仅|只|但|下降|过)|没问题|无限|[分类级区特个识]别|别[的人]",
    ),
)
"""Advice: "lowering the learning rate does not help"."""

LOG_LINE = Negation(
    words=_words(
        (*NO_LONGER, "not any ?more", "without", "never", "is gone", "went away", "instead of"),
        ("不再", "没有出现", "已经没有", "消失"),
    )
)
"""A line of a log that a user only quotes: "the warning is gone"."""
