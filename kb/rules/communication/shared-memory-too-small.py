"""Messages of NCCL and of torch's data loader when /dev/shm is full."""

from __future__ import annotations

import re

from kb.rules.facts import Facts
from kb.rules.logic.log_text import any_of
from kb.rules.outcome import Outcome

_TEXTS = (
    ("creating shared memory segment", re.compile(r"Error while creating shared memory segment[^\n]{0,120}")),
    ("posix_fallocate failed", re.compile(r"Call to posix_fallocate failed : No space left on device")),
    ("insufficient shared memory", re.compile(r"Unexpected bus error encountered in worker")),
    ("unable to write to file </torch_", re.compile(r"unable to write to file </torch_\S+: No space left")),
    ("killed by signal: Bus error", re.compile(r"worker \(pid(?:\(s\))? [\d, ]+\) is killed by signal: Bus error")),
)


def check(facts: Facts) -> Outcome:
    """Fires on the first of these texts that a log holds."""
    return any_of(facts, _TEXTS)
