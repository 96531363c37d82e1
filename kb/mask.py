"""Secrets and e-mail addresses → asterisks, before anything else reads or stores a text.

The length and the line breaks do not change, so positions remain those of the user's text. What names the kind of
secret (``hf_``, the key of ``password=``, the domain of a mail address) remains readable. Token shapes are those that
the issuers document. Linear: candidates are found by plain substring search and examined within bounded windows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.kb.data_files import load_table
from trainmedic.kb.language import lowered
from trainmedic.kb.lazy import regex

_PREFIX = 16  # the longest prefix of a known shape
_ROUNDS = 4  # masking one secret can complete the shape of another; two rounds were always enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    text: str
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def mask(text: str) -> Masked:
    """Mask every secret in ``text``: same length, same line breaks, and masking again changes nothing."""
    counts: dict[str, int] = {}
    rounds = _ROUNDS
    while rounds and (ranges := _ranges(text)):
        rounds -= 1
        parts: list[str] = []
        done = 0
        for start, end, kind in ranges:
            parts.append(text[done:start])
            parts.append(_NOT_BREAK.sub("*", text[start:end]))
            counts[kind] = counts.get(kind, 0) + 1
            done = end
        parts.append(text[done:])
        text = "".join(parts)
    return Masked(text=text, counts=MappingProxyType(dict(sorted(counts.items()))))


_NOT_BREAK = regex(r"[^\r\n]")

_TABLE = load_table("secret_shapes.toml")
_SHAPES = tuple((shape["kind"], tuple(shape["needles"]), regex(shape["pattern"])) for shape in _TABLE["shapes"])
_FOLDED = tuple((shape["kind"], shape["needle"], regex(shape["pattern"], re.IGNORECASE)) for shape in _TABLE["folded"])
_KEYS = tuple(_TABLE["words"]["keys"])
_TOKEN_WORDS = frozenset(_TABLE["words"]["token_words"])

_LOCAL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"
_MAIL_HOST = regex(
    r"@(?:[A-Za-z0-9-]{1,63}\.){1,5}(?:com|org|net|edu|gov|mil|info|dev|app|xyz|tech|cloud|[a-z]{2})(?![A-Za-z0-9_(])"
)
_BEGIN = regex(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = regex(r"[A-Za-z0-9+/=\\\s:,\-*]*")
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

_ALWAYS = regex(
    r"(?:.*_)?(?:\w*api_?key|\w*secret(?:_?(?:access_?)?key)?|\w*access_?key(?:_id|_secret)?|\w*passwd|\w*password"
    r"|passphrase|encryption_key|private_key|密码|口令|密钥)s?"
)
_TOKEN = regex(r"(?:.*_)?(?P<before>[a-z0-9]*?)_?token")
_VALUE = regex(
    r"(?P<close>\\?[\"'])?[ \t]*\]?[ \t]*(?P<separator>=>|:=|==?|[:：]|,|是)?[ \t]*[rbu]?"
    r"(?:(?P<quote>\\?[\"'])(?P<quoted>[^\"'\n]{1,2048})|(?P<bare>[^\s,;'\"\\)\]}&]{1,4096}))"
)
_NOTHING = regex(
    r"(?:none|null|nil|true|false|yes|no|on|off|auto|empty|unset|hidden|redacted|required|optional|str|bool|int|self"
    r"|[\d.,:+-]+(?:e[+-]?\d+)?|.{0,16}?\*{3,}.{0,4})",
    re.IGNORECASE,
)
_REFERENCE = regex(r"[$<{%(\[|]|~/|\.{0,2}/|[\w.]+\(|os\.|args\.|self\.|config\.|cfg\.|\w+\[")
_HAS_DIGIT_AND_LETTER = regex(r"(?=.*\d)(?=.*[A-Za-z])")


def _ranges(text: str) -> list[tuple[int, int, str]]:
    """Non-overlapping ranges to mask, in order. A known shape in a keyed value keeps its prefix."""
    ranges: list[tuple[int, int, str]] = [*_blocks(text), *_shaped(text)]
    lower = lowered(text)
    for kind, needle, pattern in _FOLDED:
        if needle in lower:
            ranges.extend((*match.span("secret"), kind) for match in pattern.finditer(text))
    exact = _merged(ranges)
    starts = [start for start, _, _ in exact]
    for start, end, kind in (*_keyed(text, lower), *_mails(text)):
        nearest = bisect_right(starts, start + _PREFIX) - 1
        if nearest < 0 or exact[nearest][1] <= start or exact[nearest][1] + 4 < end:
            ranges.append((start, end, kind))
    return _merged(ranges)


def _merged(ranges: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    merged: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(ranges, key=lambda item: item[0]):  # stable: the first kind wins if starts are equal
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
        else:
            merged.append((start, end, kind))
    return merged


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    if "PRIVATE KEY" not in text:
        return
    done = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        end = text.find("-----END", begin.end(), begin.end() + 65536)
        if end < 0:
            body = _BODY.match(text, begin.end())
            end = body.end() if body else begin.end()
        done = end
        if text[begin.end() : end].strip("*\\n \t\r\n"):
            yield begin.end(), end, "private_key"


def _shaped(text: str) -> Iterator[tuple[int, int, str]]:
    for kind, needles, pattern in _SHAPES:
        if any(map(text.__contains__, needles)):
            for match in pattern.finditer(text):
                yield (*match.span("secret"), kind)


def _mails(text: str) -> Iterator[tuple[int, int, str]]:
    if "@" not in text:
        return
    for match in _MAIL_HOST.finditer(text):
        window = text[max(0, match.start() - 64) : match.start()]
        local = window[len(window.rstrip(_LOCAL)) :].lstrip("._%+-")
        if local and local not in ("git", "https", "http"):
            yield match.start() - len(local), match.start(), "email"


def _keyed(text: str, lower: str) -> Iterator[tuple[int, int, str]]:
    """Values of keys that name a secret, in every notation: ``K=v``, ``"k": "v"``, ``--k v``, ``f(k="v")``."""
    for key in _KEYS:
        at = lower.find(key)
        while at >= 0:
            after = at + len(key)
            start, end = _name(text, at, after)
            if _names_secret(text[start:end]) and (value := _value(text, start, end)) is not None:
                yield value
            at = lower.find(key, after)


def _name(text: str, start: int, end: int) -> tuple[int, int]:
    window = text[max(0, start - 64) : start]
    start -= len(window) - len(window.rstrip(_NAME))
    window = text[end : end + 32]
    return start, end + len(window) - len(window.lstrip(_NAME))


def _plain_name(name: str) -> str:
    return name.lower().strip(".-").replace("-", "_").rpartition(".")[2]


def _names_secret(name: str) -> bool:
    plain = _plain_name(name)
    if _ALWAYS.fullmatch(plain):
        return True
    match = _TOKEN.fullmatch(plain)
    return match is not None and match["before"] not in _TOKEN_WORDS and not _TOKEN_WORDS.intersection(plain.split("_"))


def _value(text: str, start: int, end: int) -> tuple[int, int, str] | None:
    match = _VALUE.match(text, end)
    if match is None:
        return None
    separator, name = match["separator"], text[start:end]
    flag = name.startswith("-")
    if separator in (None, "是") and not flag and not (separator and match["bare"]):
        return None
    if separator == "," and not (match["close"] and match["quote"]):
        return None
    group = "quoted" if match["quoted"] is not None else "bare"
    value = match[group].rstrip("\\")
    if _NOTHING.fullmatch(value) or _REFERENCE.match(value) or (separator is None and value.startswith("-")):
        return None
    if not _ALWAYS.fullmatch(_plain_name(name)):  # a token: only what looks like one
        if len(value) < 8 or " " in value or not (_HAS_DIGIT_AND_LETTER.match(value) or len(value) >= 24):
            return None
        return match.start(group), match.start(group) + len(value), "token"
    if len(value) < 3 or (
        group == "bare" and not flag and separator in (":", "：") and value.isalpha() and len(value) < 5
    ):
        return None
    kind = "password" if "pass" in name.lower() or name in ("密码", "口令") else "secret"
    return match.start(group), match.start(group) + len(value), kind
