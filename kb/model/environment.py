"""What two environments differ in, and what to change in one."""

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
