"""The export of a Slack workspace, each thread of a channel as a discussion; and a thread that was copied as text.

An export has ``channels.json``, ``users.json`` and one ``CHANNEL/YYYY-MM-DD.json`` a day
(https://slack.com/help/articles/220556107). A message with a check mark as reaction is the accepted answer; check marks
at the first message say that the thread is resolved. Messages without replies are left out: no one answered them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from trainmedic.ingest.items import Discussion, Failure, Item, Message, shortened
from trainmedic.ingest.read.files import File
from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.threads.thread import Role

MAX_BYTES = 64 * 1024 * 1024
_DAY = regex(r"\d{4}-\d{2}-\d{2}\.json$")
_DONE = frozenset({"white_check_mark", "heavy_check_mark", "ballot_box_with_check", "done", "resolved", "solved"})
_MARKS = regex(r"<(?P<target>[^<>|]+)(?:\|(?P<label>[^<>]*))?>")
_SPEAKER = regex(
    r"(?P<name>[^\W\d][^:：,.，。!?]{0,38})?[ \t]*\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp]\.?[Mm]\.?)?\]?[ \t]*\r?$"
)
"""``Ann Lee  10:12 AM``, ``张三 10:12``, ``[10:13]``: who says what follows."""
_CHECKED = (":white_check_mark:", ":heavy_check_mark:", "✅", "✔")
LONGEST_TITLE = 120
CHANNELS, USERS = "channels.json", "users.json"
_TABLE = load_table("identities.toml")
_WORDS = frozenset((*_TABLE["words_and_names"], *_TABLE["shared_accounts"]))
_PARTS_OF_NAMES = ("name", "real_name", "display_name", "first_name", "last_name")


def exports(listed: Sequence[File | Failure]) -> Mapping[PurePosixPath, Sequence[File]]:
    """The JSON files of each export among these, by the export's folder."""
    paths = [(PurePosixPath(file.origin), file) for file in listed if isinstance(file, File)]
    roots = {path.parent for path, _ in paths if path.name == CHANNELS} & {
        path.parent for path, _ in paths if path.name == USERS
    }
    return {
        root: [file for path, file in paths if path.suffix == ".json" and root in path.parents]
        for root in sorted(roots)
    }


def threads(export: Sequence[File]) -> Iterator[Item]:
    """The threads of every channel, in the order of channels and first messages."""
    people = next((_people(file) for file in export if PurePosixPath(file.origin).name == USERS), frozenset[str]())
    days = [file for file in export if _DAY.search(PurePosixPath(file.origin).name)]
    if not days:
        yield Failure(origin=export[0].origin, reason="no day of a channel (CHANNEL/YYYY-MM-DD.json) beside it")
    for channel, listed in groupby(days, key=lambda day: PurePosixPath(day.origin).parent.name):
        messages: list[Mapping[str, Any]] = []
        for day in listed:
            found = _messages(day)
            if isinstance(found, Failure):
                yield found
            else:
                messages += found
        yield from (_without_people(thread, people) for thread in _threads(channel, messages))


def copied(text: str, origin: str) -> Discussion | None:
    """The thread in a text copied from a chat, where a line of name and time (or the time alone, of the same speaker)
    begins each message; None for any other text."""
    lines = text.split("\n")
    heads = [(number, head) for number, line in enumerate(lines) if (head := _SPEAKER.match(line)) is not None]
    names = [head["name"].strip() for _, head in heads if head["name"]]
    if len(set(names)) < 2 or not heads[0][1]["name"] or len([*filter(str.strip, lines[: heads[0][0]])]) > 1:
        return None
    messages, speaker = list[Message](), ""
    for (number, head), (end, _) in zip(heads, [*heads[1:], (len(lines), None)], strict=True):
        speaker = (head["name"] or speaker).strip()
        if said := "\n".join(lines[number + 1 : end]).strip():
            role: Role = "reporter" if speaker == names[0] else "other"
            mark = next((mark for mark in _CHECKED if messages and said.startswith(mark)), "")
            messages.append(Message(text=said.removeprefix(mark).strip(), role=role, accepted=mark != ""))
    if len(messages) < 2:
        return None
    thread = Discussion(
        origin=origin,
        key=origin,
        title=_title(messages[0].text),
        messages=tuple(messages),
        resolved=any(message.accepted for message in messages),
        team=True,
    )
    return _without_people(thread, called(names))


def plain(text: str) -> str:
    """Slack's markup as Markdown: links and entities resolved, people named nowhere."""

    def resolved(mark: re.Match[str]) -> str:
        target, label = mark["target"], mark["label"] or ""
        if target.startswith("@"):
            return "@someone"
        if target.startswith("#"):
            return f"#{label}"
        if target.startswith("!"):
            return f"@{target[1:].partition('^')[0]}"
        return f"[{label}]({target})" if label and label != target else target

    return html.unescape(_MARKS.sub(resolved, text)).strip()


def _people(file: File) -> frozenset[str]:
    """The names and handles of the workspace's members; none if the list cannot be read."""
    listed = file.json(MAX_BYTES)
    members = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    profiles = [profile for item in members if isinstance(profile := item.get("profile"), Mapping)]
    names = (item.get(part) for item in (*members, *profiles) for part in _PARTS_OF_NAMES)
    return called(name for name in names if isinstance(name, str))


def called(names: Iterable[str]) -> frozenset[str]:
    """The names of people in messages, and the parts of these that are not words."""
    whole = {name.strip() for name in names}
    parts = whole | {part for name in whole for part in name.split()}
    return frozenset(name for name in parts if len(name) >= (3 if name.isascii() else 2) and name.lower() not in _WORDS)


def unnamed(text: str, names: frozenset[str]) -> str:
    """The text without the people that it names."""
    present = sorted((name for name in names if name in text), key=len, reverse=True)
    if not present:
        return text
    # Chinese has no blanks around a name.
    patterns = (re.escape(name) if not name.isascii() else rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in present)
    return re.sub("|".join(patterns), lambda match: "x" * len(match[0]), text)


def _without_people(thread: Discussion, names: frozenset[str]) -> Discussion:
    messages = tuple(replace(message, text=unnamed(message.text, names)) for message in thread.messages)
    return replace(thread, title=unnamed(thread.title, names), messages=messages)


def _messages(day: File) -> list[Mapping[str, Any]] | Failure:
    listed = day.json(MAX_BYTES)
    if isinstance(listed, Failure):
        return listed
    if not isinstance(listed, list):
        return Failure(origin=day.origin, reason="no list of messages")
    return [item for item in listed if isinstance(item, Mapping) and _is_said(item)]


def _is_said(item: Mapping[str, Any]) -> bool:
    """Whether someone wrote the message: no joining, no renaming, no bot."""
    said = item.get("subtype") in (None, "file_share", "thread_broadcast", "me_message")
    return said and item.get("type") == "message" and "bot_id" not in item and isinstance(item.get("text"), str)


def _threads(channel: str, messages: list[Mapping[str, Any]]) -> Iterator[Discussion]:
    threads: dict[str, list[Mapping[str, Any]]] = {}
    for item in sorted(messages, key=_time):
        threads.setdefault(str(item.get("thread_ts") or item.get("ts")), []).append(item)
    for key, (first, *replies) in threads.items():
        # A thread whose first message lies outside the export has no question.
        if not replies or str(first.get("ts")) != key or not plain(first["text"]):
            continue
        reporter = first.get("user")
        said = [_reply(item, reporter) for item in replies if plain(item["text"])]
        yield Discussion(
            origin=f"{channel}/{key}",
            key=f"{channel}/{key}",
            title=_title(plain(first["text"])),
            messages=(Message(text=plain(first["text"]), role="reporter"), *said),
            resolved=_marked(first) or any(message.accepted for message in said),
            updated=_iso(max(_time(item) for item in (first, *replies))),
            team=True,
        )


def _reply(item: Mapping[str, Any], reporter: object) -> Message:
    role: Role = "reporter" if item.get("user") == reporter else "other"
    return Message(text=plain(item["text"]), role=role, accepted=_marked(item))


def _marked(item: Mapping[str, Any]) -> bool:
    reactions = item.get("reactions")
    listed = reactions if isinstance(reactions, list) else []
    return any(isinstance(reaction, Mapping) and reaction.get("name") in _DONE for reaction in listed)


def _title(text: str) -> str:
    return shortened(text.splitlines()[0].strip("`*_ "), LONGEST_TITLE)


def _time(item: Mapping[str, Any]) -> float:
    """A time as an export writes it; 0 if it is none."""
    try:
        return float(str(item.get("ts") or 0))
    except ValueError:
        return 0.0


def _iso(seconds: float) -> str:
    """Empty beyond the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""
