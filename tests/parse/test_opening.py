"""Pickles of the kinds that PyTorch writes are read as text; others are named."""

from __future__ import annotations

import json
import pickle
from typing import Any

from tests.every_case import every_case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.text.kinds import by_name

BLOCK = {"size": 2**30, "state": "active_allocated", "frames": [{"filename": "a.py", "line": 7, "name": "step"}]}
SNAPSHOT = {"segments": [{"device": 0, "total_size": 2**31, "blocks": [BLOCK]}]}
DUMP = {"pg_config": {"0": {"name": "0"}}, "entries": [{"profiling_name": "nccl:all_reduce", "state": "started"}]}


@every_case(
    ("value", "kind"),
    [(SNAPSHOT, "memory snapshot, the code that made the live tensors"), (DUMP, "flight-recorder dump")],
)
def test_a_pickle_of_a_known_kind_is_read_as_text(value: dict[str, Any], kind: str) -> None:
    receipt = parse("", (Attachment(name="rank_0", content=pickle.dumps(value)),)).receipt.inputs[1]
    assert (receipt.read, receipt.note) == (True, f"{kind}, read without unpickling")


@every_case("name", ["nccl_trace_rank_0", "logs/dump.json"])
def test_a_flight_recorder_dump_is_taken_for_no_configuration(name: str) -> None:
    assert by_name(name, json.dumps(DUMP)) == "log"
    assert by_name("config.json", json.dumps({"lr": 1.0})) == "json"


@every_case(
    ("value", "why"),
    [
        ({"segments": [{"device": 0}]}, "it is damaged, too large or too deep"),
        ({"epoch": 1}, "it is not a memory snapshot"),
    ],
)
def test_any_other_pickle_is_not_read_and_that_is_said(value: dict[str, Any], why: str) -> None:
    receipt = parse("", (Attachment(name="rank_0", content=pickle.dumps(value)),)).receipt
    assert (receipt.inputs[1].read, [why in problem.message for problem in receipt.problems]) == (False, [True])
