"""The verdict about ranks that hang (`kb.hang`), read once for each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmedic.kb.engine.values import is_number
from trainmedic.kb.hang.judge import judge, read
from trainmedic.kb.hang.model import Dumps, Verdict

if TYPE_CHECKING:
    from trainmedic.kb.engine.facts import Facts


def dumps_of(facts: Facts) -> Dumps:
    """All hang evidence of a paste."""
    return facts.once("hang.dumps", _read)


def verdict_of(facts: Facts) -> Verdict | None:
    """Who is odd and why; None where nothing shows that the ranks are held apart."""
    return facts.once("hang.verdict", lambda facts: judge(dumps_of(facts), facts.evidence.sources))


def _read(facts: Facts) -> Dumps:
    world = facts.name("world_size").value
    return read(facts.evidence.sources, int(world) if is_number(world) else None)
