"""Cleaning: the site's furniture goes, the article stays whole, in English and Chinese."""

from __future__ import annotations

import pytest

from tests.ingest.reading import clean
from trainmedic.ingest.items import Document, Raw
from trainmedic.ingest.read.blocks import blocks
from trainmedic.ingest.read.clean import MIN_BATCH, is_card

ARTICLE = """OpenRLHF 训练奖励模型时 loss 变为 NaN 的分析
2025-05-01 18:53:32作者:某某
登录后查看全文
问题背景
使用 flash attention 训练时，第一步 loss 就是 NaN。
解决方案
-
关闭 flash attention：速度会变慢，但结果正确。
-
升级：把
flash_attn升级到 2.6.3 以上。 -
最后再确认一次 grad_norm。
热门项目推荐
Kimi-K2-ThinkingKimi K2 Thinking 是开源思维模型。Python00
项目优选
收起
C
26
10
"""


def one(text: str, kind: str = "text") -> Document:
    (document,) = clean([Raw(origin="a.txt", content=text, format=kind)])
    return document


def texts(document: Document) -> list[str]:
    return [block.text for block in document.blocks]


def test_the_article_is_whole_and_nothing_else_is_left() -> None:
    document = one(ARTICLE)
    assert document.title == "OpenRLHF 训练奖励模型时 loss 变为 NaN 的分析"
    assert texts(document) == [
        "问题背景",
        "使用 flash attention 训练时，第一步 loss 就是 NaN。",
        "解决方案",
        "关闭 flash attention：速度会变慢，但结果正确。",
        "升级：把 flash_attn升级到 2.6.3 以上。",
        "最后再确认一次 grad_norm。",
    ]
    assert document.language == "zh"
    assert document.removed[:2] == ("2025-05-01 18:53:32作者:某某", "登录后查看全文")
    assert {"热门项目推荐", "项目优选"} <= set(document.removed)


def test_a_repository_card_is_recognised_by_its_shape() -> None:
    assert is_card("MiniMax-M2MiniMax-M2是高效MoE模型,在编码上表现卓越。Python00")
    assert is_card("HunyuanVideo-1.5暂无简介00")
    assert is_card("DOC-READ-2.0-hf某公司推出的DOC-READ-2.0-hf是一款识别模型。00")
    assert not is_card("DeepSpeed 0.14.3 与 DeepSpeed 0.14 都试过,最大长度8192")
    assert not is_card("MiniMax-M2 的学习率应设为 5e-7，训练 2000 步")
    assert not is_card("梯度范数在第 100 步达到 1000")


def test_a_line_that_stands_in_most_of_a_batch_is_the_sites() -> None:
    footer = "Read the handbook of our sponsor today and save your runs"
    raws = [Raw(origin=f"{n}", content=f"Title {n}\nBody of article {n}.\n{footer}\n", format="text") for n in range(4)]
    assert all(footer not in texts(document) for document in clean(raws))
    few = raws[: MIN_BATCH - 1]
    assert all(footer in texts(document) for document in clean(few))


def test_a_long_sentence_about_logging_in_is_not_a_login_prompt() -> None:
    sentence = (
        "The job hung because every rank tried to sign in to the hub at once, which the proxy refused after a minute."
    )
    assert sentence in texts(one(f"Why ranks hang\n{sentence}\n"))


def test_nothing_is_cut_before_the_article_has_begun() -> None:
    assert texts(one("Recommended projects\nHow we picked them.\n")) == ["How we picked them."]


def test_code_is_kept_as_it_is() -> None:
    document = one("# Fix\n\nSet this:\n\n```bash\ndeepspeed train.py \\\n  --bf16\n```\n\n## Sign in\n", "markdown")
    assert document.title == "Fix"
    assert [(b.kind, b.text) for b in document.blocks] == [
        ("text", "Set this:"),
        ("code", "deepspeed train.py \\\n  --bf16"),
    ]


def test_a_fence_left_open_loses_nothing() -> None:
    assert texts(one("# T\n\ntext\n\n```\nlast line\n", "markdown")) == ["text", "last line"]


PAGE = """<html><head><title>Site | NaN</title><style>p{}</style></head><body>
<nav>Home Docs</nav><div class="login-box">Sign in to comment</div>
<article><h1>Loss is NaN with fp16</h1><p>It starts at <b>step 2</b>.</p>
<pre><code>torch_dtype: float16
optim: adamw_torch</code></pre><ul><li>Use bf16</li></ul><div id="related-posts"><p>Ten tricks</p></div></article>
<footer>All rights reserved</footer><script>alert(1)</script></body></html>"""


def test_saved_html_gives_the_article_with_its_code() -> None:
    document = one(PAGE, "html")
    assert document.title == "Loss is NaN with fp16"
    assert [(b.kind, b.text) for b in document.blocks] == [
        ("text", "It starts at step 2 ."),
        ("code", "torch_dtype: float16\noptim: adamw_torch"),
        ("item", "Use bf16"),
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "登录后查看全文\n"])
def test_a_page_with_nothing_in_it_gives_no_document(text: str) -> None:
    assert clean([Raw(origin="x", content=text, format="text")]) == ()


def test_the_title_of_a_single_paragraph_is_the_files_name() -> None:
    document = clean(
        [Raw(origin="d/nan-note.txt", content="Loss went to NaN because labels were all -100.", format="text")]
    )[0]
    assert document.title == "nan-note"


def test_paragraphs_that_are_not_closed_are_one_block_each() -> None:
    page = "<article><h1>NaN</h1><p>The loss is nan.<p>We use bf16.<pre>loss: nan</pre><p>It works.</article>"
    found = blocks(Raw(origin="a.html", content=page, format="html"))
    assert [block.text for block in found] == ["NaN", "The loss is nan.", "We use bf16.", "loss: nan", "It works."]
