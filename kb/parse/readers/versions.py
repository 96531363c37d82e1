"""Package versions from listings: ``pip list``/``freeze``, ``conda list``, requirement lines, and what
``transformers env``,
``trl env``, ``accelerate env``, ``llamafactory-cli env``, ``ds_report``, ``collect_env``, ``nvidia-smi`` and
``nvcc`` print.

Names are normalised to their PyPI name. ``exact`` never holds the local suffix (``+cu124``): it would only get in the
way of comparing; the reason keeps it. A bound that excludes its own version is written as the next thing it includes
(``<4.45`` → high ``4.45.dev0``, ``>4.40`` → low ``4.40.post0``). Beside packages there are ``python``, ``cuda`` (the
toolkit: torch's build tag, nvcc), ``cuda-driver`` (the highest CUDA a driver supports), ``nvidia-driver``, and the
hardware under ``gpu`` and ``gpu-memory``, whose ``exact`` is a name or a size and no version.
``transformers_version`` in a model's config is not read: it says who saved the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.parse.source import Piece, numbered

MAX_FACTS = 3000

VERSION = (
    r"[0-9]{1,9}+(?:\.[0-9]{1,9}+){0,5}(?:[._-]?(?:a|b|rc|alpha|beta|dev|post"
    r"|pre)[._-]?[0-9]{0,8}+){0,3}(?:\+[A-Za-z0-9][A-Za-z0-9._-]{0,60}+)?"
)
"""One version as packages write it; possessive, so matching is linear."""

_PROFILES = tuple(profiles().values())
_PACKAGES = load_table("parse/data/words.toml")["packages"]
_ALIASES: Mapping[str, str] = {
    **{alias: package for package, aliases in _PACKAGES["aliases"].items() for alias in aliases},
    **{alias: profile.package for profile in _PROFILES for alias in profile.aliases},
}
PACKAGES = (*(profile.package for profile in _PROFILES), *_PACKAGES["known"])

_PKG = r"[A-Za-z][A-Za-z0-9._-]{0,79}+"
_CUES = regex(r"[0-9]|#egg=")
_PIN = regex(
    rf"(?<![\w./@-])(?P<name>[A-Za-z][A-Za-z0-9._-]{{0,79}}?)(?:\[[\w,. -]{{0,80}}+\])? ?===?[ ]?(?P<version>"
    rf"{VERSION})(?![\w*])"
)
_DASHED = regex(rf"(?<![\w./@-])(?P<name>[A-Za-z][A-Za-z_-]{{0,39}}+)(?P<version>{VERSION})(?![\w*.-])")
_DIRECT = regex(r"(?<![\w./@-])(?P<name>[A-Za-z][A-Za-z0-9._-]{0,79}+) @ (?P<url>\S{1,500}+)")
_EDITABLE = regex(r"^\s{0,20}-e\s{1,4}+(?P<url>\S{1,500}+)")
_EGG = regex(r"#egg=(?P<name>[A-Za-z][A-Za-z0-9._-]{0,79}+)")
_URL_REF = regex(rf"@v?(?P<version>{VERSION})(?:#|$)")
_WHEEL = regex(rf"/(?P<name>[A-Za-z][A-Za-z0-9._]{{0,79}}+)-(?P<version>{VERSION})(?:-[\w.]{{1,80}}+|\.tar\.gz|$)")
_RANGE = regex(
    rf"(?<![\w./@-])(?P<name>[A-Za-z][A-Za-z0-9._-]{{0,79}}?)(?:\[[\w,. -]{{0,80}}+\])? ?"
    rf"(?P<range>(?:[<>]=?|~=|!=) ?{VERSION}(?:\.\*)?(?: ?, ?(?:[<>]=?|~=|!="
    rf"|==) ?{VERSION}(?:\.\*)?){{0,7}})(?![\w*])"
)
_BOUND = regex(rf"(?P<sign>[<>]=?|~=|!=|==) ?(?P<version>{VERSION})(?P<star>\.\*)?")
_COLUMNS = regex(
    rf"^\s{{0,20}}(?:\|\s{{0,4}}+)?(?P<name>{_PKG})(?:\s{{1,80}}+"
    rf"|\s{{0,4}}+\|\s{{0,4}}+)v?(?P<version>{VERSION})(?=\s|$|\|)(?P<rest>[^\n]{{0,300}}+)$"
)
_LISTING = regex(
    r"^\s{0,20}Package\s{1,80}+Version\b|^# packages in environment at|^# Name\s{1,80}+Version"
    r"|^NAME\s{1,80}+(?:VERSION|INSTALLED)\b"
)
_STATED = regex(
    rf"^\s{{0,20}}[-*•#>\[ ]{{0,6}}+(?:[A-Z]+:swift\] )?`?(?P<name>[A-Za-z][A-Za-z0-9_. -]{{0,40}}?)`? [Vv]ersion(?: "
    rf"\([^)\n]{{0,20}}+\))?[*`]{{0,3}}+\s?[.:=]{{1,60}}+[*`]{{0,3}}+\s{{0,8}}+v?(?P<version>{VERSION})(?![\w])"
)
_DUNDER = regex(rf"(?<![\w.])(?P<name>[A-Za-z][A-Za-z0-9_-]{{0,79}}?)\.__version__\W{{1,8}}+v?(?P<version>{VERSION})")
_HAVE = regex(rf"you have (?P<name>{_PKG}) (?P<version>{VERSION})")
_DS_INFO = regex(rf"^(?P<name>deepspeed) info \.{{2,60}}+ (?P<version>{VERSION})")
_SPECIAL = (
    ("cuda", "torch's CUDA build", "used to build", regex(rf"CUDA used to build PyTorch: (?P<version>{VERSION})")),
    ("cuda", "torch's CUDA build", "torch cuda", regex(rf"torch cuda version \.{{2,60}}+ (?P<version>{VERSION})")),
    ("cuda", "nvcc", "Cuda compilation", regex(rf"Cuda compilation tools, release (?P<version>{VERSION})")),
    ("cuda", "nvcc", "nvcc version", regex(rf"nvcc version \.{{2,60}}+ (?P<version>{VERSION})")),
    ("nvidia-driver", "the driver", ":", regex(rf"(?i:driver version): {{1,8}}+(?P<version>{VERSION})")),
    (
        "cuda-driver",
        "the highest CUDA that the driver supports",
        "CUDA Version:",
        regex(rf"(?<!\w)CUDA Version: {{1,8}}+(?P<version>{VERSION})"),
    ),
)
"""Package, what it is in words, a part of every match, and how its version is written."""
_GPU = regex(
    r"(?:GPU type: {0,4}+|^GPU [0-9]{1,3}: |\| {1,4}[0-9]{1,3} {1,4}+|GPU name: {0,4}+)"
    r"(?P<version>(?:NVIDIA|Tesla|GeForce|Quadro|AMD|Ascend|RTX)[A-Za-z0-9 /-]{1,60}?)(?= {2,}| \((?:UUID|GPU)"
    r"|\s{0,4}$| \||, )"
)
_MEMORY = regex(r"(?:MiB / {1,8}|GPU memory: {0,4}+)(?P<version>[0-9]{1,8}+(?:\.[0-9]{1,4}+)? ?[MG]i?B)")
_NAMED = {"cuda runtime": "cuda", "nvcc": "cuda", "nvidia": "nvidia-driver", "gcc": "gcc", "cmake": "cmake"}


_TARGET = regex(
    r"(?i:please|(?<![a-z])try(?![a-z])|upgrade to|upgrading to|update to|updating to|downgrade to|bump to|move to"
    r"|switch to|fixed in|fixed by|supported (?:in|since)|requires?|required"
    r"|recommends?|recommended|should (?:be|use)|needs?|instead of|not (?:on|using)|until|released?)"
    r"|升级|升到|降级|降到|降至|换到|换成|更新到|需要|要求|建议|推荐|应该|修复|支持|而不是|不是|最低"
)
_MOVES = r"upgrad|updat|downgrad|bump|mov|switch"
_PAST = regex(
    rf"(?i:(?:(?:{_MOVES})ed|(?:after|since) (?:{_MOVES})\w*) to\s*\S{{0,40}}\s?$)"
    r"|(?:已经?|刚|我)(?:升级|升|更新|降级|降|换)[到成至]"
)
_MOVED = regex(r"(?:升级?|更新|降级?|换)[^。；\n]{0,20}[到成至]\s*\S{0,40}\s?$")
_AFTERWARDS = regex(r"[`'\"]?\s?(?:版本?)?(?:之后|以后|后)(?![^。；\n]{0,12}[吗？?])")
_CLAUSE_END = regex(r"[.;!?](?=\s|$)|[。；！？\n]|[,，](?![0-9])")
_WINDOW = 24


@dataclass(frozen=True, slots=True)
class _Hit:
    package: str
    start: int
    end: int
    reason: str
    exact: str | None = None
    low: str | None = None
    high: str | None = None
    weight: int = 1  # an installed version outweighs a required one


def package(name: str) -> str:
    """The normalised PyPI name: lower case, ``-`` for ``_`` and ``.``, and the names people use instead."""
    plain = re.sub(r"[-_. ]+", "-", name.strip().strip("`").lower()).strip("-")
    return _ALIASES.get(plain, plain)


def public(version: str) -> str:
    """A version without its local suffix: ``2.5.1+cu124`` → ``2.5.1``."""
    return version.split("+", 1)[0]


def bounds(requirement: str) -> tuple[str | None, str | None]:
    """Inclusive (low, high) of comma-separated version clauses; either may be None. ``!=`` bounds nothing."""
    low: str | None = None
    high: str | None = None
    for clause in _BOUND.finditer(requirement):
        sign, version = clause["sign"], public(clause["version"])
        if sign in (">=", "~=", "==") or sign == ">":
            low = f"{version}.post0" if sign == ">" else version
        if sign == "<=":
            high = version
        elif sign == "<":
            high = f"{version}.dev0"
        elif sign == "==":
            high = next_release(version) if clause["star"] else version
        elif sign == "~=" and "." in version:
            high = next_release(version.rsplit(".", 1)[0])
    return low, high


def next_release(version: str) -> str:
    """The bound just below the release after every ``version.*``: ``4.43`` → ``4.44.dev0``."""
    head, _, tail = version.rpartition(".")
    digits = re.match(r"[0-9]+", tail)
    following = str(int(digits[0]) + 1) if digits else tail
    return f"{head}.{following}.dev0" if head else f"{following}.dev0"


def is_target(text: str, match: re.Match[str]) -> bool:
    """Whether a version is recommended or discouraged rather than in use."""
    start = max(0, match.start() - _WINDOW)
    clause = _CLAUSE_END.split(text[start : match.start()])[-1]
    written = clause + text[match.start() : match.start("version" if "version" in match.re.groupindex else "range")]
    if _PAST.search(written) or (_MOVED.search(written) and _AFTERWARDS.match(text, match.end())):
        return False
    return _TARGET.search(written) is not None


def read(piece: Piece) -> tuple[VersionFact, ...]:
    """One fact per package, in the order of the text. Installed versions win over requirements, the first over
    later ones."""
    best: dict[str, _Hit] = {}
    for hit in _hits(piece.text):
        known = best.get(hit.package)
        if known is None or hit.weight > known.weight:
            best[hit.package] = hit
        if len(best) >= MAX_FACTS:
            break
    ordered = sorted(best.values(), key=lambda hit: (hit.start, hit.end, hit.package))
    return tuple(
        VersionFact(
            package=hit.package,
            exact=hit.exact,
            reason=hit.reason,
            span=piece.span(hit.start, hit.end),
            low=hit.low,
            high=hit.high,
        )
        for hit in ordered
    )


def _hits(text: str) -> Iterator[_Hit]:
    listing = False
    for position, line in numbered(text):
        if _LISTING.match(line):
            listing = True
        elif not line.strip():
            listing = False
        elif _CUES.search(line) and len(line) <= 4000:
            found = list(_line(line, position)) or list(_columns(line, position, listing))
            yield from found
            for hit in found:
                yield from _cuda_of_torch(hit, line, position)


def _line(line: str, at: int) -> Iterator[_Hit]:
    """What a line says outside of a two-column listing."""
    yield from _pins(line, at)
    if "you have " in line and (have := _HAVE.search(line)) is not None:
        yield _hit(package(have["name"]), have, at, "pip's report of what is installed", weight=3)
    if "ersion" in line or "info" in line:
        yield from _stated(line, at)
    if "CUDA" in line or "uda" in line or "nvcc" in line or "river" in line:
        for name, what, part, pattern in _SPECIAL:
            if part in line and (match := pattern.search(line)) is not None:
                yield _hit(name, match, at, f"{match['version']} is {what}", weight=3)
    if "GPU" in line or "|" in line or "MiB" in line:
        for name, pattern in (("gpu", _GPU), ("gpu-memory", _MEMORY)):
            if (match := pattern.search(line)) is not None:
                start, end = at + match.start("version"), at + match.end("version")
                yield _Hit(name, start, end, "listed hardware", exact=match["version"], weight=3)


def _pins(line: str, at: int) -> Iterator[_Hit]:
    if "==" in line:
        for match in _PIN.finditer(line):
            tail = line[match.end() : match.end() + 2]
            known = "." in match["version"] or package(match["name"]) in PACKAGES  # "step == 10" is not a pin
            if known and not is_target(line, match) and not tail.lstrip().startswith(",") and not tail.startswith(".*"):
                yield _hit(package(match["name"]), match, at, f"{match[0].strip()} in a listing", weight=2)
    if "<" in line or ">" in line or "~=" in line:
        for match in _RANGE.finditer(line):
            low, high = bounds(match["range"])
            if (
                package(match["name"]) in PACKAGES
                and not is_target(line, match)
                and (low is not None or high is not None)
            ):
                reason = f"the requirement {match[0].strip()}"
                yield _Hit(package(match["name"]), at + match.start(), at + match.end(), reason, low=low, high=high)
    if " @ " in line or "#egg=" in line:
        yield from _sources(line, at)
    for match in _DASHED.finditer(line):
        name = package(match["name"])
        if "." in match["version"] and (name == "python" or (match["name"].endswith("-") and name in PACKAGES)):
            yield _hit(name, match, at, f"{match[0]} in a listing", weight=2)


def _sources(line: str, at: int) -> Iterator[_Hit]:
    match = _DIRECT.search(line)
    if match is None:
        match = _EDITABLE.search(line)
        egg = _EGG.search(line)
        if match is None or egg is None:
            return
        name = egg["name"]
    else:
        name = match["name"]
    known = _WHEEL.search(match["url"]) or _URL_REF.search(match["url"])
    exact = public(known["version"]) if known is not None and "." in known["version"] else None
    reason = f"installed from {match['url']}"
    yield _Hit(package(name), at + match.start(), at + match.end(), reason, exact=exact, weight=2)


def _stated(line: str, at: int) -> Iterator[_Hit]:
    match = _DS_INFO.match(line) or _DUNDER.search(line) or _STATED.match(line)
    if match is None:
        return
    words = match["name"].strip().lower()
    name = _NAMED.get(words) or package(words)
    if " " not in words or words in _NAMED:
        yield _hit(name, match, at, f"{match[0].strip()}", weight=3)


def _columns(line: str, at: int, listing: bool) -> Iterator[_Hit]:
    """A ``name  version`` line of a listing; without the listing's header only for packages we know."""
    match = _COLUMNS.match(line)
    if match is None:
        return
    name = package(match["name"])
    alone = not match["rest"].strip(" |") or match["rest"].startswith((" ", "\t"))
    if listing or (name in PACKAGES and "." in match["version"] and alone and len(match["rest"].split()) <= 3):
        start, end = at + match.start("name"), at + match.end("version")
        yield _Hit(
            name, start, end, f"{name} {match['version']} in a listing", exact=public(match["version"]), weight=2
        )


def _cuda_of_torch(hit: _Hit, line: str, at: int) -> Iterator[_Hit]:
    """The CUDA in torch's build tag (``+cu124``), if nothing else states it."""
    if hit.package != "torch":
        return
    tag = re.search(r"\+cu(?P<major>1[0-9])(?P<minor>[0-9])\b", line[hit.start - at : hit.end - at])
    if tag is not None:
        yield _Hit("cuda", hit.start, hit.end, "torch's build tag", exact=f"{tag['major']}.{tag['minor']}", weight=0)


def _hit(name: str, match: re.Match[str], at: int, reason: str, *, weight: int) -> _Hit:
    lead = len(match[0]) - len(match[0].lstrip(" \t-*•#>"))
    return _Hit(
        name, at + match.start() + lead, at + match.end(), reason, exact=public(match["version"]), weight=weight
    )
