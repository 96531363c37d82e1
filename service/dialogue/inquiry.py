"""Questions about no incident: what an option does, how to choose it, what differs, what fits, what is broken. Pure.

What is asked is told by the words of the question; what it is about by the catalogues, the canonical settings and the
glossary. Whatever shows or says that something fails is an incident, and no such question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Literal

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.card import best_known, homes, longer_names
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.glossary.negated import negated_concepts
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import width
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import Recognised, VersionFact
from trainmedic.kb.parse.logs.signal_kinds import BENIGN
from trainmedic.kb.parse.readers.versions import PACKAGES, package
from trainmedic.service.dialogue.vocabulary import phrases, wordings

Kind = Literal["option", "choice", "versions", "comparison", "problems"]
KINDS: tuple[Kind, ...] = ("problems", "comparison", "versions", "choice", "option")
"""The most particular first."""
LONGEST = 200
"""Greatest width of such a question: whoever tells more tells of a run."""
ASIDE = 32
"""Greatest width of a sentence beside the question ("I use TRL 0.19.")."""
MOST_REST = 6
"""Greatest width of what a question about a mere concept says besides: concepts are in every incident."""
WORDS = 4
"""The most words of an option's name that is written with blanks."""
SIDES = 2
PLAIN = frozenset({"int", "number", "flag"})
"""Kinds of canonical settings whose name is unmistakable as a mere word."""
EXPLAINED = frozenset({"setting", "algorithm", "component", "concept", "metric"})
"""Kinds of glossary concepts that a question may be about."""
CONCERNS = frozenset({"symptom", "error"})
UNSUPPORTED = "not-implemented"
"""The concept whose words also ask what is supported."""

_NAME = regex(r"(?<![A-Za-z0-9_./-])(?P<dash>-{0,2})(?P<name>[A-Za-z][A-Za-z0-9]{0,40}(?:[_.-][A-Za-z0-9]{1,40}){0,9})")
_SENTENCE = regex(r"(?:[^\n.?!。？！；;]|\.(?!\s|$))+[?？]?")
_WORDS = regex(r"[A-Za-z]{3,30}|[\u3400-\u9fff]+")
_CAMEL = regex(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a question: an option (``framework`` and ``key``), else a ``concept`` of the glossary."""

    name: str
    start: int
    framework: str = ""
    key: str = ""
    concept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A question that is not an incident. ``packages`` are those it names, with their versions in ``versions``.

    ``near`` are the ids of the pages that are most like it, the nearest first.
    """

    kind: Kind
    subjects: tuple[Subject, ...] = ()
    packages: tuple[str, ...] = ()
    versions: Mapping[str, VersionFact]
    framework: str = ""
    algorithm: str | None = None
    near: tuple[str, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether it names an option or a package that is ours, whatever its other words are about."""
        return bool(self.packages) or any(subject.key for subject in self.subjects)

    @property
    def resolved(self) -> bool:
        """Whether something is known of what it asks about."""
        return bool(self.subjects or self.packages)


def inquiry_of(own: Evidence, shared: Evidence, glossary: Glossary) -> Inquiry | None:
    """The non-incident question of a message, or None. ``own`` is what the message itself brings, ``shared`` what is
    known of the run from the conversation."""
    text = own.question.strip()
    if not text and own.versions and not own.run.options and not own.calls and not shows_failure(own):
        return Inquiry(kind="problems", packages=tuple(own.versions), versions=shared.versions)
    kinds = [kind for kind in KINDS if text and phrases(f"inquires_{kind}").search(text)]
    if not kinds or width(text) > LONGEST or _tells_a_story(text) or shows_failure(own):
        return None
    run, before = own.run, shared.run
    packages = tuple(dict.fromkeys(_packages(text)))
    library = next((name for name in packages if name in catalogue.frameworks()), "")
    framework = _value(run.framework) or library or _value(before.framework)
    algorithm = _value(run.algorithm) or _value(before.algorithm) or None
    subjects = tuple(_subjects(text, framework, algorithm, glossary))
    if _tells_of_failure(text, subjects, kinds, glossary):
        return None
    asked = Inquiry(kind=kinds[0], versions=shared.versions, framework=framework, algorithm=algorithm)
    for kind in kinds:
        found = _fitting(kind, subjects, packages, own)
        if found is not None:
            return replace(asked, kind=kind, subjects=found[0], packages=found[1])
    unknown = phrases("general_question").search(text) and not phrases("own_run", "troubled").search(text)
    return replace(asked, kind=kinds[-1]) if unknown else None


def _value(recognised: Recognised | None) -> str:
    return recognised.value if recognised is not None else ""


def shows_failure(own: Evidence) -> bool:
    """Whether a message brings a log, a traceback, or a symptom of training."""
    signals = {signal.kind for signal in own.signals} - BENIGN
    return bool(own.tracebacks or own.rows or signals)


def _tells_a_story(text: str) -> bool:
    """Whether there are whole sentences beside the question."""
    asks = phrases(*(f"inquires_{kind}" for kind in KINDS))
    return any(width(part.strip()) > ASIDE and not asks.search(part) for part in _SENTENCE.findall(text))


def _rest(text: str, subjects: Sequence[Subject]) -> int:
    """The width of what a question says beside what it asks and what it is about."""
    for subject in subjects:
        text = text.replace(subject.name, " ")
    text = phrases(*(f"inquires_{kind}" for kind in KINDS), "filler").sub(" ", _package_names().sub(" ", text))
    return width(" ".join(_WORDS.findall(text)))


def _fitting(
    kind: Kind, subjects: Sequence[Subject], packages: tuple[str, ...], own: Evidence
) -> tuple[tuple[Subject, ...], tuple[str, ...]] | None:
    """The subjects and packages that a question of this kind is about; None if it cannot be one."""
    match kind:
        case "problems":
            installed = tuple(own.versions) if len(own.sources) > 1 else ()
            listed = tuple(dict.fromkeys((*(name for name in packages if name in installed), *installed)))
            return ((), listed or packages) if listed or packages else None
        case "versions":
            features = tuple(subject for subject in subjects if package(subject.name) not in packages)[:SIDES]
            about_versions = phrases("asks_version").search(own.question)
            fits = (len(packages) > 1 and about_versions) or (packages and (features or about_versions))
            return (features, packages) if fits else None
        case "comparison":
            sides = tuple(subjects[:SIDES])
            alone = len(sides) == 1 and not sides[0].concept
            return (sides, ()) if sides and not alone and _rest(own.question, subjects) <= MOST_REST else None
        case _:
            best = _foremost(subjects)
            if best and not best[0].key and (kind == "choice" or _rest(own.question, subjects) > MOST_REST):
                return None
            return (best, ()) if best else None


def _foremost(subjects: Sequence[Subject]) -> tuple[Subject, ...]:
    """Options before concepts: an algorithm beside an option only says for what."""
    options = tuple(subject for subject in subjects if subject.key)
    return (options or tuple(subjects))[:SIDES]


def _tells_of_failure(text: str, subjects: Sequence[Subject], kinds: Sequence[Kind], glossary: Glossary) -> bool:
    if phrases("asks_if_normal").search(text):
        return True
    for subject in subjects:  # ``skip_nan`` is a name
        if subject.key:
            text = text.replace(subject.name, " " * len(subject.name))
    concepts = set(glossary.ids(text)) - negated_concepts(text, glossary) - {UNSUPPORTED}
    if any(glossary.concepts[concept].kind in CONCERNS for concept in concepts):
        return True
    if kinds[0] == "problems":
        return False
    troubled = phrases("own_run").search(text) and phrases("troubled").search(text)
    return bool(troubled or phrases("says_failed").search(text) or phrases("reports_a_run").search(text))


# What it is about


def _subjects(text: str, framework: str, algorithm: str | None, glossary: Glossary) -> Iterator[Subject]:
    """What the text names, in order and each once: options first where several names begin at one place."""
    found = [*_options(text, framework, algorithm, glossary), *_settings(text, framework, algorithm)]
    whole = [name.span() for name in _NAME.finditer(text) if "_" in name[0]]
    for match in glossary.find(text):
        concept = glossary.concepts[match.concept]
        if concept.kind in EXPLAINED:
            setting = concept.settings[0] if len(concept.settings) == 1 and concept.kind == "setting" else ""
            home, key = _home(setting, framework, algorithm) or ("", "")
            found.append(Subject(name=match.text, start=match.start, framework=home, key=key, concept=concept.id))
    found.sort(key=lambda subject: (subject.start, not subject.key, -len(subject.name)))
    end, seen = -1, set()
    for subject in found:
        if any(a <= subject.start < b and subject.start + len(subject.name) < b for a, b in whole):
            continue  # a part of a name that is not an option
        same = (subject.framework, subject.key) if subject.key else subject.concept
        if subject.start >= end and same not in seen:
            end = subject.start + len(subject.name)
            seen.add(same)
            concepts = (each.concept for each in found if each.concept and each.start == subject.start)
            yield replace(subject, concept=next(concepts, ""))


def _options(text: str, framework: str, algorithm: str | None, glossary: Glossary) -> Iterator[Subject]:
    words = list(_NAME.finditer(text))
    taken = -1
    for number, word in enumerate(words):
        if word.start() < taken:
            continue
        for count in range(min(WORDS, len(words) - number), 0, -1):
            last = words[number + count - 1]
            if any(text[a.end() : b.start()].strip() for a, b in pairwise(words[number : number + count])):
                continue
            written = text[word.start("name") : last.end()]
            home = _option(written, framework, algorithm, glossary, certain=bool(word["dash"]))
            if home is not None:
                taken = last.end()
                yield Subject(name=written, start=word.start("name"), framework=home[0], key=home[1])
                break


def _option(
    written: str, framework: str, algorithm: str | None, glossary: Glossary, *, certain: bool
) -> tuple[str, str] | None:
    """The framework and the full name of an option as it is written, or None."""
    name = re.sub(r"\s+", "_", written)
    if "_" not in name and "." not in name and name[1:] != name[1:].lower() and name[:1].islower():
        name = _CAMEL.sub("_", name).lower()
    name = name if "." in name or "_" in written else name.lower()
    spelled = " " not in written and ("_" in name or "." in name)
    spec = specs().get(name)
    plain = spec is not None and spec.kind in PLAIN
    if not (certain or spelled or plain):
        concepts = {glossary.concepts[concept].kind for concept in glossary.ids(written)}
        if " " not in written and "-" not in written and "setting" not in concepts:
            return None  # "model", "steps": words before they are options
        if concepts and "setting" not in concepts:
            return None
    found = _in(framework, name, algorithm) if framework else None
    if found is not None:
        return found
    if plain and spec is not None:
        return _home(spec.name, framework, algorithm)
    if not (certain or spelled):
        return None
    return next(filter(None, (_in(home, name, algorithm) for home in homes(name))), None)


def _in(framework: str, name: str, algorithm: str | None) -> tuple[str, str] | None:
    for spelled in dict.fromkeys((name, name.replace("_", "-"))):
        info = catalogue.option(framework, spelled)
        if info is not None and not info.abbreviated:
            return framework, info.key
    longer = longer_names(framework, name)
    if not longer:
        return None
    meant = [key.key for spec in specs().values() for key in spec.keys(framework) if key.fits(algorithm)]
    return framework, next((key for key in meant if key in longer), longer[0])


def _settings(text: str, framework: str, algorithm: str | None) -> Iterator[Subject]:
    """The settings that people call by words of their own ("learning rate", 学习率)."""
    for setting, pattern in wordings("numbers").items():
        match = pattern.search(text)
        home = _home(setting, framework, algorithm) if match is not None else None
        if match is not None and home is not None:
            yield Subject(name=match[0], start=match.start(), framework=home[0], key=home[1])


def _home(setting: str, framework: str, algorithm: str | None) -> tuple[str, str] | None:
    """Where a canonical setting is written plainly: in the framework of the question, else in the first that others
    build on."""
    if setting not in specs():
        return None
    for name in (framework,) if framework else best_known():
        for key in specs()[setting].keys(name):
            info = catalogue.option(name, key.key) if key.fits(algorithm) and not key.how else None
            if info is not None and info.last is None and not info.abbreviated:
                return name, key.key
    return None


def _packages(text: str) -> Iterator[str]:
    """The packages that a text names, in order."""
    for match in _package_names().finditer(text):
        yield package(match[0])


@cache
def _package_names() -> re.Pattern[str]:
    aliases = [alias for profile in profiles().values() for alias in (profile.package, *profile.aliases)]
    names = sorted({*PACKAGES, *aliases}, key=len, reverse=True)
    spelled = "|".join(re.escape(name).replace(r"\-", "[-_ ]?") for name in names)
    return re.compile(rf"(?<![A-Za-z0-9_/.-])(?:{spelled})(?![A-Za-z0-9_-])", re.IGNORECASE)
