"""Which of our two languages a text is in. Pure."""

from __future__ import annotations

import re

SHORT = 200
"""Letters of a text that may be one question."""
_ENGLISH = re.compile(
    r"\b(?:the|a|an|is|are|was|my|i|it|this|that|why|what|how|when|after|with|without|to|of|and|in|on|at|for|not)\b",
    re.IGNORECASE,
)


def language_of(text: str) -> str:
    """``zh`` where Chinese characters make a tenth of the letters, else ``en``.

    A short text is ``zh`` with a single Chinese word where nothing in it is English but names: people write
    ``v100 fp16 微调gemma2 loss 0.0 grad_norm nan``.
    """
    letters = sum(character.isalpha() for character in text)
    chinese = sum("\u3400" <= character <= "\u9fff" for character in text)
    if chinese >= 2 and letters <= SHORT and _ENGLISH.search(text) is None:
        return "zh"
    return "zh" if letters and chinese >= 0.1 * letters else "en"
