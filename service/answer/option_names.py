"""Recommended options as the user's own framework spells them. Pure.

A case covers several frameworks and spells an option as one of them does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from trainmedic.kb.fences import fence_after
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.profiles import FOREIGN, SCRIPTED, profiles, select, title
from trainmedic.kb.frameworks.settings import index, specs
from trainmedic.kb.frameworks.spelling import spelling
from trainmedic.kb.frameworks.values import Nothing, normalise
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import Unresolved
from trainmedic.service.answer.messages import messages
from trainmedic.service.ranking.fix_values import changed_by

_SPELL_ALIKE = {*SCRIPTED, *(profile.name for profile in profiles().values() if profile.options_of in SCRIPTED)}
"""Cases use the option names of these unless they name another framework."""
_NAME = r"(?P<name>[A-Za-z][A-Za-z0-9]{0,40}(?:_[A-Za-z0-9]{1,40}){1,8})"
_SPAN = regex(rf"`-{{0,2}}{_NAME}(?:(?:\s?[:=]|\s)[^`\n]{{0,80}})?`")
_LINE = regex(rf"^[+ -]\s{{0,8}}-{{0,2}}{_NAME}\s?[:=](?!=)", re.MULTILINE)
_NAMED = regex(
    "|".join(
        rf"\b{re.escape(word)}\b"
        for name in select("trainer", "library", "server")
        if name not in SCRIPTED or profiles()[name].kind == "trainer"
        for word in (title(name), *profiles()[name].aliases)
    ),
    re.IGNORECASE,
)
_ASSIGNED = regex(
    r"^(?P<head>-{0,2}\"?)(?P<name>[A-Za-z][\w.-]*)(?P<between>\"?(?:\s*[:=](?!=)\s*|\s+))"
    r"(?P<value>[^\s\"'{}\[\](),]+)(?P<tail>.*)$"
)
_TICKED = regex(r"`([^`\n]{1,120})`")
_CALL = regex(r" \s*(?:(?:\w+ = )?\w*(?:Config|Arguments)\(|\))$")
_EMPTY_DIFF = regex(r"^```diff\n(?:(?![+-]|```).*\n)*```\n?", re.MULTILINE)


class Dialect(NamedTuple):
    """The names of the options in the framework of a run, at its release and for its algorithm."""

    framework: str
    version: str
    algorithm: str | None

    def keys(self, setting: str) -> list[str]:
        """The plain spellings of a setting that the release has."""
        keys = [key for key in specs()[setting].keys(self.framework) if key.fits(self.algorithm)]
        return [key.key for key in keys if key.how == "" and self.has(key.key) is not False]

    def has(self, name: str) -> bool | None:
        return catalogue.exists(self.framework, name, self.version)


def dialect_of(case: Case, evidence: Evidence) -> Dialect | None:
    """None where a case's own words are valid: in a framework that it is about, or that spells alike."""
    run = evidence.run
    framework = run.framework.value if run.framework is not None else ""
    if framework not in select("trainer") or framework in _SPELL_ALIKE or case.frameworks == (framework,):
        return None
    fact = evidence.versions.get(framework)
    version = fact.exact if fact is not None else None
    algorithm = run.algorithm.value if run.algorithm is not None else None
    return Dialect(framework, version or catalogue.versions(framework)[-1], algorithm)


def in_dialect(text: str, case: Case, evidence: Evidence, language: str) -> str:
    """A fix with the options of the user's framework.

    What that has under another name is called so. What it would refuse is not an edit any more: it loses its line in a
    diff, and in a sentence it is named in words.
    """
    dialect = dialect_of(case, evidence)
    if dialect is None:
        return text
    renames = dict(_renamed(text, dialect))
    span_there = partial(_span_there, dialect, renames, language)
    lines: list[str] = []
    fence, edits = "", []
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        if before and fence:
            edits.append(line)
            continue
        lines += _edits_there(edits, dialect, renames)
        edits = []
        lines.append(line if before or fence or _NAMED.search(line) else _TICKED.sub(span_there, line))
    return _EMPTY_DIFF.sub("", "\n".join((*lines, *edits))).strip()


def _edits_there(block: Sequence[str], dialect: Dialect, renames: Mapping[str, str]) -> Sequence[str]:
    """The lines of a code block; those that a diff changes as the framework has them, without the call around them."""
    changes = changed_by("\n".join(block))
    removed = {before for before, after in changes.values() if after is None} - {"true", "false"}
    if not changes or any(after in removed for before, after in changes.values() if before is None):
        return block  # no diff, or one that writes the same value under another name
    if any("(" in line and not _CALL.match(line) for line in block):
        return block  # code of the user's own, not the framework's options
    lines: list[str] = []
    renamed = False
    for line in block:
        edit = line[1:].strip()
        there = _there(edit, dialect, renames) if line[:1] in ("+", "-") else edit
        renamed = renamed or there not in (edit, None)
        changed = line if there == edit else f"{line[0]}{there.rstrip(',')}" if there is not None else ""
        # Two options of a case may be one here: `torch_dtype: bfloat16` and `bf16: true` of OpenRLHF.
        if there is not None and not (changed != line and changed in lines):
            lines.append(changed)
    return [line for line in lines if not _CALL.match(line)] if renamed else lines


def _span_there(dialect: Dialect, renames: Mapping[str, str], language: str, span: re.Match[str]) -> str:
    there = _there(span[1], dialect, renames)
    if there is not None:
        return f"`{there}`"
    words = " ".join(span[1].replace(":", " ").replace("=", " ").split())
    return messages("no_option", language, words=words, framework=title(dialect.framework))


def _there(written: str, dialect: Dialect, renames: Mapping[str, str]) -> str | None:
    """An option, perhaps with a value, as the framework has it; None if the framework would refuse it."""
    bare = written.lstrip("-")
    if bare in renames:
        return renames[bare] if "." in renames[bare] else written.replace(bare, renames[bare])
    match = _ASSIGNED.match(written)
    name = match["name"] if match is not None else ""
    setting = _setting(name)
    if match is None or setting is None or any(index(column).get(name) for column in FOREIGN):
        return written
    if specs()[setting].kind == "any":
        return written
    if name not in renames and dialect.has(name) is not False:
        return written
    key, raw = _spelled_there(setting, match["value"], renames.get(name), dialect)
    if key is None:
        return None
    between = "=" if "." in key and ":" in match["between"] else match["between"]
    head = "" if "." in key else match["head"]
    return f"{head}{key}{between}{raw}{match['tail']}"


def _spelled_there(setting: str, value: str, key: str | None, dialect: Dialect) -> tuple[str | None, str]:
    """The framework's option for a value, and how it writes that; ``key`` is its name where it is known."""
    kind = specs()[setting].kind
    canonical = normalise(kind, "", value)
    if isinstance(canonical, Nothing | Unresolved) or (key and kind not in ("dtype", "attention", "flag", "enum")):
        return key, value
    spelled = spelling(dialect.framework, setting, canonical, dialect.version, algorithm=dialect.algorithm, prefer=key)
    if spelled is None or (key is not None and spelled.key != key):
        return None, ""
    return spelled.key, spelled.raw or value


def _renamed(text: str, dialect: Dialect) -> Iterator[tuple[str, str]]:
    names = (match["name"] for line in text.split("\n") if not _NAMED.search(line) for match in _found(line))
    for name in dict.fromkeys(names):
        setting = _setting(name)
        if setting is None or any(index(column).get(name) for column in FOREIGN):
            continue
        here = dialect.keys(setting)
        if not here or name in [key.key for key in specs()[setting].keys(dialect.framework)]:
            continue
        # The same word may be an option of another meaning there, so its existence alone says nothing.
        if not any(re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", text) for key in here):
            yield name, here[0]


def _found(line: str) -> list[re.Match[str]]:
    return sorted([*_SPAN.finditer(line), *_LINE.finditer(line)], key=lambda match: match.start())


def _setting(name: str) -> str | None:
    """The setting of a plainly spelled name."""
    return next((spec.name for column in SCRIPTED for spec, key in index(column).get(name, ()) if key.how == ""), None)
