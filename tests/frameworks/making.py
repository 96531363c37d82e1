"""Hand-made options, versions and regions."""

from __future__ import annotations

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Origin, Recognised, Region, Value, VersionFact

PLACE = Span(attachment="train.sh", line=1, column=1, end_line=1, end_column=5, text="text")


def option(key: str, value: Value = True, scope: str = "", origin: Origin = Origin.FLAG) -> Option:
    """An option as a reader yields it; without a value a bare flag."""
    bare = value is True and origin is Origin.FLAG
    return Option(
        key=key,
        value=value,
        raw=None if bare else str(value),
        span=PLACE,
        key_span=PLACE,
        value_span=None if bare else PLACE,
        origin=origin,
        scope=scope,
    )


def stated(**packages: str) -> dict[str, VersionFact]:
    """Exact versions; ``ms_swift`` stands for ms-swift."""
    names = {name.replace("_", "-"): version for name, version in packages.items()}
    return {name: VersionFact(package=name, exact=version, reason="stated") for name, version in names.items()}


def command(program: str) -> Region:
    """A region that starts ``program``."""
    entry = Recognised(value=program, reason="program", span=PLACE)
    return Region(kind="command", source="train.sh", start_line=1, end_line=1, entry=entry)
