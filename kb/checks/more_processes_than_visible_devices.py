"""More processes on one machine than CUDA_VISIBLE_DEVICES lists: the last ones have no device."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, NOT_SHOWN, Outcome, fires
from trainmedic.kb.frameworks.profiles import LAUNCHERS
from trainmedic.kb.model.run import Option, Unresolved

_CHOOSING = ("ray", "srun", *(name for name, launcher in LAUNCHERS.items() if launcher.sets_devices))
_NO_GPU = ("cpu", "use_cpu")
_MACHINES = ("num_machines", "nnodes", "NNODES")
_PROCESSES = ("num_processes", "nproc_per_node", "nproc-per-node", "NPROC_PER_NODE")


def check(facts: Facts) -> Outcome:
    """Fires for accelerate and torchrun. DeepSpeed's launcher sets the variable itself, so it is not judged.

    A number of machines that is not resolved leaves the processes of one machine open.
    """
    visible = _visible(facts)
    machines = facts.name("num_nodes")
    if visible is None or any(region.launcher in _CHOOSING for region in facts.run.regions):
        return CLEAR
    if (isinstance(machines.value, int) and machines.value > 1) or facts.options("gpu_ids"):
        return CLEAR
    if any(option.value is True for key in _NO_GPU for option in facts.options(key)):
        return CLEAR
    if any(isinstance(o.value, Unresolved) for key in _MACHINES for o in facts.options(key)):
        return NOT_SHOWN
    option, count = visible
    for key in _PROCESSES:
        for asked in facts.options(key)[-1:]:
            if isinstance(asked.value, int) and not isinstance(asked.value, bool) and asked.value > count:
                shown = {"asked": str(asked.value), "visible": str(count)}
                return fires(asked.span, option.span, **shown)
    return CLEAR


def _visible(facts: Facts) -> tuple[Option, int] | None:
    options = facts.options("CUDA_VISIBLE_DEVICES", "env")
    if not options:
        return None
    value = options[-1].value
    if isinstance(value, int) and not isinstance(value, bool):
        return options[-1], 1
    parts = value.split(",") if isinstance(value, str) else []
    whole = [part.strip() for part in parts]
    return (options[-1], len(whole)) if whole and all(part.isdigit() for part in whole) else None
