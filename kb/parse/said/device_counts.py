"""How many devices and nodes a run uses, as users say it ("8xA100", "2 nodes x 8", "单机八卡") and logs print it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.data_files import load_table
from trainmedic.kb.language import lowered
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import RunConfig, Setting
from trainmedic.kb.parse.source import Piece

_CARD = (
    r"(?:nvidia |tesla |rtx ?|ascend ?|geforce )?"
    r"(?:[abhlv]\d{2,3}s?|gh200|[345]0[5-9]0(?: ?ti)?|910[bc]\d?|mi\d{3}x?|t4|npus?|gpus?)"
)
_ZH = {"一": 1, "单": 1, "两": 2, "双": 2, "二": 2, "四": 4, "八": 8}
_DIGITS = r"[0-9]{1,4}"
_SAID = regex(
    rf"(?<![A-Za-z0-9_.*-])(?P<nodes>{_DIGITS}|two|[单双两四八]) ?(?:nodes?|machines?|台机器|机|节点)[ ,]{{0,2}}"
    rf"(?:x|×|\*|with|of|,|，|每(?:机|台|节点))? ?(?P<per>{_DIGITS}|[一两四八])(?: ?[x×*])? ?"
    rf"(?:{_CARD}|卡|张|块)?(?![\w.]*\d)"
    rf"|(?<![A-Za-z0-9_.*-])(?P<gpus>{_DIGITS}|[单双两四八]) ?(?:[x×*]|张|块|个)? ?(?:(?:{_CARD})s?(?![a-z0-9_])|卡)"
    rf"|(?<![a-z])(?:single|one)[ -](?P<single>gpu|card)(?![a-z])"
    rf"|(?<![a-z])world[_ ]size['\"]? ?[:=]? ?(?P<world>{_DIGITS})(?![\w.])"
)
"""For text in lower case: ignoring the case takes twice as long."""
_COMMANDED = ("num_gpus", "num_processes", "num_nodes", "visible_devices")
_WORDS = load_table("parse/data/words.toml")["devices"]
_SHARING = frozenset(_WORDS["shared_out"])
_COMPARED = tuple(_WORDS["compared"])
_LAUNCHERS = (None, "torchrun", "accelerate", "deepspeed", "srun")
_LONGEST = 200_000
_MOST_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class DeviceCount:
    """``nodes`` is None where only the number of all processes is known."""

    processes: int
    nodes: int | None
    span: Span


def read(piece: Piece, *, logged: bool = False) -> tuple[DeviceCount, ...]:
    """Every number of devices that is said; of a log (``logged``) only the world size it prints.

    "A single GPU works, several hang" compares: the single device is not this run's.
    """
    text = lowered(piece.text[:_LONGEST])
    compares = any(word in text for word in _COMPARED)
    counts = []
    for match in _SAID.finditer(text):
        if logged and not match["world"]:
            continue
        nodes = _number(match["nodes"]) if match["nodes"] else None
        each = _number(match["per"] or match["gpus"] or match["world"] or "1")
        if each and nodes != 0 and not (each == 1 and compares and not match["world"]):
            span = piece.span(match.start(), match.end())
            total = each if each > _MOST_PER_NODE else each * (nodes or 1)  # "双机16卡": of both nodes together
            counts.append(DeviceCount(total, nodes, span))
    return tuple(counts)


def settings(counts: Sequence[DeviceCount], run: RunConfig) -> Mapping[str, Setting]:
    """The run's settings with the number of processes, where all that is said agrees and no command gives another."""
    framework = run.framework.value if run.framework is not None else None
    stage = run.stage.value if run.stage is not None else None
    launchers = {region.launcher for region in run.regions if region.kind == "command"}
    if (
        len({count.processes for count in counts}) != 1
        or any(name in run.settings for name in _COMMANDED)
        or framework in _SHARING
        or stage == "rl"
        or not launchers <= set(_LAUNCHERS)
    ):
        return run.settings
    said = counts[0]
    setting = Setting(
        name="num_processes",
        value=said.processes,
        option=None,
        source=f"said: {' '.join(said.span.text.split())}",
        key="num_processes",
        span=said.span,
    )
    return {**run.settings, "num_processes": setting}


def _number(text: str) -> int:
    return int(text) if text.isdigit() and text.isascii() else 2 if text.lower() == "two" else _ZH.get(text, 0)
