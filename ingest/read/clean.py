"""Remove what a site puts around an article: recommended projects, adverts, login prompts.

Three kinds of evidence, strongest first: a line that says what it is ("recommended projects", "log in to comment"), a
line shaped like a repository card, a line that most write-ups of the batch have. The removed lines are returned too,
for review.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trainmedic.ingest.items import Block, Document
from trainmedic.kb.language import language_of

_POSTS = ("project", "projects", "article", "articles", "post", "posts", "reading", "content", "repositories")
_TAILS = frozenset(
    (
        *(f"{which}{what}推荐" for which in ("", "最新", "热门", "精选") for what in ("内容", "项目", "文章")),
        *("项目优选", "相关推荐", "推荐阅读", "推荐项目", "猜你喜欢"),
        *("相关文章", "热门推荐", "精选留言", "评论", "评论区"),
        *(f"{which} {what}" for which in ("recommended", "related", "popular", "trending") for what in _POSTS),
        *("you may also like", "you might also like", "more from", "read next", "what to read next"),
        *("leave a comment", "leave a reply", "comment", "comments"),
    )
)
"""The article ends before such a line."""
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
"""Only short lines are removed; a long one may belong to an article about logging in."""
MAX_PROMPT = 60
_BYLINES = frozenset(("author", "authors", "owner", "reporter", "assignee", "on-call", "oncall"))
MAX_BYLINE = 160
_LANGUAGES = (
    *("Python", "C++", "C", "Java", "JavaScript", "TypeScript", "Go", "Rust", "Dart", "Dockerfile", "Jinja"),
    *("Markdown", "Shell", "Vue", "HTML", "CSS", "ArkTS", "Kotlin", "Jupyter Notebook", "暂无简介"),
)
_DIGITS = "0123456789"
CARD_NAME = 8
"""Characters of a project's name that occur twice on its card."""
MIN_BATCH = 3
"""Smallest batch in which repetition means anything."""
MIN_LENGTH = 12
"""Shorter lines ("结论", "Fix") repeat in honest articles."""


def frequent(parts: Sequence[Sequence[Block]]) -> frozenset[str]:
    """Lines in at least half of the write-ups: they are the site's, not the authors'."""
    if len(parts) < MIN_BATCH:
        return frozenset()
    counts = Counter(text for part in parts for text in {block.text for block in part if len(block.text) >= MIN_LENGTH})
    # Two write-ups may quote the same error message; half of a batch hardly does.
    least = max(2, (len(parts) + 1) // 2)
    return frozenset(text for text, count in counts.items() if count >= least)


def document(origin: str, url: str, part: Sequence[Block], repeated: frozenset[str] = frozenset()) -> Document:
    """The article of one write-up. ``repeated`` are lines that the site puts into many."""
    article: list[Block] = []
    removed: list[str] = []
    for number, block in enumerate(part):
        # Not at the beginning: some sites put a box of recommendations before the article.
        if article and _is_tail(block.text):
            removed += [rest.text for rest in part[number:]]
            break
        (removed.append(block.text) if is_boilerplate(block, repeated) else article.append(block))
    article, counters = without_counters(article)
    title, article = split_title(article, origin)
    return Document(
        origin=origin,
        title=title,
        blocks=tuple(article),
        language=language_of("\n".join(block.text for block in article)),
        url=url,
        removed=(*removed, *counters),
    )


def is_boilerplate(block: Block, repeated: frozenset[str]) -> bool:
    text = block.text
    if block.kind == "code":
        return False
    return text in repeated or _is_byline(text) or (len(text) <= MAX_PROMPT and _is_prompt(text)) or is_card(text)


def _is_tail(text: str) -> bool:
    text = text.casefold().rstrip(" :：")
    return text.lstrip(_DIGITS + " ") in _TAILS


def _is_byline(text: str) -> bool:
    """``2025-05-01 18:53:32作者:…``, with or without the date; ``**Author:** … **Severity:** …``."""
    label, colon, _ = text.lstrip("*_").partition(":")
    if colon and len(text) <= MAX_BYLINE and label.rstrip("*_ ").casefold() in _BYLINES:
        return True
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


def is_card(text: str) -> bool:
    """Whether a line is a repository card.

    Its name occurs twice at the start (title and description run together), and a count of stars and forks ends it.
    """
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
    # The description may also begin otherwise and name the project later.
    named_again = text[:CARD_NAME] in text[CARD_NAME:]
    return described.endswith("暂无简介") or (named_again and described.endswith(("。", *_LANGUAGES)))


def _squeezed(text: str) -> str:
    return "".join(character for character in text.lower() if not character.isspace() and character not in "-_.")


def without_counters(article: Sequence[Block]) -> tuple[list[Block], list[str]]:
    """Cut off a tail of lone numbers and programming languages, which are the rest of repository cards."""
    end = len(article)
    while end > 1 and (_is_count(article[end - 1].text) or article[end - 1].text in _LANGUAGES):
        end -= 1
    # A single number at the end may belong to the article.
    if len(article) - end < 2:
        return list(article), []
    return list(article[:end]), [block.text for block in article[end:]]


def _is_count(text: str) -> bool:
    """``26`` or ``1.2k``."""
    return text[:1].isdigit() and not text.rstrip("kKmM").rstrip().strip(_DIGITS + ".,")


def split_title(article: list[Block], origin: str) -> tuple[str, list[Block]]:
    """The title and the other blocks: a first-level heading, else the first line if it is short, else the file name."""
    for number, block in enumerate(article[:5]):
        if block.kind == "heading" and block.level == 1:
            return block.text, article[:number] + article[number + 1 :]
    if len(article) > 1 and len(article[0].text) <= 120:
        return article[0].text, article[1:]
    return origin.rsplit("/", 1)[-1].rsplit(".", 1)[0], article
