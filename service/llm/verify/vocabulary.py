"""How advice, conditions and reassurance are worded in English and Chinese; the words are in vocabulary.toml. Pure."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

_WORDS = tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))


def _pattern(*sources: str) -> re.Pattern[str]:
    # ASCII: a Chinese letter next to an English word must end it.
    return re.compile("|".join(sources), re.IGNORECASE | re.ASCII)


def _english(words: dict[str, list[str]]) -> str:
    # A star in the word list stands for any ending: disabl* matches disable, disabled, disabling.
    entries = "|".join(re.escape(entry).replace(r"\*", r"\w*") for entry in words["en"])
    return rf"\b(?:{entries})\b"


def _chinese(words: dict[str, list[str]]) -> str:
    return "|".join(words["zh"])


def _any(words: dict[str, list[str]]) -> str:
    return f"{_english(words)}|{_chinese(words)}"


_DO = _english(_WORDS["do"])

TURNS = {name: _pattern(_any(words)) for name, words in _WORDS["turns"].items()}
"""The directions of a change: down, up, on, off, older, newer, again."""
ANY_TURN = _pattern(*(_any(words) for words in _WORDS["turns"].values()))
REMOVES = _pattern(_any(_WORDS["turns"]["off"]), _any(_WORDS["removes"]))
NEWER = _pattern(_any(_WORDS["turns"]["newer"]), _any(_WORDS["installs"]))

ADVICE = _pattern(
    rf"^\W*(?:{_english(_WORDS['fillers'])}\W*){{0,4}}{_DO}(?! of\b)",
    rf"{_english(_WORDS['modals'])}(?:[\s`*]+(?:to|be|you|it|that|also|then|a|just)\b){{0,4}}[\s`*]+{_DO}",
    _english(_WORDS["helps"]),
)
# The prefix (?u:...) makes Chinese letters word characters again, so that \W matches punctuation only.
ADVICE_ZH = _pattern(
    _chinese(_WORDS["modals"]),
    "可以(?!看|见|发现|确认|判断|知道|得出)",
    rf"(?u:^[\s\W]*)(?:{_chinese(_WORDS['fillers'])})*[^，。]{{0,24}}?(?:{_chinese(_WORDS['do'])})(?!了|着|过|的|后|会|时|之)",
)
CAUSES_ZH = _pattern(_chinese(_WORDS["causes"]))
CONDITION = _pattern(
    rf"^\W*(?:(?:and|or|but|even)\W+)?{_english(_WORDS['conditions'])}",
    rf"(?u:^\W*)(?:{_chinese(_WORDS['conditions'])})",
)
TAKES_BACK = _pattern(
    r"^\W*(?:(?:but|though|although|yet|however|and)\W+)?(?:it|this|that|which|they|these|those|doing so|neither)\b"
    r"(?:\W+\w+){0,3}?\W+(?:not|never|no|useless|pointless|nothing|\w+n't)\b",
    r"^\W*(?:neither|won't|doesn't|does not|will not)\b",
    r"(?u:^\W*)(?:但是?|不过|然而|可是|却)?(?:这|它|此|并|也|都|通常|其实|根本|是){0,4}(?:不|没|无)",
)
"""A clause that takes back the advice before it: "but it does not help"."""
CLAUSE_BREAK = _pattern(
    # Code is matched first, outside the group, because nothing in it ends a clause.
    r"`[^`\n]*`",
    rf"([,;](?=\s)|[，；、—]|\s[–-]\s|\s(?={_english(_WORDS['connectives'])}\s)|(?={_chinese(_WORDS['connectives'])}))",
)
HARMLESS = _pattern(
    r"\b(?:(?:is|are|was|looks?|seems?) (?:\w+ )?(?:fine|ok|okay|correct|harmless|unrelated|safe|irrelevant)"
    r"|not the (?:cause|problem|reason|culprit)|nothing to do|has no effect)\b",
    "没有?(?:任何)?问题|不是原因|无关|无害|(?<!不)正常",
)
"""An option is called harmless."""
HEALTHY = _pattern(
    r"\bno[_ ]fault\b|\bnothing (?:is )?(?:actually )?wrong\b",
    r"\b(?:(?:your|this|the) (?:\w+ )?(?:run|training|script|set-?up|config\w*)|everything|all) (?:is|looks) (?:\w+ )?"
    r"(?:healthy|fine|normal|ok)\b",
    "(?<![后就则才会])训练(?:完全|是|一切)?正常|一切正常|没有(?:任何)?故障",
)
"""The whole run is called healthy."""
VALUE = _pattern(
    r"^`?(?:\s*(?:=|[:：]|\bto\b|\bof\b|\bis\b|\bat\b|\bas\b"
    r"|设置为|设为|设成|改成|改为|换成|调到|调成|调为|降到|提高到|为|成)\s*|\s+)"
    r"(?:from\s+`?[^\s`]{1,40}`?\s+to\s+)?(`?)['\"]?([A-Za-z0-9][A-Za-z0-9_.\-+]*)"
)
"""The value written after an option's name: group 2, and in group 1 the backtick if it is code."""
UNIT = _pattern(rf"\s?(?:[a-z]+ )?(?:%|{_any(_WORDS['units'])})")


def option_named(name: str, text: str) -> re.Match[str] | None:
    """Where the text names this option, spelt with hyphens or underscores, with or without dashes before it."""
    spelling = "[-_]".join(re.escape(part) for part in re.split("[-_]", name))
    return re.search(rf"(?<![A-Za-z0-9_.])(?:--)?{spelling}(?![A-Za-z0-9_])", text, re.IGNORECASE | re.ASCII)
