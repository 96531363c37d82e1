"""The language of a text: Chinese characters decide, names of frameworks and metrics do not."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.language import is_sentence, language_of


@every_case(
    ("text", "language"),
    [
        ("v100 fp16 微调gemma2 loss 0.0 grad_norm nan", "zh"),
        ("训练炸了", "zh"),
        ("loss is nan", "en"),
        ("the log of the run says 训练完成 but the model that it saved is empty", "en"),
        ("loss nan grad_norm nan", "en"),
        ("", "en"),
        (
            "用 verl 训 VL 模型，存 checkpoint 的时候直接报 AutoModelForVision2Seq.from_config() got an argument",
            "zh",
        ),
    ],
)
def test_names_in_latin_letters_do_not_outvote_a_chinese_word(text: str, language: str) -> None:
    assert language_of(text) == language


@every_case(
    ("text", "sentence"),
    [
        ("With TRL 0.16.0 and transformers the trainer fails", True),
        ("导出时直接报错", True),
        ("[rank0]: RuntimeError: CUDA error: out of memory", False),
        ("python train.py --lr 1e-4", False),
    ],
)
def test_a_sentence_has_words_that_code_and_logs_lack(text: str, sentence: bool) -> None:
    assert is_sentence(text) is sentence
