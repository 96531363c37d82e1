"""Ray refuses to upload the working directory."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

_TEXTS = (
    ("exceeds the maximum size", re.compile(r"Package size (?:\([^)\n]{1,40}\) )?exceeds the maximum size")),
    ("HTTPRequestEntityTooLarge", None),
    ("Failed to upload package", None),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
