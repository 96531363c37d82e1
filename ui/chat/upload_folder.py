"""Where uploads of the pages are until they are read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

VARIABLE = "GRADIO_TEMP_DIR"
"""Gradio reads its upload folder from the environment only."""


class UploadFolder:
    """The folder that Gradio writes uploads to, before any of our code sees them: ours, and gone when we stop.

    Gradio reads its place from the environment, so it is the same for all pages of a process.
    """

    def __init__(self) -> None:
        self._users = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._earlier: str | None = None
        self.loading = Lock()
        """Gradio builds one application at a time."""

    @contextmanager
    def used(self) -> Iterator[Path]:
        """The folder, while it is used by somebody."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="trainmedic-uploads-")
            self._earlier = os.environ.get(VARIABLE)
            os.environ[VARIABLE] = self._folder.name
        self._users += 1
        try:
            yield Path(self._folder.name)
        finally:
            self._users -= 1
            if not self._users:
                self._folder.cleanup()
                self._folder = None
                os.environ.pop(VARIABLE) if self._earlier is None else os.environ.update({VARIABLE: self._earlier})
