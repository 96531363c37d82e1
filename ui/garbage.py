"""Loading without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def all_stays() -> Iterator[None]:
    """Disable GC while long-lived objects are loaded: scanning them costs a third of the load time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Not looked at later either: each full collection would take 0.1 s for it.
        gc.freeze()
        if collects:
            gc.enable()
