"""Ray refuses to upload the working directory."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (
    ("exceeds the maximum size", re.compile(r"Package size (?:\([^)\n]{1,40}\) )?exceeds the maximum size")),
    ("HTTPRequestEntityTooLarge", None),
    ("Failed to upload package", None),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
