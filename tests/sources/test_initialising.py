"""What ``__post_init__`` makes of the fields, followed as text."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.every_case import every_case
from trainmedic.kb.errors import NotFound
from trainmedic.kb.sources.initialising import UNKNOWN, initialised
from trainmedic.kb.sources.tree import SourceTree, tree_of


def package(name: str, **modules: str) -> SourceTree:
    contents = {f"{name}/{module}.py": textwrap.dedent(text).encode() for module, text in modules.items()}
    return tree_of(name, "1.0", "wheel", contents)


def made(body: str, **values: Any) -> dict[str, Any]:
    """The fields that a class sets whose ``__post_init__`` is ``body``."""
    code = f"class Config:\n    def __post_init__(self):\n{textwrap.indent(textwrap.dedent(body), ' ' * 8)}"
    return {name: value for name, (_, value, _) in initialised("Config", package("p", m=code), values=values).items()}


@every_case(
    ("body", "values", "expected"),
    [
        ("self.bf16 = not (self.fp16) if self.bf16 is None else self.bf16", {"bf16": None, "fp16": False}, True),
        ("if self.bf16 is None:\n    self.bf16 = self.fp16 or 3", {"bf16": None, "fp16": 0}, 3),
        ("for name in ['bf16', 'other']:\n    setattr(self, name, 1)", {"bf16": 0}, 1),
        ("if available():\n    self.bf16 = 1\nelse:\n    self.bf16 = 1", {"bf16": 0}, 1),
        ("if available():\n    raise ValueError\nself.bf16 = 1", {"bf16": 0}, 1),
        (
            "if isinstance(self.bf16, str):\n    self.bf16 = [x for x in self.bf16.split(',')]",
            {"bf16": "a,b"},
            ["a", "b"],
        ),
    ],
)
def test_what_the_fields_alone_decide_is_known(body: str, values: dict[str, Any], expected: object) -> None:
    assert made(body, **values)["bf16"] == expected


@every_case(
    "body",
    [
        "self.bf16 = available()",
        "if available():\n    self.bf16 = 1",
        "if available():\n    return\nself.bf16 = 1",
        "while self.other:\n    self.bf16 = 1",
        "try:\n    self.other = 1\nexcept ValueError:\n    self.bf16 = 1",
        "self.bf16.append(1)",
        "adjust(self)\nself.other = 1",
        "for name in names():\n    setattr(self, name, 1)",
        "self.bf16 = [1][self.other]",
    ],
)
def test_what_needs_more_than_the_fields_is_not_known(body: str) -> None:
    assert made(body, bf16=[0], other=2)["bf16"] is UNKNOWN


def test_a_class_that_refuses_the_values_sets_nothing() -> None:
    assert made("self.a = 1\nif self.b > 1:\n    raise ValueError", a=0, b=2) == {}


def test_a_base_of_another_package_and_its_enumerations_are_followed() -> None:
    base = package(
        "base",
        m="""
        from enum import Enum
        class Kind(str, Enum):
            NO = "no"
        class Base:
            def __post_init__(self):
                self.check()
                if self.kind == Kind.NO:
                    self.steps = 0
            def check(self):
                self.checked = True
        """,
    )
    own = package(
        "own",
        m="from base.m import Base\nclass Own(Base):\n    def __post_init__(self):\n        super().__post_init__()",
    )
    found = initialised("Own", own, base, values={"kind": "no", "steps": 5})
    assert found["steps"] == (True, 0, "Base.__post_init__ (base/m.py:9)")
    assert found["checked"][:2] == (True, True)
    with pytest.raises(NotFound):
        initialised("Own", own, values={"kind": "no"})


def test_a_property_that_sets_a_field_and_a_list_that_extends_that_of_a_base_are_seen() -> None:
    code = """
    class Base:
        NAMES = ["a"]
        def __post_init__(self):
            for name in self.NAMES:
                setattr(self, name, 1)
            if self.device.type == "cuda":
                self.c = 1
        @property
        def device(self):
            return self.prepare()
        def prepare(self):
            self.d = 1
    class Config(Base):
        NAMES = Base.NAMES + ["b"]
    """
    found = initialised("Config", package("p", m=code), values=dict.fromkeys("abcd", 0))
    assert {name: known for name, (known, _, _) in found.items()} == {"a": True, "b": True, "c": False, "d": False}


def test_code_that_would_run_for_ever_ends() -> None:
    body = (
        "for a in self.x:\n"
        + "".join(f"{' ' * 4 * n}for a in self.x:\n" for n in range(1, 9))
        + " " * 36
        + "self.y = a"
    )
    with pytest.raises(NotFound):
        made(body, x=list(range(50)))
