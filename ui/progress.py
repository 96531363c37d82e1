"""A progress bar on standard error, where a person sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from trainmedic.kb.store.embeddings import Progress


@contextmanager
def bar(label: str) -> Iterator[Progress]:
    """A function to call with what is done and the total; it shows a bar on a terminal and nothing elsewhere."""
    with tqdm(total=0, desc=label, unit="text", disable=None, delay=0.5, leave=False) as shown:

        def progress(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        yield progress
