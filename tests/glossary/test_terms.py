"""The glossary finds what people mean, however they write it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.glossary import Glossary, load_glossary

GLOSSARY = load_glossary()


def load(tmp_path: Path, text: str) -> Glossary:
    page = tmp_path / "glossary.yaml"
    page.write_text(text, encoding="utf-8")
    return load_glossary(page)


@every_case(
    ("text", "concept"),
    [
        ("my loss becomes NaN", "nan-loss"), ("损失变成NaN", "nan-loss"), ("NaNs everywhere", "nan"),
        ("the gradient norms exploding", "gradient-explosion"), ("梯度爆炸了", "gradient-explosion"), ("OOM", "oom"),
        ("又爆显存了", "oom"), ("flash attn2", "flash-attention"), ("--flash_attn", "flash-attention"),
        ("bs", "batch-size"), ("logits 爆炸 1e8", "logits-explosion"), ("nll_loss 一直是 nan", "nll-loss-nan"),
        ("loss 一直在 2.1 附近不动", "loss-flat"), ("lora 好像完全没更新", "unchanged-model"),
        ("it is not learning anything", "not-converging"), ("only a global_step folder", "global-step-folder"),
        ("<|im_end|>", "eos"), ("vllm wake_up 的时候", "sleep-wake"), ("rollout.n=1", "num-generations"),
        ("/dev/shm 太小", "shared-memory"), ("NCCL_P2P_DISABLE=1", "p2p"), ("loss 0.6931", "loss-ln2"),
        ("undefined symbol: _ZN3c10", "undefined-symbol"), ("我开了序列并行之后", "sequence-parallel"),
        ("got an unexpected keyword argument 'beta'", "unexpected-keyword"), ("Batch Sizes", "batch-size"),
    ],
)  # fmt: skip
def test_a_wording_leads_to_its_concept(text: str, concept: str) -> None:
    assert concept in GLOSSARY.ids(text)


def test_the_longest_term_wins_over_the_terms_inside_it() -> None:
    assert GLOSSARY.ids("grad_norm nan") == ("grad-norm-nan",)


def test_a_match_says_where_it_stands_in_the_text_that_was_given() -> None:
    text = "今天 Ｇｒａｄ＿ｎｏｒｍ 很大"
    match = GLOSSARY.find(text)[0]
    assert (match.concept, match.text) == ("grad-norm", "Ｇｒａｄ＿ｎｏｒｍ")
    assert text[match.start : match.end] == match.text
    match = GLOSSARY.find("İİ oom")[0]  # a character whose lower case is longer
    assert (match.start, match.end) == (3, 6)


def test_a_term_reaches_neither_over_the_end_of_a_sentence_nor_into_a_word() -> None:
    assert "nan-loss" not in GLOSSARY.ids("I watch the loss. NaN is a value.")
    assert "nan-loss" not in GLOSSARY.ids("看 loss，nan 是另一个词")
    assert GLOSSARY.ids("already gathered walrus") == ()


def test_a_log_line_counts_as_words() -> None:
    assert GLOSSARY.ids("{'loss': 0.0, 'grad_norm': nan}") == ("loss-zero", "grad-norm-nan")


def test_the_gist_names_concepts_in_english_whatever_the_language_of_the_text() -> None:
    assert GLOSSARY.expand("损失变成 nan，梯度裁剪没有用", "en") == "nan loss, gradient clipping"
    assert GLOSSARY.expand("nan loss", "zh").startswith("loss 为 nan")


def test_the_words_hold_both_languages_once() -> None:
    words = GLOSSARY.words("爆显存 oom OOM")
    assert {"oom", "out of memory", "显存不足"} <= set(words)
    assert len(words) == len(set(words))


def test_text_without_any_term_gives_nothing() -> None:
    assert GLOSSARY.find("how do I bake bread") == ()
    assert GLOSSARY.expand("") == ""
    assert GLOSSARY.words("") == ()


def test_there_are_at_least_150_concepts_and_each_finds_itself() -> None:
    assert len(GLOSSARY.concepts) >= 150
    lost = {
        (concept.id, term)
        for concept in GLOSSARY.concepts.values()
        for term in (*concept.en, *concept.zh)
        if GLOSSARY.ids(term) != (concept.id,)
    }
    assert lost == set()


def test_every_signal_of_the_glossary_is_a_signal_kind() -> None:
    kinds = pytest.importorskip("trainmedic.kb.parse.logs.signal_kinds").KINDS
    assert {signal for concept in GLOSSARY.concepts.values() for signal in concept.signals} <= set(kinds)


@given(st.text(max_size=200))
def test_any_text_is_searched_and_matches_are_in_order_and_apart(text: str) -> None:
    matches = GLOSSARY.find(text)
    assert [text[match.start : match.end] for match in matches] == [match.text for match in matches]
    assert all(left.end <= right.start for left, right in pairwise(matches))
    assert tuple(dict.fromkeys(match.concept for match in matches)) == GLOSSARY.ids(text)


@every_case(
    ("text", "message"),
    [
        ("{a: b}", "must be a list"),
        ("- [x]", "a concept is a mapping"),
        ("- {id: a, kind: metric, en: [loss]}", "zh must be a list"),
        ("- {id: a, kind: thing, en: [loss], zh: [损失]}", "id and kind"),
        ("- {id: a, kind: metric, en: [loss], zh: [损失], colour: red}", "unknown field 'colour'"),
        ("- {id: a, kind: metric, en: ['...'], zh: [损失]}", "holds no word"),
        (
            "- {id: a, kind: metric, en: [x], zh: [甲]}\n- {id: a, kind: metric, en: [y], zh: [乙]}",
            ":2: id 'a' is used twice",
        ),
        (
            "- {id: a, kind: metric, en: [x], zh: [甲]}\n- {id: b, kind: metric, en: [x], zh: [乙]}",
            "belongs to a and to b",
        ),
        ("- {id: a", "not YAML"),
    ],
)
def test_a_broken_glossary_names_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidPage, match=message):
        load(tmp_path, text)
