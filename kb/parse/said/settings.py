"""Settings that sentences state: "8 cards, bs 4, lr from 2e-4 to 2e-5, packing off", "学习率 1e-5，没开梯度检查点".

A name (an option's, or one that people use), a link of words and a value; a switch and a word that turns it; or a word
that is a value itself. Whether the value is in effect is decided by its clause: what is asked, advised, supposed,
denied, or said of an earlier run is not a fact. Of several values the one that the run was changed to, or fails with,
counts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from operator import attrgetter
from typing import NamedTuple

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.canonical import name_of
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.frameworks.settings import Spec, specs
from trainmedic.kb.frameworks.values import Nothing, normalise
from trainmedic.kb.glossary.terms import Concept, Glossary, Match, tokens_of
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import RunConfig, Setting, Value
from trainmedic.kb.parse.said.clauses import MOOD, Clause, clause_at, clauses_of, sentences
from trainmedic.kb.parse.source import Piece

_TABLE = load_table("parse/data/said.toml")
_EVERY = regex(
    "|".join(f"(?P<{name}>(?<![a-z])(?:{'|'.join(verbs)}))" for name, verbs in _TABLE["every"].items()), re.IGNORECASE
)
_STEPS = regex(
    r"(?:every|each|per) (?P<en>[0-9]{1,7}) (?:training )?steps|每隔? ?(?P<zh>[0-9]{1,7}) ?步", re.IGNORECASE
)
MAX_CHARACTERS = 20_000
"""A longer text is pasted; people state settings in few words."""
_NUMBER = r"[-+]?(?:[0-9]{1,9}(?:\.[0-9]{1,8})?|\.[0-9]{1,8})(?:e[-+]?[0-9]{1,3})?"
_BLANK = r"[\s`'\"*(（:：=]"
_TO_ZH = (
    "(?:设置?|改|换|调整?|调[小大低高]|降低?|减小?|升|提高|提|加大?|增[大加]|开)?(?:到|成|为|至)"
    "|设置?的?|改|换|调|开|用的?|取|给"
)
_LINK = (
    rf"{_BLANK}{{0,4}}(?:(?:is|are|was|were|of|to|at|as|set|size|value|now|only|still|down|up|kept|fixed|unchanged"
    r"|保持|固定|大小|的?值|只能|只|现在|已经|都|也|是|"
    rf"{_TO_ZH}|了|有){_BLANK}{{0,3}}){{0,5}}"
)
_MOVED = rf"\s{{0,2}}(?:to|->|→|=>|{_TO_ZH})(?:了)?\s{{0,2}}"
_END = r"(?![A-Za-z0-9_]|\.[0-9]|\s?%|[/~–-][0-9]|\s?[kK](?![a-z]))"
_VALUE = regex(
    rf"(?P<link>{_LINK})(?:(?:from|从|由)\s{{0,2}})?(?:{_NUMBER}{_MOVED})?(?P<number>{_NUMBER})"
    rf"(?:(?P<percent>\s?%)|{_END})(?!\s?(?:,|，|、|/|or|and|和|或)\s?{_NUMBER}(?![.\w]*\s?(?!(?:and|or)(?![a-z])|[和或])[\w×*]))",
    re.IGNORECASE,
)
_FIRST = regex(rf"(?:(?:from|从|由)\s{{0,2}}){_NUMBER}{_MOVED}$|{_NUMBER}{_MOVED}$", re.IGNORECASE)
_WORD = regex(rf"{_LINK}(?P<word>[A-Za-z][A-Za-z0-9_.-]{{1,40}})(?![A-Za-z0-9_/])", re.IGNORECASE)
_ONCE_MORE = regex(
    r"(?P<link>(?:(?:set|setting|changed|changing|lowered|raised|reduced|increased) it to"
    r"|(?:then|now|later)(?: to| with)?|"
    rf"(?:然后|后来|再|又|现在)?(?:设置?|改|换|调|降低?|升|提高|加)(?:成|为|到))\s{{0,2}})(?P<number>{_NUMBER}){_END}",
    re.IGNORECASE,
)
_COUNT = regex(
    r"(?<!first )(?<!last )(?<!every )(?<![\w.前第每后])(?:(?P<number>[0-9]{1,6})"
    r"|(?P<word>one|two|three|four|a single|[一两二三四五]))[\s-]?$",
    re.IGNORECASE,
)
_COUNTS = {"one": 1, "a single": 1, "two": 2, "three": 3, "four": 4}
_COUNTS |= {"一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5}
_STATE = regex(
    r"[\s`'\"*(（=:：]{0,4}(?:from (?:true|false|on|off) to |(?:is|are|was|be|been|has|set|to|already|still|已经?|都"
    r"|也|一直|显示|是|设为|从 ?(?:true|false) ?改[成为])[\s`=:：]{0,2}){0,4}"
    r"(?:(?P<on>on|enabled|true|active|开着的?|开了|开启|已开|打开)"
    r"|(?P<off>off|disabled|false|关着|关了|关掉|没开|没用|关闭))(?![a-z])",
    re.IGNORECASE,
)
_PLUS = regex(r"\s?[+＋]")
_OFF_REACH, _ON_REACH = 18, 26
_INNER = regex(r"[A-Za-z0-9_./\\-]")
_OPTION_DASHES = regex(r"(?<![A-Za-z0-9])-{1,2}$")
_CALLED = "_enable("
"""Behind the name of a switch: ``model.gradient_checkpointing_enable()``."""
_OF_A_DEVICE = regex(r"micro|mbs|(?<![a-z])per(?![a-z])|[每单]卡|微", re.IGNORECASE)
_CHANGES = regex(r"to|->|→|[到成为至]", re.IGNORECASE)
_CHANGES_TO = regex(r"(?:to|成|为|到)\s?$", re.IGNORECASE)
_LAST_PART = regex("[,，、]")
_NAME_REACH = 12
_EXCLUSIVE = ("bf16", "fp16")
_WORDY = ("text", "any", "dtype", "attention", "enum")


class _Role(NamedTuple):
    """What a term may be: ``kind`` is a table of said.toml, or ``option``; ``needs`` must stand in the sentence too."""

    kind: str
    target: str
    needs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A value that a sentence gives a setting. ``key`` is the option's name where it was written as such.

    ``changed``: it was changed to this value. ``works``: the clause says that the run works so.
    """

    name: str
    value: Value
    span: Span
    key: str = ""
    changed: bool = False
    works: bool = False


class _Mention(NamedTuple):
    """A value of a setting, in effect or not, at ``text[start:end]``."""

    name: str
    value: Value
    start: int
    end: int
    key: str = ""
    changed: bool = False


def read(piece: Piece) -> tuple[Stated, ...]:
    """The settings that the sentences state to be in effect: for each one value, or none if they disagree."""
    stated: dict[str, list[Stated]] = {}
    for one in _stated(piece):
        stated.setdefault(one.name, []).append(one)
    chosen = [one for values in stated.values() for one in _chosen(values)]
    both = {one.name for one in chosen}.issuperset(_EXCLUSIVE)
    return tuple(one for one in chosen if not (both and one.name in _EXCLUSIVE))


def in_effect(stated: Sequence[Stated], run: RunConfig) -> Mapping[str, Setting]:
    """The settings of ``run`` with what is said of those that its configuration leaves unknown.

    What a whole configuration does not write has its default, whatever the words. An option's name is the framework's.
    """
    framework = run.framework.value if run.framework is not None else None
    algorithm = run.algorithm.value if run.algorithm is not None else None
    said: dict[str, Setting] = {}
    for one in stated:
        name = _in_framework(framework, one, algorithm)
        if name is not None and name not in run.settings:
            said.setdefault(name, as_setting(name, one.value, one.span, one.key))
    return {**run.settings, **said}


def as_setting(name: str, value: Value, span: Span, key: str = "") -> Setting:
    """A setting that the words at ``span`` state."""
    source = f"said: {' '.join(span.text.split())}"
    return Setting(name=name, value=value, option=None, source=source, key=key or name, span=span)


def _in_framework(framework: str | None, one: Stated, algorithm: str | None) -> str | None:
    """The setting that a name means there. A batch of a framework that trains on rollouts may be any of several."""
    if one.key:
        if (name := name_of(framework, one.key, "", algorithm)) is not None:
            return name
        keys = ((spec.name, key) for spec in specs().values() for key in (spec.keys(framework) if framework else ()))
        ends = {name for name, key in keys if key.key.rpartition(".")[2] == one.key and key.fits(algorithm)}
        if len(ends) == 1:
            return ends.pop()
    profile = profiles().get(framework or "")
    several = profile is not None and profile.batch not in ("", "multiplied")
    return None if several and one.name == "micro_batch" and not _OF_A_DEVICE.search(one.span.text) else one.name


def named(text: str) -> tuple[str, ...]:
    """The settings that a text names, with or without a value."""
    found: list[str] = []
    for match in _names().find(text):
        if _is_whole(text, match):
            for role in _roles()[match.concept]:
                needed = not role.needs or re.search(role.needs, text, re.IGNORECASE)
                if role.kind not in ("counted", "no_settings") and needed:
                    found += [pair.partition("=")[0] for pair in role.target.split(" ")]
    return tuple(dict.fromkeys(found))


def terms(table: str) -> Mapping[str, tuple[str, ...]]:
    """How sentences call the settings of a table of said.toml."""
    return {name: tuple(term.partition("@")[0] for term in listed) for name, listed in _TABLE[table].items()}


def _chosen(values: Sequence[Stated]) -> Sequence[Stated]:
    failing = [one for one in values if not one.works] or values
    if failing[-1].changed:
        return failing[-1:]
    return failing[:1] if len({str(one.value) for one in failing}) == 1 else ()


def _stated(piece: Piece) -> Iterator[Stated]:
    text = piece.text[:MAX_CHARACTERS]
    matches = [match for match in _names().find(text) if _is_whole(text, match)]
    before = ""
    for start, end in sentences(text):
        sentence = text[start:end]
        first, last = (bisect_left(matches, place, key=attrgetter("start")) for place in (start, end))
        if first == last and not _STEPS.search(sentence) and not (before and _ONCE_MORE.search(sentence)):
            before = ""
            continue
        clauses = clauses_of(text, start, end)
        inside = [
            (match, role)
            for match in matches[first:last]
            for role in _roles()[match.concept]
            if not role.needs or re.search(role.needs, sentence, re.IGNORECASE)
        ]
        mentions = (
            *_valued(text, (start, end), inside, before),
            *_turned(text, clauses, inside),
            *_worded(text, start, inside),
            *_every(text, clauses),
        )
        numbers = [role.target for _, role in inside if role.kind == "numbers"]
        before = numbers[-1] if numbers else ""
        for mention in sorted(mentions, key=lambda mention: mention.start):
            clause = clause_at(clauses, mention.start)
            in_effect = not clause.is_hedged(text, mention.start, changed=mention.changed)
            if in_effect and not (clause.works and isinstance(mention.value, bool | str)):
                yield Stated(
                    name=mention.name,
                    value=mention.value,
                    span=piece.span(mention.start, mention.end),
                    key=mention.key,
                    changed=mention.changed,
                    works=clause.works,
                )


def _valued(
    text: str, place: tuple[int, int], inside: Sequence[tuple[Match, _Role]], before: str
) -> Iterator[_Mention]:
    """A name with a value behind it or, of what is counted, before it; and a further value of the name before."""
    start, end = place
    for match, role in inside:
        if (
            role.kind == "counted"
            and (count := _COUNT.search(text, max(place[0], match.start - _NAME_REACH), match.start)) is not None
        ):
            value = int(count["number"]) if count["number"] else _COUNTS[count["word"].lower()]
            yield _Mention(role.target, value, count.start(), match.end)
        elif role.kind in ("numbers", "option"):
            found = _with_value(text, match, role)
            if found is not None:
                yield found
                before, start = found.name, found.end
            elif role.kind == "numbers":
                before, start = role.target, match.end
    for more in _ONCE_MORE.finditer(text, start, end) if before else ():
        own = any(abs(match.end - more.start()) <= _NAME_REACH and match.start >= start for match, _ in inside)
        if not own and (again := _number(specs().get(before), more["number"])):
            yield _Mention(before, again, *more.span(), changed=True)


def _with_value(text: str, match: Match, role: _Role) -> _Mention | None:
    spec = specs().get(role.target)
    key = match.text if role.kind == "option" or "_" in match.text else ""
    if text[match.start - 1 : match.start] in ("'", '"') and text[match.end : match.end + 1] in ("'", '"'):
        return None  # of a logged row
    if (found := _VALUE.match(text, match.end)) is not None and (spec is None or spec.kind in ("int", "number")):
        number, name = found["number"], role.target
        if name == "warmup_ratio" and not found["percent"] and float(number) >= 1:
            name = "warmup_steps"
        value = _number(specs()[name], number)
        if (
            value is None
            or (found["percent"] and not name.endswith("ratio"))
            or (name == "learning_rate" and not value)
        ):
            return None
        value = round(float(number) / 100, 6) if found["percent"] else value
        changed = _CHANGES.search(text, match.end, found.start("number")) is not None
        return _Mention(name, value, match.start, found.end(), key, changed)
    if spec is None or spec.kind not in _WORDY or (found := _WORD.match(text, match.end)) is None:
        return None
    word = found["word"].rstrip(".-")
    link = text[match.end : found.start("word")].strip("\"'` ")
    tied = link in ("=", ":", "：") or (
        link in ("", "is", "是", "用") and ("_" in word or word.lower() in ("auto", "none"))
    )
    if not tied or word.lower() in ("true", "false") or word.endswith(".py"):
        return None
    return _Mention(spec.name, _value(spec, word), match.start, found.start("word") + len(word), key)


def _value(spec: Spec, text: str) -> Value:
    value = normalise(spec.kind, "", text)
    return None if isinstance(value, Nothing) else value


def _number(spec: Spec | None, text: str) -> int | float | None:
    value = normalise("number", "", text.rstrip("."))
    if not isinstance(value, int | float) or not isfinite(value):
        return None
    return None if spec is not None and spec.kind == "int" and isinstance(value, float) else value


def _turned(text: str, clauses: Sequence[Clause], inside: Sequence[tuple[Match, _Role]]) -> Iterator[_Mention]:
    """Switches with what turns them: a word behind, the nearest one before, or a list in which each stands alone."""
    last: bool | None = None
    for match, role in inside:
        spec = specs().get(role.target)
        if not (role.kind == "switches" or (role.kind == "option" and spec is not None and spec.kind == "flag")):
            continue
        state, end = _state(text, clause_at(clauses, match.start), match, last)
        if state is None:
            continue
        last = state
        name, _, value = role.target.partition("=")
        if state or not value:
            yield _Mention(name, value or state, match.start, end, match.text if "_" in match.text else "")


def _state(text: str, clause: Clause, match: Match, last: bool | None) -> tuple[bool | None, int]:
    if text.startswith(_CALLED, match.end):
        return True, match.end
    behind = _STATE.match(text, match.end, clause.end)
    if behind is not None:
        return behind["on"] is not None, behind.end()
    before = text[max(clause.start, match.start - 2 * _ON_REACH) : match.start]
    cues = [(cue.end(), False) for cue in MOOD["off"].finditer(before) if len(before) - cue.end() <= _OFF_REACH]
    cues += [(cue.end(), True) for cue in MOOD["on"].finditer(before) if len(before) - cue.end() <= _ON_REACH]
    if cues:
        return max(cues, key=lambda cue: (cue[0], not cue[1]))[1], match.end
    if _PLUS.match(text, match.end):
        return True, match.end
    alone = not text[clause.start : clause.end].replace(match.text, "", 1).strip(" ,，()（）`.+。、")
    return (last if last is not None else True) if alone and clause.start else None, match.end


def _worded(text: str, start: int, inside: Sequence[tuple[Match, _Role]]) -> Iterator[_Mention]:
    """Words that are values themselves, unless they are denied."""
    for match, role in inside:
        before = text[max(start, match.start - _OFF_REACH) : match.start]
        if role.kind == "choices" and MOOD["off"].search(_LAST_PART.split(before)[-1]) is None:
            changed = _CHANGES_TO.search(before) is not None
            for pair in role.target.split(" "):
                name, _, value = pair.partition("=")
                yield _Mention(name, _value(specs()[name], value), match.start, match.end, changed=changed)


def _every(text: str, clauses: Sequence[Clause]) -> Iterator[_Mention]:
    for clause in clauses:
        for steps in _STEPS.finditer(text, clause.start, clause.end):
            verbs = list(_EVERY.finditer(text, clause.start, clause.end))
            if verbs:
                verb = min(
                    verbs, key=lambda verb: min(abs(verb.start() - steps.end()), abs(steps.start() - verb.end()))
                )
                yield _Mention(str(verb.lastgroup), int(steps["en"] or steps["zh"]), *steps.span())


def _is_whole(text: str, match: Match) -> bool:
    """Whether a name is not a part of a longer one, such as the variable ``NCCL_TIMEOUT``, a path or a call."""
    if text.startswith(_CALLED, match.end):
        return True
    if "_" in match.text and match.text.isupper():
        return False  # an environment variable
    before = _OPTION_DASHES.sub("", text[max(0, match.start - 4) : match.start])[-1:]
    after = text[match.end : match.end + 2]
    return not (
        (_INNER.match(before) and match.text[:1].isascii())
        or after[:1] in ("_", "/", "\\")
        or (after[:1] in (".", "-") and after[1:].isalnum() and after[1:].isascii())
    )


@cache
def _roles() -> Mapping[str, tuple[_Role, ...]]:
    """Every term's tokens → what it may be. An option's name means what the page of settings says first."""
    roles: dict[str, tuple[_Role, ...]] = {}
    for kind in ("numbers", "counted", "switches", "choices", "no_settings"):
        for target, terms in _TABLE[kind].items():
            for term in terms:
                name, _, needs = term.partition("@")
                key = " ".join(tokens_of(name))
                roles[key] = (*roles.get(key, ()), _Role(kind, target, needs))
    for spec in specs().values():
        for keys in spec.columns.values():
            for option in keys:
                if "_" in option.key and "." not in option.key and not option.how:
                    roles.setdefault(" ".join(tokens_of(option.key)), (_Role("option", spec.name, ""),))
    return roles


@cache
def _names() -> Glossary:
    return Glossary({term: Concept(id=term, kind="setting", en=(term,), zh=()) for term in _roles()})
