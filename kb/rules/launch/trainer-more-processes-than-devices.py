"""Processes started on one machine against the GPUs that CUDA_VISIBLE_DEVICES lists.

A module because the list has to be counted: ids are separated by commas, blanks do not matter, one id may be a UUID.
"""

from __future__ import annotations

from kb.model.report import Term
from kb.rules.facts import Facts
from kb.rules.outcome import Outcome
from kb.rules.values import UNKNOWN, Fact

_LAUNCHERS = ("torchrun", "accelerate")


def check(facts: Facts) -> Outcome:
    """Fires where a launcher starts more processes on a machine than CUDA_VISIBLE_DEVICES has entries."""
    visible = facts.name("visible_devices")
    processes = _processes(facts)
    if processes is None or not facts.written("visible_devices").value:
        return Outcome(value=False)
    if UNKNOWN in (visible.value, processes.value):
        missing = (*visible.missing, *processes.missing)
        return Outcome(value=None, missing=missing, brought=visible.brought or processes.brought)
    devices = _devices(visible)
    started = processes.value
    if devices is None or not isinstance(started, int) or isinstance(started, bool):
        return Outcome(value=False)
    terms = (
        Term(text="processes on this machine", value=True, evidence=processes.spans, seen=processes.seen),
        Term(text="visible GPUs", value=started > devices, evidence=visible.spans, seen=visible.seen),
    )
    return Outcome(
        value=started > devices,
        evidence=(*processes.spans, *visible.spans) if started > devices else (),
        brought=True,
        terms=terms,
        values={"processes": str(started), "devices": str(devices), "visible": str(visible.value)},
    )


def _processes(facts: Facts) -> Fact | None:
    """How many processes this machine starts; None where no launcher says so, or the count is over machines."""
    for name in ("num_gpus", "num_processes"):
        setting = facts.run.settings.get(name)
        if setting is None or setting.option is None or (name == "num_gpus" and not _per_node(facts)):
            continue
        machines = facts.run.settings.get("num_nodes")
        if name == "num_processes" and (not _launched(facts) or (machines is not None and machines.value != 1)):
            continue
        return facts.name(name)
    return None


def _per_node(facts: Facts) -> bool:
    """Whether the number of GPUs is a number of processes: torchrun's, or NPROC_PER_NODE of the environment."""
    setting = facts.run.settings["num_gpus"]
    if setting.option is not None and setting.option.scope == "env":
        return facts.run.framework is not None and facts.run.framework.value == "ms-swift"
    return _launched(facts)


def _launched(facts: Facts) -> bool:
    return any(region.kind == "command" and region.launcher in _LAUNCHERS for region in facts.run.regions)


def _devices(visible: Fact) -> int | None:
    """How many GPUs the list has; None where it is empty or no list."""
    value = visible.value
    if isinstance(value, int) and not isinstance(value, bool):
        return 1 if value >= 0 else None
    if not isinstance(value, str):
        return None
    return len([entry for entry in value.split(",") if entry.strip()]) or None
