"""The Jupyter magic: ``%load_ext trainmedic``, then ``%trainmedic VERB …`` and ``%%trainmedic [FILE …]``.

The line magic is the command line. The cell magic asks with the cell's text, the named files, and the traceback of the
last cell that failed.
"""

from __future__ import annotations

import shlex
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.model.place import Attachment
from trainmedic.ui.cli import main
from trainmedic.ui.cli._input import attachments

T = TypeVar("T")
TRACEBACK = "traceback"


@dataclass(frozen=True, slots=True, repr=False)
class Rendered:
    """A Markdown text: rendered in a notebook, as it is in a terminal."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


def load(shell: Any) -> None:
    """Register the magic in an IPython shell."""
    shell.register_magic_function(trainmedic, magic_kind="line_cell", magic_name="trainmedic")


def trainmedic(line: str, cell: str | None = None) -> Rendered | None:
    """%trainmedic check cfg.yaml runs a verb of the command line; %%trainmedic [FILE …] asks with the cell's text."""
    words = shlex.split(line)
    try:
        if cell is not None:
            return _beside(lambda: ask(cell, words))
        _beside(lambda: main(words))
    except TrainmedicError as error:
        print(f"trainmedic: {error.message}" + (f" ({error.hint})" if error.hint else ""), file=sys.stderr)
    except SystemExit:
        pass  # argparse has printed the usage
    return None


def ask(question: str, files: list[str]) -> Rendered:
    from trainmedic.service.dialogue.request import Ask
    from trainmedic.ui.cli._service import answer_of

    pasted = (*attachments(files), *last_traceback())
    return Rendered(answer_of(Namespace(), Ask(question=question, attachments=pasted)).answer)


def last_traceback() -> tuple[Attachment, ...]:
    """The traceback of the last uncaught exception, if there was one."""
    error = getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        return ()
    return (Attachment(name=TRACEBACK, content="".join(traceback.format_exception(error))),)


def _beside(work: Callable[[], T]) -> T:
    """Run it in a thread: a notebook's own event loop would refuse a second one."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()
