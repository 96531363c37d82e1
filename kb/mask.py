"""Secrets and e-mail addresses → asterisks, before anything else reads or stores a text.

The length and the line breaks do not change, so positions remain those of the user's text. What names the kind of
secret (``hf_``, the key of ``password=``, the domain of a mail address) remains readable. Token shapes are those that
the issuers document. Linear: candidates are found by plain substring search and examined within bounded windows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.data_files import load_table
from trainmedic.kb.language import is_chinese, lowered
from trainmedic.kb.lazy import regex

_SHORTEST = 14  # characters of the shortest token with its prefix
_PREFIX = 16  # the longest prefix of a known shape
_ROUNDS = 4  # masking one secret can complete the shape of another; two rounds were always enough
_PAIR_WINDOW = 1000  # characters between a name and its value in another field
_NEAR_WINDOW = 80  # characters behind the name of a secret
_KEY_PART = 24  # characters of a line of a private key, at least, except for the last
_KEY_LINES = 400  # lines of a private key whose beginning or end is missing

Range = tuple[int, int, str]
Span = tuple[int, int]
Evidence = Literal["name", "form", "randomness", "nearness"]
"""The sign that the value of a name is a secret: the name alone, the name and the form of a token, the name and a
random look, or only a long and random look of something near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    text: str
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def mask(text: str) -> Masked:
    """Mask every secret in ``text``: same length, same line breaks, and masking again changes nothing."""
    counts: dict[str, int] = {}
    search, rounds = _Search.of(text), _ROUNDS
    while rounds and (ranges := [*_ranges(text, search), *(_rejoined(text) if search.broken else ())]):
        rounds -= 1
        parts: list[str] = []
        done = 0
        for start, end, kind in _merged(ranges):
            parts.append(text[done:start])
            parts.append(_hidden(text[start:end]))
            counts[kind] = counts.get(kind, 0) + 1
            done = end
        parts.append(text[done:])
        text = "".join(parts)
    return Masked(text=text, counts=MappingProxyType(dict(sorted(counts.items()))))


def _hidden(secret: str) -> str:
    """Asterisks; line breaks and the indentation of further lines, which YAML needs, stay."""
    first, *lines = secret.split("\n")
    hidden = [_NOT_BREAK.sub("*", first)]
    for line in lines:
        bare = line.lstrip(" \t")
        hidden.append(line[: len(line) - len(bare)] + _NOT_BREAK.sub("*", bare))
    return "\n".join(hidden)


_NOT_BREAK = regex(r"[^\r\n]")

_TABLE = load_table("secret_shapes.toml")
# What may stand before a token: no letter and no digit, but the end of an escape (\n, \x1b, \u0026, %3D, a colour).
_LEFT = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[abefnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\[0-7]{3})"
    r"|(?<=%[0-9A-Fa-f]{2})|(?<=[\[;\d]m)|(?<=\[K))"
)


def _one_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def _token_pattern(token: Mapping[str, str]) -> re.Pattern[str]:
    body = token["body"] if "(?P<secret>" in token["body"] else f"(?P<secret>{token['body']})"
    return regex(f"{_LEFT}(?:{_one_of(token['prefixes'])}){body}", re.ASCII)


_TOKENS = tuple(
    (prefix, token["kind"], pattern)
    for token in _TABLE["tokens"]
    for pattern in (_token_pattern(token),)
    for prefix in token["prefixes"]
    if not any(prefix != other and prefix.startswith(other) for other in token["prefixes"])
)
_SHAPES = tuple((tuple(shape["needles"]), shape["kind"], regex(shape["pattern"])) for shape in _TABLE["shapes"])
_FOLDED = tuple(
    (tuple(shape["needles"]), shape["kind"], regex(shape["pattern"], re.IGNORECASE)) for shape in _TABLE["folded"]
)
_NAMES = _TABLE["names"]
_PASSWORDS = tuple(_NAMES["passwords"])
_NEAR = frozenset(_NAMES["near"])
_SAYS = frozenset(_NAMES["says"])
_TOKEN_WORDS = frozenset(_NAMES["token_words"])

_LOCAL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"
_MAIL_HOST = regex(
    r"@(?:[A-Za-z0-9-]{1,63}\.){1,5}(?:com|org|net|edu|gov|mil|info|dev|app|xyz|tech|cloud|[a-z]{2})(?![A-Za-z0-9_(])"
)
_PEM = regex(r"-----(?P<side>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_REST_OF_LINE = regex(r"[A-Za-z0-9+/=\\ :,*\-]*(?:[\"'][ \t+\\,]*(?=\r?\n))?")
_KEY_HEADER = regex(r"[^\n]{0,80}?(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset): [^\n]{0,200}")
_BASE64 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/="
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

_SURE = regex(_NAMES["sure"], re.VERBOSE)
_LIKELY = regex(_NAMES["likely"], re.VERBOSE)
_WHOLE = frozenset(_NAMES["whole_needles"])
_WORD = regex(rf"[^a-z]?(?:{_one_of(_WHOLE)})(?![a-z])")
_CAPITAL = regex(_NAMES["capital"], re.VERBOSE)
_TOKEN = regex(r"(?:.*_)?(?P<before>[a-z0-9]*?)_?token")
_BARE = r"[^\s,;'\"\\)\]}&，。；、！？）】」]{1,4096}"
_VALUE = regex(
    r"(?P<close>\\?[\"'])?[ \t]*\]?[ \t]*"
    rf"(?P<separator>=>|:=|==?|[:：＝]|,|%3[AaDd]|{_one_of(_NAMES['says'])}"
    rf"|(?<=[ \t])(?P<says>{_one_of(_NAMES['says_words'])})(?=[ \t:])[ \t]*[:=]?)?[ \t]*[rbu]?"
    rf"(?:(?P<quote>\\?[\"'])(?P<quoted>[^\"'\n]{{1,2048}})|(?P<bare>{_BARE}))"
)
_BLOCK = regex(
    r"\\?[\"']?[ \t]*:[ \t]*[|>][+-]?[ \t]*\r?\n(?P<indent>[ \t]+)(?P<value>\S[^\r\n]{2,4095})"
    r"(?:\r?\n(?P=indent)[^\r\n]{1,4096}){0,63}"
)
_NEXT_LINE = regex(
    r"\\?[\"']?[ \t]*[:=：][ \t]*(?:\r?\n|\\n)[ \t]+\\?[\"']?(?P<value>[^\s\"'\\,:-][^\s\"'\\,]{2,4095})(?<!:)"
    r"\\?[\"']?,?[ \t]*(?=\r?\n|\\n|$)"
)
_NEXT_ITEM = regex(
    r"(?:\\?[\"']?[ \t]*\r?\n[ \t]*-[ \t]+|(?P<comma>\\?[\"'],[ \t]*(?:\r?\n|\\n)[ \t]*(?=\\?[\"'])))\\?[\"']?"
    r"(?P<value>[^\s\"',\\-][^\s\"',\\]{2,4095})"
)
_ELEMENT = regex(r">[ \t]*(?P<value>[^<>\s]{3,4096})[ \t]*</")
_COLUMN = regex(
    r"[`*\"']{0,2}(?:(?P<apart>[ \t]*(?P<bar>\|)[ \t]*|\t[ \t]{0,80}|[ \t]{2,80})|[ \t])[`\"']?"
    r"(?P<value>[^\s|\"'`,;]{3,4096})"
)
_SETTER = regex(rf"(?<![\w-])(?:{_one_of(_NAMES['setters'])})[ \t]+$")
_PAIR_NAME = regex(
    rf"{_LEFT}(?<!_)(?:{_one_of(_NAMES['pair_names'])})(?:\\?[\"']?[ \t]*[:=][ \t]*|>|(?<=--name)[ \t])\\?[\"']?$",
    re.IGNORECASE,
)
_PAIR_NAME_END = regex(r"\\?[\"']?[ \t]*(?:[,;}]|\r?\n|\\[rn]|</|--|$)")
_PAIR_CUT = regex(r"[{}]|(?:\n|\\n)[ \t]*(?:-[ \t]|\[\[|\r?\n)|</?prop")
_PAIR_VALUES = tuple(_NAMES["pair_values"])
_PAIR_VALUE = regex(
    rf"{_LEFT}(?<!_)(?:{_one_of(_NAMES['pair_values'])})\\?[\"']?(?:[ \t]*[:=]|>|(?<=--value))[ \t]*"
    r"(?:[|>][+-]?[ \t]*\r?\n[ \t]*)?"
    rf"(?:\\?[\"'](?P<quoted>[^\"'\n]{{1,2048}})|(?P<bare>(?!</){_BARE.replace('[^', '[^<', 1)}))",
    re.IGNORECASE,
)
_NOTHING = regex(
    r"(?:none|null|nil|true|false|yes|no|on|off|auto|empty|unset|hidden|redacted|required|optional|str|bool|int|self"
    r"|[\d.,:+-]+(?:e[+-]?\d+)?|.{0,16}?\*{3,}.{0,4})",
    re.IGNORECASE,
)
_REFERENCE = regex(r"[$<{%(\[|]|~/|\.{0,2}/|[\w.]+\(|os\.|args\.|self\.|config\.|cfg\.|\w+\[")
_HAS_DIGIT_AND_LETTER = regex(r"(?=.*\d)(?=.*[A-Za-z])")
_RUN = regex(r"[A-Za-z0-9!#$%^~+=@]{8,}")
_TURN = regex(r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]")
_UNKNOWN = regex(r"(?<![\w/.@+*-])[A-Za-z0-9][A-Za-z0-9+=_-]{19,511}(?![\w/.(\[@-])", re.ASCII)
_HEX = regex(r"[0-9a-f]+|[0-9A-F]+|[0-9a-f-]+")
_SWITCH = regex(r"(?<=[a-z])[A-Z]|(?<=[A-Z])[a-z]")
_CODE = r"(?:(?:\x1b|\\x1[bB]|\\u001[bB]|\\033|\\e)\[[0-9;]{0,16}[A-Za-z]|[\u00ad\u200b-\u200f\u2060\ufeff])"
_BREAK = regex(rf"(?<=[\w-]){_CODE}{{1,4}}(?=[\w-])", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What of the table can be in a text. Masking adds no needle, so it holds for the masked text as well."""

    tokens: tuple[tuple[str, str, re.Pattern[str]], ...]
    shapes: tuple[tuple[str, re.Pattern[str]], ...]
    names: tuple[str, ...]
    keys: bool
    mails: bool
    broken: bool

    @classmethod
    def of(cls, text: str) -> _Search:
        lower = lowered(text)
        words = "\n".join([word for word in text.split() if len(word) >= _SHORTEST])
        names = [*_NAMES["needles"], *_NAMES["whole_needles"], *(() if text.isascii() else _NAMES["wide_needles"])]
        return cls(
            tokens=tuple(token for token in _TOKENS if token[0] in words),
            shapes=tuple(
                (kind, pattern)
                for shapes, searched in ((_SHAPES, text), (_FOLDED, lower))
                for needles, kind, pattern in shapes
                if any(map(searched.__contains__, needles))
            ),
            names=tuple(name for name in names if name in lower),
            keys="PRIVATE KEY" in text,
            mails="@" in text,
            broken=_is_broken(text),
        )


def _ranges(text: str, search: _Search) -> list[Range]:
    """Non-overlapping ranges to mask, in order. A known shape in a keyed value keeps its prefix."""
    ranges = list(_tokens(text, search))
    if search.keys:
        ranges.extend(_private_keys(text))
    for kind, pattern in search.shapes:
        ranges.extend((*match.span("secret"), kind) for match in pattern.finditer(text))
    exact = _merged(ranges)
    starts = [start for start, _, _ in exact]
    for start, end, kind in (*_keyed(text, search), *(_mails(text) if search.mails else ())):
        nearest = bisect_right(starts, start + _PREFIX) - 1
        if nearest < 0 or exact[nearest][1] <= start or exact[nearest][1] + 4 < end:
            ranges.append((start, end, kind))
    return _merged(ranges)


def _merged(ranges: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for start, end, kind in sorted(ranges, key=lambda item: item[0]):  # stable: the first kind wins if starts are equal
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, kind))
    return merged


def _is_broken(text: str) -> bool:
    """Whether colours or invisible characters stand within words: ``hf_abc\\x1b[0mdef``."""
    coloured = "\x1b" in text or "1b[" in text or "[0m" in text
    return (coloured or not text.isascii()) and _BREAK.search(text) is not None


def _rejoined(text: str) -> Iterator[Range]:
    """The ranges of the text without what breaks its words, as ranges of the text."""
    parts: list[str] = []
    places, origins = [], []  # where each part begins, in the joined text and in the text
    length = done = 0
    for start, end in (*(match.span() for match in _BREAK.finditer(text)), (len(text), len(text))):
        parts.append(text[done:start])
        places.append(length)
        origins.append(done)
        length += start - done
        done = end

    def origin(place: int) -> int:
        part = bisect_right(places, place) - 1
        return origins[part] + place - places[part]

    joined = "".join(parts)
    for start, end, kind in _ranges(joined, _Search.of(joined)):
        yield origin(start), origin(end - 1) + 1, kind


def _tokens(text: str, search: _Search) -> Iterator[Range]:
    for prefix, kind, pattern in search.tokens:
        at = text.find(prefix)
        while at >= 0:
            match = pattern.match(text, at)
            if match:
                yield (*match.span("secret"), kind)
            at = text.find(prefix, match.end() if match else at + 1)


def _private_keys(text: str) -> Iterator[Range]:
    """Private keys, also with only one of their ends and with a prefix of the log before each line."""
    done = 0
    for mark in _PEM.finditer(text):
        if mark.start() < done:
            continue
        if mark["side"] == "BEGIN":
            start, end = mark.end(), text.find("-----END", mark.end(), mark.end() + 65536)
            done = end = end if end >= 0 else _end_of_key(text, start)
        else:
            start, end = _start_of_key(text, done, mark.start()), mark.start()
            done = mark.end()
        if text[start:end].strip("*\\n \t\r\n"):
            yield start, end, "private_key"


def _end_of_key(text: str, start: int) -> int:
    """The end of a private key that has no end mark."""
    rest = _REST_OF_LINE.match(text, start)
    end = rest.end() if rest else start
    if text[end : end + 1] not in ("", "\r", "\n"):
        return end
    mark = text.rfind("-----BEGIN", 0, start)
    before: str = text[text.rfind("\n", max(0, mark - 200), mark) + 1 : mark]
    at, form = end, None
    for _ in range(_KEY_LINES):
        at = text.find("\n", at) + 1
        if not at:
            break
        stop = text.find("\n", at)
        line = text[at : stop if stop >= 0 else len(text)]
        part = _key_part(line, before)
        if part is not None and form in (None, _form(line[:part])):
            end = at + len(line)
            before, form = line[:part], _form(line[:part])
            if len(line) - part < _KEY_PART:
                break
        elif line.strip() not in ("", before.strip()) and not _KEY_HEADER.match(line):
            break
    return end


def _start_of_key(text: str, floor: int, end: int) -> int:
    """The start of a private key that has no begin mark; ``end`` if none stands before the end mark."""
    begin = max(floor, text.rfind("\n", floor, end) + 1)
    line = text[begin:end]
    before: str | None = line
    escaped = line.rstrip(_BASE64 + "\\")
    long = len(line) - len(escaped) >= _KEY_PART
    start, form = (begin + len(escaped) if long else end), None
    for _ in range(_KEY_LINES):
        if begin <= floor:
            break
        stop = begin - 1
        begin = max(floor, text.rfind("\n", floor, stop) + 1)
        part = _key_part(text[begin:stop], before)
        if part is None or form not in (None, _form(text[begin : begin + part])):
            break
        start, form = begin + part, _form(text[begin : begin + part])
        long = long or stop - start >= _KEY_PART
        before = None  # only the last line is short
    return start if long else end


def _form(prefix: str) -> str:
    """Common prefix of a log's lines, ignoring timestamps."""
    return "".join("0" if letter.isdigit() else letter for letter in prefix)


def _key_part(line: str, before: str | None) -> int | None:
    """Where the part of a private key begins in a line that ends with some; after ``before`` it may be short."""
    bare = line.rstrip(" \t\r\"'\\,+").removesuffix("\\n")
    prefix = bare.rstrip(_BASE64)
    part = bare[len(prefix) :]
    is_long = len(part) >= _KEY_PART and len(_TURN.findall(part)) >= 2
    return len(prefix) if is_long or (part and prefix == before) else None


def _mails(text: str) -> Iterator[Range]:
    for match in _MAIL_HOST.finditer(text):
        window = text[max(0, match.start() - 64) : match.start()]
        local = window[len(window.rstrip(_LOCAL)) :].lstrip("._%+-")
        if local and local not in ("git", "https", "http"):
            yield match.start() - len(local), match.start(), "email"


def _keyed(text: str, search: _Search) -> Iterator[Range]:
    """Values of names that name a secret, in every notation: ``K=v``, ``"k": "v"``, ``--k v``, ``name: K`` …"""
    if not search.names:
        return
    lower = lowered(text)
    known: dict[str, Evidence | None] = {}  # a log repeats its names
    for needle in search.names:
        at = lower.find(needle)
        while at >= 0:
            after = at + len(needle)
            at, found = lower.find(needle, after), at
            # "ak" is not a part of "break".
            if needle in _WHOLE and _WORD.match(lower, max(0, found - 1)) is None:
                continue
            start, end = _name(text, found, after)
            name = text[start:end]
            if name not in known:
                known[name] = _evidence(name)
            evidence = known[name]
            if evidence is None:
                continue
            values = [] if evidence == "nearness" else _values(text, start, end, evidence)
            yield from ((*value, _kind(name, evidence)) for value in values)
            if not values:
                yield from _nearby(text, end)


def _name(text: str, start: int, end: int) -> tuple[int, int]:
    window = text[max(0, start - 64) : start]
    left = window.rstrip(_NAME)
    # "API key" is one name.
    if len(left) == len(window) and text[start : start + 3] in ("key", "Key", "KEY") and left.endswith(" "):
        spaced = left[:-1].rstrip(_LETTERS)
        if len(spaced) < len(left) - 1 and not spaced.endswith("-"):
            left = spaced
    right = text[end : end + 32]
    return start - len(window) + len(left), end + len(right) - len(right.lstrip(_NAME))


def _plain_name(name: str) -> str:
    plain = name.lower().strip(".-").replace("-", "_").replace(" ", "_")
    parts = plain.rsplit(".", 2)
    return f"{parts[-2]}_key" if parts[-1] == "key" and len(parts) > 1 else parts[-1]


def _evidence(name: str) -> Evidence | None:
    """What tells that the value of this name is a secret; None if it never is."""
    plain = _plain_name(name)
    if _SURE.fullmatch(plain):
        return "name"
    if _LIKELY.fullmatch(plain) or (name.isupper() and _CAPITAL.fullmatch(plain)):
        return "randomness"
    match = _TOKEN.fullmatch(plain)
    if match and match["before"] not in _TOKEN_WORDS and not _TOKEN_WORDS.intersection(plain.split("_")):
        return "form"
    return "nearness" if plain in _NEAR or name.rpartition(" ")[2].lower() in _NEAR else None


def _kind(name: str, evidence: Evidence) -> str:
    if any(word in name.lower() for word in _PASSWORDS):
        return "password"
    return "secret" if evidence == "name" else "token"


def _values(text: str, start: int, end: int, evidence: Evidence) -> list[Span]:
    """The values of the name at these places. Where the notation alone shows no value, it must look random."""
    if _PAIR_NAME.search(text[max(0, start - 40) : start]):
        values = list(_siblings(text, start, end, evidence))
        if values or _PAIR_NAME_END.match(text, end):
            return values
    value = _beside(text, start, end, evidence) or _apart(text, start, end, evidence)
    return [value] if value else []


def _beside(text: str, start: int, end: int, evidence: Evidence) -> Span | None:
    """A value behind its name in the same line."""
    flag = text[start] == "-"
    match = _VALUE.match(text, end)
    if match is None:
        return None
    group, separator = _group(match), match["separator"]
    bare = group == "bare"
    if separator is None:
        shown = flag and not match[group].startswith("-")
    elif separator == ",":
        shown = not bare and match["close"] is not None
    else:
        shown = not (bare and is_chinese(match["bare"][0])) and not (separator in _SAYS and not bare)
    # "Password: yes" asks for one.
    asked = bare and not flag and separator in (":", "：") and len(match["bare"]) < 5 and match["bare"].isalpha()
    if not shown or asked:
        return None
    in_prose = " " in text[start:end] or match["says"] is not None
    return _secret_span(match, group, "randomness" if in_prose else evidence)


def _group(match: re.Match[str]) -> str:
    return "bare" if match["quoted"] is None else "quoted"


def _apart(text: str, start: int, end: int, evidence: Evidence) -> Span | None:
    """A value between tags, in the next line, the next item of a list or the next column."""
    name = text[start:end]
    flag = name.startswith("-")
    if text[start - 1 : start] == "<" and (match := _ELEMENT.match(text, end)):
        return _secret_span(match, "value", evidence)
    if match := _BLOCK.match(text, end):
        span = _secret_span(match, "value", evidence)
        return (span[0], match.end()) if span and evidence == "name" else span
    if match := _NEXT_LINE.match(text, end):
        return _secret_span(match, "value", "randomness")
    if match := _NEXT_ITEM.match(text, end):
        return _secret_span(match, "value", evidence if flag else "randomness") if flag or match["comma"] else None
    if match := _COLUMN.match(text, end):
        is_set = match["bar"] is None and _SETTER.search(text[max(0, start - 20) : start]) is not None
        if is_set or match["apart"] or (name.isupper() and "_" in name):
            return _secret_span(match, "value", evidence if is_set else "randomness")
    return None


def _siblings(text: str, start: int, end: int, evidence: Evidence) -> Iterator[Span]:
    """The value of a pair whose name stands at these places: in a field behind it, or before it."""
    last, first, values = end + _PAIR_WINDOW, max(0, start - _PAIR_WINDOW), 0
    if _holds_pair_value(text[end:last]):
        cut = _PAIR_CUT.search(text, end, last)
        found = _PAIR_VALUE.search(text, end, cut.start() if cut else last)
        whole = found and _PAIR_VALUE.match(text, found.start())  # to its end, which may be beyond the window
        if whole and (value := _secret_span(whole, _group(whole), evidence)):
            values += 1
            yield value
    if _holds_pair_value(text[first:start]):
        for cut in _PAIR_CUT.finditer(text, first, start):
            first = cut.end()
        before = [*_PAIR_VALUE.finditer(text, first, start)]
        # With another behind the name it may belong to the pair before.
        if before and (value := _secret_span(before[-1], _group(before[-1]), "randomness" if values else evidence)):
            yield value


def _holds_pair_value(window: str) -> bool:
    return any(map(window.lower().__contains__, _PAIR_VALUES))


def _nearby(text: str, end: int) -> Iterator[Range]:
    """What looks like nothing but a secret, in any form, on the line within a few words of a name of one."""
    line = text.find("\n", end, end + _NEAR_WINDOW)
    stop = line if line >= 0 else min(len(text), end + _NEAR_WINDOW)
    while (near := _UNKNOWN.search(text, end, stop)) and (whole := _UNKNOWN.match(text, near.start())):
        if len(_TURN.findall(whole[0])) >= 4 and not _HEX.fullmatch(whole[0]):
            yield whole.start(), whole.end(), "unknown_secret"
        end = whole.end()


def _secret_span(match: re.Match[str], group: str, evidence: Evidence) -> Span | None:
    value = match[group].rstrip("\\")
    if _NOTHING.fullmatch(value) or _REFERENCE.match(value):
        return None
    if evidence == "name":
        secret = len(value) >= 3
    elif evidence == "form":
        secret = len(value) >= 8 and " " not in value and bool(_HAS_DIGIT_AND_LETTER.match(value) or len(value) >= 24)
    else:
        secret = _is_random(value)
    return (match.start(group), match.start(group) + len(value)) if secret else None


def _is_random(value: str) -> bool:
    """Letters and digits, or small and capital ones, take turns as in no word and no ``python3.10`` or ``0x7f3c``."""
    run = max(_RUN.findall(value), key=len, default="")
    turns = len(_TURN.findall(run))
    mixed = len(run) >= 20 and run not in (run.lower(), run.upper())
    if not run or value.startswith("0x") or "(" in value:
        return False
    return turns >= (1 if mixed else 2) or (len(run) >= 16 and len(_SWITCH.findall(run)) >= 0.45 * len(run))
