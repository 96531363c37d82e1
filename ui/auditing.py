"""Audit an environment for known defects, in this process. Imports no embedder, web framework or pydantic."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Literal

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Edit
from trainmedic.kb.pages.fixed_causes import load_known
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.compared import compared
from trainmedic.kb.sources.library import Library
from trainmedic.service.answer.audit import audited
from trainmedic.service.answer.schema import AuditView
from trainmedic.ui.checking import attachment_of
from trainmedic.ui.releases import library_here

INSTALLED = "installed packages"


def audit(
    *inputs: str | Path | Attachment,
    good: Sequence[str | Path | Attachment] = (),
    question: str = "",
    installed: bool = False,
    possible: bool = False,
    language: Literal["en", "zh"] = "en",
    pages: Sequence[Path] = (),
) -> AuditView:
    """The known defects of the packages that the inputs list, and the versions without them.

    A `Path` is read as a file; a string is the text itself, such as the output of ``pip list``. Lock files,
    requirements, configuration and logs are told apart by their content. ``installed`` adds the packages of this
    Python. ``good`` lists the packages of an environment that works, to compare with, their code too, as far as the
    setting ``sources`` lets it be read. ``possible``: the proposed
    versions also clear defects whose condition is not known. Raises `OSError` for a file that cannot be read; nothing
    inside a text raises.
    """
    attachments = [attachment_of(number, item) for number, item in enumerate(inputs, start=1)]
    if installed:
        attachments.insert(0, installed_packages())
    compared = [attachment_of(number, item) for number, item in enumerate(good, start=1)]
    library = library_here() if compared else None
    view, _ = examine(attachments, compared, question, language, pages, with_possible=possible, library=library)
    return view


def examine(
    attachments: Sequence[Attachment],
    good: Sequence[Attachment],
    question: str,
    language: str,
    folders: Sequence[Path],
    *,
    with_possible: bool = False,
    library: Library | None = None,
) -> tuple[AuditView, tuple[Edit, ...]]:
    """The audit, and its changes as edits of the requirement files. ``folders`` hold further lists of defects.

    ``library`` is the source of packages, for what changed in their code.
    """
    evidence = parse(question, tuple(attachments))
    versions = parse("", tuple(good)).versions if good else None
    defects = load_known(evidence.versions.keys(), folders)
    source = compared(versions, evidence, library) if versions and library is not None else ()
    return audited(evidence, defects, language, with_possible=with_possible, good=versions, source=source)


def installed_packages() -> Attachment:
    """The packages of this Python, as ``pip list`` prints them."""
    rows = sorted({(found.name, found.version) for found in distributions() if found.name})
    lines = ["Package Version", "------- -------", *(f"{name} {version}" for name, version in rows)]
    return Attachment(name=INSTALLED, content="\n".join(lines) + "\n")
