"""The settings in ``training_args.bin``, read without unpickling anything."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pickles import MOST_BYTES
from trainmedic.kb.parse.pipeline import parse


class Strategy(StrEnum):
    STEPS = "steps"


class Odd:
    """Calls something when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("this must never be printed",))


class SFTConfig:
    """Stands for that of a trainer, whose module it is said to be of."""


class OwnConfig(SFTConfig):
    pass


SFTConfig.__module__ = "trl.trainer.sft_config"
SFTConfig.__qualname__ = "SFTConfig"
OwnConfig.__module__ = "mine"


def pickled(state: dict[Any, Any], protocol: int = 2, kind: type = SFTConfig) -> bytes:
    """What pickle writes for an object with these attributes."""

    pure: Any = pickle  # the pickler in Python, whose methods may be replaced

    class Pickler(pure._Pickler):  # type: ignore[misc]
        def save_global(self, obj: Any, name: str | None = None) -> None:
            if obj in (SFTConfig, OwnConfig):
                self.write(pickle.GLOBAL + f"{obj.__module__}\n{obj.__name__}\n".encode())
                self.memoize(obj)
            else:
                super().save_global(obj, name)

    Pickler.dispatch = {**pure._Pickler.dispatch, type: Pickler.save_global}
    made = kind()
    made.__dict__.update(state)
    stream = io.BytesIO()
    Pickler(stream, protocol).dump(made)
    return stream.getvalue()


def archived(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("training_args/data.pkl", content)
    return stream.getvalue()


def read(content: bytes) -> str:
    """What is read of a file with this content."""
    sources = parse("", [Attachment(name="training_args.bin", content=content)]).sources
    return "".join(source.text for source in sources if source.name)


STATE: dict[Any, Any] = {
    "learning_rate": 3e-4,
    "bf16": True,
    "eval_strategy": Strategy.STEPS,
    "num_train_epochs": 3.0,  # the default
    "hub_token": "secret",
    "_n_gpu": 1,
    "optim_target_modules": ["a", "b"],
    "lr_scheduler_kwargs": {"a": 1, "b": (1, 2, 3)},
    "report_to": [],
    "fsdp_transformer_layer_cls_to_wrap": OrderedDict(a=1),
    "not an identifier": 1,
    "nothing_has_this": 1,
    3: 4,
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_somebody_chose_is_told_and_nothing_else(protocol: int) -> None:
    text = read(archived(pickled(STATE, protocol)))
    assert text.startswith("from trl import SFTConfig\nargs = SFTConfig(\n")
    assert "    learning_rate=0.0003,\n" in text
    assert "    eval_strategy='steps',\n" in text
    assert "    lr_scheduler_kwargs={'a': 1, 'b': (1, 2, 3)},\n" in text
    for left_out in ("secret", "_n_gpu", "num_train_epochs", "report_to", "identifier", "nothing_has_this"):
        assert left_out not in text


def test_of_a_class_that_nobody_knows_all_is_told() -> None:
    assert (
        read(pickled({"mine": 1, "odd": {1: 2}}, kind=OwnConfig))
        == "from mine import OwnConfig\nargs = OwnConfig(\n    mine=1,\n    odd={1: 2},\n)\n"
    )


def test_nothing_in_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    state = {"learning_rate": 3e-4, "odd": Odd(), "sets": {"x", "y"}, "f": frozenset("z")}
    assert all("learning_rate" in read(pickled(state, protocol)) for protocol in (2, 4))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        archived(b""),
        b"\x80",
        pickled(STATE, 1),
        pickle.dumps([1]),
        pickle.dumps({"a": 1}),
        pickled({}),
        b"\x80\x02.",
    ],
)
def test_what_holds_no_settings_is_told_as_nothing(content: bytes) -> None:
    assert read(content) == ""


def test_what_would_be_as_large_as_the_memory_is_left_out() -> None:
    doubled: Any = ("x",)
    for _ in range(60):
        doubled = (doubled, doubled)
    itself: list[Any] = []
    itself.append(itself)
    text = read(pickled({"a": doubled, "b": itself, "c": "x" * 3000, "d": list(range(1000)), "e": 1}, kind=OwnConfig))
    assert text == "from mine import OwnConfig\nargs = OwnConfig(\n    e=1,\n)\n"


def test_a_pickle_without_end_is_left() -> None:
    assert read(b"\x80\x02" + b"N" * MOST_BYTES * 2) == ""


@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_damage_makes_it_raise(noise: bytes, at: int) -> None:
    whole = pickled(STATE)
    read(whole[:at] + noise + whole[at + len(noise) :])
