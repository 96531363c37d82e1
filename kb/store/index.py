"""The index on disk: built aside, verified by hashes, switched atomically, opened read-only.

``root/<id>/`` holds one index and its ``manifest.json``; the file ``root/current`` names the one in use. An index never
changes after its manifest is written; its id is the hash of its inputs.

The package has an index of its own pages in `PREBUILT`, so that a new installation starts without embedding anything.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
from filelock import FileLock
from langchain_core.documents import Document

from trainmedic.kb.engine.mechanism import page_of
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.errors import NotFound, StoreError
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store import lexical
from trainmedic.kb.store.batches import Progress, VectorBatches, no_progress
from trainmedic.kb.store.chunks import Chunk, chunks
from trainmedic.kb.store.concepts import concepts_of, titles_of
from trainmedic.kb.store.earlier import CHUNKS, CONCEPTS, ENTRIES, FILES, Earlier, read_earlier
from trainmedic.kb.store.embedder import Array, Embedder, Identity
from trainmedic.kb.store.lexical import Lexical, Postings
from trainmedic.kb.store.sources import SOURCES, PageEntry, Sources, no_sources, pack, page_entries
from trainmedic.kb.store.tokens import tokens
from trainmedic.kb.store.vectors import Vectors

FORMAT = 6
SAME_VECTORS = (4, 5, FORMAT)
"""Formats with the same files of texts and vectors."""
PREBUILT = Path(__file__).parent / "prebuilt"
"""The index that is part of the package; not in git, ``trainmedic index build --package`` makes it."""
INDEXING_CODE = ("store", "glossary", "pages", "model")
"""The packages of `kb` whose code an index depends on."""
KEPT = 3
"""Indexes kept for a rollback; older ones are deleted."""
READABLE_FOLDER, READABLE_FILE = 0o755, 0o644
"""Temporary files are private by default, but an index built in an image is read by another user."""
CURRENT = "current"
PINNED = "pinned"
"""The file that names the version to serve whatever the pages say."""
BUILDING = ".building-"
MANIFEST = "manifest.json"
VECTORS = "vectors.faiss"
PAGES = "pages"
REBUILD = "trainmedic index build"
log = logging.getLogger("trainmedic.index")
Concepts = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The inputs and files of an index. ``files`` maps name → sha256; ``code`` is the `code_version` that made it."""

    id: str
    format: int
    embedder: Identity
    kb_version: str
    ruleset_version: str
    glossary_version: str
    chunks: int
    cases: int
    files: Mapping[str, str]
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An opened index. ``chunks[n]``, vector ``n`` and lexical chunk ``n`` belong together.

    ``pages`` holds whole pages: all chunks of ``page_ids[n]`` as one text. ``concepts`` maps a cause to the glossary
    concepts of its text, ``titles`` to those of its title alone.
    """

    manifest: Manifest
    chunks: tuple[Chunk, ...]
    vectors: Vectors
    lexical: Lexical
    pages: Lexical
    page_ids: tuple[str, ...]
    concepts: Concepts = field(default_factory=lambda: MappingProxyType({}))
    titles: Concepts = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """The index in use below ``root`` and all that are available there, and the id of the package's own index."""

    root: str
    current: str | None
    manifest: Manifest | None
    available: tuple[str, ...]
    bytes: int
    prebuilt: str | None
    pinned: str | None


def identity_of(cases: CaseSet, rules: RuleSet, glossary: Glossary, embedder: Identity) -> str:
    """The id of the index for these inputs."""
    parts = (
        str(FORMAT),
        code_version(),
        cases.version,
        rules.version,
        glossary_version(glossary),
        embedder.name,
        embedder.digest,
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def code_version() -> str:
    """Changes with the code that pages are read, cut and indexed by."""
    digest = hashlib.sha256()
    for package in INDEXING_CODE:
        for path in sorted((Path(__file__).parent.parent / package).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def glossary_version(glossary: Glossary) -> str:
    """Changes with any concept, because chunks are embedded with their glossary gist."""
    concepts = [asdict(concept) for _, concept in sorted(glossary.concepts.items())]
    return hashlib.sha256(json.dumps(concepts, ensure_ascii=False).encode()).hexdigest()[:12]


def build(
    cases: CaseSet,
    rules: RuleSet,
    glossary: Glossary,
    embedder: Embedder,
    root: Path,
    prebuilt: Path = PREBUILT,
    *,
    sources: Callable[[], Sources] = no_sources,
    progress: Progress = no_progress,
) -> Manifest:
    """Build an index aside and move it into place, unless it is there. Does not switch to it.

    Texts that any index below ``root`` or the package's has embedded are not embedded again, nor those of a build that
    was killed. ``sources`` reads the pages' files, which are stored with the index. Raises `StoreError` if ``root`` is
    not writable.
    """
    name = identity_of(cases, rules, glossary, embedder.identity)
    with locked(root):
        try:
            return _fitting(root / name, name)
        except StoreError:
            pass
        for unfinished in root.glob(f"{BUILDING}*"):  # of a process that was killed: we have the lock
            shutil.rmtree(unfinished, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=BUILDING, dir=root))
        aside.chmod(READABLE_FOLDER)
        batches = VectorBatches(root, embedder)
        try:
            indexes = (*_folders(root), prebuilt)
            earlier = _earlier(indexes, glossary)
            pieces = chunks(cases.cases, rules, glossary, earlier.embedded)
            # The words are indexed while the vectors are computed, which needs no interpreter lock.
            with ThreadPoolExecutor(1) as thread:
                rows = thread.submit(_vectors, pieces, embedder, indexes, batches, progress)
                _write_words(aside, pieces, glossary, earlier)
                _write_pages(aside, cases, rules, glossary, sources(), earlier)
            Vectors.of(embedder, rows.result(), _documents(pieces)).save(aside / VECTORS)  # type: ignore[arg-type]
            manifest = Manifest(
                id=name,
                format=FORMAT,
                embedder=embedder.identity,
                kb_version=cases.version,
                ruleset_version=rules.version,
                glossary_version=glossary_version(glossary),
                chunks=len(pieces),
                cases=len({case for piece in pieces for case in piece.cases}),
                code=code_version(),
                files={
                    str(path.relative_to(aside)): _sha256(path) for path in sorted(aside.rglob("*")) if path.is_file()
                },
            )
            (aside / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
            _move(aside, root / name)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        batches.clear()
    return manifest


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """One writer at a time below ``root``. Raises `StoreError` if it is not writable."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / ".lock")
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreError(f"{root} cannot be written ({reason})", hint="set TRAINMEDIC_DATA_DIR") from error
    try:
        yield
    finally:
        lock.release()


def prebuild(
    cases: CaseSet,
    rules: RuleSet,
    glossary: Glossary,
    embedder: Embedder,
    folder: Path = PREBUILT,
    *,
    sources: Callable[[], Sources] = no_sources,
    progress: Progress = no_progress,
) -> Manifest:
    """Make the package's own index, unless it fits already. Raises `StoreError` if the package is not writable."""
    try:
        return _fitting(folder, identity_of(cases, rules, glossary, embedder.identity))
    except StoreError:
        root = folder.with_name(f".{folder.name}")
        manifest = build(cases, rules, glossary, embedder, root, folder, sources=sources, progress=progress)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(root / manifest.id, folder)
        shutil.rmtree(root)
        return manifest


def _folders(root: Path) -> tuple[Path, ...]:
    """The indexes below ``root``, newest first."""
    folders = (
        [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")] if root.is_dir() else []
    )
    return tuple(sorted(folders, key=lambda path: (path.stat().st_mtime, path.name), reverse=True))


def _vectors(
    pieces: Sequence[Chunk], embedder: Embedder, indexes: Iterable[Path], batches: VectorBatches, progress: Progress
) -> Array:
    """One row for each chunk, taken from these indexes and from stored batches if they have the same text."""
    wanted = {piece.embedded for piece in pieces}
    rows: dict[str, Array] = {}
    for folder in indexes:
        if len(rows) == len(wanted):
            break
        with suppress(StoreError):
            rows |= {text: row for text, row in _embedded(folder, embedder) if text in wanted}
    new = [text for text in dict.fromkeys(piece.embedded for piece in pieces) if text not in rows]
    log.info("embedding %d of %d texts", len(new), len(wanted))
    rows |= batches.embed(new, progress)
    return np.stack([rows[piece.embedded] for piece in pieces]) if pieces else embedder.vectors(())


def _embedded(folder: Path, embedder: Embedder) -> Iterable[tuple[str, Array]]:
    """The texts of an index with their vectors. Raises `StoreError` if they cannot be used."""
    manifest = verify(folder, (CHUNKS, VECTORS), SAME_VECTORS)
    _require_embedder(manifest, embedder)
    data = json.loads((folder / CHUNKS).read_text(encoding="utf-8"))
    documents = [Document(page_content="")] * len(data)
    vectors = Vectors.load(folder / VECTORS, embedder, manifest.embedder.dimension, documents)  # type: ignore[arg-type]
    return zip((item["embedded"] for item in data), vectors.rows(), strict=True)


def _earlier(indexes: Iterable[Path], glossary: Glossary) -> Earlier:
    """Of the first of these indexes that the same code made with the same glossary; empty if there is none."""
    version = glossary_version(glossary)
    for folder in indexes:
        with suppress(StoreError):
            manifest = read_manifest(folder)
            if (manifest.code, manifest.glossary_version) == (code_version(), version):
                verify(folder, FILES)
                return read_earlier(folder)
    return Earlier()


def _write_pages(
    folder: Path, cases: CaseSet, rules: RuleSet, glossary: Glossary, sources: Sources, earlier: Earlier
) -> None:
    entries = page_entries(cases, rules)
    changed = earlier.changed(cases.published, entries)
    names = {
        "all": {**earlier.concepts, **concepts_of(changed, glossary)},
        "titles": {**earlier.titles, **titles_of(changed, glossary)},
    }
    concepts = {kind: {cause.id: of[cause.id] for cause in cases.published} for kind, of in names.items()}
    (folder / CONCEPTS).write_text(json.dumps(concepts), encoding="utf-8")
    listed = [asdict(entry) for entry in entries]
    (folder / ENTRIES).write_text(json.dumps(listed, ensure_ascii=False), encoding="utf-8")
    pack(sources, folder / SOURCES)


def _write_words(folder: Path, pieces: Sequence[Chunk], glossary: Glossary, earlier: Earlier) -> None:
    names = [field.name for field in fields(Chunk)]
    data = [{name: getattr(piece, name) for name in names} for piece in pieces]  # much faster than asdict
    (folder / CHUNKS).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    postings = earlier.postings_of(pieces, lambda piece: (*tokens(piece.text), *_concepts(piece, glossary)))
    postings.weighted().save(folder)
    lexical.save_counts(postings, folder)
    (folder / PAGES).mkdir()
    (folder / PAGES).chmod(READABLE_FOLDER)
    _by_page(pieces, postings).weighted().save(folder / PAGES)


def _by_page(pieces: Sequence[Chunk], postings: Postings) -> Postings:
    """The words of all chunks of each page, in the order of `page_ids`."""
    ids = page_ids(pieces)
    numbers = {page_id: number for number, page_id in enumerate(ids)}
    pairs = [(n, numbers[page_of(case)]) for n, piece in enumerate(pieces) for case in piece.cases]
    return lexical.assemble([(postings, [n for n, _ in pairs], [page for _, page in pairs])], len(ids))


def page_ids(pieces: Sequence[Chunk]) -> tuple[str, ...]:
    """The ids of the pages that chunks belong to, sorted."""
    return tuple(sorted({page_of(case) for piece in pieces for case in piece.cases}))


def _concepts(piece: Chunk, glossary: Glossary) -> tuple[str, ...]:
    return tuple(f"g:{concept}" for concept in glossary.ids(piece.text))


def _documents(pieces: Sequence[Chunk]) -> list[Document]:
    return [
        Document(page_content=p.text, id=p.id, metadata={"cases": p.cases, "part": p.part, "language": p.language})
        for p in pieces
    ]


def _move(aside: Path, target: Path) -> None:
    """Rename the finished folder. If another process has built the same index meanwhile, that one stays."""
    try:
        os.rename(aside, target)
    except OSError:
        if _is_damaged(target):
            old = target.with_name(f".old-{target.name}")
            shutil.rmtree(old, ignore_errors=True)
            os.rename(target, old)
            os.rename(aside, target)
            shutil.rmtree(old, ignore_errors=True)


def adopt(aside: Path, root: Path) -> Manifest:
    """Move an index to the others below ``root``, which is `locked`. Raises `StoreError` if it is damaged."""
    manifest = verify(aside)
    if not manifest.id.isalnum():
        raise StoreError(f"{manifest.id!r} is no id of an index")
    _move(aside, root / manifest.id)
    return manifest


def read_manifest(folder: Path, formats: Collection[int] = (FORMAT,)) -> Manifest:
    """The manifest of one index. Raises `StoreError` if it is missing or invalid."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        data["embedder"] = Identity(**data["embedder"])
        manifest = Manifest(**data)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(f"no index at {folder}", hint=REBUILD) from error
    if manifest.format not in formats:
        raise StoreError(f"the index at {folder} has another format", hint=REBUILD)
    return manifest


def verify(folder: Path, names: Collection[str] | None = None, formats: Collection[int] = (FORMAT,)) -> Manifest:
    """Check files of an index, by default all, against its manifest. Raises `StoreError` naming one that differs."""
    manifest = read_manifest(folder, formats)
    for name, digest in sorted(manifest.files.items()):
        if names is not None and name not in names:
            continue
        path = folder / name
        if not path.is_file():
            raise StoreError(f"{path} is missing", hint=REBUILD)
        if _sha256(path) != digest:
            raise StoreError(f"{path} is not what its manifest says", hint=REBUILD)
    return manifest


def _is_damaged(folder: Path) -> bool:
    try:
        verify(folder)
    except StoreError:
        return True
    return False


def switch(root: Path, name: str) -> None:
    """Use the index ``name`` from now on. Readers see the old one or the new one, never a mixture."""
    verify(root / name)
    with locked(root):
        _point(root / CURRENT, name)
        _prune(root, {name, pinned(root)})


def pin(root: Path, name: str | None) -> None:
    """Serve the version ``name`` whatever the pages say; None: the one that fits the pages."""
    with locked(root):
        if name is None:
            (root / PINNED).unlink(missing_ok=True)
        else:
            _point(root / PINNED, name)


def pinned(root: Path) -> str | None:
    """The id of the pinned version, or None."""
    try:
        return (root / PINNED).read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _point(pointer: Path, name: str) -> None:
    """Write the name of an index into a file, atomically."""
    with tempfile.NamedTemporaryFile(
        "w", dir=pointer.parent, prefix=f".{pointer.name}-", delete=False, encoding="utf-8"
    ) as file:
        file.write(name + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, READABLE_FILE)
    os.replace(file.name, pointer)


def _prune(root: Path, used: Collection[str | None]) -> None:
    others = [path for path in _folders(root) if path.name not in used]
    for path in others[KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def current(root: Path) -> Path:
    """The folder of the index in use. Raises `StoreError` if there is none."""
    try:
        name = (root / CURRENT).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise StoreError(f"no index below {root}", hint=REBUILD) from error
    if not name or "/" in name or name.startswith("."):
        raise StoreError(f"{root / CURRENT} names no index", hint=REBUILD)
    return root / name


def status(root: Path, prebuilt: Path = PREBUILT) -> StoreStatus:
    """The indexes below ``root`` and the package's. Does not raise if the current one is missing or damaged."""
    folders = [path for path in _folders(root) if (path / MANIFEST).is_file()]
    size = sum(file.stat().st_size for path in folders for file in path.rglob("*") if file.is_file())
    in_package, in_use = manifest_or_none(prebuilt), None
    with suppress(StoreError):
        in_use = manifest_or_none(current(root))
    return StoreStatus(
        root=str(root),
        current=in_use.id if in_use else None,
        manifest=in_use,
        available=tuple(sorted(path.name for path in folders)),
        bytes=size,
        prebuilt=in_package.id if in_package else None,
        pinned=pinned(root),
    )


def kept(root: Path, prebuilt: Path = PREBUILT) -> Mapping[str, Path]:
    """The folders of all versions by their ids: below ``root``, newest first, then the package's."""
    folders = {path.name: path for path in _folders(root) if manifest_or_none(path) is not None}
    in_package = manifest_or_none(prebuilt)
    return folders if in_package is None else {**folders, in_package.id: prebuilt}


def version_folder(root: Path, name: str, prebuilt: Path = PREBUILT) -> Path:
    """The folder of a version, by its id or the beginning of it. Raises `NotFound`."""
    versions = kept(root, prebuilt)
    matches = [folder for id, folder in versions.items() if id.startswith(name)] if name else []
    if len(matches) != 1:
        problem = "is not kept" if not matches else "is the beginning of several ids"
        raise NotFound(f"the index version {name!r} {problem}", hint=f"kept are {', '.join(versions) or 'none'}")
    return matches[0]


def entries_of(folder: Path) -> tuple[PageEntry, ...]:
    """The pages of one version. Raises `StoreError` if it is damaged."""
    verify(folder, (ENTRIES,))
    return tuple(PageEntry(**item) for item in json.loads((folder / ENTRIES).read_text(encoding="utf-8")))


def manifest_or_none(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except StoreError:
        return None


def open_index(root: Path, embedder: Embedder) -> Index:
    """The index in use. Raises `StoreError` if it is damaged or was built with another embedder."""
    return open_version(current(root), embedder)


def open_version(folder: Path, embedder: Embedder) -> Index:
    """The index in a folder. Raises `StoreError` if it is damaged or was built with another embedder."""
    return _open(folder, verify(folder), embedder)


def _require_embedder(manifest: Manifest, embedder: Embedder) -> None:
    if manifest.embedder != embedder.identity:
        raise StoreError(
            f"the index was built with the embedder {manifest.embedder.name}, not with {embedder.identity.name}",
            hint=REBUILD,
        )


def _open(folder: Path, manifest: Manifest, embedder: Embedder) -> Index:
    _require_embedder(manifest, embedder)
    data = json.loads((folder / CHUNKS).read_text(encoding="utf-8"))
    pieces = tuple(Chunk(**{**item, "cases": tuple(item["cases"])}) for item in data)
    concepts = json.loads((folder / CONCEPTS).read_text(encoding="utf-8"))
    dimension = manifest.embedder.dimension
    return Index(
        manifest=manifest,
        chunks=pieces,
        vectors=Vectors.load(folder / VECTORS, embedder, dimension, _documents(pieces)),  # type: ignore[arg-type]
        lexical=lexical.load(folder),
        pages=lexical.load(folder / PAGES),
        page_ids=page_ids(pieces),
        concepts=_frozen(concepts["all"]),
        titles=_frozen(concepts["titles"]),
    )


def _frozen(concepts: Mapping[str, Sequence[str]]) -> Concepts:
    return MappingProxyType({cause: frozenset(names) for cause, names in concepts.items()})


def ensure(
    root: Path,
    cases: CaseSet,
    rules: RuleSet,
    glossary: Glossary,
    embedder: Embedder,
    prebuilt: Path = PREBUILT,
    *,
    sources: Callable[[], Sources] = no_sources,
    progress: Progress = no_progress,
) -> Index:
    """The index of exactly this knowledge: the package's, or one below ``root``, built if there is none."""
    id = identity_of(cases, rules, glossary, embedder.identity)
    try:
        return _open(prebuilt, _fitting(prebuilt, id), embedder)
    except StoreError as error:
        reason = error.message
    try:
        _fitting(root / id, id)
    except StoreError:
        log.warning("updating the search index, a minute's work if most texts are new, else seconds: %s", reason)
        build(cases, rules, glossary, embedder, root, prebuilt, sources=sources, progress=progress)
    if status(root).current != id:
        switch(root, id)
    return open_version(root / id, embedder)


def _fitting(folder: Path, id: str) -> Manifest:
    """The verified manifest of an index with this id. Raises `StoreError` that says what is wrong with the folder."""
    if read_manifest(folder).id != id:
        raise StoreError(f"the index at {folder} was made for other pages or by other code", hint=REBUILD)
    return verify(folder)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
