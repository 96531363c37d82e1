"""Tickets as CSV, as Jira, Linear, GitLab and others export them: each as a discussion.

Columns are found by their names, in English or Chinese: a title, a text, and what there is of key, status, address,
times and comments (Jira writes one column for each, ``time;author;text``). People are named nowhere.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from trainmedic.ingest.items import Discussion, Failure, Item, Message, Options
from trainmedic.ingest.read.files import contents, files, text_of
from trainmedic.kb.lazy import regex

MAX_BYTES = 256 * 1024 * 1024
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "key": ("issue key", "key", "identifier", "id", "issue id", "编号", "问题关键字"),
    "title": ("summary", "title", "概要", "标题", "主题"),
    "text": ("description", "body", "描述", "正文", "内容"),
    "status": ("status", "state", "状态"),
    "resolution": ("resolution", "解决结果", "resolution note", "root cause", "根因", "解决方案"),
    "url": ("url", "link", "issue url", "链接"),
    "updated": ("updated", "updated at", "updated_at", "更新时间", "已更新"),
    "reporter": ("reporter", "creator", "author", "报告人", "创建人"),
    "comment": ("comment", "comments", "comment body", "评论", "备注"),
}
"""What a column holds, by its names in lower case; the first name that is there counts."""
_DONE = frozenset(
    {"done", "closed", "resolved", "fixed", "complete", "completed", "完成", "已完成", "已关闭", "已解决", "关闭"}
)
_UNFIXED = frozenset(
    {"won't fix", "won't do", "duplicate", "cannot reproduce", "canceled", "cancelled", "不予解决", "重复"}
)
_BLOCK = regex(r"\{(?:code|noformat)(?::[^}]*)?\}(.*?)\{(?:code|noformat)\}", re.DOTALL)
_HEADING = regex(r"^h([1-6])\.\s+", re.MULTILINE)
_COMMENT = regex(r"^([^;\n]{6,40});([^;\n]*);(.*)$", re.DOTALL)


def recognises(location: str) -> bool:
    """A single CSV file with a title and a text in its header."""
    listed = list(files(location))
    if len(listed) != 1 or isinstance(listed[0], Failure) or listed[0].suffix != ".csv":
        return False
    text = text_of(listed[0].head(65_536)) or ""
    places = _places(next(csv.reader(io.StringIO(text)), []))
    return bool(places["title"] and places["text"] and places["status"])


def read(options: Options) -> Iterator[Item]:
    """Every ticket, in the order of the rows."""
    csv.field_size_limit(MAX_BYTES)
    for found in contents(options.location, (".csv",), MAX_BYTES):
        if isinstance(found, Failure):
            yield found
        elif (text := text_of(found[1])) is not None:
            yield from _rows(found[0], text)
        else:
            yield Failure(origin=found[0], reason="no text")


def markdown(text: str) -> str:
    """Jira's markup as Markdown, as far as it matters: code and headings."""
    text = _BLOCK.sub(lambda match: f"\n```\n{match[1].strip()}\n```\n", text)
    return _HEADING.sub(lambda match: "#" * int(match[1]) + " ", text).strip()


def _rows(origin: str, text: str) -> Iterator[Discussion | Failure]:
    try:
        reader = csv.reader(io.StringIO(text), dialect=_dialect(text))
        places = _places(next(reader, []))
        if not places["title"]:
            yield Failure(origin=origin, reason="no column with a title (Summary, Title, 标题)")
            return
        for number, row in enumerate(reader, start=2):
            if any(cell.strip() for cell in row):
                yield _ticket(f"{origin}:{number}", row, places)
    except csv.Error as error:
        yield Failure(origin=origin, reason=f"no CSV ({error})")


def _dialect(text: str) -> type[csv.Dialect]:
    """Commas, semicolons or tabs, whichever the header has most of."""

    class Dialect(csv.excel):
        delimiter = max(",;\t", key=text.partition("\n")[0].count)

    return Dialect


def _places(header: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    names = [name.strip().casefold().lstrip("\ufeff") for name in header]
    places = {}
    for what, known in COLUMNS.items():
        named = next((name for name in known if name in names), None)
        places[what] = tuple(place for place, name in enumerate(names) if name == named)
    return places


def _ticket(origin: str, row: Sequence[str], places: Mapping[str, tuple[int, ...]]) -> Discussion | Failure:
    def cells(what: str) -> list[str]:
        return [row[place].strip() for place in places[what] if place < len(row) and row[place].strip()]

    def cell(what: str) -> str:
        return next(iter(cells(what)), "")

    if not cell("title"):
        return Failure(origin=origin, reason="a ticket without a title")
    reporter = cell("reporter").casefold()
    replies = [_comment(text, reporter) for text in cells("comment")]
    resolution = cell("resolution")
    short = resolution.casefold()
    if len(resolution.split()) > 3 or len(resolution) > 20:
        # A text, not a word such as "Fixed".
        replies.append(Message(text=markdown(resolution), role="maintainer", accepted=True))
    done = cell("status").casefold() in _DONE or short in _DONE
    return Discussion(
        origin=origin,
        key=cell("key") or origin,
        title=cell("title"),
        messages=(Message(text=markdown(cell("text")), role="reporter"), *replies),
        url=cell("url") if cell("url").startswith(("https://", "http://")) else "",
        resolved=done and short not in _UNFIXED,
        updated=cell("updated"),
    )


def _comment(text: str, reporter: str) -> Message:
    """``12/Mar/26 10:02 AM;account;text``; other trackers write the text alone."""
    parts = _COMMENT.match(text)
    if parts is None or not any(character.isdigit() for character in parts[1]):
        return Message(text=markdown(text))
    mine = bool(reporter) and parts[2].strip().casefold() == reporter
    return Message(text=markdown(parts[3]), role="reporter" if mine else "other")
