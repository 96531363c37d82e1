"""The tool `source`: the code of a release, looked into."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, Field

from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.sources.library import Library, LookedUp

LONGEST = {"package": 60, "version": 40, "pattern": 300, "path": 300, "symbol": 200, "lines": 20, "before": 40}


def _text(name: str, description: str) -> object:
    return Field(description=description, json_schema_extra={"maxLength": LONGEST[name]})


Action = Annotated[
    Literal["grep", "read", "diff", "changes"],
    Field(
        description="grep: lines that match `pattern`; read: a `symbol`, or `lines` of a `path`; diff: what changed in "
        "either since release `before`; changes: options, defaults, messages and functions that changed since then"
    ),
]
Package = Annotated[str, _text("package", "as pip shows it, such as trl")]
Version = Annotated[str, _text("version", "the user's release; empty: what is at hand")]
Pattern = Annotated[str, _text("pattern", "a regular expression; for changes: what they must name")]
File = Annotated[str, _text("path", "a file, such as trl/trainer/grpo_trainer.py; for grep: how paths begin")]
Symbol = Annotated[str, _text("symbol", "a class, function or option, such as GRPOTrainer.compute_loss")]
Range = Annotated[str, _text("lines", "of the file, such as 800-840")]
Before = Annotated[str, _text("before", "the earlier release")]


class Wanted(NamedTuple):
    """The arguments."""

    action: Literal["grep", "read", "diff", "changes"]
    package: str
    version: str
    pattern: str
    path: str
    symbol: str
    lines: str
    before: str


class SourcePlace(BaseModel):
    package: str
    version: str
    path: str
    first: int
    last: int


class SourcePage(BaseModel):
    """A passage of a release's source, and where it stands."""

    text: str = Field(description="each part with package, version, file and line")
    places: list[SourcePlace]
    complete: bool = Field(description="false: it was cut; ask for less")


def looked_up(library: Library, wanted: Wanted) -> SourcePage:
    """Raises what `Library` does."""
    for name, most in LONGEST.items():
        if len(getattr(wanted, name)) > most:
            raise InvalidRequest(f"{name}: at most {most} characters")
    if (wanted.action in ("diff", "changes")) != bool(wanted.before):
        raise InvalidRequest("before: a release, for diff and changes alone")
    if wanted.action == "grep" and not wanted.pattern:
        raise InvalidRequest("pattern: a regular expression")
    release = wanted.version or library.at_hand(wanted.package)
    if release is None:
        raise NotFound("no release of this package is at hand", hint="trainmedic kb sources fetch PACKAGE==VERSION")
    found = _found(library, wanted, release)
    places = [
        SourcePlace(package=each.package, version=each.version, path=each.path, first=each.first, last=each.last)
        for each in found.passages
    ]
    return SourcePage(text=found.text, places=places, complete=found.complete)


def _found(library: Library, wanted: Wanted, release: str) -> LookedUp:
    match wanted.action:
        case "grep":
            return library.grep(wanted.package, release, wanted.pattern, wanted.path)
        case "read":
            return library.read(wanted.package, release, wanted.path, wanted.symbol, wanted.lines)
        case "diff":
            return library.diff(wanted.package, wanted.before, release, wanted.path, wanted.symbol)
        case "changes":
            return library.changes(wanted.package, wanted.before, release, wanted.pattern)
