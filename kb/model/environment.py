"""Differences between two environments, and the changes to make in one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """One package to change. ``clears`` and ``enters`` are ids of defects; ``because`` is the requirement of another
    package that asks for it, where no defect does."""

    package: str
    current: str
    to: str
    clears: tuple[str, ...] = ()
    enters: tuple[str, ...] = ()
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionChange:
    """An option of a framework that two releases treat differently.

    ``kind``: ``removed``, ``renamed`` (to ``after``), ``default`` (from ``before`` to ``after``). ``concerns`` is True
    where the pasted configuration is touched: it writes a removed option, or leaves a changed default.
    """

    framework: str
    option: str
    kind: str
    before: object = None
    after: object = None
    concerns: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChange:
    """A difference between the code of a release and that of the one that works.

    ``kind``: ``check`` (a message with its condition that only the failing release has) or ``code`` (``text`` is the
    difference of a function). ``because``: ``traceback`` where the failure went through it, else the options in use
    that it names. ``line`` is that of the failing release, or of the other where that no longer has it.
    """

    package: str
    kind: str
    path: str
    line: int
    name: str
    because: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceComparison:
    """The code of a package in both set-ups, what matters most first. ``read`` is false if a release is not at hand."""

    package: str
    good: str
    bad: str
    read: bool = True
    changes: tuple[SourceChange, ...] = ()
