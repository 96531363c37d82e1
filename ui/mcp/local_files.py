"""Files on the machine of a server that its client started itself: only those below folders that were allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.text.condense import ROOM, bounded

MOST_BYTES = 64 * 1024 * 1024
"""Bytes up to which a file is kept as it is until it is parsed."""
_PIECE = 1024 * 1024


class LocalFiles:
    """Reads files below ``roots``. Links are followed first, so that none leads out of them."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(root.resolve() for root in roots)

    def read(self, name: str) -> Attachment:
        """The file at a path, absolute or below one of the roots. Raises `InvalidRequest` and `NotFound`."""
        try:
            with self._place(name, Path.is_file).open("rb") as stream:
                content, left_out = bounded(iter(lambda: stream.read(_PIECE), b""), MOST_BYTES, ROOM)
        except (OSError, ValueError, RuntimeError):  # a loop of links, a zero byte, no permission
            raise NotFound("path: cannot be read") from None
        return Attachment(name=name, content=content, left_out=left_out)

    def folder(self, name: str) -> Path:
        """The folder at a path, as `read` finds files."""
        try:
            return self._place(name, Path.is_dir)
        except (OSError, ValueError, RuntimeError):
            raise NotFound("path: cannot be read") from None

    def _place(self, name: str, is_right: Callable[[Path], bool]) -> Path:
        if not self.roots:
            raise InvalidRequest("path: this server reads no files", hint="start it with: trainmedic mcp --root FOLDER")
        places = [place for root in self.roots if is_right(place := (root / name).resolve())]
        allowed = [place for place in places if self._allowed(place)]
        if not allowed:
            # Nothing is said of files elsewhere, not even whether they exist.
            raise NotFound("path: no such file below the allowed folders", hint="hidden files are not read")
        return allowed[0]

    def _allowed(self, place: Path) -> bool:
        below = [place.relative_to(root) for root in self.roots if place.is_relative_to(root)]
        return any(not any(part.startswith(".") for part in path.parts) for path in below)
