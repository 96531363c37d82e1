"""Which framework a traceback or a log comes from: the outermost whose own files are among the frames, or whose
metrics are logged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.model.evidence import Row, Traceback
from trainmedic.kb.model.run import Recognised

_PACKAGES = {module: profile.name for profile in profiles().values() for module in profile.modules}
LIBRARIES = tuple(
    profile.name for profile in sorted(profiles().values(), key=lambda profile: profile.library) if profile.library
)
"""Libraries that the others call, the most telling first: they are meant only if no framework above them is."""
_FRAME = re.compile(r"(?:site-packages|dist-packages|src)[/\\](\w+)[/\\]|^(\w+)[/\\](?:\w+[/\\])*\w+\.py:")


@cache
def _checkout() -> re.Pattern[str]:
    """Folders that a framework's package has, for a package that runs from a checkout."""
    return re.compile(
        "|".join(
            rf"[/\\](?P<{profile.modules[0]}>{profile.modules[0]})[/\\](?:{'|'.join(profile.folders)})(?=[/\\.])"
            for profile in profiles().values()
            if profile.folders
        )
    )


def framework_of(tracebacks: Sequence[Traceback]) -> Recognised | None:
    """The framework that the first traceback with one of its frames names, or None."""
    for trace in tracebacks:
        names: list[str] = []
        for frame in trace.frames:
            match = _FRAME.search(frame)
            package = (match[1] or match[2]) if match else None
            if package not in _PACKAGES and (checkout := _checkout().search(frame)) is not None:
                package = checkout.lastgroup
            if package in _PACKAGES and _PACKAGES[package] not in names:
                names.append(_PACKAGES[package])
        # trl imports itself by its launcher, so its own frames come first; of mere libraries the most telling one.
        above = [name for name in names if name not in LIBRARIES]
        chosen = above[0] if above else next((name for name in LIBRARIES if name in names), None)
        if chosen is not None:
            return Recognised(value=chosen, reason=f"the traceback runs through {chosen}", span=trace.span)
    return None


_VERL_LOGS = ("actor/", "critic/", "timing_s/", "response_length/", "global_seqlen/")


def framework_of_log(rows: Sequence[Row]) -> Recognised | None:
    """verl, if the rows are written as only verl writes them (``step:3 - actor/pg_loss:0.1 - …``); or None."""
    for row in rows:
        if row.style == "verl" and any(name.startswith(_VERL_LOGS) for name in row.metrics):
            return Recognised(value="verl", reason="the log's metrics are verl's", span=row.span)
    return None
