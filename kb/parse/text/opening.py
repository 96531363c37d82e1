"""Inputs in special formats → text: compressed texts, histories of runs, pictures, PDF. Never raises."""

from __future__ import annotations

import io
from dataclasses import dataclass
from importlib.util import find_spec

from trainmedic.kb.hang import recorded
from trainmedic.kb.memory import snapshot
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.parse import pickles
from trainmedic.kb.parse.logs import event_files
from trainmedic.kb.parse.readers import pickled_arguments
from trainmedic.kb.parse.text import archives, compressed, pictures

_PDF = b"%PDF-"
_PICKLE = b"\x80"
MOST_PAGES = 40
LARGEST_PDF = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """``content`` with what is to be said of it. ``unread`` is the kind of a content that cannot be read here;
    ``mark`` is what the source's name ends with to tell where its text is from, ``writing`` how much was read from a
    picture."""

    content: str | bytes
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    left_out: int = 0
    unread: str = ""
    mark: str = ""
    writing: int = 0


def foreign_kind(content: bytes) -> tuple[str, bool]:
    """The kind of a file whose beginning is not text (picture, pdf, archive or empty), and whether it is readable."""
    if pictures.is_picture(content):
        return "picture", pictures.readable()
    if content.startswith(_PDF):
        return "pdf", find_spec("pypdf") is not None
    return ("archive", True) if archives.is_archive(content) else ("", True)


def opened(name: str, content: bytes, left_out: int, writing: int) -> Opened:
    """``writing`` is how much may still be read from pictures."""
    kind, can_be_read = foreign_kind(content)
    if not can_be_read:
        message = f"{name} is a {kind} and was not read; paste its text, or: pip install 'trainmedic[pictures]'"
        return _unread(kind, message)
    if kind == "archive":
        return _unread(kind, f"{name} is an archive within another and was not read")
    if kind:
        return _picture(name, content, writing) if kind == "picture" else _pdf(name, content)
    return _unpacked(name, content, left_out)


def _unread(kind: str, message: str, *, code: str = "") -> Opened:
    return Opened(content=b"", problems=(Problem(code=code or kind, message=message),), unread=kind)


def _picture(name: str, content: bytes, most: int) -> Opened:
    try:
        if most < pictures.FINDING:
            raise ValueError("too much was to be read from others")
        shown = pictures.read(content, most)
    except ValueError as error:
        return _unread("picture", f"{name} is a picture that cannot be read: {error}")
    problems = tuple[Problem, ...]()
    if shown.left:
        message = f"{name} was not read as a whole: {shown.left} of its lines are too many"
        problems = (Problem(code="truncated", message=message),)
    return Opened(
        content=shown.text, notes=("read from a picture",), problems=problems, mark=pictures.MARK, writing=shown.writing
    )


def _pdf(name: str, content: bytes) -> Opened:
    from pypdf import PdfReader

    pages, problems = list[str](), tuple[Problem, ...]()
    try:
        if len(content) > LARGEST_PDF:
            raise ValueError("too large")
        document = PdfReader(io.BytesIO(content)).pages
        pages = [page.extract_text() for page in document[:MOST_PAGES]]
        if len(pages) < len(document):
            message = f"{name} was not read as a whole: {len(pages)} of its {len(document)} pages"
            problems = (Problem(code="truncated", message=message),)
    except Exception as error:  # a parser of hostile files, with exceptions of many kinds
        message = f"{name} is a PDF that cannot be read: {type(error).__name__}"
        problems = (Problem(code="pdf", message=message),)
    text = "\n".join(pages)
    if not text.strip():
        message = f"{name} is a PDF without text and was not read; send its pages as pictures or paste them"
        return Opened(content=b"", problems=problems or (Problem(code="pdf", message=message),), unread="pdf")
    return Opened(content=text, notes=(f"PDF, pages read: {len(pages)}",), problems=problems)


def _unpacked(name: str, content: bytes, left_out: int) -> Opened:
    notes, problems = list[str](), list[Problem]()
    expanded = compressed.expand(content)
    if expanded is not None:
        content, left_out = expanded.content, expanded.left_out
        notes.append(f"decompressed ({expanded.kind})")
        if not expanded.complete:
            problems.append(Problem(code="truncated", message=f"{name} is damaged, cut off or too long to be unpacked"))
    elif kind := compressed.kind_of(content):
        message = f"{name} is compressed by {kind} and was not read: pip install 'trainmedic[zstd]' reads such files"
        return _unread("binary", message, code="compressed")
    if content.startswith(_PICKLE):
        try:
            told, what = _of_pickle(content)
        except pickles.PickleRefusedError as error:
            return _unread("binary", f"{name} is a pickle and was not read: {error}")
        notes.append(f"{what}, read without unpickling")
        return Opened(content=told, notes=tuple(notes), problems=tuple(problems), left_out=left_out)
    history = event_files.read(content)
    if history is None:
        return Opened(content=content, notes=tuple(notes), problems=tuple(problems), left_out=left_out)
    notes.append(f"{history.kind}, one line for each of {history.rows} rows")
    if not history.complete:
        message = f"{name} is damaged, cut off or too long: read up to row {history.rows}"
        problems.append(Problem(code="truncated", message=message))
    return Opened(content=history.text, notes=tuple(notes), problems=tuple(problems), left_out=left_out)


def _of_pickle(content: bytes) -> tuple[str, str]:
    """The text of a pickle of a kind that is known, and its kind. Raises PickleRefusedError."""
    value = pickles.read(content, objects=True)
    try:
        if isinstance(value, pickles.Opaque) and (told := pickled_arguments.text_of(value)):
            return told, "the arguments of a training run"
        if isinstance(value, dict) and isinstance(value.get("segments"), list):
            return snapshot.text_of(value), "memory snapshot, the code that made the live tensors"
        if isinstance(value, dict) and isinstance(value.get("entries"), list):
            return recorded.text_of(value), "flight-recorder dump"
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise pickles.PickleRefusedError("it is damaged, too large or too deep") from error
    raise pickles.PickleRefusedError("it is not a memory snapshot, flight-recorder dump or training_args.bin")
