"""Screenshots → the lines that they show, as they would have been pasted. Bounded in bytes, pixels and lines.

Needs the packages of the extra ``pictures``. The models come with them: nothing is fetched.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from trainmedic.kb.lazy import regex

MARK = " (OCR)"
"""The ending of the name of a source that was read from a picture."""
MOST_BYTES = 24 * 1024 * 1024
MOST_PIXELS = 16_000_000
LONGEST_SIDE = 1600
"""Pixels to which a larger picture is scaled down to find its lines; each is read at its own size."""
MOST_WRITING = 5000
"""Writing that is read at once, in heights of its line: a thousand take a core about a second."""
FINDING = 500
"""The cost of finding the lines of one picture."""
LEAST_SURE = 0.5
INK = 40
"""Shades of grey that ink differs from its line's paper."""
FRAME = 0.8
"""Share of all lines in which a column has ink that is not writing, but the edge of a window."""
GAP = 4
"""Heights of a line between two parts of it that are read for themselves."""
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP")
_NEEDED = ("rapidocr", "onnxruntime", "PIL")
# What the reader guesses wrong, and no run writes: marks of full width between characters that are not, "le-05", and a
# key without the blank behind its colon.
_WIDE = str.maketrans("：，；（）！？＝＿－", ":,;()!?=_-")
_WIDE_MARK = regex(r"(?<=[!-~])[：，；（）！？＝＿－](?=[ !-~]|$)")
_ONE = regex(r"(?<![\w.])[lI](?=e-[0-9])")
_KEY = regex(r"^([ \t]*[A-Za-z_]\w{0,60}[:,])(?=[^\s/:,])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The text of a picture, how much writing it is, and how many of its lines were too many."""

    text: str
    writing: int
    left: int = 0


@dataclass(frozen=True, slots=True)
class _Stretch:
    left: float
    top: float
    right: float
    bottom: float
    text: str = ""

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def is_picture(content: bytes) -> bool:
    webp = content[:4] == b"RIFF" and content[8:12] == b"WEBP"
    bitmap = content[:2] == b"BM" and content[6:10] == bytes(4)  # a text may begin with the letters
    return webp or bitmap or content.startswith(_MAGIC)


def readable() -> bool:
    """Whether the packages are installed."""
    return all(find_spec(name) is not None for name in _NEEDED)


def read(content: bytes, most: int = MOST_WRITING) -> Shown:
    """The first lines, of at most so much writing. Raises `ValueError` for a picture that is damaged or too large."""
    pixels = _pixels(content)
    engine = _engine()
    found = engine(pixels, use_det=True, use_cls=False, use_rec=False)
    boxes = [] if found.boxes is None else list(_lines(pixels, [_bounds(box) for box in found.boxes.tolist()]))
    stretches: list[_Stretch] = []
    writing, left = float(FINDING), 0
    for number, box in enumerate(boxes):
        writing += (box.right - box.left) / (box.bottom - box.top)
        if writing > most:
            left = len(boxes) - number
            break
        crop = pixels[int(box.top) : int(box.bottom), max(0, int(box.left) - 2) : int(box.right) + 2]
        read = engine(crop, use_det=False, use_cls=False, use_rec=True)
        if read.txts and read.scores[0] >= LEAST_SURE:
            stretches.append(_Stretch(box.left, box.top, box.right, box.bottom, _corrected(read.txts[0])))
    return Shown(text=_laid_out(stretches), writing=int(writing), left=left)


def _corrected(line: str) -> str:
    narrow = _WIDE_MARK.sub(lambda match: match[0].translate(_WIDE), line)
    return _KEY.sub(r"\1 ", _ONE.sub("1", narrow))


def _pixels(content: bytes) -> Any:
    """The picture as rows of RGB."""
    import numpy as np
    from PIL import Image

    if len(content) > MOST_BYTES:
        raise ValueError(f"over {MOST_BYTES // 1024**2} MiB")
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise ValueError(f"over {MOST_PIXELS // 1_000_000} million pixels")
            return np.asarray(picture.convert("RGB"))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError("damaged") from error


@cache
def _engine() -> Any:
    from rapidocr import RapidOCR

    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.use_cls": False,
            "Det.limit_type": "max",
            "Det.limit_side_len": LONGEST_SIDE,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _bounds(box: Sequence[Sequence[float]]) -> _Stretch:
    xs, ys = [x for x, _ in box], [y for _, y in box]
    return _Stretch(min(xs), min(ys), max(xs), max(ys))


def _lines(pixels: Any, boxes: Sequence[_Stretch]) -> Iterator[_Stretch]:
    """The lines that boxes were found on, in parts where they have wide gaps. How far each reaches is seen by its ink:
    boxes leave out single characters and whole ends of a line."""
    import numpy as np

    ink = np.zeros(pixels.shape[:2], bool)
    rows = [(int(max(0, min(e.top for e in row))), int(max(e.bottom for e in row)) + 1) for row in _rows(boxes)]
    grey = pixels.mean(axis=2)
    for top, bottom in rows:
        ink[top:bottom] = abs(grey[top:bottom] - np.median(grey[top:bottom])) > INK
    frame = ink.sum(axis=0) > FRAME * max(1, sum(bottom - top for top, bottom in rows))
    seen = 0
    for top, bottom in rows:
        if seen - top > (bottom - top) / 2:
            continue  # another box of the line before
        seen = bottom
        columns = np.flatnonzero(ink[top:bottom].any(axis=0) & ~frame)
        if len(columns):
            for part in np.split(columns, np.flatnonzero(np.diff(columns) > GAP * (bottom - top)) + 1):
                yield _Stretch(float(part[0]), top, float(part[-1] + 1), bottom)


def _laid_out(stretches: Sequence[_Stretch]) -> str:
    """The stretches as lines, with blanks for indentation and for the columns of tables."""
    from statistics import median  # takes longer to load than the rest of this package

    if not stretches:
        return ""
    width = median((each.right - each.left) / max(1, _columns(each.text)) for each in stretches) or 1.0
    margin = min(each.left for each in stretches)
    lines = []
    for row in _rows(stretches):
        line = ""
        for each in row:
            column = round((each.left - margin) / width)
            line += " " * max(column - _columns(line), 1 if line else 0) + each.text
        lines.append(line)
    return "\n".join(lines) + "\n"


def _columns(text: str) -> int:
    return sum(1 + (character >= "\u2e80") for character in text)


def _rows(stretches: Sequence[_Stretch]) -> Iterator[list[_Stretch]]:
    row: list[_Stretch] = []
    if not stretches:
        return
    for each in sorted(stretches, key=lambda each: each.middle):
        if row and each.middle > row[0].bottom - (row[0].bottom - row[0].top) / 4:
            yield sorted(row, key=lambda item: item.left)
            row = []
        row.append(each)
    yield sorted(row, key=lambda item: item.left)
