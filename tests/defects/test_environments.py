"""Environments that were published, each with the configuration of its run where one was shown.

Their certain defects were compared with the fixing commits. If a new entry adds one, read its fix: if the release and
the run of the environment really have the defect, add its id to `reviewed.json`; otherwise its `when` or its range is
too wide. If an entry became narrower and one is no longer certain, take its id away. Defects that only may be there are
not listed.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.every_case import every_case
from trainmedic.kb.audit.audit import audit
from trainmedic.kb.audit.upgrades import releases_of
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.defect import load_defects
from trainmedic.kb.parse.pipeline import parse

FOLDER = Path(__file__).parent / "environments"
REVIEWED: dict[str, list[str]] = json.loads((FOLDER / "reviewed.json").read_text())


def test_every_environment_is_reviewed() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == sorted(REVIEWED)


@every_case("name", REVIEWED)
def test_the_certain_defects_of_a_published_environment_are_those_that_were_reviewed(name: str) -> None:
    files = [Attachment(name=path.name, content=path.read_text()) for path in sorted(FOLDER.glob(f"{name}.*"))]
    defects = load_defects().all
    matches = audit(defects, parse("", files), releases_of(defects))
    assert sorted(match.defect.id for match in matches if match.certain) == REVIEWED[name]
