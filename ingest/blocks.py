"""Text, Markdown and saved HTML to blocks. What a page's own markup says is furniture is left out here already."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmedic.ingest.document import Block, Raw

_FURNITURE = [
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "iframe",
    "form",
    "button",
    "nav",
    "header",
    "footer",
    "aside",
]
_FURNITURE_NAMES = re.compile(
    r"(?:^|[-_ ])(?:nav|menu|sidebar|breadcrumb|comment|footer|header|share|social|related|recommend|advert|ads?|"
    r"banner|cookie|login|signin|subscribe|popup|modal|toolbar|copyright|pagination|toc)(?:[-_ ]|s?$)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)、])\s+(.+)$")
_BARE_BULLET = re.compile(r"^\s*[-*•]\s*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_CODE_START = re.compile(r"^(?:--?[a-z]|[a-z]+_[a-z_]+(?![A-Za-z0-9]))")
_DANGLING_BULLET = re.compile(r"\s[-*•]\s*$")
_ENDS_SENTENCE = re.compile(r"[。.!?！？:：;；,，)）\]】`]$")
BLOCK_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "pre", "blockquote", "td", "th", "figcaption", "dt", "dd")


def blocks(raw: Raw) -> tuple[Block, ...]:
    """The blocks of a write-up, in order."""
    if raw.format == "html":
        return tuple(_html(raw.content))
    return tuple(_lines(raw.content.replace("\r\n", "\n").replace("\r", "\n"), raw.format == "markdown"))


def _lines(text: str, markdown: bool) -> Iterator[Block]:
    code: list[str] | None = None
    lines = text.split("\n")
    # Markdown was written as lines; only plain copies of a page are torn.
    for line in lines if markdown else joined(lines):
        if markdown and _FENCE.match(line):
            if code is not None:
                yield Block(kind="code", text="\n".join(code))
            code = [] if code is None else None
        elif code is not None:
            code.append(line)
        elif line.strip():
            yield _line(line.strip(), markdown)
    if code is not None and "".join(code).strip():
        yield Block(kind="code", text="\n".join(code).strip("\n"))


def _line(line: str, markdown: bool) -> Block:
    heading = _HEADING.match(line) if markdown else None
    if heading is not None:
        return Block(kind="heading", text=heading[2], level=len(heading[1]))
    item = _ITEM.match(line)
    if item is not None:
        return Block(kind="item", text=item[1])
    if not markdown and len(line) <= 24 and not _ENDS_SENTENCE.search(line) and not _CODE_START.match(line):
        return Block(kind="heading", text=line, level=2)
    return Block(kind="text", text=line)


def joined(lines: list[str]) -> Iterator[str]:
    """Lines that a copy from a web page tore apart, put together again: a lone bullet and its text, a sentence and
    the inline code that was set in its own element."""
    pending = ""
    for line in lines:
        stripped = line.strip()
        if pending and stripped:
            broken = _BARE_BULLET.match(pending) or (
                _CODE_START.match(stripped) and not _ENDS_SENTENCE.search(pending.strip())
            )
            if broken:
                pending = f"{pending.rstrip()} {stripped}"
                continue
        if pending and _DANGLING_BULLET.search(pending):
            # "…设置为 auto。 -" and on the next line the next item.
            yield _DANGLING_BULLET.sub("", pending)
            pending = f"- {stripped}" if stripped else ""
            continue
        if pending:
            yield pending
        pending = line
        if not stripped:
            yield line
            pending = ""
    if pending:
        yield _DANGLING_BULLET.sub("", pending)


def _html(content: str) -> Iterator[Block]:
    # Only this source format needs the parser, which not every installation has.
    from bs4 import BeautifulSoup, Tag

    soup = BeautifulSoup(content, "html.parser")
    for tag in soup.find_all(_FURNITURE):
        tag.decompose()
    for tag in soup.find_all(True):
        if isinstance(tag, Tag) and tag.attrs is not None:
            names = " ".join([*tag.get_attribute_list("class"), *tag.get_attribute_list("id")][:8] if tag.attrs else [])
            if tag.name not in ("html", "body", "article", "main") and _FURNITURE_NAMES.search(names or ""):
                tag.decompose()
    title = soup.find("h1") or soup.find("title")
    root = soup.find("article") or soup.find("main") or soup.body or soup
    if isinstance(title, Tag) and not (isinstance(root, Tag) and root.find("h1")):
        yield Block(kind="heading", text=_words(title.get_text()), level=1)
    for tag in root.find_all(BLOCK_TAGS) if isinstance(root, Tag) else ():
        if not isinstance(tag, Tag) or tag.find_parent(["pre", "li", "blockquote"]) is not None:
            continue
        if tag.name == "pre":
            yield Block(kind="code", text=tag.get_text().strip("\n"))
            continue
        text = _words(tag.get_text(" "))
        if not text:
            continue
        if tag.name in ("h1", "h2", "h3", "h4", "h5", "h6"):
            yield Block(kind="heading", text=text, level=int(tag.name[1]))
        else:
            yield Block(kind="item" if tag.name == "li" else "text", text=text)


def _words(text: str) -> str:
    return " ".join(text.split())
