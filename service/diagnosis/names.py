"""Names, versions and numbers of a text, and whether another text has them. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from math import inf

from trainmedic.kb.lazy import regex

_NUMBER = regex(r"v?\d+(?:\.\d+)*(?:e[+-]?\d+)?(?:\.?(?:post|rc|dev|a|b)\d+)?(?:\.x)?", re.IGNORECASE)
_TOKEN = regex(r"-{0,2}[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_])?")
_DECIMAL = regex(r"(?<![\w.])-?\d{1,12}\.\d{1,18}(?:e[+-]?\d{1,3})?(?![\w.])", re.IGNORECASE)
# Where something stands: "line 17", "train.py:37-41", "第 17 行".
_PLACE = regex(r"(?:\blines?\s|(?<=[\w)]):|第\s?)\d{1,7}(?:\s?[-–:]\s?\d{1,7})?", re.IGNORECASE)
_CODE_SPAN = regex(r"`([^`\n]+)`")
_URL = regex(r"(?:https?://|www\.)[^\s<>()\[\]\"'`]+", re.IGNORECASE)
# A count, not a value: "16 GPUs", "30 %", "64 张卡".
_UNIT = regex(
    r"\s?(?:[a-z]+ )?(?:%|\b(?:gpus?|cards?|nodes?|ranks?|process(?:es)?|steps?|epochs?|samples?|layers?|heads?|times|"
    r"tokens?|rows?|hours?|minutes?|seconds?|days?|gb|gib|mb|mib|ms|s|x)\b|[张个卡步轮倍次块行条层秒分时天])",
    re.IGNORECASE,
)
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "w.r.t", "etc"})
_PLAIN = frozenset(
    ("true", "false", "none", "null", "nan", "inf", "pip", "install", "python", "export", "bash", "auto", "yes", "off")
)


def visible(text: str) -> str:
    """The text without invisible characters (zero-width, control, private use), its lines ended by ``\\n``."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    if text.isascii() and text.isprintable():
        return text
    # Characters of these categories can hide a name from the checks or reorder what is shown.
    hidden = {c for c in set(text) if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")}
    return text.translate({ord(c): None for c in hidden}) if hidden else text


def names(text: str) -> list[str]:
    """Options, settings, files, versions and numbers in a text, as they are written there.

    Single digits, counts below a hundred ("16 GPUs", "30 %"), line numbers and -100 are not names.
    """
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", _PLACE.sub(" ", _URL.sub(" ", text)))  # thousands
    tokens: dict[str, None] = {}
    for code in _CODE_SPAN.findall(text):
        for match in _TOKEN.finditer(code):
            token = match.group()
            if _is_name(token, code[match.end() :]) or (_is_word(token) and token.lower() not in _PLAIN):
                tokens[token] = None
    plain = _CODE_SPAN.sub(" ", text)
    for match in _TOKEN.finditer(plain):
        if _is_name(match.group(), plain[match.end() : match.end() + 24]):
            tokens[match.group()] = None
    return list(tokens)


def _is_name(token: str, after: str) -> bool:
    bare = token.lstrip("-").rstrip("-")
    if _NUMBER.fullmatch(bare):
        # A single digit is a count more often than a value, and -100 is the label that losses ignore everywhere.
        if bare.isdigit():
            return len(bare) > 1 and token != "-100" and not (len(bare) == 2 and _UNIT.match(after))
        return True
    if bare.lower() in _ABBREVIATIONS or not bare[:1].isalpha():
        return False
    if token.startswith("--"):
        return True
    return "_" in bare.strip("_") or re.fullmatch(r"[a-z][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+", bare) is not None


def _is_word(token: str) -> bool:
    return len(token) > 2 and token.lstrip("-")[:1].isalpha()


def spellings(name: str) -> Iterator[str]:
    """The ways to write the same name or number."""
    bare = name.casefold().strip("-").removesuffix(".x")
    yield bare
    if not _NUMBER.fullmatch(bare):
        yield bare.replace("-", "_")
        yield bare.replace("_", "-")
        return
    bare = bare.removeprefix("v")
    yield _normal_number(bare)
    # 2.0.0 and 2.0 name the same release.
    yield re.sub(r"(?:\.0)+$", "", bare)
    try:
        value = float(bare)
    except ValueError:
        return
    if value and abs(value) < 1e15:
        mantissa, exponent = f"{value:e}".split("e")
        short = mantissa.rstrip("0").rstrip(".")
        yield from (f"{m}e{e}" for m in (short, f"{short}.0") for e in (exponent, str(int(exponent))))
        yield f"{value:.12f}".rstrip("0").rstrip(".")


def _normal_number(number: str) -> str:
    """One spelling for all numbers of the same value; versions are returned unchanged."""
    bare = number.removeprefix("v")
    try:
        value = float(bare) if "e" in bare or "." in bare else inf
    except ValueError:
        return bare
    return bare if value == inf else f"{value:g}"


def decimals(text: str) -> Iterator[float]:
    """The numbers with a point in a text, without their signs."""
    return (abs(float(match.group())) for match in _DECIMAL.finditer(text))


def is_rounded(name: str, numbers: Collection[float]) -> bool:
    """Whether a name is one of the numbers, told with fewer digits: 0.93 for 0.927384."""
    if not re.fullmatch(r"\d+\.\d+", name):
        return False
    places, value = len(name.partition(".")[2]), float(name)
    return any(round(number, places) == value for number in numbers)


def occurs(name: str, text: str) -> bool:
    """Whether a lower-case text contains the whole name: 1.2 is not in 11.25, but 4.46 is in 4.46.2."""
    for spelling in dict.fromkeys(spellings(name)):
        before, after = (
            (r"(?<![0-9.])", r"(?![0-9])") if spelling[:1].isdigit() else (r"(?<![a-z0-9])", r"(?![a-z0-9])")
        )
        if spelling and re.search(before + re.escape(spelling) + after, text):
            return True
    return False
