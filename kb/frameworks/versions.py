"""Ordering release numbers and testing them against ranges, without importing a packaging library.

Only what releases of training frameworks use is understood: dotted numbers with an optional ``v`` in front and
``a/b/rc/dev/post`` behind; a local part (``+cu121``) is ignored. Anything else sorts before every release.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

VersionKey: TypeAlias = tuple[tuple[int, ...], int, int, int]

_RELEASE = re.compile(
    r"^v?(?P<numbers>\d+(?:\.\d+)*)(?:[-_.]?(?P<pre>a|alpha|b|beta|c|rc|pre|preview)[-_.]?(?P<pre_n>\d*))?"
    r"(?:[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>\d*))?(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d*))?(?:\+.*)?$",
    re.IGNORECASE,
)
_PRE = {"a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1}
_CLAUSE = re.compile(r"^(===|==|!=|>=|<=|~=|>|<)?\s*(.+)$")


@lru_cache(maxsize=4096)
def version_key(text: str) -> VersionKey:
    """A key that orders releases: ``0.8.9 < 0.8.9.post1 < 0.8.10rc1 < 0.8.10``. Unreadable text sorts first."""
    match = _RELEASE.match(text.strip())
    if match is None:
        return ((), 0, 0, 0)
    numbers = [int(part) for part in match["numbers"].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    kind, count = 0, 0
    if match["pre"]:
        kind, count = _PRE[match["pre"].lower()], int(match["pre_n"] or 0)
    elif match["post"]:
        kind, count = 1, int(match["post_n"] or 0)
    elif match["dev"]:
        kind = -4
    return (tuple(numbers), kind, count, -1 if match["dev"] else 0)


def is_version(text: str) -> bool:
    """Whether ``text`` reads as a release number."""
    return _RELEASE.match(text.strip()) is not None


def bare(version: str) -> str:
    """A tag without its ``v`` and without a local part: ``v0.8.11`` → ``0.8.11``, ``2.5.1+cu121`` → ``2.5.1``."""
    text = version.strip()
    if text[:1] in "vV" and text[1:2].isdigit():
        text = text[1:]
    return text.split("+", 1)[0]


def satisfies(version: str, spec: str) -> bool:
    """Whether ``version`` lies in ``spec``: comma-separated clauses as in requirement files (``>=4.41.2,!=4.46.*``).

    An empty spec holds for every version; a clause that cannot be read holds too (it says nothing we know).
    """
    return all(_holds(version, clause) for clause in spec.split(",") if clause.strip())


def _holds(version: str, clause: str) -> bool:
    match = _CLAUSE.match(clause.strip())
    if match is None:
        return True
    operator, bound = match[1] or "==", match[2].strip()
    if bound.endswith(".*"):
        same = _numbers(version)[: bound.count(".")] == _numbers(bound[:-2])
        return not same if operator == "!=" else same
    if not is_version(bound):
        return True
    left, right = version_key(bare(version)), version_key(bare(bound))
    if operator == "~=":
        prefix = _numbers(bound)[:-1]
        return left >= right and _numbers(version)[: len(prefix)] == prefix
    return {
        "==": left == right,
        "===": left == right,
        "!=": left != right,
        ">=": left >= right,
        "<=": left <= right,
        ">": left > right,
        "<": left < right,
    }[operator]


def _numbers(version: str) -> list[int]:
    """The plain numbers of a release, trailing zeros kept: ``4.46.0`` → ``[4, 46, 0]``."""
    match = _RELEASE.match(version.strip())
    return [int(part) for part in match["numbers"].split(".")] if match else []
