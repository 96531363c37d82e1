"""The log of a service: lines of JSON that carry the id of the request they belong to, and no text of a user."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

from pythonjsonlogger.json import JsonFormatter

from trainmedic.kb.mask import mask
from trainmedic.service.observers.tracing import TRACE_ID

FIELDS = "%(levelname)s %(name)s %(message)s"
NAMES = {"levelname": "level", "name": "logger"}


class Formatter(JsonFormatter):
    """Adds the trace id, and masks what other libraries log."""

    def __init__(self) -> None:
        super().__init__(FIELDS, rename_fields=NAMES, timestamp="time", json_ensure_ascii=False)

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """The record's fields, as they are written."""
        if trace_id := TRACE_ID.get():
            log_data.setdefault("trace_id", trace_id)
        for name in ("message", "exc_info", "stack_info"):
            if text := log_data.get(name):
                log_data[name] = mask(str(text)).text
        return log_data


def log_json(stream: TextIO | None = None) -> None:
    """Log as JSON to ``stream`` (standard error): our own from INFO on, others' from WARNING on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Formatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    logging.getLogger("trainmedic").setLevel(logging.INFO)
