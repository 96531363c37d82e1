"""Pickles are read as plain values and never executed."""

import os
import pickle
from collections import OrderedDict, deque
from datetime import date

import pytest

from trainmedic.kb.parse import pickles
from trainmedic.kb.parse.pickles import Opaque, PickleRefusedError, read

FRAME = {"filename": "train.py", "line": 7, "name": "step"}
PLAIN = {"segments": [{"device": 0, "blocks": [{"size": 2**40, "frames": [FRAME]}], "ratio": 0.5}], "more": (1, None)}


class _Runs:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("/nonexistent/made-by-a-pickle",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back_as_they_were(protocol: int) -> None:
    content = pickle.dumps([PLAIN, PLAIN, True, -1, "显存"], protocol=protocol)
    assert read(content) == [PLAIN, PLAIN, True, -1, "显存"]


@pytest.mark.parametrize("value", [_Runs(), OrderedDict(a=1), date(2026, 1, 2), {1, 2}, b"raw", {(1, 2): 3}])
def test_anything_but_plain_values_is_refused(value: object) -> None:
    with pytest.raises(PickleRefusedError):
        read(pickle.dumps(value))


@pytest.mark.parametrize(
    "content", [b"\x80\x04", b"\x80\x04]", pickle.dumps(PLAIN)[:-9], b"\x80\x04a.", b"\x80\x04h\x07.", b"\x80\x04\x85."]
)
def test_what_is_cut_off_or_damaged_is_refused(content: bytes) -> None:
    with pytest.raises(PickleRefusedError):
        read(content)


def test_an_object_that_is_asked_for_is_a_note_of_what_it_would_be() -> None:
    assert read(pickle.dumps([_Runs(), {1}, b"raw"]), objects=True) == [
        Opaque(f"{os.mkdir.__module__}.mkdir", ("/nonexistent/made-by-a-pickle",)), [1], b"raw",
    ]  # fmt: skip
    assert not os.path.exists("/nonexistent")


@pytest.mark.parametrize("made", [deque([1, 2]), OrderedDict(a=1)])
def test_what_an_object_is_filled_with_is_not_kept(made: object) -> None:
    name = f"collections.{type(made).__name__}"
    assert read(pickle.dumps(made), objects=True) == Opaque(name)


def test_an_object_whose_name_is_no_text_is_refused() -> None:
    with pytest.raises(PickleRefusedError, match="damaged"):
        read(b"\x80\x04K\x01K\x02\x93.", objects=True)


def test_a_pickle_of_endless_steps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "MOST_OPCODES", 100)
    with pytest.raises(PickleRefusedError, match="too long"):
        read(pickle.dumps(list(range(200))))
