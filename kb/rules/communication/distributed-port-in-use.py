"""The rendezvous port is taken: messages of torch and accelerate."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (
    (
        "server socket has failed to bind",
        re.compile(r"server socket has failed to bind to \S+ \(errno: 98[^)\n]{0,40}\)"),
    ),
    ("EADDRINUSE", re.compile(r"EADDRINUSE[^\n]{0,60}")),
    (
        "Tried to launch distributed communication on port",
        re.compile(r"Tried to launch distributed communication on port `?\d+"),
    ),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
