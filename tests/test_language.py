"""The language of a text: Chinese characters decide, names of frameworks and metrics do not."""

from __future__ import annotations

import pytest

from trainmedic.kb.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("v100 fp16 微调gemma2 loss 0.0 grad_norm nan", "zh"),
        ("训练炸了", "zh"),
        ("loss is nan", "en"),
        ("the log of the run says 训练完成 but the model that it saved is empty", "en"),
        ("loss nan grad_norm nan", "en"),
        ("", "en"),
    ],
)
def test_names_in_latin_letters_do_not_outvote_a_chinese_word(text: str, language: str) -> None:
    assert language_of(text) == language
