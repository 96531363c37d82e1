"""What a cluster says of a job: `kubectl describe` and `get`, a pod's status, tables of `sacct` and `squeue`.

It looks like YAML or a list of packages, and is neither configuration nor versions: it is read like a log.
"""

from __future__ import annotations

from collections.abc import Sequence

TABLES = ({"JobID", "State"}, {"JOBID", "ST"}, {"READY", "STATUS", "RESTARTS"})
"""Columns that are in the head of a table."""
POD_STATUS = "containerStatuses:"
NEAR = 4
"""Lines after the first in which a description says what it describes."""


def start(lines: Sequence[str], at: int, line: str) -> tuple[str, int, int] | None:
    """The stretch that begins at line ``at``: ("log", 0, line after its end), or None."""
    if not (_is_table(line) or _is_description(lines, at, line) or _is_state(lines, at, line)):
        return None
    end = at + 1
    while end < len(lines) and lines[end].strip():
        end += 1
    return "log", 0, end


def is_pod_status(text: str) -> bool:
    """Whether YAML or JSON is the state of a pod instead of a configuration."""
    return POD_STATUS.rstrip(":") in text


def _is_table(line: str) -> bool:
    return "S" in line and any(columns <= set(line.split()) for columns in TABLES)


def _is_description(lines: Sequence[str], at: int, line: str) -> bool:
    """``Name:`` with ``Namespace:`` below, or the head of a pod's status."""
    below = [other.strip() for other in lines[at + 1 : at + 1 + NEAR]]
    if line.startswith("Name:"):
        return any(other.startswith("Namespace:") for other in below)
    return line.strip() == POD_STATUS or (line.strip() == "status:" and POD_STATUS in below)


def _is_state(lines: Sequence[str], at: int, line: str) -> bool:
    """The state of a container, cut out of a description."""
    if not line.strip().startswith(("State:", "Last State:")):
        return False
    return any(other.strip().startswith(("Reason:", "Exit Code:")) for other in lines[at + 1 : at + 3])
