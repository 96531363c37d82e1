"""Did you mean: the known name nearest to a misspelt one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def distance(left: str, right: str, limit: int) -> int:
    """Edit distance in which swapping two neighbouring letters counts once; ``limit + 1`` if it is larger."""
    if _fewest_edits(left, right) > limit:
        return limit + 1
    from rapidfuzz.distance import OSA  # takes 10 ms to load; most runs have no misspelt name

    return int(OSA.distance(left, right, score_cutoff=limit))


def _fewest_edits(left: str, right: str) -> int:
    """A lower bound of the distance: an edit changes one letter of each, or none."""
    mine, theirs = Counter(left), Counter(right)
    return max((mine - theirs).total(), (theirs - mine).total())


def closest(name: str, candidates: Iterable[str], *, limit: int | None = None, partial: bool = False) -> str | None:
    """The candidate that ``name`` was probably meant to be; the first in alphabetical order of several as near.

    A candidate matches with the same words in another order, or within ``limit`` edits (default: one in four letters,
    three at most). If none does, the only candidate that ends in ``.name`` does (``learning_rate`` for
    ``adam.learning_rate``). With ``partial``, a name that lacks words (``lora``) then matches the shortest candidate
    that has all of its words.
    """
    if limit is None:
        limit = min(3, max(1, len(name) // 4))
    words = _words(name)
    nearest: tuple[int, str] | None = None
    tails, longer = [], []
    for candidate in candidates:
        if len(candidate) == len(name) and _words(candidate) == words:
            return candidate
        if candidate.endswith("." + name):
            tails.append(candidate)
        if partial and set(words) <= set(_words(candidate)):
            longer.append(candidate)
        if abs(len(candidate) - len(name)) <= limit:
            edits = distance(name, candidate, limit)
            if edits <= limit and (nearest is None or (edits, candidate) < nearest):
                nearest = (edits, candidate)
    if nearest is not None:
        return nearest[1]
    if len(tails) == 1:
        return tails[0]
    return min(longer, key=lambda candidate: (len(candidate), candidate)) if longer else None


def is_slip(name: str, meant: str) -> bool:
    """Whether the words differ by typing errors only: ``num_completions`` is not a slip for ``log_completions``."""
    if name.count("_") != meant.count("_"):
        return True
    changed = [(a, b) for a, b in zip(name.split("_"), meant.split("_"), strict=True) if a != b]
    if sorted(a for a, _ in changed) == sorted(b for _, b in changed):
        return True
    return all(distance(a, b, 9) <= max(1, min(len(a), len(b)) // 2) for a, b in changed)


def _words(name: str) -> list[str]:
    return sorted(name.replace(".", "_").split("_"))
