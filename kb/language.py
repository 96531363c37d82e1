"""Which of our two languages a text is in. Pure."""

from __future__ import annotations


def language_of(text: str) -> str:
    """``zh`` where Chinese characters make a tenth of the letters, else ``en``."""
    letters = sum(character.isalpha() for character in text)
    chinese = sum("\u3400" <= character <= "\u9fff" for character in text)
    return "zh" if letters and chinese >= 0.1 * letters else "en"
