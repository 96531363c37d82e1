"""English or Chinese, the two languages of the product, and how much a text in either says. Pure."""

from __future__ import annotations

import re
from typing import Literal

from trainmedic.kb.lazy import regex

_CHINESE = regex("[\u3400-\u9fff]")
SHORT = 200
"""Letters of a text that may be a single question."""
SENTENCE = 8
"""Chinese characters that are more than a quoted word."""
_ENGLISH = regex(
    r"\b(?:the|a|an|is|are|was|my|i|it|this|that|why|what|how|when|after|with|without|to|of|and|in|on|at|for|not|but|as|than|from"
    r"|by|under|then|does|do|has|have)\b",
    re.IGNORECASE,
)


def language_of(text: str) -> Literal["en", "zh"]:
    """``zh`` if at least a tenth of the letters are Chinese characters, or if these are more than twice the English
    function words: what a Chinese sentence quotes (paths, messages, options) has many letters and few of those words.

    In a short text two Chinese characters are enough for that: people write ``v100 fp16 微调gemma2 loss 0.0 grad_norm
    nan``.
    """
    if text.isascii():
        return "en"
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and (
        _is_chinese_line(lines[0]) or (_is_chinese_line(lines[-1]) and not _ENGLISH.search(lines[0]))
    ):
        return "zh"
    chinese = len(_CHINESE.findall(text))
    letters = sum(map(str.isalpha, text))
    english = len(_ENGLISH.findall(text))
    if chinese > 2 * english and (chinese >= SENTENCE or (chinese >= 2 and letters <= SHORT)):
        return "zh"
    return "zh" if letters and chinese >= 0.1 * letters else "en"


def _is_chinese_line(line: str) -> bool:
    """Whether at least a third of the letters of a line are Chinese characters, which are not comment of a program."""
    letters = sum(map(str.isalpha, line))
    return letters > 1 and 3 * len(_CHINESE.findall(line)) >= letters and line.lstrip()[0] not in "#/-+|"


def is_sentence(text: str) -> bool:
    """Whether someone says something in it, as against a line of a log or of code."""
    if len(_CHINESE.findall(text)) >= SENTENCE // 2:
        return True
    return len(text.split()) >= 5 and len(_ENGLISH.findall(text)) >= 2


def width(text: str) -> int:
    """The length of a text, with a Chinese character as two: it says as much as a short word."""
    text = text.strip()
    return len(text) + (0 if text.isascii() else len(_CHINESE.findall(text)))


def lowered(text: str) -> str:
    """The text in lower case with the same length, so that positions in it are those of ``text``."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    # "İ" becomes two characters.
    return "".join(character.lower() if character.isascii() else character for character in text)


def is_chinese(character: str) -> bool:
    """Whether it is a Chinese character."""
    return "\u3400" <= character <= "\u9fff"
