"""Roles of a model: to diagnose, to weigh the program's causes, or nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Literal

from trainmedic.kb.lazy import regex
from trainmedic.service.diagnosis.confidence import Calibration, Role, calibration_of
from trainmedic.service.llm.abilities import Abilities
from trainmedic.service.llm.chat import ChatModel, ModelError

Wanted = Literal["auto", "decides", "elects"]
SMALL = 4.5
"""Billions of parameters up to which a model that was never measured only elects."""
_SIZE = regex(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)\s?([bm])(?![a-z0-9])", re.IGNORECASE)


def role_of(name: str, able: Abilities | None, measured: Role | None = None, wanted: Wanted = "auto") -> Role:
    """The role that is ``wanted``, else the one ``measured`` of this model, else the one for its size; always one that
    it is able to play (None: that is not known yet)."""
    size = billions(name)
    role: Role = "elects" if size is not None and size <= SMALL else "decides"
    role = wanted if wanted != "auto" else measured or role
    if able is None or (role == "decides" and able.structured):
        return role
    return "elects" if able.ways else "unused"


def billions(name: str) -> float | None:
    """The size that a model's name tells, the whole one of a mixture of experts; None if it tells none."""
    sizes = [float(number) / (1000 if unit in "mM" else 1) for number, unit in _SIZE.findall(name.rpartition("/")[2])]
    return max(sizes, default=None)


async def part_of(model: ChatModel, calibrations: Path | None, wanted: Wanted) -> tuple[Calibration, Role]:
    """Measurements of the model, read off the event loop, and its role. Raises `ModelError`."""
    calibration = await asyncio.to_thread(calibration_of, await model.name(), calibrations)
    return calibration, role_of(calibration.model, model.abilities, calibration.role, wanted)


async def standing(model: ChatModel, calibrations: Path | None, wanted: Wanted) -> str:
    """The model's role and what it can do, in words. Never raises."""
    try:
        calibration, role = await part_of(model, calibrations, wanted)
    except ModelError as failure:
        return f"not asked ({failure.kind})"
    able = model.abilities.in_words if model.abilities is not None else "what it can do is not known yet"
    known = "measured" if calibration.measured else "never measured"
    if role == "elects" and not calibration.ways:
        role, known = "unused", "a small model counts once `trainmedic eval --outside FILE --model URL` measured it"
    return f"{calibration.model}: {role} ({known}); {able}"
