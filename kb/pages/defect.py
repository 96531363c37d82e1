"""Lists of known defects, kb/defects/<package>/<area>.yaml → `kb.audit.defect.Defect`. See kb/defects/README.md."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trainmedic.kb.audit.defect import Defect, DefectSet, Effect, Spot
from trainmedic.kb.data_files import load_table
from trainmedic.kb.engine.log_text import LEAST_LITERAL, literal_of
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.model.page import PageProblem
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.compiled import CompiledPages
from trainmedic.kb.pages.condition import condition
from trainmedic.kb.pages.page import KNOWLEDGE, NO_READERS, Field, Fields, PageError, read_yaml, suggestion
from trainmedic.kb.versions import parse_version

DEFECTS = KNOWLEDGE / "defects"
_BUILT_IN = DEFECTS.resolve()
NO_DEFECTS = DefectSet()
REQUIRED = ("id", "title", "effect", "touches", "introduced", "fixed", "fix", "symptoms")
OPTIONAL = ("when", "message", "mechanism", "workaround")
UNKNOWN, UNRELEASED = "unknown", "unreleased"
MOST_SYMPTOMS = 4


def defect_packages() -> Mapping[str, Any]:
    """The packages that may have known defects, by their normalised names, with their repositories."""
    return load_table("defects/packages.toml")


def framework_of(package: str) -> str:
    """The framework whose runs alone use a package; empty for a library."""
    entry = defect_packages()[package]
    return str(entry.get("framework", package)) if entry.get("kind") == "trainer" else ""


def signs_of_packages() -> Mapping[str, frozenset[str]]:
    """The words that a question or paste has if a library is used, for libraries that not every run uses."""
    return {name: frozenset(entry["signs"]) for name, entry in defect_packages().items() if "signs" in entry}


def load_defects(
    packages: Collection[str] | None = None,
    folders: Iterable[Path] = (),
    words: Vocabulary | None = None,
    builtin: Path | None = None,
) -> DefectSet:
    """The defects of these packages (None: of all), from the built-in lists and those of further folders.

    Conditions are compiled only if ``words`` are given, for the linter: a loader of all of them has no use for most.
    """
    folders = tuple(folders)
    if builtin is not None or words is not None:
        return _read(folders, packages, words, _read((builtin or DEFECTS,), packages, words))
    compiled = CompiledPages(DEFECTS, "defects", KNOWLEDGE, NO_READERS)
    own: DefectSet | None = compiled.load()
    if own is None and not compiled.can_be_kept:
        return _read(folders, packages, first=_read((DEFECTS,), packages))
    if own is None:
        own = _read((DEFECTS,))
        if not own.failures:
            compiled.keep(own)
    own = own if packages is None else own.of(packages)
    return _read(folders, packages, first=own)


def _read(
    roots: Iterable[Path],
    packages: Collection[str] | None = None,
    words: Vocabulary | None = None,
    first: DefectSet = NO_DEFECTS,
) -> DefectSet:
    """The lists below ``roots``, after those that are there already."""
    by_package = {package: {defect.id: defect for defect in found} for package, found in first.by_package.items()}
    names = dict(first.places)
    problems = list(first.failures)
    digest = hashlib.sha256(first.version.encode())
    unchanged = digest.digest()
    for path, name in discover_defects(roots):
        package = path.parent.name
        if packages is not None and package not in packages:
            continue
        try:
            entries = _entries(path, name)
        except PageError as error:
            problems.append(error.problem)
            continue
        digest.update(f"{package}/{path.name}".encode() + b"\0" + path.read_bytes())
        for entry in entries:
            try:
                defect = read_defect(entry, package, words)
                if defect.id in names:
                    raise entry.error(f"id {defect.id!r} is taken by {names[defect.id]}")
                names[defect.id] = name
                by_package.setdefault(package, {})[defect.id] = defect
            except PageError as error:
                problems.append(error.problem)
    return DefectSet(
        by_package=MappingProxyType(
            {name: tuple(found[key] for key in sorted(found)) for name, found in sorted(by_package.items())}
        ),
        places=MappingProxyType(names),
        failures=tuple(problems),
        version=first.version if first.version and digest.digest() == unchanged else digest.hexdigest()[:12],
    )


def defects_of(packages: Iterable[str], folders: Iterable[Path] = ()) -> tuple[Defect, ...]:
    """All known defects of these packages, whatever their versions."""
    return load_defects(frozenset(packages), folders).all


def discover_defects(roots: Iterable[Path] = (DEFECTS,)) -> Iterator[tuple[Path, str]]:
    """The lists of defects below folders (or single files), sorted, with the names that messages show.

    Outside of the built-in folder a list must be in a folder named after a package: other YAML may be beside it.
    """
    for root in roots:
        for path in [root] if root.is_file() else sorted(root.rglob("*.yaml")):
            if (place := path.resolve()).is_relative_to(_BUILT_IN):
                yield path, f"kb/defects/{place.relative_to(_BUILT_IN).as_posix()}"
            elif path.suffix == ".yaml" and path.parent.name in defect_packages():
                yield path, path.as_posix()


def _entries(path: Path, name: str) -> list[Field]:
    if path.parent.name not in defect_packages():
        problem = f"unknown package {path.parent.name!r}{suggestion(path.parent.name, defect_packages())}"
        raise PageError(PageProblem(name, 1, problem))
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise PageError(PageProblem(name, 1, f"cannot be read: {error}")) from None
    whole = read_yaml(text, name)
    return [] if whole is None else list(whole.items())


def read_defect(entry: Field, package: str, words: Vocabulary | None = None) -> Defect:
    """One entry of a list, its condition compiled if ``words`` are given. Raises `PageError`."""
    fields = entry.fields(REQUIRED, OPTIONAL)
    introduced, fixed = _range(fields)
    fix = fields["fix"].fields((), ("pull", "commit", "path", "symbol"))
    pull, commit = _change(fix)
    spot = _spot(fix)
    if not pull and not commit and spot is None:
        raise fields["fix"].error("name the pull request, the commit, or path and symbol in the release that has it")
    if spot is not None and fixed is None:
        raise fields["fix"].error("path and symbol are those of the release with the fix: name it under fixed")
    if words is not None and "when" in fields:
        condition(fields["when"], words)
    if fixed is None and "workaround" not in fields:
        raise entry.error("fixed: unreleased needs a workaround, or a word that there is none")
    return Defect(
        id=_id(fields["id"], package),
        package=package,
        title=_both(fields["title"]),
        effect=Effect(fields["effect"].choice(tuple(Effect))),
        touches=_touches(fields["touches"]),
        introduced=introduced,
        fixed=fixed,
        when=fields.text("when"),
        pull=pull,
        commit=commit,
        spot=spot,
        symptoms=_symptoms(fields["symptoms"]),
        message=_message(fields),
        mechanism=fields["mechanism"].choice(_mechanisms()) if "mechanism" in fields else "",
        workaround=_both(fields["workaround"]) if "workaround" in fields else None,
        link=_link(package, pull, commit, spot, fixed or ""),
        framework=framework_of(package),
    )


def _id(field: Field, package: str) -> str:
    word = field.text()
    rest = word.removeprefix(f"{package}-")
    if rest == word or not (rest.isascii() and rest.replace("-", "").isalnum() and rest == rest.lower()):
        raise field.error(f"{word!r} must be {package}-<pull request>, -<first 7 digits of the commit> or -<words>")
    return word


def _both(field: Field) -> Text:
    text = field.both()
    if not any("\u4e00" <= char <= "\u9fff" for char in text.zh):
        raise field.error("the text under zh is not Chinese")
    return text


def _touches(field: Field) -> tuple[str, ...]:
    if not (names := field.texts()):
        raise field.error("name at least one class, option or model")
    return names


def _range(fields: Fields) -> tuple[str | None, str | None]:
    introduced = _release(fields["introduced"], UNKNOWN)
    fixed = _release(fields["fixed"], UNRELEASED)
    first, last = parse_version(introduced), parse_version(fixed)
    if first is not None and last is not None and first >= last:
        raise fields["introduced"].error(f"{introduced} is not before the release that fixes it, {fixed}")
    return introduced, fixed


def _release(field: Field, word: str) -> str | None:
    text = field.text()
    if text == word:
        return None
    if parse_version(text) is None or not text[0].isdigit():
        raise field.error(f"{text!r} is not a release; write a number such as 0.20.0, or {word}")
    return text


def _change(fields: Fields) -> tuple[int | None, str]:
    pull, commit = fields.text("pull"), fields.text("commit")
    if pull and not pull.isdecimal():
        raise fields["pull"].error(f"{pull!r} is not the number of a pull request")
    if commit and not (7 <= len(commit) <= 40 and set(commit) <= set("0123456789abcdef")):
        raise fields["commit"].error(f"{commit!r} is not a commit: 7 to 40 hexadecimal digits")
    return int(pull) if pull else None, commit


def _spot(fields: Fields) -> Spot | None:
    path, symbol = fields.text("path"), fields.text("symbol")
    if bool(path) != bool(symbol):
        raise fields["path" if path else "symbol"].error("path and symbol need each other")
    if path and (path.startswith("/") or not path.endswith(".py")):
        raise fields["path"].error(f"{path!r} is not the path of a module, such as trl/trainer/grpo_trainer.py")
    return Spot(path=path, symbol=symbol) if path else None


def _link(package: str, pull: int | None, commit: str, spot: Spot | None, fixed: str) -> str:
    """The fix in the repository; for a spot its file there, where releases have tags, else the release."""
    about = defect_packages()[package]
    repository = f"https://github.com/{about['repository']}"
    if spot is None or pull or commit:
        return f"{repository}/pull/{pull}" if pull else f"{repository}/commit/{commit}"
    if "tags" not in about:
        return f"https://pypi.org/project/{package}/{fixed}/"
    top = spot.path.partition("/")[0]
    folders = [folder.removesuffix(f"{top}/") for folder in about["code"] if folder.endswith(f"{top}/")]
    return f"{repository}/blob/{about['tags'].format(version=fixed)}/{(folders or [''])[0]}{spot.path}"


def _symptoms(field: Field) -> Mapping[str, tuple[str, ...]]:
    fields = field.fields(("en", "zh"))
    for language in ("en", "zh"):
        if not 1 <= len(fields.items(language)) <= MOST_SYMPTOMS:
            raise fields[language].error(f"write one to {MOST_SYMPTOMS}")
    return MappingProxyType({language: fields.texts(language) for language in ("en", "zh")})


def _message(fields: Fields) -> str:
    text = fields.text("message")
    if text and len(literal_of(text)) < LEAST_LITERAL:
        raise fields["message"].error(f"{text!r} needs {LEAST_LITERAL} characters in a row without a wildcard")
    return text


@cache
def _mechanisms() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (KNOWLEDGE / "mechanisms").rglob("*.md") if path.name != "README.md"))
