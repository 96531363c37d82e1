"""The activity of a stack, judged by the files and functions that are innermost in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmedic.kb.data_files import load_table
from trainmedic.kb.hang.model import Frame

_WORDS = load_table("hang/words.toml")
_PLUMBING = tuple(_WORDS["plumbing"])
_COLLECTIVE_FILES = tuple(_WORDS["collective"]["files"])
_COLLECTIVE_NAMES = frozenset(_WORDS["collective"]["functions"])
_NO_COLLECTIVE = tuple(_WORDS["collective"]["no_files"])
_WORK: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    name: (tuple(words["files"]), tuple(words["functions"])) for name, words in _WORDS["work"].items()
}
TOPICS = {name: tuple(words) for name, words in _WORDS["topics"].items()}
_INNER = 10
"""So many innermost calls tell what a rank is busy with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """``doing`` is ``collective``, ``backward``, ``device`` (it waits for the GPU), a kind of work, or ``compute``.

    ``path`` are the calls that are neither communication nor wrappers, outermost first.
    """

    doing: str
    op: str
    path: tuple[Frame, ...]

    @property
    def waits(self) -> bool:
        return self.doing in ("collective", "backward", "device")


def _is(frame: Frame, files: Sequence[str]) -> bool:
    path = "/" + frame.file.replace("\\", "/")
    return any(part in path for part in files)


def place_of(frames: Sequence[Frame]) -> Place:
    """The place of a stack, outermost call first."""
    path = list(frames)
    op = ""
    while path:
        last = path[-1]
        named = last.function in _COLLECTIVE_NAMES and not _is(last, _NO_COLLECTIVE)
        if _is(last, _COLLECTIVE_FILES) or named:
            if last.function in _COLLECTIVE_NAMES:
                op = last.function
        elif not _is(last, _PLUMBING):
            break
        path.pop()
    shown = tuple(frame for frame in path if not _is(frame, _PLUMBING)) or tuple(frames[:1])
    if op or (frames and _is(frames[-1], _COLLECTIVE_FILES)):
        return Place(doing="collective", op=op or frames[-1].function, path=shown)
    return Place(doing=_work(frames), op="", path=shown)


def _work(frames: Sequence[Frame]) -> str:
    for kind, (files, functions) in _WORK.items():
        inner = frames[-1:] if kind in ("backward", "device") else frames[-_INNER:]
        if any(_is(frame, files) or frame.function in functions for frame in inner):
            return kind
    return "compute"


def about(frames: Sequence[Frame], topic: str, conditions: Sequence[str] = ()) -> bool:
    """Whether calls or conditions are about a topic of `words.toml`, by the words in their names."""
    text = " ".join((*(frame.function for frame in frames), *(_stem(frame.file) for frame in frames), *conditions))
    words = text.lower().replace(".", "_").replace("(", "_").replace(" ", "_").split("_")
    joined = "_".join(words)
    return any(word in words if "_" not in word else word in joined for word in TOPICS[topic])


def _stem(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
