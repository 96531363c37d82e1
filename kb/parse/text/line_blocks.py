"""A stream of bytes → blocks of whole lines, whatever ends them and however long they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

BLOCK = 16 * 1024
"""Bytes of a block, unless a line is longer."""
LONGEST = 1024 * 1024
"""Bytes kept of one line."""


def cut(line: bytes, most: int) -> bytes:
    """The beginning of a line, without a character of UTF-8 that would be cut."""
    end = most
    while 0 < end < len(line) and line[end] & 0xC0 == 0x80:
        end -= 1
    return line[:end]


class LineReader:
    """Blocks of whole lines, each ended by ``\\n``. ``cut``: a line was longer than `LONGEST`, and only begins it."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.cut = False

    def __iter__(self) -> Iterator[bytes]:
        rest, skipping = bytearray(), False
        parts = (piece[at : at + BLOCK] for piece in self._pieces for at in range(0, len(piece), BLOCK))
        for part in parts:
            rest += part
            if len(rest) < BLOCK:
                continue
            # A carriage return at the very end may be half of a line break.
            end = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, len(rest) - 1)) + 1
            if not end and len(rest) > LONGEST:
                self.cut = skipping = True
                del rest[LONGEST:]
            if end:
                yield self._block(rest[:end], skipping=skipping)
                del rest[:end]
                skipping = False
        if rest:
            block = self._block(rest, skipping=skipping)
            yield block if block.endswith(b"\n") else block + b"\n"

    def _block(self, content: bytearray, *, skipping: bool) -> bytes:
        block = bytes(content)
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first = block.find(b"\n") if b"\n" in block else len(block)
        return cut(block[:first], LONGEST) + block[first:] if skipping else block
