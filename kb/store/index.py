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
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

from filelock import FileLock

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.errors import NotFound, StoreError
from trainmedic.kb.glossary.terms import Concept, Glossary
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store import lexical
from trainmedic.kb.store.batches import Progress, VectorBatches, no_progress
from trainmedic.kb.store.chunks import Chunk
from trainmedic.kb.store.earlier import CONCEPTS, ENTRIES, FILES, Earlier, read_earlier
from trainmedic.kb.store.embedder import Embedder, Identity
from trainmedic.kb.store.half import HALVES, Half, new_texts, read_half, require_embedder, vectors_of
from trainmedic.kb.store.lexical import Lexical
from trainmedic.kb.store.manifest import (
    FORMAT,
    MANIFEST,
    REBUILD,
    Manifest,
    manifest_or_none,
    read_manifest,
    sha256_of,
    verify,
)
from trainmedic.kb.store.passages import Chunks, Passages, read_passages
from trainmedic.kb.store.sources import PageEntry, Sources, no_sources
from trainmedic.kb.store.vectors import VECTORS, Vectors
from trainmedic.kb.store.words import PAGES, READABLE_FOLDER, write_half

PREBUILT = Path(__file__).parent / "prebuilt"
"""The index that is part of the package; not in git, ``trainmedic index build --package`` makes it."""
INDEXING_CODE = ("store", "glossary", "pages", "model")
"""The packages of `kb` whose code an index depends on."""
KEPT = 3
"""Indexes kept for a rollback; older ones are deleted."""
READABLE_FILE = 0o644
"""As `READABLE_FOLDER`."""
FEW = 1_000
"""New texts that a start waits for: some seconds of the default embedder."""
CURRENT = "current"
PINNED = "pinned"
"""The file that names the version to serve whatever the pages say."""
BUILDING = ".building-"
log = logging.getLogger("trainmedic.index")
Concepts = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An opened index. Chunk ``n``, its passage, vector ``n`` and lexical chunk ``n`` belong together.

    ``pages`` holds whole pages: all chunks of ``passages.page_ids[n]`` as one text. ``concepts`` maps a cause to the
    glossary concepts of its text, ``titles`` to those of its title alone.
    """

    manifest: Manifest
    chunks: Sequence[Chunk]
    passages: Passages
    vectors: Vectors
    lexical: Lexical
    pages: Lexical
    concepts: Concepts = field(default_factory=lambda: MappingProxyType({}))
    titles: Concepts = field(default_factory=lambda: MappingProxyType({}))

    @property
    def words_only(self) -> bool:
        """Whether the texts are not embedded yet, so that no search by meaning finds anything."""
        return self.vectors.size < len(self.chunks)

    def without_vectors(self) -> Index:
        """The index as it was before its texts were embedded."""
        return replace(self, vectors=Vectors(self.manifest.embedder.dimension))


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


@lru_cache(maxsize=4)
def glossary_version(glossary: Glossary) -> str:
    """Changes with any concept, because chunks are embedded with their glossary gist."""
    names = [field.name for field in fields(Concept)]
    concepts = [[getattr(concept, name) for name in names] for _, concept in sorted(glossary.concepts.items())]
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
    try:
        return _fitting(root / name, name)
    except StoreError:
        half = build_words(cases, rules, glossary, embedder.identity, root, prebuilt, sources=sources)
        return add_vectors(root, half, embedder, prebuilt, progress=progress)


def build_words(
    cases: CaseSet,
    rules: RuleSet,
    glossary: Glossary,
    embedder: Identity,
    root: Path,
    prebuilt: Path = PREBUILT,
    *,
    sources: Callable[[], Sources] = no_sources,
) -> Half:
    """Make the half of an index that needs no vectors, unless it is there.

    Raises `StoreError` if ``root`` is not writable.
    """
    name = identity_of(cases, rules, glossary, embedder)
    halves = root / HALVES
    with locked(halves):
        if _is_whole(halves / name, name):
            return read_half(root, name)
        for other in halves.iterdir():  # of other pages, or unfinished: we have the lock
            shutil.rmtree(other, ignore_errors=True)
        earlier = _earlier((*_folders(root), prebuilt), glossary)
        with _aside(halves) as aside:
            pieces = write_half(aside, cases, rules, glossary, sources(), earlier)
            manifest = Manifest(
                id=name,
                format=FORMAT,
                embedder=embedder,
                kb_version=cases.version,
                ruleset_version=rules.version,
                glossary_version=glossary_version(glossary),
                chunks=len(pieces),
                cases=len({case for piece in pieces for case in piece.cases}),
                code=code_version(),
                files={},
            )
            manifest = _finish(aside, halves / name, manifest)
    return Half(folder=halves / name, manifest=manifest, chunks=pieces, known=earlier.texts)


def add_vectors(
    root: Path, half: Half, embedder: Embedder, prebuilt: Path = PREBUILT, *, progress: Progress = no_progress
) -> Manifest:
    """Make the index of a half, and move it into place, unless it is there. Raises `StoreError` if the embedder fails.

    The half is deleted, but who has it open may go on.
    """
    name = half.manifest.id
    with locked(root):
        try:
            return _fitting(root / name, name)
        except StoreError:
            pass
        for unfinished in root.glob(f"{BUILDING}*"):  # of a process that was killed: we have the lock
            shutil.rmtree(unfinished, ignore_errors=True)
        batches = VectorBatches(root, embedder)
        rows = vectors_of(half, embedder, (*_folders(root), prebuilt), batches, progress)
        with _aside(root) as aside:
            shutil.copytree(half.folder, aside, dirs_exist_ok=True)
            Vectors.of(rows).save(aside / VECTORS)
            manifest = _finish(aside, root / name, half.manifest)
        batches.clear()
        shutil.rmtree(half.folder, ignore_errors=True)
    return manifest


def complete(
    root: Path, name: str, embedder: Embedder, prebuilt: Path = PREBUILT, *, progress: Progress = no_progress
) -> None:
    """Make the index of the half ``name``, unless it is there. Raises `StoreError` as `read_half` and `add_vectors`."""
    if not _is_whole(root / name, name):
        add_vectors(root, read_half(root, name), embedder, prebuilt, progress=progress)


@contextmanager
def _aside(root: Path) -> Iterator[Path]:
    """A folder below ``root`` to make an index in; what is left of it at the end is deleted."""
    aside = Path(tempfile.mkdtemp(prefix=BUILDING, dir=root))
    aside.chmod(READABLE_FOLDER)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _finish(aside: Path, target: Path, manifest: Manifest) -> Manifest:
    """Add the hashes of files that the manifest does not have, and move the folder into place."""
    paths = {str(path.relative_to(aside)): path for path in sorted(aside.rglob("*")) if path.is_file()}
    files = {name: manifest.files.get(name) or sha256_of(path) for name, path in paths.items() if name != MANIFEST}
    manifest = replace(manifest, files=files)
    (aside / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
    _move(aside, target)
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


def _move(aside: Path, target: Path) -> None:
    """Rename the finished folder. If another process has built the same index meanwhile, that one stays."""
    try:
        os.rename(aside, target)
    except OSError:
        if not _is_whole(target, target.name):
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
    if VECTORS not in manifest.files:
        raise StoreError(f"the index {manifest.id} has no vectors")
    _move(aside, root / manifest.id)
    return manifest


def _is_whole(folder: Path, id: str) -> bool:
    try:
        _fitting(folder, id)
    except StoreError:
        return False
    return True


def switch(root: Path, name: str) -> None:
    """Use the index ``name`` from now on. Readers see the old one or the new one, never a mixture."""
    verify(root / name)
    _use(root, name)


def _use(root: Path, name: str) -> None:
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


def open_index(root: Path, embedder: Embedder) -> Index:
    """The index in use. Raises `StoreError` if it is damaged or was built with another embedder."""
    return open_version(current(root), embedder)


def open_version(folder: Path, embedder: Embedder) -> Index:
    """The index in a folder. Raises `StoreError` if it is damaged or was built with another embedder."""
    return _open(folder, verify(folder), embedder)


def _open(folder: Path, manifest: Manifest, embedder: Embedder) -> Index:
    require_embedder(manifest, embedder)
    concepts = json.loads((folder / CONCEPTS).read_text(encoding="utf-8"))
    return Index(
        manifest=manifest,
        chunks=Chunks(folder, manifest.chunks),
        passages=read_passages(folder),
        vectors=_load_vectors(folder, manifest),
        lexical=lexical.load(folder),
        pages=lexical.load(folder / PAGES),
        concepts=_frozen(concepts["all"]),
        titles=_frozen(concepts["titles"]),
    )


def _load_vectors(folder: Path, manifest: Manifest) -> Vectors:
    """None at all if the texts are not embedded yet."""
    dimension = manifest.embedder.dimension
    if VECTORS not in manifest.files:
        return Vectors(dimension)
    return Vectors.load(folder / VECTORS, dimension, manifest.chunks)


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
    found = _found(root, id, embedder, prebuilt)
    if isinstance(found, Index):
        return found
    log.warning("updating the search index, a minute's work if most texts are new, else seconds: %s", found)
    half = build_words(cases, rules, glossary, embedder.identity, root, prebuilt, sources=sources)
    manifest = add_vectors(root, half, embedder, prebuilt, progress=progress)
    _use_from_now(root, id)
    return _open(root / id, manifest, embedder)


def _found(root: Path, id: str, embedder: Embedder, prebuilt: Path) -> Index | str:
    """The package's index or that below ``root``, if it has this id; else why the package's does not fit."""
    try:
        return _open(prebuilt, _fitting(prebuilt, id), embedder)
    except StoreError as error:
        reason = error.message
    try:
        manifest = _fitting(root / id, id)
    except StoreError:
        return reason
    _use_from_now(root, id)
    return _open(root / id, manifest, embedder)


def _use_from_now(root: Path, id: str) -> None:
    if status(root).current != id:
        _use(root, id)


def at_once(
    root: Path,
    cases: CaseSet,
    rules: RuleSet,
    glossary: Glossary,
    embedder: Embedder,
    prebuilt: Path = PREBUILT,
    *,
    sources: Callable[[], Sources] = no_sources,
) -> Index | None:
    """What `ensure` returns if it is there, else the words of what it would build; None if that has few new texts."""
    found = _found(root, identity_of(cases, rules, glossary, embedder.identity), embedder, prebuilt)
    if isinstance(found, Index):
        return found
    half = build_words(cases, rules, glossary, embedder.identity, root, prebuilt, sources=sources)
    many = new_texts(half, embedder, (*_folders(root), prebuilt)) > FEW
    return _open(half.folder, half.manifest, embedder) if many else None


def _fitting(folder: Path, id: str) -> Manifest:
    """The verified manifest of an index with this id. Raises `StoreError` that says what is wrong with the folder."""
    if read_manifest(folder).id != id:
        raise StoreError(f"the index at {folder} was made for other pages or by other code", hint=REBUILD)
    return verify(folder)
