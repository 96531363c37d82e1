"""TensorBoard event files and W&B's offline runs are read as logged rows; damaged ones as far as they go."""

from __future__ import annotations

import json
import random
import struct
import zlib
from base64 import b64encode

import pytest
from fastapi.testclient import TestClient

from tests.every_case import every_case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.logs import event_files
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings

TB = "events.out.tfevents.1700000000.host.1.0"
WB = "run-abc123.wandb"


def varint(value: int) -> bytes:
    data = b""
    while value > 127:
        data, value = data + bytes((value & 127 | 128,)), value >> 7
    return data + bytes((value,))


def field(number: int, value: int | bytes | float) -> bytes:
    """One protobuf field: a varint, bytes, or a 32-bit float."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def crc32c(data: bytes) -> int:
    """Bit by bit, unlike the table of the reader."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    return length + masked(length) + event + masked(event)


WALL = varint(1 << 3 | 1) + struct.pack("<d", 1.7e9)
VERSION = frame(WALL + field(3, b"brain.Event:2"))


def scalar(step: int, tag: str, value: float) -> bytes:
    return frame(WALL + field(2, step) + field(5, field(1, field(1, tag.encode()) + field(2, value))))


def tensorboard(rows: int = 6, broken: int = 5) -> bytes:
    content = VERSION
    for row in range(1, rows + 1):
        content += scalar(row * 10, "train/loss", 2.5 - row / 8 if row < broken else 0.0)
        content += scalar(row * 10, "train/grad_norm", 1.5 if row < broken else float("nan"))
    return content


def chunk(kind: int, data: bytes) -> bytes:
    return struct.pack("<IHB", zlib.crc32(bytes((kind,)) + data), len(data), kind) + data


def wandb(records: list[bytes]) -> bytes:
    """The log as W&B's datastore writes it: records are cut where a block of 32 KiB ends."""
    content = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for record in records:
        rest, first = record, True
        while first or rest:
            left = 32768 - len(content) % 32768
            if left < 7:
                content += b"\0" * left
                continue
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = 1 if first and not rest else 2 if first else 3 if rest else 4
            content += chunk(kind, piece)
            first = False
    return content


def history(values: dict[str, object]) -> bytes:
    items = b"".join(
        field(1, field(1, name.encode()) + field(16, json.dumps(value).encode())) for name, value in values.items()
    )
    return field(1, 7) + field(2, items)


def evidence(name: str, content: bytes) -> Evidence:
    return parse("", (Attachment(name=name, content=content),))


def test_scalars_of_an_event_file_are_the_rows_of_the_run() -> None:
    read = evidence(TB, tensorboard())
    assert [row.step for row in read.rows] == [10, 20, 30, 40, 50, 60]
    assert read.rows[0].metrics["loss"].value == 2.375
    assert read.rows[0].span.attachment == TB
    assert [row.span.line for row in read.rows] == [1, 2, 3, 4, 5, 6]
    assert {"loss_zero_grad_norm_nan", "grad_norm_nan"} <= {signal.kind for signal in read.signals}
    (receipt,) = (item for item in read.receipt.inputs if item.name == TB)
    assert (receipt.kind, receipt.read, receipt.truncated) == ("metrics", True, False)
    assert receipt.note == "TensorBoard events, one line for each of 6 rows"


def test_the_checksum_is_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_numbers_in_tensors_are_read_and_what_is_no_scalar_is_passed_over() -> None:
    def tensor(content: bytes) -> bytes:
        return frame(field(2, 1) + field(5, field(1, field(8, content) + field(1, b"loss"))))

    raw, listed = field(9, b"meta") + field(1, 1) + field(4, struct.pack("<f", 0.5)), field(5, struct.pack("<f", 0.25))
    content = VERSION + tensor(raw) + tensor(listed) + tensor(field(1, 1))
    content += frame(field(2, 2) + field(5, field(1, field(1, b"text") + field(9, b"meta")))) + frame(b"\0" * 20_000)
    content += frame(field(2, 1 << 63) + field(5, field(1, field(1, b"loss") + field(2, 1.0))))
    found = event_files.read(content)
    assert found is not None
    assert [json.loads(line) for line in found.text.splitlines()] == [
        {"step": 1, "loss": 0.5},
        {"step": 1, "loss": 0.25},
        {"step": 0, "loss": 1.0},
    ]
    assert found.complete


def test_an_evaluation_at_the_same_step_is_a_row_of_its_own() -> None:
    read = evidence(TB, VERSION + scalar(10, "train/loss", 2.0) + scalar(10, "eval/loss", 2.25))
    assert [(row.step, sorted(row.metrics)) for row in read.rows] == [
        (10, ["loss", "step"]),
        (10, ["eval_loss", "step"]),
    ]


def test_the_history_of_an_offline_run_is_read_across_blocks() -> None:
    records = [field(1, 1) + field(17, b"run"), field(6, b"x" * 70_000)]
    for step in range(1, 6):
        value: object = "NaN" if step == 5 else 2 - step / 8
        values = {"_step": step, "_runtime": 3.5, "train/loss": value, "train/global_step": step * 10}
        records.append(history({**values, "note": "text", "table": {"a": 1}, "flag": True}))
    read = evidence(WB, wandb(records))
    assert [row.step for row in read.rows] == [10, 20, 30, 40, 50]
    assert read.rows[0].metrics["loss"].value == 1.875
    assert "loss_nan" in {signal.kind for signal in read.signals}
    only_own = evidence(WB, wandb([history({"_step": 3, "loss": 1.5}), history({"image": "text"})]))
    assert [row.step for row in only_own.rows] == [3]


def test_nested_keys_are_joined() -> None:
    item = field(2, b"train") + field(2, b"loss") + field(16, b"1.5")
    found = event_files.read(wandb([field(2, field(1, item) + field(2, b""))]))
    assert found is not None
    assert json.loads(found.text) == {"train/loss": 1.5}


def test_a_block_may_end_in_padding() -> None:
    first = field(6, b"x" * (32768 - 7 - 7 - 4 - 5))
    content = wandb([first, history({"_step": 1, "loss": 1.5})])
    found = event_files.read(content)
    assert found is not None
    assert (found.rows, found.complete) == (1, True)


def test_records_too_long_to_hold_scalars_are_left_out() -> None:
    found = event_files.read(wandb([field(6, b"x" * 2_000_000), history({"_step": 1, "loss": 1.5})]))
    assert found is not None
    assert (found.rows, found.complete) == (1, True)


@every_case("cut", [1, 3, 20, 70])
def test_a_file_that_is_cut_off_is_read_up_to_there_and_said_to_be(cut: int) -> None:
    read = evidence(TB, tensorboard()[:-cut])
    assert [row.step for row in read.rows][:5] == [10, 20, 30, 40, 50]
    assert [problem.code for problem in read.receipt.problems] == ["truncated"]


def test_a_wrong_checksum_ends_the_reading() -> None:
    events = bytearray(tensorboard())
    events[-8] ^= 1
    found = event_files.read(bytes(events))
    assert found is not None
    assert (found.rows, found.complete) == (6, False)
    run = bytearray(wandb([history({"_step": 1, "loss": 1.5}), history({"_step": 2, "loss": 1.0})]))
    run[-1] ^= 1
    found = event_files.read(bytes(run))
    assert found is not None
    assert (found.rows, found.complete) == (1, False)
    found = event_files.read(bytes(run[:-1]) + b"x" * 3)
    assert found is not None
    assert not found.complete
    assert event_files.read(wandb([history({"loss": 1.0})]) + b"\0") is not None


@every_case(
    "message",
    [b"\x08", b"\x80" * 11, b"\x0a\x7f", b"\x0b", b"\x09\0", field(2, field(1, b"\x80"))],
)
def test_a_malformed_message_ends_the_reading(message: bytes) -> None:
    found = event_files.read(wandb([history({"_step": 1, "loss": 1.5}), message]))
    assert found is not None
    assert found.rows == 1
    assert not found.complete


def test_rows_and_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "MOST_ROWS", 3)
    found = event_files.read(tensorboard())
    assert found is not None
    assert (found.rows, found.complete) == (3, False)
    monkeypatch.setattr(event_files, "MOST_BYTES", 200)
    found = event_files.read(tensorboard())
    assert found is not None
    assert not found.complete


def test_an_event_file_comes_over_rest_in_base64(knowledge_advisor: Advisor) -> None:
    body = {"attachments": [{"name": TB, "content": b64encode(tensorboard()).decode(), "encoding": "base64"}]}
    with TestClient(create_app(knowledge_advisor, Settings())) as client:
        report = client.post("/v1/check", json=body).json()
        assert "loss_zero_grad_norm_nan" in {signal["kind"] for signal in report["signals"]}
        body["attachments"][0]["content"] = "no base64!"
        assert client.post("/v1/check", json=body).status_code == 422


def test_other_binary_files_are_still_refused() -> None:
    for content in (b"\x7fELF\0\0", VERSION[1:], b"\0" * 100, b"\0" * 24 + b"brain.Event:2" + b"\0" * 30):
        assert event_files.read(content) is None
        (receipt,) = (item for item in evidence("model.bin", content).receipt.inputs if item.name)
        assert not receipt.read


def test_no_damage_makes_the_reader_raise() -> None:
    luck = random.Random(7)
    for content in (tensorboard(), wandb([history({"_step": n, "loss": 1.0}) for n in range(9)])):
        for _ in range(150):
            damaged = bytearray(content)
            for _ in range(luck.randint(1, 8)):
                damaged[luck.randrange(len(damaged))] = luck.randrange(256)
            evidence("run.wandb", bytes(damaged))


def test_a_run_history_is_known_by_its_beginning() -> None:
    assert event_files.is_run_history(tensorboard())
    assert event_files.is_run_history(event_files.WANDB_MAGIC + b"\x00")
    assert not event_files.is_run_history(b"\x00\x01binary")
