"""Diagnoses that a frontier model gave of outside incidents, and what became of each.

A row of `recorded.jsonl` names the incident and holds the form as it was filled. Lines and facts are there as they read
and candidates by their titles, for their numbers change with the knowledge. ``then`` is what the answer showed.
``python -m tests.service.recorded`` writes ``then`` anew; look at the difference before you commit it.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.fake_model import FakeModel, Reply, Request, form
from tests.service.test_model import chat
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.diagnosis.assistant import Assistant
from trainmedic.ui.evaluation.outside import Incident, read_incidents

FILE = Path(__file__).parent / "recorded.jsonl"
INCIDENTS = Path("tests/eval/outside/tuning.jsonl")
_ITEM = re.compile(r"^(?:<data-\w+>)?([LF]\d+) (?:\d+: )?(.*?)(?:</data-\w+>)?$", re.MULTILINE)


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def incidents() -> Mapping[str, Incident]:
    return {incident.id: incident for incident in read_incidents(INCIDENTS)}


def items_in(prompt: str) -> dict[str, str]:
    """Ids of the lines and facts of a prompt, by what they say."""
    return {text: id for id, text in reversed(_ITEM.findall(prompt))}


def filled(row: Mapping[str, Any], missing: list[str]) -> Callable[[Request], Reply]:
    """The recorded form with the ids of the prompt that it answers; what is not told any more is ``missing``."""

    def reply(asked: Request) -> Reply:
        ids = items_in(asked.prompt)
        hypotheses = []
        for each in row["form"]["hypotheses"]:
            title = each["candidate"]
            found = re.search(rf"^(C\d+) {re.escape(title)} \|", asked.prompt, re.MULTILINE) if title else None
            lines = {name: [ids[text] for text in each[name] if text in ids] for name in ("lines_for", "lines_against")}
            missing.extend(text for name in lines for text in each[name] if text not in ids)
            hypotheses.append({**each, **lines, "candidate": found[1] if found else ""})
        return form({**row["form"], "hypotheses": hypotheses})

    return reply


def replayed(row: Mapping[str, Any], incident: Incident, advisor: Advisor) -> tuple[dict[str, Any], list[str]]:
    """What the answer shows of a recorded diagnosis, and the cited texts that are not told any more."""
    missing: list[str] = []
    reply = filled(row, missing)

    async def scenario() -> Answer:
        with FakeModel(forms=[reply]) as server:
            async with chat(server.url) as model:
                *_, answer = [part async for part in Assistant(advisor, model).stream(incident.ask())]
        assert isinstance(answer, Answer)
        return answer

    return shown(asyncio.run(scenario()), len(row["form"]["hypotheses"])), missing


def shown(answer: Answer, hypotheses: int) -> dict[str, Any]:
    """What the model's hypotheses became; the program's own further causes follow them."""
    kinds = {section.kind for section in answer.sections}
    return {
        "verdict": answer.verdict,
        "causes": [[cause.case_id, cause.support] for cause in answer.causes[:hypotheses]],
        "patch": "diff" in kinds,
        "checked": "checked" in kinds,
    }


def record(form: Mapping[str, Any], prompt: str, incident: Incident) -> dict[str, Any]:
    """A row without ``then``."""
    texts = {id: text for text, id in items_in(prompt).items()}
    titles = dict(re.findall(r"^(C\d+) ([^|\n]*?) \|", prompt, re.MULTILINE))
    hypotheses: Sequence[dict[str, Any]] = [
        {
            **each,
            "candidate": titles.get(each["candidate"], ""),
            **{n: [texts[id] for id in each[n] if id in texts] for n in ("lines_for", "lines_against")},
        }
        for each in form["hypotheses"]
    ]
    return {"incident": incident.id, "language": incident.language, "form": {**form, "hypotheses": hypotheses}}


def write(all_rows: Sequence[Mapping[str, Any]]) -> None:
    FILE.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in all_rows), encoding="utf-8")


def main() -> None:
    from trainmedic.kb.parse.pipeline import parse
    from trainmedic.service.settings import Settings
    from trainmedic.ui.loading import load_knowledge

    known = incidents()
    with tempfile.TemporaryDirectory() as folder:
        advisor = Advisor(load_knowledge(Settings(data_dir=Path(folder)), at_once=True), parse)
        write([{**row, "then": replayed(row, known[row["incident"]], advisor)[0]} for row in rows()])


if __name__ == "__main__":
    main()
