"""Whether a reader takes a name: at the release in use, at another one, or never."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from trainmedic.kb.frameworks.catalogue import OptionInfo, commands, exists, inherited_from
from trainmedic.kb.frameworks.catalogue import option as find_option
from trainmedic.kb.frameworks.profiles import BASE, INHERITS, profiles
from trainmedic.kb.frameworks.tables import Table, of_tables, table
from trainmedic.kb.versions import permits, version_key

KNOWN = "known"
RETIRED = "retired"
GONE = "gone"
LATER = "later"
ELSEWHERE = "elsewhere"
UNKNOWN = "unknown"
OPEN = "open"
"""``retired``: no version is known and the newest lacks it. ``open``: nothing certain can be said."""


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """``strict``: it refuses what it does not know; otherwise it drops it without a word.

    ``inherits`` is the version of transformers where the arguments extend TrainingArguments and it is known.
    ``how`` it reads: argparse (a command line), dict (a file whose values are taken as they are), call (Python),
    pydantic (a file that a schema checks), json (DeepSpeed), hydra, tree (a nested file), cyclopts (XTuner's command).
    """

    catalogue: str
    low: str | None
    high: str | None
    owners: tuple[str, ...]
    strict: bool
    inherits: str | None
    how: str

    @property
    def exact(self) -> str | None:
        return self.low if self.low is not None and self.low == self.high else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reader's verdict on one name. ``info`` where it exists at the release (or at the newest that had it)."""

    kind: str
    name: str
    info: OptionInfo | None = None
    first: str | None = None
    last: str | None = None


@of_tables
@lru_cache(maxsize=8192)
def judge(reader: Reader, name: str) -> Verdict:
    verdict, profile = _judge(reader, name), profiles()[reader.catalogue]
    uncertain = profile.sampled or name in profile.still_taken
    return Verdict(OPEN, name) if uncertain and verdict.kind in (GONE, LATER, RETIRED) else verdict


def _judge(reader: Reader, name: str) -> Verdict:
    framework = reader.catalogue
    owner = reader.owners[0] if len(reader.owners) == 1 else None
    info = find_option(framework, name, reader.exact, owner=owner, transformers=reader.inherits)
    catalogue = table(framework)
    assert catalogue is not None, "a reader's catalogue exists"
    if reader.exact is not None and not _examined(catalogue, reader.exact):
        return Verdict(OPEN, name)
    if reader.exact is not None and reader.owners and not set(reader.owners) & commands(framework, reader.exact):
        return Verdict(OPEN, name)  # the command or class itself is not there
    if info is None or (reader.how != "argparse" and (info.abbreviated or info.negated)):
        return _absent(reader, catalogue, name)
    if info.framework != framework:
        return _inherited(reader, info)
    if reader.owners and not set(reader.owners) & set(info.owners):
        return _elsewhere(reader, catalogue, info)
    if info.last is not None and _of_transformers(reader, info.key):
        return Verdict(KNOWN, info.key, info)
    if reader.low is None and reader.high is None:
        still = not reader.owners or set(reader.owners) & commands(framework, catalogue.versions[-1])
        kind = RETIRED if info.last is not None and still else KNOWN  # a command that is gone has no newer names
        return Verdict(kind, info.key, info, info.first, info.last)
    low, high = reader.low or info.first, reader.high
    if catalogue.alive(info.key, low) is False and info.last is not None and _after(low, info.last):
        return Verdict(GONE, info.key, info, info.first, info.last)
    if high is not None and catalogue.alive(info.key, high) is False and _after(info.first, high):
        return Verdict(LATER, info.key, info, info.first, info.last)
    return Verdict(KNOWN, info.key, info, info.first, info.last)


def _examined(catalogue: Table, version: str) -> bool:
    """Whether a release lies within those that the catalogue was made from."""
    wanted = version_key(version)
    return version_key(catalogue.examined[0]) <= wanted <= version_key(catalogue.examined[-1])


def _inherited(reader: Reader, info: OptionInfo) -> Verdict:
    """A name of TrainingArguments. Without a version it is gone only where the newest release certainly lacks it."""
    kind = KNOWN
    if info.last is not None and reader.inherits is None and reader.low is None:
        catalogue = table(reader.catalogue)
        kind = (
            RETIRED
            if catalogue is not None and exists(reader.catalogue, info.key, catalogue.versions[-1]) is False
            else KNOWN
        )
    return Verdict(kind, info.key, info, info.first, info.last)


def _elsewhere(reader: Reader, catalogue: Table, info: OptionInfo) -> Verdict:
    """The release has the name, but only on other commands or classes. Without an exact release: it never was here.

    A catalogued release on either side must agree, as the owners are known at catalogued releases only.
    """
    if profiles()[reader.catalogue].converts:
        return Verdict(OPEN, info.key, info)
    if _of_transformers(reader, info.key) or "Seq2SeqTrainingArguments" in reader.owners:
        return Verdict(KNOWN, info.key, None)
    had = [version for version in catalogue.versions if _owns(catalogue, info.key, version, reader.owners)]
    if reader.exact is None:
        return Verdict(OPEN if had else ELSEWHERE, info.key, info, info.first, info.last)
    wanted = version_key(reader.exact)
    around = [version for version in catalogue.versions if version_key(version) <= wanted][-1:]
    around += [version for version in catalogue.versions if version_key(version) >= wanted][:1]
    if any(version in had for version in around):
        return Verdict(OPEN, info.key, info)
    before = [version for version in had if version_key(version) < wanted]
    if before:
        return Verdict(GONE, info.key, info, info.first, before[-1])
    return Verdict(ELSEWHERE, info.key, info, info.first, info.last)


def _owns(catalogue: Table, name: str, version: str, owners: tuple[str, ...]) -> bool:
    info = catalogue.info(name, version)
    return info is not None and bool(set(owners) & set(catalogue.owner_sets[info["in"]]))


def _of_transformers(reader: Reader, name: str) -> bool:
    """Whether the name may come from TrainingArguments, which many classes extend."""
    known = table(BASE)
    return reader.catalogue in INHERITS and known is not None and name in known.names


def _negates(catalogue: Table, spelled: str) -> bool:
    """``--no_x`` of HF's parser, ``--no-x`` of argparse.BooleanOptionalAction."""
    return spelled.startswith("no_") or (spelled.startswith("no-") and spelled[3:] in catalogue.names)


def _absent(reader: Reader, catalogue: Table, name: str) -> Verdict:
    """A name that the release does not have: it went, it comes later, or it never was."""
    framework = reader.catalogue
    spelled = name.replace("-", "_") if profiles()[framework].dashes else name
    for known in (catalogue, table(BASE) if framework in INHERITS else None):
        line = known.line(spelled) if known is not None else None
        if known is None or line is None:
            continue
        first, last = line["life"][0], line["life"][1]
        release = reader.exact if known is catalogue else reader.inherits
        if release is None:
            release = _standing(reader)
        if release is None or not _examined(known, release):
            return Verdict(OPEN, spelled)
        info = find_option(known.framework, spelled)
        if last is not None and _after(release, last):
            return Verdict(GONE, spelled, info, first, last)
        if _after(first, release):
            return Verdict(LATER, spelled, info, first, last)
        return Verdict(OPEN, spelled)
    return Verdict(OPEN if _may_be_taken(reader, catalogue, spelled) else UNKNOWN, spelled)


def _may_be_taken(reader: Reader, catalogue: Table, name: str) -> bool:
    """Whether a name that no catalogued release has may be one of a fork, a free section or another reader."""
    profile = profiles()[reader.catalogue]
    if not name[:1].isalpha() or (profile.open and re.search(profile.open, name)):
        return True
    rest = table(profile.leftovers) if reader.how != "call" else None
    if rest is not None and name in rest.names:
        return True
    if reader.how == "argparse" and (_prefix_of_any(catalogue, name) or _negates(catalogue, name)):
        return True
    if profile.engine_arguments is not None and name.startswith(profile.engine_arguments.prefix):
        return True  # judged as an argument of the engine
    if profile.tree and not _in_tree(reader, catalogue, name):
        return True
    if profile.alias_prefix and name.replace(".", f".{profile.alias_prefix}", 1) in catalogue.names:
        return True  # the section takes the field's own name beside its alias
    return bool(profile.nested) and "." not in name and _has_branch(catalogue, f"{name}.")


@of_tables
@lru_cache(maxsize=512)
def _branches(framework: str) -> frozenset[str]:
    known = table(framework)
    names = known.names if known is not None else ()
    sections = {""} if profiles()[framework].tree else set()
    for name in names:
        while name := name.rpartition(".")[0]:
            sections.add(name)
    return frozenset(sections)


def _in_tree(reader: Reader, catalogue: Table, name: str) -> bool:
    """Whether the name is an option of a catalogued section, neither a section itself nor one that is translated."""
    if not _has_branch(catalogue, name) or name in _branches(catalogue.framework):
        return False
    return not _translated(reader, name)


def _has_branch(catalogue: Table, name: str) -> bool:
    """Whether the section that a dotted name stands in is one of the catalogued tree."""
    return name.rpartition(".")[0] in _branches(catalogue.framework)


def _translated(reader: Reader, name: str) -> bool:
    """Whether the release may fall back to the names of the framework that it grew out of."""
    source, _, releases = profiles()[reader.catalogue].translates.partition(" ")
    older = table(source)
    return older is not None and name in older.names and (reader.low is None or permits(releases, reader.low))


def _standing(reader: Reader) -> str | None:
    """The oldest release of transformers that the framework allows: none of those allowed has the name."""
    if reader.exact is None:
        return None
    pinned = inherited_from(reader.catalogue, reader.exact)
    return pinned[0] if pinned else None


def _prefix_of_any(catalogue: Table, name: str) -> bool:
    """Whether argparse might have taken it for an abbreviation in some release."""
    return profiles()[catalogue.framework].abbreviations and any(known.startswith(name) for known in catalogue.names)


def _after(left: str, right: str) -> bool:
    return version_key(left) > version_key(right)
