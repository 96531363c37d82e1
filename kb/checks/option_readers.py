"""Who reads an option that a user wrote: the question behind the option rules. The profiles say it (``readers``).

Only readers whose list of options is closed and catalogued count: a framework's own command, its own configuration
file, its own classes. A user's own script may have options of its own, so it has no reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache

from trainmedic.kb.checks.option_verdicts import Reader, Verdict, judge
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.frameworks.profiles import BASE, BESIDE, INHERITS, EngineArguments, ReaderSpec, profiles
from trainmedic.kb.frameworks.tables import table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, VersionFact

MOST_OPTIONS = 1_000
"""No one writes more by hand; a near name for each of ten thousand would take seconds."""
_IMPORT = regex(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)", re.MULTILINE)
_FREE = frozenset({"config", "accelerate_config", *BESIDE, "env", "ENV", "plugins", "local_rank", "local-rank"})
"""Names that the readers take out themselves before they look at the rest."""
_PLACES = {
    Origin.FLAG: "command",
    Origin.HYDRA: "overrides",
    Origin.YAML: "file",
    Origin.JSON: "file",
    Origin.TOML: "file",
    Origin.PYTHON: "call",
}
_PATCHING = tuple(profile.modules[0] for profile in profiles().values() if profile.patches)
_pattern = cache(re.compile)


def judged(facts: Facts) -> tuple[tuple[Option, Reader, Verdict], ...]:
    """Every option of the user that has a catalogued reader, with what that reader makes of it."""
    return facts.once(__name__, lambda asked: tuple(_judged(asked)))


def _judged(facts: Facts) -> Iterator[tuple[Option, Reader, Verdict]]:
    run = facts.run
    readers = _Readers(facts)
    for option in run.options[:MOST_OPTIONS]:
        handed = readers.handed_on(option)
        if handed is not None:
            yield option, handed[0], judge(*handed)
            continue
        reader = readers.of(option)
        if reader is not None:
            name = _name(reader.catalogue, option.key)
            if reader.how == "tree" and _referred(facts, option.key):
                continue
            if name and name not in _FREE:
                yield option, reader, judge(reader, name)


def _referred(facts: Facts, key: str) -> bool:
    """Whether another value of a file takes it over (``${key}``), so that it may be a name of the user's."""
    return any(f"${{{key}}}" in source.text for source in facts.evidence.sources)


def _name(catalogue: str, key: str) -> str:
    """The option's name as the catalogue has it; empty for what lies inside a free-form value."""
    profile = profiles()[catalogue]
    if profile.tree:
        return "" if profile.free and _pattern(profile.free).search(key) else key
    head, dot, rest = key.partition(".")
    if profile.dotted or not dot:
        return key
    if head in profile.nested:
        return "" if "." in rest else key
    return head


class _Readers:
    """The readers of one run, worked out once."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.run = facts, facts.run
        self.framework = self.run.framework.value if self.run.framework is not None else None
        self.entry = next((r.entry.value for r in self.run.regions if r.entry is not None), "")
        self._made: dict[tuple[str, str, str], Reader | None] = {}

    def handed_on(self, option: Option) -> tuple[Reader, str] | None:
        """The engine that gets an option from the trainer, and its name there; None if the trainer keeps it."""
        profile = profiles().get(self.framework or "")
        arguments = profile.engine_arguments if profile is not None else None
        if arguments is None or not option.key.startswith(arguments.prefix) or option.origin is Origin.DUMP:
            return None
        name = option.key.removeprefix(arguments.prefix)
        by_command = arguments.how == "argparse"
        if not (self._is_flag_of_trainer(option) if by_command else self._is_argument(name, arguments)):
            return None
        return self._reader(arguments.engine, arguments.how, (arguments.owner,)), name

    def _is_flag_of_trainer(self, option: Option) -> bool:
        """Whether the trainer's command takes it, though not as an option of its own."""
        trainer = table(self.framework or "")
        return not (trainer is not None and option.key in trainer.names) and self.of(option) is not None

    def _is_argument(self, name: str, arguments: EngineArguments) -> bool:
        used = self.facts.name("rollout_engine").value == arguments.engine
        return used and "." not in name and name not in arguments.unless

    def of(self, option: Option) -> Reader | None:
        """Who reads an option; None where no one catalogued does, or where it was only printed into a log."""
        if option.origin is Origin.HYDRA and _adds(option):
            return None
        head = option.key.partition(".")[0] if option.scope else ""
        key = (option.scope, option.origin.value, head)
        if key not in self._made:
            self._made[key] = self._find(option)
        return self._made[key]

    def _find(self, option: Option) -> Reader | None:
        """The first reader of the profiles whose program, file or class this is, unless something speaks against it."""
        for catalogue, spec in _specs(_PLACES.get(option.origin, "")):
            if self._is_read(option, catalogue, spec):
                in_doubt = self._is_in_doubt(option.scope, catalogue, spec)
                return None if in_doubt else self._made_of(option.scope, catalogue, spec)
        return None

    def _is_read(self, option: Option, catalogue: str, spec: ReaderSpec) -> bool:
        if spec.recognised and self.framework != catalogue:
            return False
        if not (_pattern(spec.classes).search(option.scope) if spec.classes else option.scope == spec.scope):
            return False
        if not (_pattern(spec.program).search(self.entry) and _pattern(spec.keys).search(option.key)):
            return False
        return self._heads.issuperset(spec.having) and (
            not spec.having_any or not self._heads.isdisjoint(spec.having_any)
        )

    def _is_in_doubt(self, scope: str, catalogue: str, spec: ReaderSpec) -> bool:
        """Whether another program, file or class may be meant, or the reader is told to take any name."""
        if spec.classes and (not _has_class(catalogue, scope) or own_class(self.facts, scope, spec.libraries)):
            return True
        if any(word in source.text for source in self.facts.evidence.sources for word in spec.unless_text):
            return True
        unless = _pattern(spec.unless) if spec.unless else None
        told = unless is not None and any(unless.search(f"{o.key}={o.value}") for o in self.run.options)
        return told or not self._heads.isdisjoint(spec.lacking)

    @cached_property
    def _heads(self) -> frozenset[str]:
        """The top-level names of the run's files."""
        options = (option for option in self.run.options if _PLACES.get(option.origin) == "file")
        return frozenset(option.key.partition(".")[0] for option in options)

    def _made_of(self, scope: str, catalogue: str, spec: ReaderSpec) -> Reader:
        owners = spec.owners
        program = _pattern(spec.program)
        if spec.classes:
            owners = (scope,)
        elif program.groups and (match := program.search(self.entry)):
            owners = (match[1],)
        return self._reader(catalogue, spec.how, owners, spec.strict)

    def _reader(self, catalogue: str, how: str, owners: tuple[str, ...] = (), strict: bool = True) -> Reader:
        low, high = _bounds(self.facts.evidence.versions.get(catalogue))
        pinned = self.facts.evidence.versions.get(BASE) if catalogue in INHERITS else None
        return _interned(catalogue, low, high, owners, strict, pinned.exact if pinned is not None else None, how)


@cache
def _specs(place: str) -> tuple[tuple[str, ReaderSpec], ...]:
    """The catalogues and readers of a command, of overrides, of files or of calls; those that a program names first."""
    specs = ((profile.name, spec) for profile in profiles().values() for spec in profile.readers)
    ordered = sorted(specs, key=lambda each: (not each[1].program, not each[1].recognised))
    return tuple(each for each in ordered if place in each[1].of.split())


@lru_cache(maxsize=512)
def _interned(
    catalogue: str,
    low: str | None,
    high: str | None,
    owners: tuple[str, ...],
    strict: bool,
    inherits: str | None,
    how: str,
) -> Reader:
    """The same reader is the same object, so that `judge` finds its answers by identity."""
    return Reader(catalogue, low, high, owners, strict, inherits, how)


def own_class(facts: Facts, scope: str, libraries: tuple[str, ...]) -> bool:
    """Whether a class may be another than the library's: packages patch them, and names are used by others as well."""
    for source in facts.evidence.sources:
        text = source.text
        if scope not in text:
            continue
        if any(name in text for name in _PATCHING) or f"class {scope}" in text:
            return True
        if f".{scope}(" in text and not any(f"{library}.{scope}(" in text for library in libraries):
            return True
        for statement in _IMPORT.finditer(text):
            if statement[1].partition(".")[0] not in libraries and re.search(rf"\b{scope}\b", statement[2]):
                return True
    return False


def _has_class(catalogue: str, scope: str) -> bool:
    known = table(catalogue)
    return known is not None and any(scope in group for group in known.owner_sets)


def _adds(option: Option) -> bool:
    """``+key``, ``++key`` and ``~key``: hydra then takes names that the tree does not have."""
    return option.span.text.lstrip("'\"")[:1] in ("+", "~")


def _bounds(fact: VersionFact | None) -> tuple[str | None, str | None]:
    """The release or the range that the user gave; what merely follows from the options used is not evidence here."""
    if fact is None or (fact.exact is None and fact.span is None):
        return None, None
    return (fact.exact, fact.exact) if fact.exact is not None else (fact.low, fact.high)
