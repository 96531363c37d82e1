"""What makes two incidents of a fleet the same one: the failure they show, without numbers, paths and names. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.logs.error_lines import template

LENGTH = 16


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
