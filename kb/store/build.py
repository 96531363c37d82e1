"""Making the index: its words first, then its vectors; checked by hashes, and never half made where it is read.

``root/<id>/`` is the index of the pages as they are; its id is the hash of its inputs. The folder is made aside and
renamed into place with the words of all texts. It is whole when the vectors are beside them and a second manifest that
names them has replaced the first. Then the indexes of other pages are deleted.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from filelock import FileLock

from trainmedic.kb.engine.mechanism import page_of
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.errors import StoreError
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.case import Case
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.store.chunks import Chunk, chunks
from trainmedic.kb.store.embedder import Array, Embedder, Identity
from trainmedic.kb.store.embeddings import EmbeddingCache, Progress, embed, no_progress
from trainmedic.kb.store.index import (
    CONCEPTS,
    PAGES,
    Index,
    code_version,
    glossary_version,
    identity_of,
    open_verified,
)
from trainmedic.kb.store.lexical import count, tokens
from trainmedic.kb.store.manifest import (
    FORMAT,
    Manifest,
    manifest_or_none,
    require_embedder,
    verify,
    verify_id,
    write_manifest,
)
from trainmedic.kb.store.passages import CHUNKS, page_ids, read_chunks, write_passages
from trainmedic.kb.store.vectors import VECTORS, Vectors

FEW = 1_000
"""New texts that a start waits for: some seconds of the default embedder."""
READABLE_FOLDER = 0o755
"""Temporary folders are private by default, but an index built in an image is read by another user."""
BUILDING = ".building-"
log = logging.getLogger("trainmedic.index")
Ids = Callable[[str], tuple[str, ...]]
"""The ids of the glossary concepts in a text."""


def build(
    cases: CaseSet,
    rules: RuleSet,
    glossary: Glossary,
    embedder: Embedder,
    root: Path,
    prebuilt: Path,
    *,
    progress: Progress = no_progress,
) -> Manifest:
    """Make the index of these pages below ``root``, unless it is there, and delete others.

    Texts are not embedded again that the package's index holds, that an earlier index held, or that a build embedded
    before it was killed. Raises `StoreError` if ``root`` is not writable or the embedder fails.
    """
    manifest = _words(cases, rules, glossary, embedder.identity, root)
    return add_vectors(root, manifest.id, embedder, prebuilt, progress=progress)


def ensure(
    cases: CaseSet,
    rules: RuleSet,
    glossary: Glossary,
    embedder: Embedder,
    root: Path,
    prebuilt: Path,
    *,
    progress: Progress = no_progress,
) -> Index:
    """The index of exactly these pages: the package's, or that below ``root``, which is built if there is none."""
    id = identity_of(cases, rules, glossary, embedder.identity)
    found = _whole(root, id, embedder, prebuilt)
    if isinstance(found, Index):
        return found
    log.warning("updating the search index, a minute's work if most texts are new, else seconds: %s", found)
    return open_verified(
        root / id, build(cases, rules, glossary, embedder, root, prebuilt, progress=progress), embedder
    )


def at_once(
    cases: CaseSet, rules: RuleSet, glossary: Glossary, embedder: Embedder, root: Path, prebuilt: Path
) -> Index | None:
    """The index if it is there, else one of words alone; None if few texts are new."""
    found = _whole(root, identity_of(cases, rules, glossary, embedder.identity), embedder, prebuilt)
    if isinstance(found, Index):
        return found
    manifest = _words(cases, rules, glossary, embedder.identity, root)
    folder = root / manifest.id
    texts = {chunk.embedded for chunk in read_chunks(folder)}
    new = len(texts) - len(_embedded(texts, embedder, EmbeddingCache(root, embedder.identity), prebuilt))
    return open_verified(folder, manifest, embedder) if new > FEW else None


def _whole(root: Path, id: str, embedder: Embedder, prebuilt: Path) -> Index | str:
    """The package's index or that below ``root``, if it has this id and its vectors; else why not the package's."""
    try:
        return open_verified(prebuilt, verify_id(prebuilt, id), embedder)
    except StoreError as error:
        reason = error.message
    with suppress(StoreError):
        manifest = verify_id(root / id, id)
        if VECTORS in manifest.files:
            return open_verified(root / id, manifest, embedder)
    return reason


def prebuild(
    cases: CaseSet,
    rules: RuleSet,
    glossary: Glossary,
    embedder: Embedder,
    folder: Path,
    *,
    progress: Progress = no_progress,
) -> Manifest:
    """Make the package's own index, unless it fits already. Raises `StoreError` if the package is not writable."""
    with suppress(StoreError):
        return verify_id(folder, identity_of(cases, rules, glossary, embedder.identity))
    root = folder.with_name(f".{folder.name}")
    manifest = build(cases, rules, glossary, embedder, root, folder, progress=progress)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(root / manifest.id, folder)
    shutil.rmtree(root)
    return manifest


def indexes(root: Path) -> tuple[Path, ...]:
    """The folders of the indexes below ``root``, whole ones first: one, but while another is made."""
    found = [(path, manifest_or_none(path)) for path in sorted(root.glob("[!.]*/"))]
    whole = {path: VECTORS in manifest.files for path, manifest in found if manifest is not None}
    return tuple(sorted(whole, key=lambda path: not whole[path]))


@contextmanager
def _locked(root: Path, name: str = ".lock") -> Iterator[None]:
    """One process at a time. Raises `StoreError` if ``root`` is not writable."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / name)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreError(f"{root} cannot be written ({reason})", hint="set TRAINMEDIC_DATA_DIR") from error
    try:
        yield
    finally:
        lock.release()


# --- vectors --------------------------------------------------------------------------------------------------------


def add_vectors(
    root: Path, id: str, embedder: Embedder, prebuilt: Path, *, progress: Progress = no_progress
) -> Manifest:
    """Make the index ``root/id`` whole and delete others. Raises `StoreError` if it is missing, damaged or deleted
    meanwhile, because the pages changed, or if the embedder fails."""
    folder = root / id
    with _locked(root, ".lock-vectors"):  # apart, for a process that needs the words of other pages meanwhile
        manifest = verify(folder)
        if VECTORS in manifest.files:
            return manifest
        require_embedder(manifest, embedder)
        texts = [chunk.embedded for chunk in read_chunks(folder)]
        cache = EmbeddingCache(root, embedder.identity)
        vectors = Vectors.of(embed(texts, _embedded(set(texts), embedder, cache, prebuilt), embedder, cache, progress))
        with _locked(root):
            manifest = verify(folder)
            unfinished = root / f"{BUILDING}{VECTORS}"
            vectors.save(unfinished)
            os.replace(unfinished, folder / VECTORS)
            manifest = write_manifest(folder, manifest)
            _delete_others(root, id)
        cache.trim(texts)
    return manifest


def _embedded(texts: set[str], embedder: Embedder, cache: EmbeddingCache, prebuilt: Path) -> dict[str, Array]:
    """The vectors of the texts that the package's index or the cache holds."""
    found = cache.known(texts)
    with suppress(StoreError):
        manifest = verify(prebuilt, (CHUNKS, VECTORS))
        require_embedder(manifest, embedder)
        rows = Vectors.load(prebuilt / VECTORS, manifest.embedder.dimension, manifest.chunks).rows()
        held = zip((chunk.embedded for chunk in read_chunks(prebuilt)), rows, strict=True)
        found |= {text: row for text, row in held if text in texts}
    log.info("embedding %d of %d texts", len(texts) - len(found), len(texts))
    return found


# --- words ----------------------------------------------------------------------------------------------------------


def _words(cases: CaseSet, rules: RuleSet, glossary: Glossary, embedder: Identity, root: Path) -> Manifest:
    """Make the index without its vectors, unless it is there."""
    id = identity_of(cases, rules, glossary, embedder)
    with _locked(root):
        with suppress(StoreError):
            return verify_id(root / id, id)
        shutil.rmtree(root / id, ignore_errors=True)
        for unfinished in root.glob(f"{BUILDING}*/"):  # of a process that was killed: we have the lock
            shutil.rmtree(unfinished, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=BUILDING, dir=root))
        aside.chmod(READABLE_FOLDER)
        ids = cache(glossary.ids)
        pieces = chunks(cases.cases, rules, glossary, ids)
        write_passages(pieces, aside)
        _write_words(aside, pieces, ids)
        concepts = {
            "all": {case.id: sorted(ids(_text_of(case))) for case in cases.published},
            "titles": {case.id: sorted(ids(f"{case.title.en}\n{case.title.zh}")) for case in cases.published},
        }
        (aside / CONCEPTS).write_text(json.dumps(concepts), encoding="utf-8")
        manifest = write_manifest(
            aside,
            Manifest(
                id=id,
                format=FORMAT,
                embedder=embedder,
                kb_version=cases.version,
                ruleset_version=rules.version,
                glossary_version=glossary_version(glossary),
                chunks=len(pieces),
                cases=len({case for piece in pieces for case in piece.cases}),
                code=code_version(),
                files={},
            ),
        )
        os.rename(aside, root / id)
        _delete_others(root, id, words_only=True)
    return manifest


def _write_words(folder: Path, pieces: tuple[Chunk, ...], ids: Ids) -> None:
    """The words of each chunk, and of all chunks of each page in the order of `page_ids`."""
    counted = count((*tokens(piece.text), *(f"g:{id}" for id in ids(piece.text))) for piece in pieces)
    every = range(len(pieces))
    counted.index(every, every, len(pieces)).save(folder)
    (folder / PAGES).mkdir()
    (folder / PAGES).chmod(READABLE_FOLDER)
    pages = page_ids([piece.cases for piece in pieces])
    numbers = {page: number for number, page in enumerate(pages)}
    pairs = [(n, numbers[page_of(case)]) for n, piece in enumerate(pieces) for case in piece.cases]
    counted.index([n for n, _ in pairs], [page for _, page in pairs], len(pages)).save(folder / PAGES)


def _text_of(case: Case) -> str:
    """What a case says of its title, symptoms and cause, in both languages, and of what does not help."""
    texts = [case.title.en, case.title.zh, *(symptom for group in case.symptoms.values() for symptom in group)]
    texts += [case.section("symptom", "en"), case.section("symptom", "zh"), case.section("cause", "en")]
    texts += [text for item in case.refutations for text in (item.claim.en, item.claim.zh)]
    return "\n".join(texts)


def _delete_others(root: Path, id: str, *, words_only: bool = False) -> None:
    """Delete the other indexes below ``root``, or those without vectors. Who has one open may go on."""
    for folder in root.glob("[!.]*/"):
        manifest = manifest_or_none(folder)
        if folder.name != id and not (words_only and manifest is not None and VECTORS in manifest.files):
            shutil.rmtree(folder, ignore_errors=True)
