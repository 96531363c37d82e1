"""Where the vectors of threads are stored and searched, by the scheme of the setting ``vector_store``.

``faiss`` is in the data folder. An engine is an entry point (`kb.plugins`): its name is the scheme, its value a
function of the setting's part after the colon, the folder for data, and the dimension.

Writes are idempotent by id, so that a killed writer is repaired by running it again; what a search returns of threads
that are no longer there is for the caller to leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from trainmedic.kb import plugins
from trainmedic.kb.errors import InvalidSettings

Array = npt.NDArray[np.float32]


class VectorEngine(Protocol):
    """Normalised vectors by id. Safe to share between threads. Methods raise `StoreError`."""

    def put(self, ids: Sequence[str], vectors: Array) -> None:
        """Add vectors (n x dimension), or replace those of the same ids."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Forget vectors; unknown ids are ignored."""
        ...

    def search(self, vector: Array, most: int) -> tuple[tuple[str, float], ...]:
        """The ids nearest to a normalised vector with their cosines, best first, ties by id."""
        ...

    def count(self) -> int: ...

    def optimise(self) -> None:
        """Called after a bulk of writes: make searches quick again."""
        ...

    def close(self) -> None:
        """Close the connections; the engine is of no use afterwards."""
        ...


def engine(setting: str, folder: Path, dimension: int) -> VectorEngine:
    """The engine of a setting. Raises `InvalidSettings` for an unknown one, or if its package is not installed."""
    scheme, _, location = setting.partition(":")
    engines = plugins.registered(plugins.ENGINES)
    if scheme not in engines:
        raise InvalidSettings(f"vector_store: no engine {scheme!r}", hint=f"one of: {', '.join(engines)}")
    try:
        open_engine = engines[scheme].load()
    except ModuleNotFoundError as error:
        raise InvalidSettings(
            f"vector_store: {error.name} is not installed", hint=f"pip install 'trainmedic[{scheme}]'"
        ) from error
    opened: VectorEngine = open_engine(location, folder, dimension)
    return opened


def ranked(found: Sequence[tuple[str, float]], most: int) -> tuple[tuple[str, float], ...]:
    """Best first, cosines equal to the sixth decimal are ties and by id."""
    return tuple(sorted(found, key=lambda item: (-round(item[1], 6), item[0]))[:most])
