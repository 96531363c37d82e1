"""Words find chunks: in both languages, misspelt or in parts, and every score can be explained."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmedic.kb.store import lexical
from trainmedic.kb.store.lexical import K1, B, Lexical, tokens

TEXTS = [
    "loss is nan with --micro_train_batch_size 1",
    "开启 vanilla_loss 后损失变成 NaN",
    "RuntimeError: CUDA out of memory",
    "flash-attn 2.6.1 and gemma2 give a nan loss",
    "the gradient explodes in warmup",
]


@pytest.fixture
def built() -> Lexical:
    return lexical.build([tuple(tokens(text)) for text in TEXTS])


def best(index: Lexical, question: str) -> list[int]:
    found, _ = index.search(dict.fromkeys(tokens(question), 1.0), 10)
    return [int(number) for number in found]


@pytest.mark.parametrize(
    ("question", "chunk"),
    [
        ("--micro_train_batch_size", 0), ("batch size", 0), ("损失变成nan", 1), ("RuntimeError", 2),
        ("flash-attn 2.6.1", 3), ("ＦＬＡＳＨ－ＡＴＴＮ", 3), ("gradeint explosion exploding", 4),
    ],
)  # fmt: skip
def test_a_chunk_is_found_by(built: Lexical, question: str, chunk: int) -> None:
    assert best(built, question)[0] == chunk


def test_a_chunk_without_any_of_the_words_is_not_found(built: Lexical) -> None:
    assert best(built, "CUDA") == [2]
    assert best(built, "完全无关") == []


def test_nothing_is_found_in_nothing() -> None:
    empty = lexical.build([])
    assert best(empty, "loss") == []


def test_equal_scores_come_in_the_order_of_the_chunks() -> None:
    index = lexical.build([("same",)] * 50)
    assert best(index, "same") == list(range(10))


def test_every_score_is_explained_by_its_heaviest_words(built: Lexical) -> None:
    terms = dict.fromkeys(tokens("flash-attn 2.6.1 nan"), 1.0)
    explained = built.explain(terms, [3, 2])
    assert explained[3][0] in ("flash-attn", "flash", "2.6.1", "attn")
    assert "nan" in explained[3]
    assert not any(term.startswith("3:") for term in explained[3])
    assert explained[2] == ()


def test_a_misspelt_word_is_explained_by_its_parts(built: Lexical) -> None:
    assert all(term.startswith("3:") for term in built.explain(dict.fromkeys(tokens("gradeints"), 1.0), [4])[4])


def test_a_saved_index_answers_the_same(built: Lexical, tmp_path: Path) -> None:
    built.save(tmp_path)
    again = lexical.load(tmp_path)
    assert isinstance(again.documents.base, np.memmap)
    for text in TEXTS:
        terms = dict.fromkeys(tokens(text), 1.0)
        for mine, theirs in zip(built.search(terms, 5), again.search(terms, 5), strict=True):
            assert np.array_equal(mine, theirs)


WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=12).map(tuple)


@given(st.lists(WORDS, min_size=1, max_size=30), st.sets(st.sampled_from("abcdefgh"), min_size=1))
def test_scores_are_those_of_the_formula(chunks: list[tuple[str, ...]], asked: set[str]) -> None:
    index = lexical.build(chunks)
    found, scores = index.search(dict.fromkeys(sorted(asked), 1.0), len(chunks))
    mean = sum(map(len, chunks)) / len(chunks)
    expected = {}
    for number, words in enumerate(chunks):
        score = 0.0
        for term in asked & set(words):
            df = sum(term in other for other in chunks)
            tf = Counter(words)[term]
            norm = K1 * (1 - B + B * len(words) / mean)
            score += math.log1p((len(chunks) - df + 0.5) / (df + 0.5)) * tf * (K1 + 1) / (tf + norm)
        if score:
            expected[number] = score
    assert {int(n): pytest.approx(float(s), rel=1e-4) for n, s in zip(found, scores, strict=True)} == expected
    assert list(scores) == sorted(scores, reverse=True)
