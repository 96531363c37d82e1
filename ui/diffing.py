"""Compare a failing run with one that works, in this process. Imports no embedder, web framework or pydantic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from trainmedic.kb.comparison.run_diff import side_of
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.fixed_causes import load_known
from trainmedic.kb.pages.mechanism import load_mechanisms
from trainmedic.kb.sources.compared import compared
from trainmedic.kb.sources.library import Library
from trainmedic.service.answer.run_diff import diff_view
from trainmedic.service.answer.schema import DiffView
from trainmedic.ui.checking import attachment_of
from trainmedic.ui.checking import examine as examine_run
from trainmedic.ui.releases import library_here


def diff(
    good: Sequence[str | Path | Attachment],
    bad: Sequence[str | Path | Attachment],
    *,
    language: Literal["en", "zh"] = "en",
    pages: Sequence[Path] = (),
) -> DiffView:
    """Differences between a run that works and one that fails, the differences that explain the failure first.

    Each side is what belongs to one run: configuration, command, log, package list. A `Path` is read as a file, a
    string is the text itself. The code of the packages is compared as far as the setting ``sources`` lets it be read.
    ``pages`` are folders of your own pages. Raises `OSError` for a file that cannot be read;
    nothing inside a text raises.
    """
    sides = [[attachment_of(number, item) for number, item in enumerate(side, start=1)] for side in (good, bad)]
    return examine(sides[0], sides[1], language, pages, library_here())


def examine(
    good: Sequence[Attachment],
    bad: Sequence[Attachment],
    language: str,
    folders: Sequence[Path],
    library: Library | None = None,
) -> DiffView:
    """``library`` is the source of packages, for what changed in their code."""
    (works, passed), (fails, failed) = examine_run(good, folders), examine_run(bad, folders)
    defects = load_known({*works.versions, *fails.versions}, folders)
    return diff_view(
        side_of(works, passed, defects),
        side_of(fails, failed, defects),
        load_mechanisms(folders).mechanisms,
        language,
        compared(works.versions, fails, library) if library is not None else (),
    )
