"""What makes two incidents of a fleet the same one: the failure they show, without numbers, paths and names. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from trainmedic.kb.model.evidence import Evidence

LENGTH = 16
_VARIABLE = re.compile(r"0x[0-9a-f]+|(?<![a-z])\d[\d.,:e+-]*|[^\s'\"(]*/[^\s'\")]*|'[^']*'|\"[^\"]*\"")
"""Numbers, addresses, paths and what is quoted: what differs between two runs that fail alike."""


def fingerprint(evidence: Evidence, causes: Sequence[str]) -> str:
    """The failure as a short digest; empty if neither an exception nor a known cause identifies it.

    ``causes`` are those of an answer that commits to its first one, else nothing.
    """
    root = next((trace for trace in evidence.tracebacks if trace.root), None)
    symptoms = sorted({signal.kind for signal in evidence.signals if not signal.stated})
    if root is not None and root.exception:
        parts = ["exception", root.exception.rpartition(".")[2], template(root.message)]
    elif causes:
        parts = ["cause", causes[0], *symptoms]
    else:
        return ""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def template(message: str) -> str:
    """The first line of a message without what differs between runs."""
    line = next(iter(message.strip().splitlines()), "")
    return " ".join(_VARIABLE.sub("*", line.lower()).split())[:200]
