"""English or Chinese, the two languages of the product, and how much a text in either says. Pure."""

from __future__ import annotations

import re
from typing import Literal

_CHINESE = re.compile("[\u3400-\u9fff]")
SHORT = 200
"""Letters of a text that may be a single question."""
_ENGLISH = re.compile(
    r"\b(?:the|a|an|is|are|was|my|i|it|this|that|why|what|how|when|after|with|without|to|of|and|in|on|at|for|not)\b",
    re.IGNORECASE,
)


def language_of(text: str) -> Literal["en", "zh"]:
    """``zh`` if at least a tenth of the letters are Chinese characters, else ``en``.

    A short text without any English function word is ``zh`` as soon as it holds two Chinese characters: people write
    ``v100 fp16 微调gemma2 loss 0.0 grad_norm nan``.
    """
    if text.isascii():
        return "en"
    chinese = len(_CHINESE.findall(text))
    letters = sum(map(str.isalpha, text))
    if chinese >= 2 and letters <= SHORT and _ENGLISH.search(text) is None:
        return "zh"
    return "zh" if letters and chinese >= 0.1 * letters else "en"


def width(text: str) -> int:
    """The length of a text, with a Chinese character as two: it says as much as a short word."""
    text = text.strip()
    return len(text) + (0 if text.isascii() else len(_CHINESE.findall(text)))


def is_chinese(character: str) -> bool:
    """Whether it is a Chinese character."""
    return "\u3400" <= character <= "\u9fff"
