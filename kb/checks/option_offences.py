"""Suggestions for an option that a reader does not accept, in words; and findings on several options as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trainmedic.kb.checks.option_verdicts import LATER, Reader, Verdict
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.frameworks.canonical import keys_of, name_of
from trainmedic.kb.frameworks.catalogue import exists, frameworks, keys, renamed, versions
from trainmedic.kb.frameworks.profiles import BASE, INHERITS, profiles, title
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.frameworks.tables import Table, of_tables, table
from trainmedic.kb.model.run import Option, Origin
from trainmedic.kb.suggest import closest, is_slip

_SHOWN = 8
_USUAL = {
    "lr": "learning_rate", "max_seq_len": "max_length", "max_seq_length": "max_length", "max_len": "max_length",
    "rank": "lora_rank", "dropout": "lora_dropout", "epochs": "epochs", "lora_target": "lora_targets",
    "grad_accum": "gradient_accumulation", "grad_accumulation_steps": "gradient_accumulation",
}  # fmt: skip
"""Names that no framework has but many people write, and the setting they mean."""
_PLAIN = ("", "not", "llamafactory_attention", "flash_switch", "bf16_switch")
_OTHERS = tuple(dict.fromkeys((BASE, *frameworks())))


@dataclass(frozen=True, slots=True)
class Offence:
    """One option that something is wrong with, and what, in both languages."""

    option: Option
    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class Hint:
    """``why``: foreign (another framework's name), spelling, place (the same name elsewhere in the tree), none."""

    why: str
    name: str = ""
    framework: str = ""

    @property
    def en(self) -> str:
        if self.why == "foreign":
            return f"that is its name in {self.framework}; here it is called {self.name}"
        return f"did you mean {self.name}?" if self.name else "no release of it has this name"

    @property
    def zh(self) -> str:
        if self.why == "foreign":
            return f"这是 {self.framework} 的叫法，这里叫 {self.name}"
        return f"是不是想写 {self.name}？" if self.name else "它的任何版本都没有这个名字"


def written(option: Option) -> str:
    """An option's name as it stands in the paste."""
    return f"--{option.key}" if option.origin is Origin.FLAG else option.key


def moved(reader: Reader, verdict: Verdict) -> tuple[str, str]:
    """A clause on where a name went that the release does not have, or not yet, in both languages."""
    whose = title(verdict.info.framework if verdict.info is not None else reader.catalogue)
    now = successor(reader, verdict.name)
    if verdict.kind == LATER:
        en, zh = f"only from {whose} {verdict.first} on", f"{whose} 从 {verdict.first} 才有"
    else:
        en, zh = f"{whose} had it up to {verdict.last}", f"{whose} 到 {verdict.last} 为止才有"
    if now is not None:
        return f"now {now} ({en})" if verdict.kind != LATER else f"here still {now} ({en})", f"应写 {now}（{zh}）"
    return en, zh


def report(offences: Sequence[Offence], facts: Facts, packages: Iterable[str] = ()) -> Outcome:
    """One finding for all offences; the versions that decided are evidence too."""
    if not offences:
        return CLEAR
    spans = list(dict.fromkeys(offence.option.span for offence in offences))
    for package in dict.fromkeys(packages):
        fact = facts.evidence.versions.get(package)
        if fact is not None and fact.span is not None:
            spans.append(fact.span)
    distinct = {(written(o.option), o.en): o for o in offences}
    listed = list(distinct.values())[:_SHOWN]
    more = len(distinct) - len(listed)
    en = "; ".join(f"{written(o.option)}: {o.en}" if o.en else written(o.option) for o in listed)
    zh = "；".join(f"{written(o.option)}（{o.zh}）" if o.zh else written(o.option) for o in listed)
    return fires(
        *spans,
        offences_en=en + (f"; and {more} more" if more else ""),
        offences_zh=zh + (f"；另有 {more} 处" if more else ""),
    )


def successor(reader: Reader, name: str) -> str | None:
    """The name that replaced ``name`` at the release in use; None where there is none that the release has."""
    release = reader.exact or (versions(reader.catalogue) or (None,))[-1]
    later = profiles()[reader.catalogue].renamed if reader.catalogue in profiles() else {}
    waiting, tried = [name], {name}
    while waiting:
        current = waiting.pop(0)
        for names in (*_steps(reader, current), *([(later[current],)] if current in later else [])):
            if tried.isdisjoint(names) and all(_here(reader, name, release) for name in names):
                return " + ".join(names)
            waiting += [name for name in names if name not in tried]
            tried.update(names)
    return None


def _steps(reader: Reader, name: str) -> Iterator[tuple[str, ...]]:
    """The other names of each rename that touches ``name``, newest first; one option may have become several."""
    for step in reversed(renamed(reader.catalogue, name)):
        if _for(reader, step.command):
            other: object = step.new if step.old == name else step.old
            yield tuple(other) if isinstance(other, list) else (str(other),)


def _for(reader: Reader, command: str) -> bool:
    return command == "*" or not reader.owners or command in reader.owners


def _here(reader: Reader, name: str, release: str | None) -> bool:
    known = table(reader.catalogue)
    if known is None or release is None:
        return False
    info = known.info(name, known.nearest(release)) if known.alive(name, release) else None
    if info is not None:
        return not reader.owners or bool(set(reader.owners) & set(known.owner_sets[info["in"]]))
    return reader.catalogue in INHERITS and exists(BASE, name, reader.inherits) is not False


@of_tables
@lru_cache(maxsize=4096)
def hint(reader: Reader, name: str) -> Hint:
    usual = _USUAL.get(name)
    here = _spelled(reader, usual) if usual is not None else None
    if here is not None:
        return Hint("spelling", here)
    near = _nearest(reader, name)
    if near is not None and _letters(near) == _letters(name):
        return Hint("spelling", near)
    for other in _OTHERS:
        known = table(other)
        if other == reader.catalogue or known is None or name not in known.names:
            continue
        if other == BASE and reader.catalogue in INHERITS:
            continue
        setting = name_of(other, name)
        here = _spelled(reader, setting) if setting is not None else None
        if here is not None and here != name:
            return Hint("foreign", here, title(other))
    return Hint("spelling", near) if near is not None else Hint("none")


def _letters(name: str) -> str:
    return name.rpartition(".")[2].replace("_", "").replace("-", "")


def _spelled(reader: Reader, setting: str) -> str | None:
    """How the reader's framework spells a setting, for the command or class in use."""
    known, spec = table(reader.catalogue), specs().get(setting)
    if known is None or spec is None:
        return None
    release = reader.exact or known.versions[-1]
    plain = {key.key for key in spec.keys(reader.catalogue) if key.how in _PLAIN}
    for key in keys_of(reader.catalogue, setting, release):
        entry = known.closest(key, known.nearest(release)) if key in plain else None
        if key in plain and (entry is None or not reader.owners or _owned(reader, known, entry[1])):
            return key
    return None


def _owned(reader: Reader, known: Table, info: Mapping[str, Any]) -> bool:
    return bool(set(reader.owners) & set(known.owner_sets[info["in"]]))


def _nearest(reader: Reader, name: str) -> str | None:
    """The nearest name of the reader; in a tree, the nearest one beside it."""
    names: Iterable[str] = _names(reader.catalogue, reader.exact, reader.owners)
    profile = profiles()[reader.catalogue]
    if profile.tree or (reader.how == "json" and profile.nested):
        branch, _, leaf = name.rpartition(".")
        beside = [candidate.rpartition(".")[2] for candidate in names if candidate.rpartition(".")[0] == branch]
        beside += [candidate.partition(".")[0] for candidate in names] if not branch else []
        nearest = closest(leaf, beside)
        if nearest is not None:
            return f"{branch}.{nearest}" if branch else nearest
        tails = [candidate for candidate in names if candidate.rpartition(".")[2] == leaf]
        return tails[0] if len(tails) == 1 else None
    plain = name.replace("-", "_")
    written_as = {candidate.replace("-", "_"): candidate for candidate in names}
    nearest = plain if plain in written_as else closest(plain, written_as)
    return written_as[nearest] if nearest is not None and (nearest == plain or is_slip(plain, nearest)) else None


@of_tables
@lru_cache(maxsize=64)
def _names(catalogue: str, version: str | None, owners: tuple[str, ...]) -> tuple[str, ...]:
    """The names that a reader has at a release; all it ever had where none is known."""
    known = table(catalogue)
    if known is None:
        return ()
    release = known.nearest(version or known.versions[-1])
    own_names = [
        name
        for name in known.names
        if (info := known.info(name, release) if version else (known.closest(name, release) or ("", None))[1])
        is not None
        and (not owners or set(owners) & set(known.owner_sets[info["in"]]))
    ]
    return (*own_names, *keys(BASE, "4.57.1" if version else None)) if catalogue in INHERITS else tuple(own_names)
