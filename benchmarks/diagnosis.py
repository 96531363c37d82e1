"""What the program adds to a model's own time: the brief and its prompt before, the proof of the answer after.

    python -m benchmarks.diagnosis

The answer proved elects the first candidate, cites lines and facts, and edits two settings, so that all checks run on
the changed configuration. Budget: 60 ms at the 95th percentile, retrieval and rules (`benchmarks.ask`) not counted.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ask import CHINESE, ENGLISH, config, log, questions
from benchmarks.table import Row, Table
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.diagnosis.brief import Brief, brief_of
from trainmedic.service.diagnosis.confidence import Calibration
from trainmedic.service.diagnosis.form import DiagnosisForm
from trainmedic.service.diagnosis.prompt import prompt_of
from trainmedic.service.diagnosis.proof import prove
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.pipeline import Draft
from trainmedic.service.settings import Settings
from trainmedic.ui.app import build_advisor

BUDGET_MS = 60.0
TOKENS = 10_000
ROUNDS = 2
WARM_UP = 6
EDITS = (("learning_rate", "1e-6"), ("max_grad_norm", "0.5"))


def drafts(advisor: Advisor) -> list[Draft]:
    """Questions in two languages, every second one with a configuration and a log."""
    made = []
    for turn in range(ROUNDS):
        for number, question in enumerate(questions((*ENGLISH, *CHINESE), turn + 1)):
            files = (("train.sh", config(number)), ("train.log", log(number))) if number % 2 else ()
            attachments = tuple(Attachment(name=name, content=text.encode()) for name, text in files)
            made.append(advisor.prepare(Ask(question=question, attachments=attachments)))
    return made


def answer(brief: Brief) -> DiagnosisForm:
    """An answer that gives the proof all its work."""
    edits = [{"file": "train.sh", "setting": name, "line": "", "value": value} for name, value in EDITS]
    told = {"title": "The learning rate of 1e-5 is too large", "because": "`learning_rate` and `bf16` of trl 0.19.0."}
    shown = {"lines_for": ["L1", "L2", "F1"], "lines_against": ["L3"], "edits": edits}
    first = {"candidate": brief.candidates[0].id if brief.candidates else "", "change": "Lower it.", "command": ""}
    return DiagnosisForm.model_validate(
        {
            **{"reading": "", "verdict": "cause", "sure": 96, "question": "", "reply": ""},
            "hypotheses": [{**told, **shown, **first, "verify": ""}],
        }
    )


def main() -> int:
    before, after, sizes = [], [], []
    with TemporaryDirectory() as folder:
        advisor = build_advisor(Settings(data_dir=Path(folder)), with_history=False)
        for draft in drafts(advisor):
            started = time.perf_counter()
            brief = brief_of(draft, TOKENS)
            prompt = prompt_of(draft, brief)
            told = time.perf_counter()
            form = answer(brief)
            begun = time.perf_counter()
            prove(form, brief, draft, advisor.pipeline, Calibration(model="m"))
            before.append((told - started) * 1000)
            after.append((time.perf_counter() - begun) * 1000)
            sizes.append(sum(len(message.content.encode()) for message in prompt) / 3)
    before, after, sizes = before[WARM_UP:], after[WARM_UP:], sizes[WARM_UP:]
    table = Table(f"what the program adds to a model's diagnosis, {len(before)} questions")
    table.add("brief and prompt", before, "ms")
    table.add("proof", after, "ms")
    table.add("prompt", sizes, "tokens")
    both = [one + other for one, other in zip(before, after, strict=True)]
    judged = statistics.quantiles(both, n=20)[-1]
    table.rows.append(Row(what="added, 95th percentile", values=both, unit="ms", budget=BUDGET_MS, judged=judged))
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
