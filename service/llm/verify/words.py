"""Words, names and numbers of a text, for comparing a sentence with a source. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from math import inf

from trainmedic.kb.lazy import regex
from trainmedic.service.llm.verify.vocabulary import UNIT

PASSAGE = 8
"""This many consecutive words of a protected text are a leak."""
REDACTED = "\ue000"
"""Replaces a word of a protected passage."""

_WORD = regex(r"[A-Za-z0-9]+(?:[_.\-/][A-Za-z0-9]+)*|[\u4e00-\u9fff]+")
_NUMBER = regex(r"v?\d+(?:\.\d+)*(?:e[+-]?\d+)?(?:\.?(?:post|rc|dev|a|b)\d+)?(?:\.x)?", re.IGNORECASE)
_TOKEN = regex(r"-{0,2}[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_])?")
CODE_SPAN = regex(r"`([^`\n]+)`")
URL = regex(r"(?:https?://|www\.)[^\s<>()\[\]\"'`]+", re.IGNORECASE)
_PROSE_WORD = regex(r"[\u3400-\u9fff]|(?:(?![\u3400-\u9fff])[^\W_\d])+")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "w.r.t", "etc"})
_PLAIN = frozenset(
    ("true", "false", "none", "null", "nan", "inf", "pip", "install", "python", "export", "bash", "auto", "yes", "off")
)
_STOP_WORDS = (
    "the and for that this with from are was were has have had not but its into than then when where which while will "
    "would can could may might should your you our all any some each other more most very only also because so it is "
    "as at by of on or to in an be if no do does did there here these those they them such been being using too"
)
_STOP = frozenset(_STOP_WORDS.split())
_ENDINGS = ("ing", "ed", "es", "s", "e")


def visible(text: str) -> str:
    """The text without invisible characters (zero-width, control, private use), its lines ended by ``\\n``."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    if text.isascii() and text.isprintable():
        return text
    # Characters of these categories can hide a name from the checks or reorder what is shown.
    hidden = {c for c in set(text) if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")}
    return text.translate({ord(c): None for c in hidden}) if hidden else text


def content(text: str) -> frozenset[str]:
    """The words of a text that carry meaning: stems of Latin words and of the parts of names, whole numbers, pairs of
    Chinese characters."""
    words: set[str] = set()
    for word in _WORD.findall(text.replace("学习率", " learning rate ").casefold()):
        if word[0] >= "\u4e00":
            words.update(word[n : n + 2] for n in range(max(1, len(word) - 1)))
        elif _NUMBER.fullmatch(word):
            words.add(_normal_number(word))
        else:
            # The one abbreviation that nearly every answer uses.
            parts = ("learning", "rate") if word == "lr" else re.split(r"[_.\-/]", word)
            words.update(_stem(part) for part in parts if part not in _STOP and (len(part) > 1 or part.isdigit()))
    return frozenset(words)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        # Crude on purpose: both sides are stemmed alike, so only distinct words must stay distinct.
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def names(text: str) -> list[str]:
    """Options, settings, files, versions and numbers in a text, as they are written there.

    Single digits, counts below a hundred ("16 GPUs", "30 %") and -100 are not names.
    """
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", URL.sub(" ", text))  # thousands
    tokens: dict[str, None] = {}
    for code in CODE_SPAN.findall(text):
        for match in _TOKEN.finditer(code):
            token = match.group()
            if _is_name(token, code[match.end() :]) or (_is_word(token) and token.lower() not in _PLAIN):
                tokens[token] = None
    plain = CODE_SPAN.sub(" ", text)
    for match in _TOKEN.finditer(plain):
        if _is_name(match.group(), plain[match.end() : match.end() + 24]):
            tokens[match.group()] = None
    return list(tokens)


def _is_name(token: str, after: str) -> bool:
    bare = token.lstrip("-").rstrip("-")
    if _NUMBER.fullmatch(bare):
        # A single digit is a count more often than a value, and -100 is the label that losses ignore everywhere.
        if bare.isdigit():
            return len(bare) > 1 and token != "-100" and not (len(bare) == 2 and UNIT.match(after))
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


def occurs(name: str, text: str) -> bool:
    """Whether a lower-case text contains the whole name: 1.2 is not in 11.25, but 4.46 is in 4.46.2."""
    for spelling in dict.fromkeys(spellings(name)):
        before, after = (
            (r"(?<![0-9.])", r"(?![0-9])") if spelling[:1].isdigit() else (r"(?<![a-z0-9])", r"(?![a-z0-9])")
        )
        if spelling and re.search(before + re.escape(spelling) + after, text):
            return True
    return False


def passages(text: str, length: int = PASSAGE) -> frozenset[tuple[str, ...]]:
    """Every run of ``length`` words of a text; numbers and markers are not words."""
    words = [match.group() for match in prose_words(text)]
    return frozenset(tuple(words[n : n + length]) for n in range(len(words) - length + 1))


def repeated(words: Sequence[str], protected: Set[tuple[str, ...]]) -> set[int]:
    """The positions of the words that are part of a protected passage."""
    return {
        at
        for n in range(len(words) - PASSAGE + 1)
        if tuple(words[n : n + PASSAGE]) in protected
        for at in range(n, n + PASSAGE)
    }


def redacted(text: str, protected: frozenset[tuple[str, ...]]) -> str:
    """The text with `REDACTED` in place of each word of a protected passage, across lines and Markdown."""
    words = list(prose_words(text))
    parts: list[str] = []
    end = 0
    for n in sorted(repeated([match.group() for match in words], protected)):
        parts += [text[end : words[n].start()], REDACTED]
        end = words[n].end()
    return "".join([*parts, text[end:]])


def prose_words(text: str) -> Iterator[re.Match[str]]:
    """The words of a text in lower case, at their positions; each Chinese character is a word, numbers are not."""
    # Only characters whose lower case has the same length, so that positions hold for the text itself.
    lower = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return _PROSE_WORD.finditer(lower)
