"""Messages of NCCL and of torch's data loader when /dev/shm is full."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.log_text import any_of

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
