"""The pages that an index was made of: what each says in short, and their files in one archive beside the index."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainmedic.kb.engine.mechanism import page_of
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.errors import StoreError
from trainmedic.kb.model.case import Case
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.pages.defect import discover_defects
from trainmedic.kb.pages.page import KNOWLEDGE, discover

SOURCES = "sources.zip"
Sources = Mapping[str, bytes]
"""The files by their names in the archive."""
OWN = "own"
_GLOSSARY = "glossary/glossary.yaml"
_LEVELS = {"origin": "mechanism"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEntry:
    """A page of a version. ``kind`` is case, mechanism, defect or rule; ``digest`` changes with its text."""

    id: str
    kind: str
    en: str
    zh: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChanges:
    """The pages in which a version differs from an earlier one."""

    added: tuple[PageEntry, ...]
    changed: tuple[PageEntry, ...]
    removed: tuple[PageEntry, ...]


def no_sources() -> Sources:
    """For knowledge that has no files."""
    return {}


def page_entries(cases: CaseSet, rules: RuleSet) -> tuple[PageEntry, ...]:
    """The published pages by kind and id."""
    pages: dict[str, list[Case]] = defaultdict(list)
    for cause in sorted(cases.published, key=lambda cause: cause.id):
        pages[page_of(cause.id)].append(cause)
    entries = []
    for page_id, causes in pages.items():
        head = next((cause for cause in causes if cause.id == page_id), causes[0])
        kind = _LEVELS.get(head.level, head.level)
        page = cases.pages.get(page_id)
        text = page.text if page is not None else "".join(map(repr, causes))
        entries.append(PageEntry(id=page_id, kind=kind, en=head.title.en, zh=head.title.zh, digest=_digest(text)))
    entries += [
        PageEntry(id=rule.id, kind="rule", en=rule.title.en, zh=rule.title.zh, digest=_digest(rule.page.text))
        for rule in rules.rules
    ]
    return tuple(sorted(entries, key=lambda entry: (entry.kind, entry.id)))


def changes(before: Iterable[PageEntry], after: Iterable[PageEntry]) -> PageChanges:
    old, new = ({(entry.kind, entry.id): entry for entry in entries} for entries in (before, after))
    return PageChanges(
        added=tuple(entry for key, entry in new.items() if key not in old),
        changed=tuple(entry for key, entry in new.items() if key in old and old[key].digest != entry.digest),
        removed=tuple(entry for key, entry in old.items() if key not in new),
    )


def collect(folders: Iterable[Path]) -> Sources:
    """The files of all pages, the built-in ones and those of further folders, without the modules of rules."""
    files = [(KNOWLEDGE.name, KNOWLEDGE / name) for name in ("cases", "mechanisms", "rules", "defects")]
    files += [(f"{OWN}/{number}", root) for number, root in enumerate(folders)]
    sources = {f"{KNOWLEDGE.name}/{_GLOSSARY}": (KNOWLEDGE / _GLOSSARY).read_bytes()}
    for place, root in files:
        for path, _ in (*discover(root), *discover_defects((root,))):
            sources[f"{place}/{path.relative_to(root.parent).as_posix()}"] = path.read_bytes()
    return sources


def restore(archive: Path, folder: Path, folders: Iterable[Path]) -> tuple[Path, tuple[Path, ...]]:
    """Unpack the pages of a version into ``folder``. Returns where the built-in ones are, and the further folders.

    Modules of rules are those of today, from the package and from ``folders``: no archive holds code.
    """
    unpack(archive, folder)
    builtin = folder / KNOWLEDGE.name
    own = tuple(sorted((folder / OWN).glob("*/*"), key=lambda path: int(path.parent.name)))
    by_name = {root.name: root for root in folders}
    for root, today in ((builtin, KNOWLEDGE), *((root, by_name.get(root.name)) for root in own)):
        if today is None:
            continue
        for page in root.rglob("*.md"):
            module = (today / page.relative_to(root)).with_suffix(".py")
            if module.is_file():
                shutil.copyfile(module, page.with_suffix(".py"))
    return builtin, own


def pack(sources: Sources, path: Path) -> None:
    """Write the archive; the same files make the same bytes."""
    with zipfile.ZipFile(path, "w") as archive:  # not compressed: every command after an edit would wait for that
        for name in sorted(sources):
            archive.writestr(zipfile.ZipInfo(name), sources[name])


def unpack(path: Path, folder: Path) -> None:
    """Write the archive's files below ``folder``. Raises `StoreError` if a name leads out of it."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            require_inside(name, path)
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))


def require_inside(name: str, archive: Path) -> None:
    """Raise `StoreError` if a member's name leads out of the folder that an archive is unpacked into."""
    place = PurePosixPath(name)
    if not name or place.is_absolute() or ".." in place.parts or "\\" in name or ":" in name:
        raise StoreError(f"{archive} holds a file of the name {name!r}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
