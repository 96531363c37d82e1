"""Did you mean: the option name nearest to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable


def distance(left: str, right: str, limit: int) -> int:
    """Edit distance with neighbouring letters swapped counting once; ``limit + 1`` as soon as it is more than that."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, letter in enumerate(left, 1):
        current = [i]
        for j, other in enumerate(right, 1):
            cost = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == right[j - 2] and left[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, row = row, current
    return row[-1]


def closest_key(key: str, known: Iterable[str]) -> str | None:
    """The nearest known name: at most one edit in four letters (three at the most), or the same words in another order.

    For dotted names the last part alone may also match exactly (``learning_rate`` → ``adam.learning_rate``) where
    only one name ends so.
    """
    limit = min(3, max(1, len(key) // 4))
    words = sorted(key.replace(".", "_").split("_"))
    best: tuple[int, str] | None = None
    tails: list[str] = []
    for name in known:
        if sorted(name.replace(".", "_").split("_")) == words:
            return name
        if name.endswith("." + key):
            tails.append(name)
        found = distance(key, name, limit)
        if found <= limit and (best is None or (found, name) < best):
            best = (found, name)
    if best is not None:
        return best[1]
    return tails[0] if len(tails) == 1 else None
