"""Patterns of modules are compiled at their first use, and all of them can be."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import pytest

import trainmedic.kb
import trainmedic.service
from trainmedic.kb import lazy
from trainmedic.kb.lazy import regex


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    found = regex(r"(?P<key>\w+)=(\d+)", re.IGNORECASE)
    same = re.compile(r"(?P<key>\w+)=(\d+)", re.IGNORECASE)
    for _ in range(2):
        assert found.sub("x", "a=1 b=2") == same.sub("x", "a=1 b=2")
        assert [match.span() for match in found.finditer("a=1 b=2")] == [(0, 3), (4, 7)]
    assert (found.pattern, found.flags, found.groups, found.groupindex) == (
        same.pattern,
        same.flags,
        same.groups,
        same.groupindex,
    )
    assert regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_a_pattern_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = regex("a+")
    assert found.search("caat")
    monkeypatch.setattr(re, "compile", None)
    assert found.search("caat")
    assert found.fullmatch("a")


def test_every_pattern_of_the_package_compiles() -> None:
    checked = 0
    for package in (trainmedic.kb, trainmedic.service):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".rules." in module.name or module.name.endswith(".migrations.env"):  # run by rules and by alembic
                continue
            for value in vars(import_module(module.name)).values():
                if isinstance(value, lazy._Regex):
                    assert value.pattern is not None
                    checked += 1
    assert checked > 300
