"""The shipped pages, read once for all tests of a process."""

from __future__ import annotations

from functools import cache

from trainmedic.kb.engine.mechanism import MechanismSet
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.pages.case import CaseSet, load_cases
from trainmedic.kb.pages.mechanism import load_mechanisms
from trainmedic.kb.pages.rule import load_rules


@cache
def shipped_rules() -> RuleSet:
    return load_rules()


@cache
def shipped_cases() -> CaseSet:
    return load_cases()


@cache
def shipped_mechanisms() -> MechanismSet:
    return load_mechanisms()
