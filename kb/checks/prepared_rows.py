"""The rows that an axolotl run trains on, by its number of steps, against the rows of the file that it should read."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import first, lines
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.engine.values import is_number
from trainmedic.kb.lazy import regex

_STEPS = regex(r"\btotal_num_steps: +\d{1,12}")
_RANK = regex(r"\[RANK:(\d{1,5})\]")
_TOLERATED = 0.05
_MOST_RANK_LINES = 2_000


def differ(facts: Facts) -> Outcome:
    """Fires where the log loads prepared rows and their number is not that which ``wc -l`` prints for the file."""
    loaded = first(facts.evidence, "Loading prepared dataset from disk")
    steps = first(facts.evidence, "total_num_steps", _STEPS)
    path = facts.option("datasets.0.path").value
    if loaded is None or steps is None or not isinstance(path, str) or facts.name("packing").value is not False:
        return NOT_SHOWN
    if any(facts.option(key).value for key in ("datasets.1.path", "datasets.0.shards", "val_set_size")):
        return NOT_SHOWN
    name = path.rpartition("/")[2]
    counted = first(facts.evidence, name, re.compile(rf"(?m)^ *\d{{1,12}} +\S*{re.escape(name)}$"))
    given = [facts.name(each).value for each in ("micro_batch", "accumulation", "epochs")]
    if counted is None or not all(is_number(each) and each > 0 for each in given):
        return NOT_SHOWN
    micro, accumulation, epochs = (float(each) for each in given if is_number(each))
    rows = int(counted.text.split()[0])
    trained = int(steps.text.split()[-1]) * micro * accumulation * _ranks(facts) / epochs
    if rows == 0 or abs(trained - rows) <= _TOLERATED * rows:
        return NOT_SHOWN
    return fires(loaded, steps, counted, trained=f"{trained:,.0f}", rows=f"{rows:,}", path=path)


def _ranks(facts: Facts) -> int:
    world = facts.name("world_size").value
    if is_number(world):
        return int(world)
    printed = lines(facts.evidence, "[RANK:", _RANK, _MOST_RANK_LINES)
    return 1 + max((int(span.text.strip("[]").partition(":")[2]) for span in printed), default=0)
