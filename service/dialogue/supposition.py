"""Changes that a message supposes ("what about ZeRO-2?", "换成 eager 呢"), which are not facts of the run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from trainmedic.kb.frameworks.catalogue import is_option
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import width
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import RunConfig
from trainmedic.kb.parse.readers.versions import PACKAGES
from trainmedic.service.dialogue.vocabulary import phrases, switches, wordings

MAX_READ = 6_000
"""Code points of a message that are looked through."""
MAX_CLAUSE = 400
"""A longer stretch without a break is pasted text, not a supposition."""
SHORT = 24
"""The greatest width of a supposition without a verb, like ``ZeRO-2?``."""
PLAIN = 160
"""The greatest width of a supposition that is not explicit ("what if")."""
NEAR = 40
"""Characters between a name and the word that switches it off."""
TRUE, FALSE, UNSET = "true", "false", "unset"

_LETTERS = regex(r"[A-Za-z0-9\u3400-\u9fff]")
_CODE = regex(r"^\s{0,20}(?:--|[\w.]{1,60}\s?[:=]\s)|\\$|[{};]\s{0,4}$")
# Sentences, with the mark that ends a question. A full stop inside a number or a name ends nothing.
_CLAUSE = regex(r"(?:[^\n?？!！。；;.]|\.(?!\s|$)){2,}[?？]?")
_SET_TO = (
    "设成|设为|设置为|改成|改为|换成|调成|调到|调[高大低小]到|[提升]高到|降低?到|升到|降为|变成|加到|减到|成|为|到"
)
_TO = (
    r"(?:\s{0,3}(?:size|steps|of|is|to|at|as|=|:|：|were|was|be|now|already|actually|really|only|现在|已经?|目前|其实|只|"
    rf"{_SET_TO}|是|用)){{0,3}}\s{{0,3}}"
)
_NUMBER = _TO + r"(?P<value>[-+]?[0-9]{1,12}(?:\.[0-9]{1,8})?(?:[eE][-+]?[0-9]{1,3})?)(?![0-9A-Za-z])"
# A name with a value behind it; whether the name is that of an option, the catalogues tell.
_OPTION = regex(
    r"(?P<name>--[A-Za-z][A-Za-z0-9_.-]{1,60}|[A-Za-z][A-Za-z0-9.]{0,40}_[A-Za-z0-9_.]{1,60}|[A-Za-z]\w{1,60}(?==))"
    r"(?:\s?[=：:]\s?|\s{1,2}(?:to |as |is |was |be )|\s{1,2}(?=[-0-9]|true|false|none|auto|\w{1,30}[_0-9])"
    rf"|\s?(?:{_SET_TO}|是)\s?)"
    r"(?P<value>(?!(?:to|as|is|at|instead|off|and|or|help|be|in|for|if)\b)[A-Za-z0-9_.+/-]{1,60})"
)
_FLAG = regex(r"(?<![A-Za-z0-9_.-])(?:--(?=[A-Za-z])|(?=[A-Za-z0-9]+_))(?P<name>[A-Za-z][A-Za-z0-9_.-]{1,60})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposition:
    """``changes`` maps settings, options and packages to values; ``rest`` is the message with blanks in place of the
    supposing clauses."""

    changes: Mapping[str, str]
    rest: str

    @property
    def alone(self) -> bool:
        """Whether the message says nothing else."""
        return _LETTERS.search(self.rest) is None


def supposition_in(message: str, glossary: Glossary, *, follows: bool) -> Supposition | None:
    """The changes that a message supposes, or None. ``follows``: it is not the first of its conversation.

    The first message of a conversation supposes something only if it says so explicitly ("what if", "如果…会").
    """
    cues = phrases("supposes", "proposes", "questions", "asks_ok") if follows else phrases("supposes")
    if not cues.search(message, 0, MAX_READ) or phrases("new_topic").search(message, 0, MAX_READ):
        return None
    changes: dict[str, str] = {}
    rest = list(message)
    for start, end in _clauses(message[:MAX_READ]):
        clause = message[start:end]
        if _supposes(clause, follows=follows) and (clause_changes := changes_in(clause, glossary)):
            changes |= clause_changes
            rest[start:end] = [letter if letter == "\n" else " " for letter in clause]
    return Supposition(changes=MappingProxyType(changes), rest="".join(rest)) if changes else None


class Wish(NamedTuple):
    """A change without a value: "can I just raise the timeout?"."""

    name: str
    raises: bool


def wish_in(message: str) -> Wish | None:
    """The setting that a question asks to raise or to lower."""
    raises, lowers = (phrases(entry).search(message, 0, MAX_CLAUSE) is not None for entry in ("raises", "lowers"))
    if raises == lowers:
        return None
    named = (name for name, pattern in wordings("numbers").items() if pattern.search(message, 0, MAX_CLAUSE))
    name = next(named, None)
    return Wish(name, raises) if name is not None else None


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    for match in _CLAUSE.finditer(text):
        if match.end() - match.start() <= MAX_CLAUSE and not _CODE.search(match[0]):
            yield match.span()


def _supposes(clause: str, *, follows: bool) -> bool:
    if phrases("supposes").search(clause):
        return True
    if follows and phrases("asks_ok").search(clause):
        return True
    if not follows or phrases("reported").search(clause):
        return False
    size = width(clause)
    return (size <= SHORT and phrases("supposes", "proposes", "questions").search(clause) is not None) or (
        size <= PLAIN and phrases("proposes").search(clause) is not None
    )


def changes_in(clause: str, glossary: Glossary) -> dict[str, str]:
    """The settings, options and packages that a clause names, with the values it gives them."""
    replaced = [" ".join(match.groups("")) for match in phrases("replaced").finditer(clause)]
    clause = phrases("replaced").sub(" ", clause)
    changes: dict[str, str] = {}
    for match in _package_version().finditer(clause):
        changes[re.sub(r"[ _]", "-", match["name"].lower())] = match["version"]
    clause = _package_version().sub(" ", clause)
    for match in _OPTION.finditer(clause):
        name = match["name"].lstrip("-")
        if is_option(name):
            changes[name] = match["value"]
    clause = _OPTION.sub(lambda m: " " if m["name"].lstrip("-") in changes else m[0], clause)
    changes |= _settings(clause)
    for name, start in _switches(clause, glossary):
        if name not in changes:
            changes[name] = FALSE if _switched_off(clause, 0, start) else TRUE
    changes = changes or _bare_options(clause)
    precisions = wordings("precision")
    if any(changes.get(name) == TRUE for name in precisions):
        for name, pattern in precisions.items():
            if name not in changes and any(map(pattern.search, replaced)):
                changes[name] = FALSE
    return changes


def _settings(clause: str) -> dict[str, str]:
    """The settings that people call by a name of their own."""
    changes: dict[str, str] = {}
    if (stage := phrases("zero_stage").search(clause)) is not None:
        number = next(group for group in stage.groups() if group)
        changes["zero_stage"] = "0" if _switched_off(clause, *stage.span()) else number
    for name, pattern in wordings("attention").items():
        if (match := pattern.search(clause)) is not None:
            changes["attention"] = UNSET if _switched_off(clause, *match.span()) else name
            break
    for name, pattern in wordings("precision").items():
        if (match := pattern.search(clause)) is not None:
            changes[name] = FALSE if _switched_off(clause, *match.span()) else TRUE
    for name, pattern in wordings("tuner").items():
        if (match := pattern.search(clause)) is not None:
            changes["tuner"] = "full" if _switched_off(clause, *match.span()) else name
            break
    numbers = {
        name: found for name, pattern in wordings("numbers", _NUMBER).items() if (found := pattern.search(clause))
    }
    for name, match in numbers.items():
        # The end of a longer name ("length" of "completion length") is not a name of its own.
        if not any(each.start() < match.start() < each.end() for each in numbers.values()):
            changes[name] = match["value"]
    for name, pattern in wordings("counted").items():
        if name not in changes and (match := pattern.search(clause)) is not None:
            changes[name] = next(filter(str.isdigit, re.split(r"(\d+)", match[0])))
    return changes


def _bare_options(clause: str) -> dict[str, str]:
    """Options named without a value: ``without --vanilla_loss``, ``and with --packing_samples``."""
    changes = {}
    for match in _FLAG.finditer(clause):
        name, off = match["name"], _switched_off(clause, *match.span())
        if is_option(name) and (off or match[0].startswith("--")):
            changes[name] = UNSET if off else TRUE
    return changes


def _switched_off(clause: str, start: int, end: int) -> bool:
    """Whether a word near ``clause[start:end]`` switches it off."""
    off = phrases("switches_off")
    # Where the stretch ends inside a word, its beginning ("no" of "now") is not a word of its own.
    return off.search(clause) is not None and off.search(clause, max(0, start - NEAR), end + NEAR) is not None


def _switches(clause: str, glossary: Glossary) -> Iterator[tuple[str, int]]:
    """Settings that are on or off, by the glossary's words, with their place."""
    for match in glossary.find(clause):
        concept = glossary.concepts[match.concept]
        if len(concept.settings) == 1 and concept.settings[0] in switches() and concept.kind != "symptom":
            yield concept.settings[0], match.start


def with_counterparts(changes: Mapping[str, str], run: RunConfig) -> dict[str, str]:
    """The changes with what they mean for this run: bf16 takes the place of an fp16 that is on, and the reverse."""
    completed = dict(changes)
    for name, other in (("bf16", "fp16"), ("fp16", "bf16")):
        setting = run.settings.get(other)
        on = setting is not None and setting.value is True
        if completed.get(name) == TRUE and on and other not in completed:
            completed = {other: FALSE, **completed}
        if completed.get(other) == FALSE and not on:
            del completed[other]
    return completed


@cache
def _package_version() -> re.Pattern[str]:
    """A package with a version behind it."""
    names = "|".join(re.escape(name).replace(r"\-", "[-_ ]?") for name in sorted(PACKAGES, key=len, reverse=True))
    return re.compile(
        rf"(?<![A-Za-z0-9_/.-])(?P<name>{names})(?![A-Za-z0-9_])"
        r"(?:\s{0,2}(?:version|ver|==|=|v|to|is|now|actually|的?版本|升级到|升到|降级到|降到|退回到?|回退到|换成|换到|改成|现在|"
        r"已经|其实|用|是)){0,3}\s{0,2}v?"
        r"(?P<version>[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?:\.?(?:dev|rc|post)[0-9]{1,3})?)",
        re.IGNORECASE,
    )
