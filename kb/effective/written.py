"""Settings as the user wrote them, by option: the last one counts, unless something takes it away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainmedic.kb.checks.option_offences import hint, moved
from trainmedic.kb.checks.option_readers import judged
from trainmedic.kb.checks.option_verdicts import ELSEWHERE, GONE, LATER, UNKNOWN, Reader, Verdict
from trainmedic.kb.effective.model import Loss, Lost
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.canonical import PARTS
from trainmedic.kb.frameworks.entries import is_class
from trainmedic.kb.frameworks.profiles import CALLS, profiles
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Value


@dataclass(slots=True)
class Written:
    """``options``: part and name → the option in force. ``values`` are theirs, where a ``--no_x`` switch is false."""

    options: dict[tuple[str, str], Option] = field(default_factory=dict)
    values: dict[tuple[str, str], Value] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)


def written(facts: Facts) -> Written:
    found = Written()
    refused = {id(option): lost for option, lost in _refused(facts)}
    off = tuple(_switched_off(facts))
    for option in facts.run.options:
        part, name, value = slot(option, facts)
        lost = refused.get(id(option))
        if lost is None and option.key.startswith(off) and off and not option.scope:
            lost = _lost(option, part, "unused", "another option switches this engine off")
        if lost is not None:
            found.lost.append(lost)
            continue
        before = found.options.pop((part, name), None)
        if before is not None and before.span != option.span:
            found.lost.append(
                _lost(before, part, "overridden", f"{place(option.span)} sets it to {option.raw or value}")
            )
        found.options[part, name] = option
        found.values[part, name] = value
    return found


def slot(option: Option, facts: Facts) -> tuple[str, str, Value]:
    """The part that takes an option, the full name there, and the value that it gets."""
    framework = facts.run.framework.value if facts.run.framework is not None else ""
    if option.scope in PARTS:
        return option.scope, option.key, option.value
    if option.scope in CALLS:
        return CALLS[option.scope], option.key, option.value
    if option.scope and not is_class(framework, option.scope):
        return option.scope, option.key, option.value
    head, _, rest = option.key.partition(".")
    if head in PARTS and rest:
        return head, rest, option.value
    fact = facts.evidence.versions.get(framework)
    info = catalogue.option(known_as(framework), option.key, fact.exact if fact is not None else None)
    if info is None:
        return "", option.key, option.value
    return "", info.key, False if info.negated else option.value


def known_as(framework: str) -> str:
    """The framework whose catalogue has the options of this one."""
    profile = profiles().get(framework)
    return profile.options_of or framework if profile is not None else framework


def place(span: Span) -> str:
    return f"{span.attachment or 'the question'}:{span.line}"


def _refused(facts: Facts) -> Iterator[tuple[Option, Lost]]:
    """Options that their reader does not take, by what it does with these."""
    for option, reader, verdict in judged(facts):
        if verdict.kind in (UNKNOWN, GONE, LATER, ELSEWHERE):
            yield option, _lost(option, "", "refused" if reader.strict else "dropped", _why(reader, verdict))


def _why(reader: Reader, verdict: Verdict) -> str:
    if verdict.kind == ELSEWHERE and verdict.info is not None:
        return f"only for {', '.join(verdict.info.owners[:4])}"
    return moved(reader, verdict)[0] if verdict.kind in (GONE, LATER) else hint(reader, verdict.name).en


def _switched_off(facts: Facts) -> Iterator[str]:
    """The beginnings of the options of the engine that is not used."""
    profile = profiles().get(facts.run.framework.value) if facts.run.framework is not None else None
    switches: Mapping[str, Mapping[str, Sequence[str]]] = profile.switches if profile is not None else {}
    for option in facts.run.options:
        if option.key in switches:
            yield from switches[option.key].get(str(option.value).lower(), ())


def _lost(option: Option, part: str, kind: Loss, reason: str) -> Lost:
    return Lost(name=option.key, value=option.value, kind=kind, reason=reason, span=option.span, part=part)
