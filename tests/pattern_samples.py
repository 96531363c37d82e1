"""Texts that match a regular expression, until each of its alternatives was taken once."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from typing import Any

_PARSER: Any = re._parser
_LETTERS = string.ascii_letters + string.digits + "_-./+=:?&;%~@ \n\t\"'\\|"
_ROUNDS = 2_000


def samples(pattern: str, flags: int = 0, *, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Texts that match ``pattern``, with what its group ``secret`` holds: at least one for each alternative."""
    parsed = _PARSER.parse(pattern, flags)
    compiled = re.compile(pattern, flags)
    sampler = _Sampler(random.Random(seed))
    missing = set(_alternatives(parsed))
    for attempt in range(_ROUNDS):
        sampler.taken.clear()
        text = sampler.text(parsed)
        match = compiled.search(text)
        if match and match["secret"] and (attempt == 0 or missing & sampler.taken or not missing):
            missing -= sampler.taken
            yield text, match["secret"]
            if not missing:
                return
    raise AssertionError(f"no text for {len(missing)} alternatives of {pattern}")


def _alternatives(parsed: Any) -> Iterator[tuple[int, int]]:
    """The alternatives outside lookarounds: the identity of their branch and their number."""
    for op, value in parsed:
        name = str(op)
        if name == "BRANCH":
            yield from ((id(value[1]), number) for number in range(len(value[1])))
            for part in value[1]:
                yield from _alternatives(part)
        elif name == "SUBPATTERN":
            yield from _alternatives(value[3])
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            yield from _alternatives(value[2])


class _Sampler:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.taken: set[tuple[int, int]] = set()

    def text(self, parsed: Any) -> str:
        return "".join(self._one(str(op), value) for op, value in parsed)

    def _one(self, op: str, value: Any) -> str:
        if op == "LITERAL":
            return chr(value)
        if op in ("NOT_LITERAL", "IN", "ANY"):
            allowed = [letter for letter in _LETTERS if _holds(op, value, letter)]
            return self.chance.choice(allowed)
        if op == "BRANCH":
            number = self.chance.randrange(len(value[1]))
            self.taken.add((id(value[1]), number))
            return self.text(value[1][number])
        if op == "SUBPATTERN":
            return self.text(value[3])
        if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, part = value
            times = self.chance.randint(least, min(int(most), least + 3))
            return "".join(self.text(part) for _ in range(times))
        if op == "ASSERT" and value[0] < 0:  # what must stand before
            return self.text(value[1])
        return ""


def _holds(op: str, value: Any, letter: str) -> bool:
    if op == "ANY":
        return letter != "\n"
    if op == "NOT_LITERAL":
        return letter != chr(value)
    code, negated, inside = ord(letter), False, False
    for kind, item in value:
        name = str(kind)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            inside = inside or code == item
        elif name == "RANGE":
            inside = inside or item[0] <= code <= item[1]
        else:
            category = {
                "CATEGORY_DIGIT": r"\d",
                "CATEGORY_SPACE": r"\s",
                "CATEGORY_WORD": r"\w",
                "CATEGORY_NOT_SPACE": r"\S",
            }
            inside = inside or re.match(category[str(item)], letter) is not None
    return inside != negated
