"""Candidates for known defects as a file of JSON lines, to which a later harvest only adds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainmedic.ingest.defects.candidates import DefectCandidate, candidates, known_as
from trainmedic.ingest.defects.history import History
from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.serialization import to_json


def harvest(history: History, file: Path, defects: Iterable[Defect], since: str = "") -> Iterator[DefectCandidate]:
    """Append the new candidates of a checkout to a file, each as soon as it is found.

    Known are those in the file and those of ``defects``. Raises `InvalidRequest` if the file holds something else.
    """
    known = {name for defect in defects for name in known_as(defect.commit, str(defect.pull or "")) if name}
    known.update(_in_file(file, history.package))
    with file.open("a", encoding="utf-8") as lines:
        for candidate in candidates(history, since, known):
            lines.write(to_json(candidate) + "\n")
            lines.flush()
            yield candidate


def _in_file(file: Path, package: str) -> Iterator[str]:
    if not file.exists():
        return
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            entry = json.loads(line)
            if entry["package"] == package:
                yield from known_as(entry["commit"], entry["pull"])
        except (ValueError, KeyError, TypeError):
            raise InvalidRequest(f"{file}:{number}: not a candidate for a defect") from None
