"""Embedding the texts of an index in a process of its own, while a service answers from their words."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from trainmedic.kb.errors import StoreError, TrainmedicError
from trainmedic.kb.store import build, shipped
from trainmedic.service.settings import Settings
from trainmedic.ui.loading import embedder_of, index_root

LOOK_S = 0.2
LONGEST_REPORT = 8_192
"""Bytes of one message of that process."""
NICENESS = 10
"""The questions of users come first."""
Percent = Callable[[int], None]


async def add_vectors(settings: Settings, name: str, report: Percent) -> None:
    """Make the index ``name`` of its words. Raises `StoreError` if that fails; cancelled, it ends the process.

    What was embedded until then is not embedded again.
    """
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(settings, name, shipped.index(), theirs), daemon=True)
    process.start()
    theirs.close()
    failure, alive = "", True
    try:
        while alive:
            await asyncio.sleep(LOOK_S)
            alive = process.is_alive()
            with suppress(EOFError):
                while ours.poll():
                    message = ours.recv_bytes(LONGEST_REPORT).decode("utf-8", "replace")
                    if message.isdecimal():
                        report(int(message))
                    else:
                        failure = message
        if process.exitcode:
            raise StoreError(failure or f"building the index ended with code {process.exitcode}")
    finally:
        process.kill()
        process.join()
        ours.close()


def _work(settings: Settings, name: str, prebuilt: Path, reports: Connection) -> None:
    """Report percents, and at the end a message if it failed."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    try:
        build.add_vectors(
            index_root(settings),
            name,
            embedder_of(settings),
            prebuilt,
            progress=lambda done, total: reports.send_bytes(b"%d" % (100 * done // max(total, 1))),
        )
    except (TrainmedicError, OSError) as error:  # the service has ended if the pipe is broken
        with suppress(OSError):
            reports.send_bytes(str(error).encode("utf-8", "replace")[:LONGEST_REPORT])
        raise SystemExit(1) from error
