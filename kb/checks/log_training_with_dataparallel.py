"""The Trainer says that it wraps the model in torch's DataParallel."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import first, lines
from trainmedic.kb.engine.outcome import CLEAR, NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span

TEXT = "Training with DataParallel so batch size has been adjusted to"
_ADJUSTED = regex(TEXT + r": (?P<size>[0-9,]{1,12})")
_DEVICE = regex(r"Instantaneous batch size per device = (?P<size>[0-9,]{1,12})")
_RESUMED = regex(r"per_device_train_batch_size: [0-9]{1,9} \(from args\) != [0-9]{1,9} \(from trainer_state")


def check(facts: Facts) -> Outcome:
    """Fires on the Trainer's line, unless the command shows it too: that is another rule's.

    The Trainer prints the line wherever the two batch sizes differ. `auto_find_batch_size` and a checkpoint with
    another batch make them differ on one GPU as well, so then the line proves nothing.
    """
    if facts.written("visible_devices").value is True:
        return CLEAR
    searched = facts.has_option("auto_find_batch_size").value is True and (
        facts.option("auto_find_batch_size").value is not False
    )
    if searched or first(facts.evidence, "(from args) != ", _RESUMED) is not None:
        return NOT_SHOWN
    span = first(facts.evidence, TEXT)
    return fires(span) if span is not None and _is_multiple(facts, span) else NOT_SHOWN


def _is_multiple(facts: Facts, line: Span) -> bool:
    """Whether the adjusted batch is a whole multiple of the batch per device; true where a number is missing."""
    adjusted = next((size for size, at in _sizes(facts, TEXT, _ADJUSTED, line) if at == line.line), 0)
    device = [
        size for size, at in _sizes(facts, "Instantaneous batch size per device", _DEVICE, line) if at < line.line
    ]
    if not adjusted or not device or not device[-1]:
        return True
    return adjusted > device[-1] and adjusted % device[-1] == 0


def _sizes(facts: Facts, literal: str, pattern: re.Pattern[str], near: Span) -> list[tuple[int, int]]:
    spans = (span for span in lines(facts.evidence, literal, pattern) if span.attachment == near.attachment)
    return [(int("0" + "".join(c for c in span.text if c in "0123456789")), span.line) for span in spans]
