"""Names of recommended options in the user's own framework. Pure.

A case covers several frameworks and spells an option as one of them does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.profiles import profiles, select, title
from trainmedic.kb.frameworks.settings import index, specs
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence

_ELSEWHERE = ("deepspeed", "accelerate", "env", "launcher")
"""Readers of their own files and variables: their names are valid with any framework."""
_SOURCES = ("trl", "transformers", "peft")
"""Frameworks whose option names cases use unless they name one."""
_SPELL_ALIKE = {*_SOURCES, *(profile.name for profile in profiles().values() if profile.options_of in _SOURCES)}
_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9]{0,40}(?:_[A-Za-z0-9]{1,40}){1,8})"
_SPAN = regex(rf"`-{{0,2}}{_NAME}(?:(?:\s?[:=]|\s)[^`\n]{{0,80}})?`")
_LINE = regex(rf"^[+ -]\s{{0,8}}-{{0,2}}{_NAME}\s?[:=](?!=)", re.MULTILINE)
_NAMED = regex(
    "|".join(
        rf"\b{re.escape(word)}\b"
        for name in select("trainer", "library")
        if name not in ("transformers", "peft")
        for word in (title(name), *profiles()[name].aliases)
    ),
    re.IGNORECASE,
)
_MOST = 4


def other_names(case: Case, evidence: Evidence) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The user's framework, and (name, name there) for each option of the fix that it spells differently."""
    run = evidence.run
    framework = run.framework.value if run.framework is not None else ""
    if framework not in select("trainer") or framework in _SPELL_ALIKE or case.frameworks == (framework,):
        return "", ()
    fact = evidence.versions.get(framework)
    version = fact.exact if fact is not None else None
    algorithm = run.algorithm.value if run.algorithm is not None else None
    renames = dict(
        _renamed(case.section("fix", "en"), framework, version or catalogue.versions(framework)[-1], algorithm)
    )
    return title(framework), tuple(renames.items())[:_MOST]


def _renamed(text: str, framework: str, version: str, algorithm: str | None) -> Iterator[tuple[str, str]]:
    names = (match["name"] for line in text.split("\n") if not _NAMED.search(line) for match in _found(line))
    for name in dict.fromkeys(names):
        setting = _setting(name)
        if setting is None or any(index(column).get(name) for column in _ELSEWHERE):
            continue
        keys = [key for key in specs()[setting].keys(framework) if key.fits(algorithm)]
        keys = [key for key in keys if catalogue.exists(framework, key.key, version) is not False]
        here = [key.key for key in keys if key.how == ""]
        if not here or any(key.key == name for key in keys):
            continue
        # The same word may be an option of another meaning there, so its existence alone says nothing.
        if not any(re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", text) for key in here):
            yield name, here[0]


def _found(line: str) -> list[re.Match[str]]:
    return sorted([*_SPAN.finditer(line), *_LINE.finditer(line)], key=lambda match: match.start())


def _setting(name: str) -> str | None:
    """The setting of a plainly spelled name."""
    return next((spec.name for column in _SOURCES for spec, key in index(column).get(name, ()) if key.how == ""), None)
