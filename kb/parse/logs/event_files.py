"""Binary run histories → JSON lines, one logged row each, which the reader of rows understands. Never raises.

TensorBoard's event files (TFRecord frames of protobuf events) and W&B's offline ``run-*.wandb`` (a LevelDB log of
protobuf records) are read. The formats are small and their libraries are not, so only the few fields with numbers are
decoded. Nothing is read from a frame with a wrong checksum.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

WANDB_MAGIC = b":W&B\xe1\xbe"
WANDB_HEADER = 7
BLOCK = 32 * 1024
"""A record of a LevelDB log is cut at the ends of blocks."""
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
KEY, NESTED_KEY, VALUE = 1, 2, 16
CLOCKS = ("", "_runtime", "_timestamp")
MOST_BYTES = 32 * 1024 * 1024
MOST_ROWS = 50_000
MOST_RECORD = 1024 * 1024
"""Records above this hold histograms, images or graphs."""
_CASTAGNOLI = 0x82F63B78
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """The rows of one file as JSON lines. ``complete``: the file was read to its end and no frame was damaged."""

    kind: str
    text: str
    rows: int
    complete: bool


class _DamagedError(Exception):
    """A frame or a message that ends too early or has a wrong checksum."""


def is_run_history(content: bytes) -> bool:
    """Whether a binary file is of one of the formats."""
    return content.startswith(WANDB_MAGIC) or _is_tensorboard(content)


def read(content: bytes) -> RunHistory | None:
    """The history in a binary file; None if it is of neither format."""
    if content.startswith(WANDB_MAGIC):
        kind, rows = "W&B run", _wandb_rows(content[:MOST_BYTES])
    elif _is_tensorboard(content):
        kind, rows = "TensorBoard events", _tensorboard_rows(content[:MOST_BYTES])
    else:
        return None
    lines: list[str] = []
    complete = len(content) <= MOST_BYTES
    try:
        for row in rows:
            if len(lines) == MOST_ROWS:
                complete = False
                break
            lines.append(json.dumps(row, ensure_ascii=False))
    except _DamagedError:
        complete = False
    return RunHistory(kind=kind, text="".join(f"{line}\n" for line in lines), rows=len(lines), complete=complete)


# --- TensorBoard ------------------------------------------------------------------------------------------------------


def _is_tensorboard(content: bytes) -> bool:
    """Whether the first frame is the event with the version of the format, ``brain.Event:2``."""
    return b"brain.Event:" in content[12:64] and _crc_fits(content[:8], content[8:12])


def _tensorboard_rows(content: bytes) -> Iterator[dict[str, float]]:
    """The scalars of one step after another as one row; those of an evaluation as a row of their own."""
    row: dict[str, float] = {}
    evaluation = damaged = False
    scalars = _scalars(content)
    while True:
        try:
            step, tag, value = next(scalars)
        except StopIteration:
            break
        except _DamagedError:
            damaged = True
            break
        evaluates = tag.startswith(("eval", "val"))
        if row and (step != row["step"] or tag in row or evaluates is not evaluation):
            yield row
            row = {}
        evaluation = evaluates
        row.setdefault("step", step)
        row[tag] = value
    if row:
        yield row
    if damaged:
        raise _DamagedError


def _scalars(content: bytes) -> Iterator[tuple[int, str, float]]:
    """(step, tag, value) of every scalar, in the order written."""
    for event in _frames(content):
        step, summary = 0, b""
        for number, value in _fields(event):
            if number == 2 and isinstance(value, int):
                step = value if value < 1 << 63 else 0
            elif number == 5 and isinstance(value, bytes):
                summary = value
        for number, value in _fields(summary):
            if number == 1 and isinstance(value, bytes) and (scalar := _scalar(value)) is not None:
                yield step, *scalar


def _frames(content: bytes) -> Iterator[bytes]:
    """The data of each TFRecord: length, its checksum, the data, their checksum."""
    offset = 0
    while offset < len(content):
        header = content[offset : offset + 12]
        if len(header) < 12 or not _crc_fits(header[:8], header[8:]):
            raise _DamagedError
        length = int.from_bytes(header[:8], "little")
        data = content[offset + 12 : offset + 12 + length]
        check = content[offset + 12 + length : offset + 16 + length]
        if len(check) < 4:
            raise _DamagedError
        offset += 16 + length
        if length <= MOST_RECORD // 64:  # a scalar takes some 50 bytes
            if not _crc_fits(data, check):
                raise _DamagedError
            yield data


def _scalar(value: bytes) -> tuple[str, float] | None:
    """Tag and number of a summary's value: ``simple_value``, or a tensor with one number."""
    tag, scalar = "", None
    for number, part in _fields(value):
        if number == 1 and isinstance(part, bytes):
            tag = part.decode("utf-8", "replace")
        elif number == 2 and isinstance(part, bytes) and len(part) == 4:
            scalar = _float(part)
        elif number == 8 and isinstance(part, bytes):
            scalar = _tensor(part)
    return (tag, scalar) if tag and scalar is not None else None


def _tensor(value: bytes) -> float | None:
    """The number of a float tensor without dimensions: as raw content, or in the list of its numbers."""
    for number, part in _fields(value):
        if number in (4, 5) and isinstance(part, bytes) and len(part) == 4:
            return _float(part)
    return None


def _float(data: bytes) -> float:
    return float(struct.unpack("<f", data)[0])


def _castagnoli() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CASTAGNOLI if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE = _castagnoli()


def _crc_fits(data: bytes, expected: bytes) -> bool:
    """Whether a masked CRC-32C, as TFRecord has it, is that of the data."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return masked.to_bytes(4, "little") == expected


# --- W&B --------------------------------------------------------------------------------------------------------------


def _wandb_rows(content: bytes) -> Iterator[dict[str, float]]:
    """The history records; other records (configuration, output, system metrics) hold no logged row."""
    for record in _log_records(content):
        for number, history in _fields(record):
            if number == 2 and isinstance(history, bytes) and (row := _history(history)):
                yield row


def _history(history: bytes) -> dict[str, float]:
    row: dict[str, float] = {}
    for number, item in _fields(history):
        if number == 1 and isinstance(item, bytes):
            parts = [
                (field, part.decode("utf-8", "replace")) for field, part in _fields(item) if isinstance(part, bytes)
            ]
            name = "/".join(part for field, part in parts if field in (KEY, NESTED_KEY))
            value = _number(next((part for field, part in parts if field == VALUE), ""))
            if value is not None and name not in CLOCKS:
                row[name] = value
    if any(name.endswith("global_step") for name in row):
        row.pop("_step", None)  # W&B's own counter of calls
    return row


def _number(text: str) -> float | None:
    """The number of a JSON value, which W&B writes as text where it is not finite."""
    try:
        value = json.loads(text)
        return float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError, RecursionError):
        return None


def _log_records(content: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log: checksum, length, type, data, in blocks that cut long records into pieces."""
    offset, record = WANDB_HEADER, bytearray()
    while offset + 7 <= len(content):
        left = BLOCK - offset % BLOCK
        if left < 7:
            offset += left
            continue
        crc, length, kind = struct.unpack_from("<IHB", content, offset)
        data = content[offset + 7 : offset + 7 + length]
        offset += 7 + length
        if kind not in (FULL, FIRST, MIDDLE, LAST) or zlib.crc32(data, zlib.crc32(bytes((kind,)))) != crc:
            raise _DamagedError
        if kind in (FULL, FIRST):
            record.clear()
        if len(record) <= MOST_RECORD:
            record += data
        if kind in (FULL, LAST) and len(record) <= MOST_RECORD:
            yield bytes(record)
    if offset < len(content):
        raise _DamagedError


# --- protobuf ---------------------------------------------------------------------------------------------------------


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field: an integer, or the bytes of anything else."""
    offset = 0
    while offset < len(message):
        key, offset = _varint(message, offset)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, offset = _varint(message, offset)
            yield number, value
            continue
        if wire == _BYTES:
            length, offset = _varint(message, offset)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise _DamagedError
        if offset + length > len(message):
            raise _DamagedError
        yield number, message[offset : offset + length]
        offset += length


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if offset >= len(message):
            break
        byte = message[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
    raise _DamagedError
