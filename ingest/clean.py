"""What a site puts around an article, removed: recommended projects, adverts, login prompts. The article stays whole.

Three kinds of evidence, from sure to weak: a line that says what it is ("recommended projects", "log in to
comment"); a line shaped like a repository card; a line that stands in most write-ups of the same batch.
Nothing is removed before the article has begun, and everything removed is kept beside it for review.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from trainmedic.ingest.blocks import blocks
from trainmedic.ingest.document import Block, Document, Raw
from trainmedic.kb.language import language_of

_TAILS = frozenset(
    (
        *(f"{which}{what}推荐" for which in ("", "最新", "热门", "精选") for what in ("内容", "项目", "文章")),
        *("项目优选", "相关推荐", "推荐阅读", "推荐项目", "猜你喜欢"),
        *("相关文章", "热门推荐", "精选留言", "评论", "评论区"),
        *(
            f"{which} {what}"
            for which in ("recommended", "related", "popular", "trending")
            for what in (
                "project",
                "projects",
                "article",
                "articles",
                "post",
                "posts",
                "reading",
                "content",
                "repositories",
            )
        ),
        *("you may also like", "you might also like", "more from", "read next", "what to read next"),
        *("leave a comment", "leave a reply", "comment", "comments"),
    )
)
"""From such a line on, the rest of the page is not the article."""
_PROMPTS = (
    *("登录后", "立即登录", "点击登录", "请先登录", "注册账号"),
    *("免费注册", "扫码", "关注公众号", "微信公众号", "点赞收藏"),
    *("一键三连", "打赏", "开通会员", "阅读全文", "展开全文", "版权声明", "转载请注明"),
    *("accept cookies", "accept all cookies", "we use cookies", "all rights reserved"),
)
_PROMPT_STARTS = (
    *("login to ", "log in to ", "signin to ", "sign in to ", "sign up", "subscribe", "share this", "sponsored"),
    *("follow us", "create an account", "create a free account", "get the app", "skip to content"),
    *("skip to main content",),
)
_PROMPT_ENDS = ("收起", "举报")
_WHOLE_PROMPTS = frozenset(("广告", "赞助", "赞助商", "advertisement", "login", "log in", "signin", "sign in"))
"""A short line of this kind is removed; a long one may be an article about logging in."""
MAX_PROMPT = 60
_LANGUAGES = (
    *("Python", "C++", "C", "Java", "JavaScript", "TypeScript", "Go", "Rust", "Dart", "Dockerfile", "Jinja"),
    *("Markdown", "Shell", "Vue", "HTML", "CSS", "ArkTS", "Kotlin", "Jupyter Notebook", "暂无简介"),
)
_DIGITS = "0123456789"
MIN_BATCH = 3
"""Write-ups in a batch before repetition means anything."""
MIN_LENGTH = 12
"""Shorter lines ("结论", "Fix") repeat in honest articles."""


def clean(raws: Sequence[Raw]) -> tuple[Document, ...]:
    """The articles of one batch, in order. A write-up of which nothing is left is dropped."""
    parts = [blocks(raw) for raw in raws]
    repeated = frequent(parts)
    cleaned = (document(raw, part, repeated) for raw, part in zip(raws, parts, strict=True))
    return tuple(one for one in cleaned if one.blocks)


def frequent(parts: Sequence[Sequence[Block]]) -> frozenset[str]:
    """Lines that stand in at least half of the batch (three write-ups or more): the site's, not the authors'."""
    if len(parts) < MIN_BATCH:
        return frozenset()
    counts = Counter(text for part in parts for text in {block.text for block in part if len(block.text) >= MIN_LENGTH})
    least = max(2, (len(parts) + 1) // 2)
    return frozenset(text for text, count in counts.items() if count >= least)


def document(raw: Raw, part: Sequence[Block], repeated: Iterable[str]) -> Document:
    """One article out of its page."""
    foreign = frozenset(repeated)
    kept: list[Block] = []
    removed: list[str] = []
    for number, block in enumerate(part):
        if kept and _is_tail(block.text):
            removed += [rest.text for rest in part[number:]]
            break
        (removed.append(block.text) if furniture(block, foreign) else kept.append(block))
    kept, counters = without_counters(kept)
    title, kept = titled(kept, raw.origin)
    return Document(
        origin=raw.origin,
        title=title,
        blocks=tuple(kept),
        language=language_of("\n".join(block.text for block in kept)),
        url=raw.url,
        removed=(*removed, *counters),
    )


def furniture(block: Block, repeated: frozenset[str]) -> bool:
    """Whether one block is the site's."""
    text = block.text
    if block.kind == "code":
        return False
    return text in repeated or _is_byline(text) or (len(text) <= MAX_PROMPT and _is_prompt(text)) or card(text)


def _is_tail(text: str) -> bool:
    text = text.casefold().rstrip(" :：")
    return text.lstrip(_DIGITS + " ") in _TAILS


def _is_byline(text: str) -> bool:
    """``2025-05-01 18:53:32作者:…``, with or without the date."""
    before, _, author = text.partition("作者")
    return author[:1] in tuple(":：") and 1 < len(author) <= 41 and not before.strip(_DIGITS + "-: T")


def _is_prompt(text: str) -> bool:
    text = text.casefold()
    return (
        text in _WHOLE_PROMPTS
        or text.startswith(_PROMPT_STARTS)
        or text.endswith(_PROMPT_ENDS)
        or any(words in text for words in _PROMPTS)
    )


def card(text: str) -> bool:
    """Whether a line is a repository card: its name twice at the start (title and description run together), a
    count of stars and forks at the end."""
    described = text.rstrip(_DIGITS)
    described, digits = described.rstrip(), len(text) - len(described)
    if not 2 <= digits <= 7 or not (
        described.endswith((*_LANGUAGES, *"。.）)")) or "\u4e00" <= described[-1:] <= "\u9fff"
    ):
        return False
    for length in range(4, min(60, len(text) // 2) + 1):
        name = text[:length]
        # "Kimi-K2-ThinkingKimi K2 Thinking is …": the description writes the name with blanks.
        if _squeezed(text[length : length * 2]).startswith(_squeezed(name)[: max(4, length - 4)]):
            return True
    return described.endswith("暂无简介")


def _squeezed(text: str) -> str:
    return "".join(character for character in text.lower() if not character.isspace() and character not in "-_.")


def without_counters(kept: Sequence[Block]) -> tuple[list[Block], list[str]]:
    """A tail of lone numbers and language names (stars and forks of cards) cut off."""
    end = len(kept)
    while end > 1 and (_is_count(kept[end - 1].text) or kept[end - 1].text in _LANGUAGES):
        end -= 1
    if len(kept) - end < 2:
        return list(kept), []
    return list(kept[:end]), [block.text for block in kept[end:]]


def _is_count(text: str) -> bool:
    """``26`` or ``1.2k``."""
    return text[:1].isdigit() and not text.rstrip("kKmM").rstrip().strip(_DIGITS + ".,")


def titled(kept: list[Block], origin: str) -> tuple[str, list[Block]]:
    """The title and the blocks after it: a first-level heading, else the first line where it is short enough."""
    for number, block in enumerate(kept[:5]):
        if block.kind == "heading" and block.level == 1:
            return block.text, kept[:number] + kept[number + 1 :]
    if kept and len(kept[0].text) <= 120 and len(kept) > 1:
        return kept[0].text, kept[1:]
    return origin.rsplit("/", 1)[-1].rsplit(".", 1)[0], kept
