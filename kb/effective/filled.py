"""How the trainer merges a library's config file with its options: it fills ``auto`` and refuses what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trainmedic.kb.effective.model import Kind, Lost, Row
from trainmedic.kb.frameworks.batch import Known
from trainmedic.kb.frameworks.profiles import BESIDE
from trainmedic.kb.model.run import RunConfig, Value
from trainmedic.kb.versions import version_key

Rows = Mapping[tuple[str, str], Row]
_MOST_HIDDEN = 10**9
_BUCKETS = {"squared": (1.0, 2), "0.9 squared": (0.9, 2), "10": (10.0, 1)}


def filled(
    rows: Rows, run: RunConfig, global_batch: Known | None, transformers: str | None
) -> Iterator[tuple[Row, Lost | None]]:
    """The rows of such files whose value the trainer decides, in this release of it."""
    hidden = next((option.value for region in run.regions for option in region.options if _is_hidden(option.key)), None)
    for part, key, how in ((name, key, how) for name, file in BESIDE.items() for key, how in file.fill.items()):
        row = rows.get((part, key))
        if row is None or row.span is None:
            continue
        value, origin = _value(how, rows, global_batch, hidden)
        if isinstance(value, float) and "hidden" in how and _is_rounded(how, transformers):
            value = int(value)
        if row.value == "auto":
            known = value is not None
            kind: Kind = "derived" if known else "computed"
            yield replace(row, value=value if known else "auto", kind=kind, origin=f"auto: {origin}"), None
        elif value is not None and "hidden" not in how and "value" not in how and _differs(row.value, value):
            reason = f"{origin} is {value}"
            yield row, Lost(name=key, value=row.value, kind="refused", reason=reason, span=row.span, part=part)


def _is_rounded(how: Mapping[str, Any], transformers: str | None) -> bool:
    return not transformers or version_key(transformers) >= version_key(how.get("whole_since", "0"))


def _is_hidden(key: str) -> bool:
    return key in ("hidden_size", "text_config.hidden_size")


def _value(how: Mapping[str, Any], rows: Rows, global_batch: Known | None, hidden: Value) -> tuple[Value, str]:
    """The value that the trainer has, None if it is not known; and where it comes from."""
    if "value" in how:
        return how["value"], "always"
    if "hidden" in how:
        factor, power = _BUCKETS[how["hidden"]]
        known = isinstance(hidden, int) and not isinstance(hidden, bool) and hidden < _MOST_HIDDEN
        return (factor * int(hidden) ** power if known else None), "from the model's hidden size"  # type: ignore[arg-type]
    if "number" in how:
        if how["number"] == "global_batch" and global_batch is not None:
            return global_batch.value, global_batch.how
        return None, {"global_batch": "the batch over all processes", "steps": "the number of training steps"}.get(
            how["number"], "the warm-up steps"
        )
    found = [rows.get(("", name)) for name in how["from"]]
    values = [row.value if row is not None and row.kind in ("written", "derived", "default") else None for row in found]
    if how.get("any"):
        known = True in values or all(value is False for value in values if value is not None)
        return (True in values) if known and values[0] is not None else None, " or ".join(how["from"])
    if how.get("pair"):
        return (None if None in values else tuple(values)), " and ".join(how["from"])
    return values[0], how["from"][0]


def _differs(written: Value, value: Value) -> bool:
    if isinstance(written, str):
        return False  # what the file's own reader refuses
    return written != value
