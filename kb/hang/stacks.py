"""Call stacks as tools print them, of one rank or of many in one text.

py-spy (text and ``--json``), faulthandler and gdb's ``py-bt`` are read. Which rank a stack is of says a heading
(``=== rank 3 of 8, process 812 ===``, ``Rank 3:``), the line's prefix (``[rank3]:``), ``--local-rank`` of the command
that py-spy prints, or the file's name; else the process is named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainmedic.kb.hang.model import Frame, Gone, Thread
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.parse.source import Piece, numbered

MARKS = ("most recent call first", '"MainThread"', "(idle)", "(active", '"short_filename"', "=== rank ")
"""One of these is in every text that holds stacks."""
MOST_FRAMES = 400
MOST_THREADS = 20_000
MOST_DAMAGED = 32
"""Attempts to read JSON that fail: each may take as long as the text is long."""
_PREFIX = regex(
    r"^\s{0,40}(?:\[[^\]\n]{1,60}\]\s{0,4}>{0,2}\s{0,4})?\[?(?:rank|worker-)(?P<rank>[0-9]{1,5})\]?:[ \t]?",
    re.IGNORECASE,
)
_HEADING = regex(
    r"^[^\w\n]{0,12}(?:global[ _]|dp |gpu )?rank[ _:=#]{0,3}(?P<rank>[0-9]{1,5})\b"
    r"(?:\s{0,3}(?:of|/)\s{0,3}(?P<of>[0-9]{1,5}))?",
    re.IGNORECASE,
)
_GONE = regex(r"\b(?:gone|dead|killed|exited|no such process|zombie|defunct|not running)\b", re.IGNORECASE)
_PROCESS = regex(r"^\W{0,8}(?:Process|PID:?)\s(?P<pid>[0-9]{1,10})\b(?P<command>[^\n]{0,8000})", re.IGNORECASE)
_LOCAL = regex(r"--(?:node_)?(?:local[_-])?rank[= ](?P<rank>[0-9]{1,5})\b")
_THREAD = regex(
    r"^\W{0,8}Thread (?P<id>[0-9A-Fx]{1,20})(?: \((?P<state>[\w+ ]{1,30})\))?(?:: \"(?P<name>[^\"\n]{0,80})\")?\s*$",
    re.IGNORECASE,
)
_FAULT = regex(
    r"(?:Thread 0x(?P<id>[0-9a-f]{1,16})[^\n]{0,60}|Stack|Traceback) \(most recent call first\)", re.IGNORECASE
)
_CALL = regex(
    r"^[\s>|*-]{1,60}(?P<function>[^\s()\"][^()\n\"]{0,200}?) "
    r"\((?P<file>[^()\n]{1,300}?):(?P<line>[0-9]{1,7})(?P<end>\))\s*$"
)
_FILE = regex(
    r"^[\s>|*-]{0,60}File \"(?P<file>[^\"\n]{1,300})\", line (?P<line>[0-9]{1,7}),? in (?P<function>[^\n]{1,200}?)\s*$"
)
_NAMED = regex(
    r"rank[_\-. ]{0,3}([0-9]{1,5})|(?:^|/)([0-9]{1,5})/(?:stdout|stderr)\b|worker[_-]?([0-9]{1,5})", re.IGNORECASE
)
_MAIN = ("mainthread", "main", "")


def rank_of_name(name: str | None) -> str:
    """The rank that a file's name states; empty if it states none."""
    match = _NAMED.search(name or "")
    return str(int(next(group for group in match.groups() if group))) if match is not None else ""


@dataclass(slots=True)
class _Open:
    """The place in a text of many stacks."""

    who: str = ""
    headed: bool = False
    name: str = ""
    frames: list[Frame] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    gone: list[Gone] = field(default_factory=list)
    expected: int = 0
    dumps: dict[str, int] = field(default_factory=dict)
    mains: set[tuple[str, int]] = field(default_factory=set)
    fresh: bool = True
    reading: bool = False

    def close(self) -> None:
        if self.frames and len(self.threads) < MOST_THREADS:
            thread = Thread(who=self.who, name=self.name, frames=tuple(reversed(self.frames)))
            again = is_main(thread) and (self.who, self.dumps.get(self.who, 0)) in self.mains
            if self.fresh or again:  # a heading, or a second main thread, begins another dump
                self.dumps[self.who] = self.dumps.get(self.who, -1) + 1
            self.fresh, sample = False, self.dumps[self.who]
            self.mains |= {(self.who, sample)} if is_main(thread) else set()
            self.threads.append(replace(thread, sample=sample))
        self.frames, self.reading = [], False

    def begin(self, who: str) -> None:
        self.close()
        self.who, self.fresh = who, True


def read(source: Source) -> tuple[tuple[Thread, ...], tuple[Gone, ...], int]:
    """The stacks and the lost ranks of one text, and the number of ranks if it states that."""
    if not any(mark in source.text for mark in MARKS):
        return (), (), 0
    piece = Piece(source=source.name, text=source.text)
    if '"short_filename"' in source.text:
        return tuple(_json(piece)), (), 0
    whole = _Open(who=rank_of_name(source.name) or source.name or "")
    prefixed: dict[str, _Open] = {}  # the lines of the ranks may be mixed
    for at, line in numbered(source.text):
        prefix = _PREFIX.match(line)
        if prefix is None:
            _line(whole, piece, at, line)
        else:
            who = str(int(prefix["rank"]))
            state = prefixed.setdefault(who, _Open(who=who, headed=True, threads=whole.threads, gone=whole.gone))
            _line(state, piece, at + prefix.end(), line[prefix.end() :])
    for state in (whole, *prefixed.values()):
        state.close()
    return tuple(whole.threads), tuple(whole.gone), whole.expected


def _line(state: _Open, piece: Piece, at: int, text: str) -> None:
    if not text.strip():
        return
    match = _CALL.match(text) or _FILE.match(text)
    if match is not None:
        if state.reading and len(state.frames) < MOST_FRAMES and match["file"].endswith((".py", ">", ".pyc")):
            begin = min(match.start("function"), match.start("file"))
            end = match.end("end" if "end" in match.groupdict() else "function")
            span = piece.span(at + begin, at + end)
            state.frames.append(
                Frame(file=match["file"], line=int(match["line"]), function=match["function"], span=span)
            )
        return
    _header(state, piece, at, text)


def _header(state: _Open, piece: Piece, at: int, text: str) -> None:
    heading = _HEADING.match(text) if len(text) < 200 else None
    if heading is not None and (process := _PROCESS.match(text)) is None:
        state.begin(str(int(heading["rank"])))
        state.headed = True
        state.expected = max(state.expected, int(heading["of"] or 0))
        if text.startswith("===") and (lost := _GONE.search(text)) is not None:
            state.gone.append(Gone(who=state.who, why=lost[0].lower(), span=piece.span(at, at + len(text))))
    elif (process := _PROCESS.match(text)) is not None:
        local = _LOCAL.search(process["command"])
        if state.headed and not state.frames and not state.reading:
            return
        if not rank_of_name(piece.source):
            state.headed = False
            state.begin(str(int(local["rank"])) if local is not None else f"pid {process['pid']}")
    elif (thread := _THREAD.match(text)) is not None or (fault := _FAULT.search(text)) is not None:
        state.close()
        state.reading = True
        state.name = (thread["name"] or "?") if thread is not None else ""
        if thread is None and fault is not None and fault["id"] and not text.startswith("Current"):
            state.name = "?"
    elif state.reading and not text[0].isspace() and not text.startswith("Python v"):
        state.close()


def records(text: str, bracket: str) -> Iterator[tuple[int, Any]]:
    """The JSON values in a text that begin with a bracket, with where. It gives up on a text that is mostly damaged."""
    decoder, at, failures = json.JSONDecoder(), 0, 0
    while (at := text.find(bracket, at)) >= 0 and failures < MOST_DAMAGED:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            failures += 1
            at += 1
            continue
        yield at, value
        at = end


def _json(piece: Piece) -> Iterator[Thread]:
    """``py-spy dump --json``: one list of threads, or several in one text."""
    samples: dict[str, int] = {}
    named = rank_of_name(piece.source)
    for at, threads in records(piece.text, "["):
        found = [each for each in threads if isinstance(each, dict) and isinstance(each.get("frames"), list)]
        who = named or f"pid {found[0].get('pid')}" if found else ""
        samples[who] = samples.get(who, -1) + 1
        for thread in found[:MOST_THREADS]:
            frames = frames_of(thread["frames"], piece, at)
            yield Thread(who=who, name=str(thread.get("thread_name") or "?"), frames=frames, sample=samples[who])


def _frames_of(frames: list[object], piece: Piece, at: int) -> Iterator[Frame]:
    for frame in frames[:MOST_FRAMES]:
        if isinstance(frame, Mapping) and isinstance(frame.get("line"), int):
            file, function = str(frame.get("filename"))[:300], str(frame.get("name"))[:200]
            yield Frame(file=file, line=frame["line"], function=function, span=place(piece, json.dumps(function), at))


def place(piece: Piece, text: str, at: int) -> Span:
    """Where a text stands from an offset on; the offset's own place if it stands nowhere."""
    found = piece.text.find(text, at)
    return piece.span(found, found + len(text)) if found >= 0 else piece.span(at, at + 1)


def frames_of(frames: list[object], piece: Piece, at: int) -> tuple[Frame, ...]:
    """The frames of a flight recorder's entry, outermost first."""
    return tuple(_frames_of(frames, piece, at))[::-1]


def is_main(thread: Thread) -> bool:
    """Whether it is the main thread, or the only one of whose name nothing is said."""
    return thread.name.lower() in _MAIN


def chains(threads: tuple[Thread, ...]) -> dict[tuple[str, int], tuple[Frame, ...]]:
    """For each process and sample the calls that matter: those of its main thread, and if that stands in a backward
    pass, after them those of the thread that runs it."""
    grouped: dict[tuple[str, int], list[Thread]] = {}
    for thread in threads:
        grouped.setdefault((thread.who, thread.sample), []).append(thread)
    found = {}
    for key, group in grouped.items():
        main = next(
            (each for each in group if is_main(each)),
            next((each for each in group if each.frames[0].function == "<module>"), group[-1]),
        )
        rest = [each for each in group if each is not main and _runs_backward(each)]
        deeper = rest[0].frames if rest and _in_backward(main) else ()
        found[key] = (*main.frames, *deeper)
    return found


def _in_backward(thread: Thread) -> bool:
    return any("torch/autograd/" in frame.file.replace("\\", "/") for frame in thread.frames[-2:])


def _runs_backward(thread: Thread) -> bool:
    """A thread without a Python beginning: autograd's, which calls hooks."""
    return bool(thread.frames) and not thread.frames[0].function.startswith(("_bootstrap", "run", "<module>"))
