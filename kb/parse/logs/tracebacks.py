"""Python tracebacks, also as many processes print them at once.

Each line loses its process prefix (``[rank3]:``, ``[1,0]<stderr>:``, ``[default2]:``, Ray's ``(name pid=…, ip=…)``,
``srun -l`` labels, times) and is read in the stream of that process, so interleaved ranks come apart. Chains
("During handling …", "… direct cause …") are kept in their order: the first exception of a chain is its root.
Where several processes fail, the root is the one that torchrun's "Root Cause" table names, else the first in the text
that is not itself a consequence (a closed connection, `ChildFailedError`, an interrupt). A traceback may lack its
header (cut off at the top, also in the middle of a frame's first line) or its exception (cut off at the end:
``exception`` is then empty). A lone last line (``ValueError: …``) counts too. ``RayTaskError(ValueError)`` is
unwrapped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Traceback
from trainmedic.kb.parse.logs.error_lines import denied, message_end
from trainmedic.kb.parse.logs.messages import goes_on
from trainmedic.kb.parse.source import Piece, numbered

MAX_TRACEBACKS = 200
_MAX_FRAMES = 200

_HINTS = ("Traceback", 'File "', "Error", "Exception", "Interrupt", "Exit")
_PREFIX = regex(
    r"(?:\x1b?\[[0-9;]{0,12}m|> ?)*(?:"
    r"\[rank(?P<a>[0-9]{1,6})\]:? ?|\[default(?P<b>[0-9]{1,6})\]:? ?|\[[0-9]{1,6},(?P<c>[0-9]{1,6})\]<std(?:err"
    r"|out)>:? ?"
    r"|(?P<d>[0-9]{1,5}): (?=Traceback|  |[A-Z]\w{0,60}Error)"
    r"|\((?P<actor>[A-Za-z_][\w.: ]{0,80}?pid=[0-9]{1,10})(?:, ip=[^)\n]{1,60})?\)(?:\x1b?\[0m)? ?"
    r"|\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?Z?\]?(?: ?-)? ?(?:\[?(?:ERROR"
    r"|CRITICAL|INFO|WARNING)\]?:? ?(?:- )?)?"
    r")?"
)
_HEADER = "Traceback (most recent call last):"
_FRAME = regex(
    r'^\s{0,80}File "(?P<path>[^"\n]{1,500}+)", line (?P<line>[0-9]{1,9}+)(?:, in (?P<function>[^\n]{1,200}+))?'
)
_TORN = regex(r"^\s{0,80}(?:\S{1,200}\", )?line (?P<line>[0-9]{1,9}+), in (?P<function>[A-Za-z_]\w{0,100}+)\s*$")
_NAME = r"(?:[A-Za-z_]\w{0,80}+\.){0,10}[A-Za-z_]\w{0,80}+"
_EXCEPTION = regex(rf"^(?P<name>{_NAME})(?:\((?P<inner>[\w.]{{1,160}}+)\))?(?::(?:\s(?P<message>[^\n]*+))?)?$")
_CLASS = regex(  # what tells "omegaconf.errors.Missing" from "Epoch: 3", which may stand between two ranks' lines
    r"(?:Error|Exception|Interrupt|Exit|Warning|Expired|Iteration|Failure|Signal)$|\w\.[A-Z]\w{0,80}+$"
)
_LONE = re.compile(
    r"(?<![A-Za-z0-9_./\\])(?P<name>(?:[A-Za-z_]\w{0,80}+\.){0,10}(?:[A-Z][A-Za-z0-9]{0,60}?(?:Error|Interrupt|Exception)"
    r"|Exception))(?:\((?P<inner>[\w.]{1,160}+)\))?(?::\s|：\s?|:(?=['\"]))(?P<message>[^\n]*+)$",
    re.ASCII,
)
_BARE = regex(r"^(?P<name>AssertionError|NotImplementedError|KeyboardInterrupt)$")
_LOGGED = regex(  # no more of a message: what a program logs next, or another exception
    r"\{['\"]|\[?[0-9]{4}[-/][0-9]{2}|[0-9]{1,3}%\||(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b|\[[A-Z]{4,8}\b|[^\n]{0,80}?"
    r"[0-9]{1,12}/[0-9]{1,12} \[|step:[0-9]|[A-Z]\w{0,60}(?:Error|Exception|Interrupt):|Traceback \(|[$#] |```"
)
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_ROOT_CAUSE = regex(
    r"Root Cause \(first observed failure\)[^\n]{0,40}\n(?:[^\n]{0,300}\n){0,6}?[^\n]{0,80}\brank\s{0,20}+:\s{0,20}+("
    r"?P<rank>[0-9]{1,6}+)"
)
_CONSEQUENCES = regex(
    r"ChildFailedError|KeyboardInterrupt|SystemExit|SignalException|BrokenPipe|ConnectionReset|DistBackendError"
    r"|EOFError|ActorDiedError|WorkerCrashedError|CalledProcessError"
)
_CONSEQUENCE_MESSAGES = regex(
    r"Connection (?:reset|closed) by|Broken pipe|NCCL communicator was aborted|Socket Timeout|SIGTERM"
    r"|died with <Signals"
)
_RAY = regex(r"RayTaskError|RayActorError|ActorDiedError")


@dataclass(slots=True)
class _OpenTraceback:
    rank: int | None
    start: int
    end: int
    indent: int
    chained: bool
    frames: list[str] = field(default_factory=list)
    name: str = ""
    message: str = ""
    awaits_message: bool = False
    done: bool = False


def read(piece: Piece) -> tuple[Traceback, ...]:
    """The tracebacks of a piece: the root first, the others in the order of the text. Same failures of other ranks
    are one."""
    text = piece.text
    if not any(hint in text for hint in _HINTS):
        return ()
    found = _TracebackReader().run(text)
    kept: list[_OpenTraceback] = []
    seen: set[tuple[str, str, str, bool]] = set()
    for one in sorted(found, key=lambda one: (one.start, one.end)):
        identity = (one.name, one.message, one.frames[-1] if one.frames else "", one.chained)
        if identity not in seen:
            seen.add(identity)
            kept.append(one)
    kept = kept[:MAX_TRACEBACKS]
    root = _root(kept, text)
    order = [one for one in kept if one is root] + [one for one in kept if one is not root]
    return tuple(
        Traceback(
            exception=one.name,
            message=one.message,
            span=piece.span(one.start, one.end),
            frames=tuple(one.frames),
            root=one is root,
            rank=one.rank,
        )
        for one in order
    )


def _root(found: list[_OpenTraceback], text: str) -> _OpenTraceback | None:
    """The traceback that everything else follows from."""
    if not found:
        return None
    first_of_chain = [one for one in found if not one.chained] or found
    table = _ROOT_CAUSE.search(text) if "Root Cause (first observed failure)" in text else None
    if table is not None:
        named = [one for one in first_of_chain if one.rank == int(table["rank"]) and not _follows(one)]
        if named:
            return named[0]
    return next((one for one in first_of_chain if not _follows(one)), first_of_chain[0])


def _follows(one: _OpenTraceback) -> bool:
    """Whether an exception only reports that another process failed, or was cut off before its name."""
    if not one.name or _CONSEQUENCES.search(one.name):
        return True
    return _CONSEQUENCE_MESSAGES.search(one.message) is not None


class _TracebackReader:
    """Reads the lines of a text, one open traceback per stream."""

    def __init__(self) -> None:
        self.found: list[_OpenTraceback] = []
        self.streams: dict[str, _OpenTraceback] = {}
        self.chains: set[str] = set()

    def run(self, text: str) -> list[_OpenTraceback]:
        for position, line in numbered(text):
            if (
                self.streams
                or any(hint in line for hint in _HINTS)
                or line.startswith(_CHAIN)
                or "exception" in line
                or (", in " in line and _TORN.match(line))
            ):
                self._line(line, position)
        for stream in list(self.streams):
            self._close(stream)
        return self.found

    def _line(self, line: str, position: int) -> None:
        stream, rank, at = process_prefix(line)
        body = line[at:]
        stripped = body.strip()
        current = self.streams.get(stream)
        end = position + len(line.rstrip())
        if _HEADER in body:
            self._close(stream)
            self._open(stream, rank, position + at + body.index(_HEADER), end, body.index(_HEADER))
        elif stripped.startswith(_CHAIN):
            self._close(stream)
            self.chains.add(stream)
        elif (frame := _FRAME.match(body) or (_TORN.match(body) if current is None else None)) is not None:
            if current is None or current.done:
                self._close(stream)
                self._open(stream, rank, position + at, end, max(0, _indent(body) - 2))
                current = self.streams[stream]
            if len(current.frames) < _MAX_FRAMES:
                where = f"{frame['path']}:{frame['line']}" if "path" in frame.groupdict() else f"line {frame['line']}"
                current.frames.append(f"{where} {frame['function'].strip()}" if frame["function"] else where)
            current.end = end
        elif current is not None:
            if current.awaits_message and current.message and ("INFO" in line[:at] or "WARNING" in line[:at]):
                current.awaits_message = False  # a logger's next line
            self._continue(stream, current, body, end, position + at)
        else:
            self._lone(stream, rank, body, position + at, end)

    def _continue(self, stream: str, current: _OpenTraceback, body: str, end: int, start: int) -> None:
        """A line inside a traceback: source text, the exception, or more of its message."""
        stripped = body.strip()
        if current.done:
            if current.awaits_message and any(map(str.isalnum, stripped)) and not _LOGGED.match(stripped):
                said = f"{current.message}\n{stripped}" if current.message else stripped
                current.message, current.end, current.awaits_message = said, end, False
            elif (
                not current.awaits_message
                and stripped
                and _indent(body) > current.indent
                and len(current.message) < 4000
            ):
                current.message, current.end = f"{current.message}\n{stripped}", end
            elif stripped or not current.awaits_message or current.message:
                self._close(stream)
                self._lone(stream, current.rank, body, start, end)
            return
        if not stripped or _indent(body) > current.indent:
            return
        match = _EXCEPTION.match(stripped)
        if match is None or not _CLASS.search(match["name"]):
            return
        current.name, current.message, current.end = match["name"], (match["message"] or "").strip(), end
        current.done = True
        current.awaits_message = (match["message"] is not None and not current.message) or stripped.endswith(":")
        if _RAY.search(match["name"]) and match["inner"]:
            self._unwrap(stream, current, match["inner"])

    def _unwrap(self, stream: str, outer: _OpenTraceback, inner: str) -> None:
        """Ray prints the remote traceback under the wrapper, and its last line is the real exception: read on."""
        outer.name = inner
        outer.message = "" if outer.message.startswith("ray::") else outer.message
        outer.done = outer.awaits_message = False

    def _lone(self, stream: str, rank: int | None, body: str, start: int, end: int) -> None:
        """An exception that is quoted: on a line of its own, or in a sentence."""
        bare = _BARE.match(body.strip())
        match = bare or _LONE.search(body[:4000])
        if match is None:
            return
        offset = body.find(match["name"]) if bare else match.start("name")
        if offset and (body[:offset].endswith("except ") or denied(body, offset) or goes_on(body, offset)):
            return
        name, message, stop = match["name"], "", end - start
        if not bare:
            begin = match.start("message")
            stop = message_end(body, offset, begin) if offset else len(body.rstrip())
            message = body[begin:stop].strip()
            name = match["inner"] if match["inner"] and _RAY.search(name) else name
        self._open(stream, rank, start + offset, start + stop, _indent(body))
        one = self.streams[stream]
        one.name, one.message, one.done = name, message, True
        one.awaits_message = message.endswith(":") and not body[:offset].strip()

    def _open(self, stream: str, rank: int | None, start: int, end: int, indent: int) -> None:
        self.streams[stream] = _OpenTraceback(
            rank=rank, start=start, end=end, indent=indent, chained=stream in self.chains
        )
        self.chains.discard(stream)

    def _close(self, stream: str) -> None:
        one = self.streams.pop(stream, None)
        if one is not None and (one.name or one.frames) and len(self.found) < 20 * MAX_TRACEBACKS:
            self.found.append(one)


def process_prefix(line: str) -> tuple[str, int | None, int]:
    """The stream a line belongs to, the rank where the prefix states it, and where the line's own text starts."""
    stream, rank, at = "", None, 0
    for _ in range(3):  # a time inside a rank prefix, a Ray prefix around a rank …
        match = _PREFIX.match(line, at)
        if match is None or match.end() == at:
            break
        at = match.end()
        stated = next((match[name] for name in "abcd" if match[name]), None)
        if stated is not None:
            rank = int(stated)
            stream += f"rank {rank};"
        elif match["actor"]:
            stream += match["actor"] + ";"
    return stream, rank, at


def _indent(body: str) -> int:
    return len(body) - len(body.lstrip())
