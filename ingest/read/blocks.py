"""Split text, Markdown and saved HTML into blocks; HTML without its menus, adverts and comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from trainmedic.ingest.items import Block, Raw
from trainmedic.ingest.read.markdown import tokens
from trainmedic.kb.lazy import regex

if TYPE_CHECKING:
    from bs4 import Tag

_FURNITURE_TAGS = (
    *("script", "style", "noscript", "template", "svg", "iframe", "form", "button"),
    *("nav", "header", "footer", "aside"),
)
_FURNITURE_NAMES = frozenset(
    (
        *("nav", "menu", "sidebar", "breadcrumb", "comment", "footer", "header", "share", "social", "related"),
        *("recommend", "advert", "ad", "banner", "cookie", "login", "signin", "subscribe", "popup", "modal"),
        *("toolbar", "copyright", "pagination", "toc"),
    )
)
"""Words of class names and ids, singular."""
_TRACKERS = ("/issues/", "/discussions/", "/pull/", "/questions/", "/t/")
"""Parts of the addresses of issues and of questions in forums."""
HEAD = 300_000
"""Code points of a page in which its own address is looked for."""
_ITEM = regex(r"^(?:[-*+•]|\d{1,2}[.)、])\s+(.+)$")
_OPTION = regex(r"^(?:--?[a-z]|[a-z]+_[a-z_]+(?![A-Za-z0-9]))")
_BULLETS = ("-", "*", "•")
_STOPS = ".。!？?！:："
_GOES_ON = regex(r"[a-z(`]")
LEAST_WRAPPED = 60
"""Characters of a line that may have been wrapped."""
_SENTENCE_ENDS = tuple("。.!？?！:：;；,，)）]】`")
_WHOLE = ("pre", "li", "blockquote")
_BLOCK_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "pre", "blockquote", "td", "th", "figcaption", "dt", "dd")


def blocks(raw: Raw) -> tuple[Block, ...]:
    if raw.format == "html":
        return tuple(_html(raw.content, raw.url or canonical(raw)))
    text = raw.content.replace("\r\n", "\n").replace("\r", "\n")
    if raw.format == "markdown":
        return tuple(markdown_blocks(text))
    # Only plain copies of a page have split lines.
    return tuple(_plain(line.strip()) for line in joined(text.split("\n")) if line.strip())


def markdown_blocks(text: str) -> Iterator[Block]:
    inside: list[str] = []
    level = 0
    for token in tokens(text):
        if token.type in ("fence", "code_block"):
            yield Block(kind="code", text=token.content.strip("\n"))
        elif token.type == "html_block":
            yield from (_line(line.strip()) for line in token.content.splitlines() if line.strip())
        elif token.type == "heading_open":
            level = int(token.tag[1])
            inside.append("heading")
        elif token.type == "inline" and inside[-1] == "heading":
            yield Block(kind="heading", text=token.content, level=level)
        elif token.type == "inline":
            lines = [line.strip() for line in token.content.splitlines()]
            if "list_item" in inside:
                yield Block(kind="item", text=" ".join(lines))
            else:
                yield from map(_line, _unwrapped(lines))
        elif token.nesting == 1:
            inside.append(token.type.removesuffix("_open"))
        elif token.nesting == -1:
            inside.pop()


def _unwrapped(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a paragraph, those together that an editor has wrapped."""
    pending = before = ""
    for line in lines:
        if len(before) >= LEAST_WRAPPED and before[-1] not in _STOPS and _GOES_ON.match(line):
            pending = f"{pending} {line}"
        else:
            if pending:
                yield pending
            pending = line
        before = line
    if pending:
        yield pending


def _line(line: str) -> Block:
    item = _ITEM.match(line)
    return Block(kind="item", text=item[1]) if item is not None else Block(kind="text", text=line)


def _plain(line: str) -> Block:
    """A short line of plain text that does not end a sentence is a heading."""
    block = _line(line)
    if block.kind == "text" and len(line) <= 24 and not line.endswith(_SENTENCE_ENDS) and not _OPTION.match(line):
        return Block(kind="heading", text=line, level=2)
    return block


def joined(lines: list[str]) -> Iterator[str]:
    """Join lines that copying from a page has split: a lone bullet and its text, a sentence and its inline code."""
    pending = ""
    for line in lines:
        stripped = line.strip()
        before = pending.strip()
        if before and stripped and (before in _BULLETS or _continues(before, stripped)):
            pending = f"{pending.rstrip()} {stripped}"
        elif _dangling(pending):
            # "…设置为 auto。 -" and on the next line the next item.
            yield _without_bullet(pending)
            pending = f"- {stripped}" if stripped else ""
        else:
            if pending:
                yield pending
            pending = line if stripped else ""
            if not stripped:
                yield line
    if pending:
        yield _without_bullet(pending)


def _continues(before: str, line: str) -> bool:
    """Whether a line is the inline code of the sentence before it."""
    return _OPTION.match(line) is not None and not before.endswith(_SENTENCE_ENDS)


def _dangling(line: str) -> bool:
    """Whether a line ends with the next item's bullet."""
    return line.rstrip().endswith(tuple(f" {bullet}" for bullet in _BULLETS))


def _without_bullet(line: str) -> str:
    return line.rstrip()[:-1].rstrip() if _dangling(line) else line


def canonical(raw: Raw) -> str:
    """The address that a saved page gives for itself; empty if it gives none."""
    if raw.format != "html":
        return ""
    from bs4 import BeautifulSoup, Tag
    from bs4.filter import SoupStrainer

    head, _, _ = raw.content[:HEAD].partition("<body")
    page = BeautifulSoup(head, "html.parser", parse_only=SoupStrainer(["link", "meta"]))
    link = page.find("link", rel="canonical") or page.find("meta", property="og:url")
    url = str(link.get("href") or link.get("content") or "") if isinstance(link, Tag) else ""
    return url if url.startswith(("https://", "http://")) else ""


def _html(content: str, url: str) -> Iterator[Block]:
    # Only saved pages need the parser, which is in the extra "ingest".
    from bs4 import BeautifulSoup, Tag
    from bs4.builder._htmlparser import HTMLParserTreeBuilder

    builder = HTMLParserTreeBuilder()
    # Entities as browsers read them, and a stretch of them at once: one by one they take five times as long.
    builder.parser_args[1]["convert_charrefs"] = True
    soup = BeautifulSoup(content, builder=builder)
    # On a tracker's page the comments hold the answer; elsewhere they follow the article.
    furniture = _FURNITURE_NAMES - {"comment"} if any(part in url for part in _TRACKERS) else _FURNITURE_NAMES
    for tag in soup.find_all(list(_FURNITURE_TAGS)):
        tag.decompose()
    for tag in soup.find_all(True):
        # Attributes are None for tags that an earlier iteration has removed.
        if isinstance(tag, Tag) and tag.attrs is not None:
            names = [*tag.get_attribute_list("class"), *tag.get_attribute_list("id")]
            # Themes put words such as "has-sidebar" on these, which would remove the page.
            if tag.name not in ("html", "body", "article", "main") and _names_furniture(names, furniture):
                tag.decompose()
    title = soup.find("h1") or soup.find("title")
    root = soup.find("article") or soup.find("main") or soup.body or soup
    if isinstance(title, Tag) and not (isinstance(root, Tag) and root.find("h1")):
        yield Block(kind="heading", text=_words(title.get_text()), level=1)
    for name, parts in _block_texts(root):
        if name == "pre":
            yield Block(kind="code", text="".join(parts).strip("\n"))
            continue
        text = _words(" ".join(parts))
        if not text:
            continue
        if name in ("h1", "h2", "h3", "h4", "h5", "h6"):
            yield Block(kind="heading", text=text, level=int(name[1]))
        else:
            yield Block(kind="item" if name == "li" else "text", text=text)


def _block_texts(root: Tag) -> Iterator[tuple[str, list[str]]]:
    """The name of each block and its pieces of text, in order; a text belongs to the innermost block around it.

    Only `_WHOLE` blocks keep the blocks inside them. From above and once: from below a deep page costs its square.
    """
    from bs4 import Tag
    from bs4.element import CData, NavigableString

    found: list[tuple[str, list[str]]] = []
    above: list[tuple[Iterator[object], tuple[str, list[str]] | None]] = [(iter(root.children), None)]
    while above:
        children, block = above[-1]
        child = next(children, None)
        if child is None:
            above.pop()
        elif isinstance(child, Tag):
            inside = block
            if child.name in _BLOCK_TAGS and (block is None or block[0] not in _WHOLE):
                inside = (child.name, [])
                found.append(inside)
            above.append((iter(child.children), inside))
        elif block is not None and type(child) in (NavigableString, CData):
            block[1].append(str(child))
    yield from found


def _names_furniture(names: Iterable[str | None], furniture: frozenset[str]) -> bool:
    words = " ".join(name for name in names if name).lower().replace("-", " ").replace("_", " ").split()
    return any(word in furniture or word.removesuffix("s") in furniture for word in words)


def _words(text: str) -> str:
    return " ".join(text.split())
