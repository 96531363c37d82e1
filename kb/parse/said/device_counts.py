"""Which devices and how many a run uses, as users say it ("8xA100", "2 nodes x 8", "单机八卡") and logs print it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.profiles import LAUNCHERS
from trainmedic.kb.language import lowered
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import RunConfig, Setting, VersionFact
from trainmedic.kb.parse.said.clauses import located
from trainmedic.kb.parse.said.settings import as_setting
from trainmedic.kb.parse.source import Piece

_NAME = (
    r"(?:l40s|a10g|[abhlv]\d{2,3}|g[bh][123]00|[345]0[5-9]0(?: ?(?:ti|d))?|20[678]0(?: ?ti)?|a[2456]000"
    r"|910[bc]\d?|mi\d{3}x?|t4|p100|titan rtx)"
)
_CARD = rf"(?:(?:nvidia |tesla |rtx ?|ascend ?|geforce ){{0,2}}{_NAME}|npus?|gpus?|卡)"
_MEMORY = r"(?:[ -]?(?:sxm|pcie|nvl)?[ -]?\d{2,3} ?gi?b?)?"
_NUMBERS = {"一": 1, "单": 1, "两": 2, "双": 2, "二": 2, "三": 3, "四": 4, "八": 8}
_NUMBERS |= {"one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "eight": 8}
_DIGITS = r"[0-9]{1,4}"
_COUNT = rf"(?:{_DIGITS}|(?:two|three|four|eight)(?![a-z])|[单双一两二三四八])"
_TIMES = r"(?:[x×*]|张|块|个|卡)"
_NODES = r"(?:nodes?|machines?|台机器|台服务器|个?节点|机(?![器械会制]))"
_EACH = r"(?:x|×|\*|with|of|,|，|每(?:机|台机器|台|节点))"
_SAID = regex(
    rf"(?<![a-z0-9_.*-])(?P<nodes>{_COUNT}|one|single)[ -]?{_NODES}[ ,，]{{0,2}}{_EACH}? ?(?P<per>{_COUNT})"
    rf"(?: ?{_TIMES})? ?(?:{_CARD}s?|张|块)?(?![\w.]*\d)"
    rf"|(?<![a-z0-9_.*-])(?P<by>{_DIGITS}) ?[x×*] ?(?P<each>{_DIGITS}) ?(?:[x×*] ?)?{_NAME}s?(?![a-z0-9_])"
    rf"|(?<![a-z0-9_.*-])(?P<gpus>{_COUNT}) ?(?:{_TIMES} ?)?(?:\d{{2,3}} ?gb? )?"
    rf"(?:{_CARD}s?(?![a-z0-9_])|cards?(?![a-z]))"
    rf"|(?<![a-z0-9_.-]){_NAME}{_MEMORY} ?[x×*] ?(?P<behind>{_DIGITS})(?![\w.]*\d)"
    rf"|(?<![a-z])(?:single|one)[ -](?:\d{{2,3}} ?gb )?(?P<single>gpu|card|(?:rtx )?{_NAME})(?![a-z0-9_])"
    rf"|(?<![a-z0-9_.*-])(?P<only>{_COUNT}|one|single)[ -]?{_NODES}"
    rf"|(?<![a-z])world[_ ]size['\"]? ?[:=]? ?(?P<world>{_DIGITS})(?![\w.])"
)
"""For text in lower case: ignoring the case takes twice as long."""
_MODEL = regex(rf"(?<![a-z0-9_.-])(?:\d{{1,2}}[x×*])?(?P<name>{_NAME})s?(?![a-z0-9_])")
_COMMANDED = ("num_gpus", "num_processes", "num_nodes", "visible_devices")
_WORDS = load_table("parse/data/words.toml")["devices"]
_SHARING = frozenset(_WORDS["shared_out"])
_COMPARED = tuple(_WORDS["compared"])
_LAUNCHERS = (None, "torchrun", "srun", *LAUNCHERS)
_LONGEST = 200_000
_MOST_PER_NODE = 8
_MOST = 500


@dataclass(frozen=True, slots=True)
class DeviceCount:
    """``processes`` or ``nodes`` is None where it is not known."""

    processes: int | None
    nodes: int | None
    span: Span


def read(piece: Piece, *, logged: bool = False) -> tuple[DeviceCount, ...]:
    """Every number of devices that is said; of a log (``logged``) only the world size it prints.

    "A single GPU works, several hang" compares: the single device is not this run's.
    """
    text = lowered(piece.text[:_LONGEST])
    compares = any(word in text for word in _COMPARED)
    counts = []
    for match in _SAID.finditer(text) if logged else _in_effect(text, _SAID):
        if logged and not match["world"]:
            continue
        nodes = _number(match["nodes"] or match["by"] or match["only"])
        said = match["per"] or match["each"] or match["gpus"] or match["behind"] or match["world"]
        each = _number(said) if said else 1 if match["single"] else None
        if each == 0 or nodes == 0 or (each == 1 and compares and not match["world"]):
            continue
        # "双机16卡": of both nodes together
        total = each * (nodes or 1) if each is not None and each <= _MOST_PER_NODE else each
        counts.append(DeviceCount(total, nodes, piece.span(match.start(), match.end())))
    return tuple(counts)


def card(piece: Piece) -> VersionFact | None:
    """The model of the cards, where one is named: of several, the one with which the run fails."""
    text = lowered(piece.text[:_LONGEST])
    named = {match["name"].replace(" ", ""): match for match in _in_effect(text, _MODEL)}
    if len(named) != 1:
        return None
    name, match = next(iter(named.items()))
    span = piece.span(*match.span("name"))
    return VersionFact(package="gpu", exact=name.upper(), reason=f"the user says: {span.text}", span=span)


def _in_effect(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The matches that are not only supposed or past; those of a run that works only if there is no other."""
    found = islice(located(text, pattern.finditer(text)), _MOST)
    matches = [(match, clause.works) for match, clause in found if not clause.is_hedged(text, match.start())]
    failing = [match for match, works in matches if not works]
    yield from failing or [match for match, _ in matches]


def settings(counts: Sequence[DeviceCount], run: RunConfig) -> Mapping[str, Setting]:
    """The run's settings with the number of processes and of nodes, where all that is said agrees and no command gives
    another."""
    framework = run.framework.value if run.framework is not None else None
    launchers = {region.launcher for region in run.regions if region.kind == "command"}
    if any(name in run.settings for name in _COMMANDED) or not launchers <= set(_LAUNCHERS):
        return run.settings
    said = {"num_nodes": [count for count in counts if count.nodes]}
    if framework not in _SHARING and (run.stage is None or run.stage.value != "rl"):
        said["num_processes"] = [count for count in counts if count.processes]
    agreed = {
        name: as_setting(name, _value(name, found[0]), found[0].span)
        for name, found in said.items()
        if len({_value(name, count) for count in found}) == 1
    }
    return {**run.settings, **agreed}


def _value(name: str, count: DeviceCount) -> int | None:
    return count.nodes if name == "num_nodes" else count.processes


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if text.isdigit() and text.isascii() else _NUMBERS.get(text, 0)
