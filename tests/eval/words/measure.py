"""Precision and recall of what is read from first messages: ``python -m tests.eval.words.measure [--misses]``.

``incidents.jsonl`` labels questions of ``../outside/tuning.jsonl`` in both languages; ``messages.jsonl`` holds texts in
our own words after public threads. A label under ``open`` is left to taste and counts for nothing. Half of the ids are
blind: only their totals are printed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmedic.kb.frameworks.canonical import SETTINGS
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.pipeline import parse

FOLDER = Path(__file__).parent
KINDS = ("settings", "versions", "devices", "tried")
_DEVICES = ("num_processes", "num_gpus", "num_nodes")
_NO_VALUES = ("model", "dataset", "deepspeed", "fsdp", "use_peft")
_SAME = {"global_batch": "micro_batch", "warmup_steps": "warmup_ratio"}
"""Remedies do not say which."""
Pairs = set[tuple[str, Any]]


@dataclass(slots=True)
class Score:
    right: int = 0
    wrong: int = 0
    missed: int = 0
    misses: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)


def messages() -> Iterator[tuple[Mapping[str, Any], str]]:
    """Every label with its text."""
    outside = (FOLDER.parent / "outside" / "tuning.jsonl").read_text(encoding="utf-8").splitlines()
    questions = {line["id"]: line["question"] for line in map(json.loads, outside)}
    for name in ("incidents", "messages"):
        for row in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            label = json.loads(row)
            texts = [label["text"]] if "text" in label else questions[label["id"]].values()
            yield from ((label, text) for text in texts)


def is_blind(label: Mapping[str, Any]) -> bool:
    return hashlib.sha256(label["id"].encode()).digest()[0] % 2 == 1


def measured(*, blind: bool) -> dict[str, Score]:
    """The score of each kind of fact over one half."""
    scores = {kind: Score() for kind in KINDS}
    for label, text in messages():
        if is_blind(label) is blind:
            expected, found = _labelled(label), _found(parse(text), label)
            for kind in KINDS:
                score, want, got = scores[kind], expected[kind], found[kind]
                score.right += len(want & got)
                score.wrong += len(got - want)
                score.missed += len(want - got)
                score.misses += [
                    f"{label['id']} {s} {p}" for s, ps in (("-", want - got), ("+", got - want)) for p in ps
                ]
    return scores


def _labelled(label: Mapping[str, Any]) -> dict[str, Pairs]:
    good = {(f"{name} worked", version) for name, version in label.get("good", {}).items()}
    settings = {(name, value) for name, value in label.get("settings", {}).items() if name not in _NO_VALUES + _DEVICES}
    return {
        "settings": settings,
        "versions": set(label.get("versions", {}).items()) | good,
        "devices": {(name, label[name]) for name in ("gpu", "gpus", "nodes") if name in label},
        "tried": {
            (name, helped) for name, helped in label.get("tried", ()) if name in SETTINGS and name not in _NO_VALUES
        },
    }


def _found(evidence: Evidence, label: Mapping[str, Any]) -> dict[str, Pairs]:
    left = {*label.get("open", ()), *_NO_VALUES}
    written = evidence.run.settings.items()
    stated = {name: s.value for name, s in written if s.span or s.source.startswith("written")}  # not what follows
    versions = {name: fact.exact or fact.low for name, fact in evidence.versions.items() if name != "gpu" and fact.span}
    good = {f"{name} worked": fact.exact or fact.low for name, fact in evidence.known_good.items()}
    gpu = evidence.versions.get("gpu")
    devices = {"gpus": stated.get("num_processes"), "nodes": stated.get("num_nodes"), "gpu": gpu.exact if gpu else None}
    tried = {(name, remedy.helped) for remedy in evidence.remedies for name in remedy.settings}
    known = label.get("tried")
    return {
        "settings": {(name, value) for name, value in stated.items() if name not in left and name not in _DEVICES},
        "versions": {*versions.items(), *good.items()},
        "devices": {(n, str(v).lower() if n == "gpu" else v) for n, v in devices.items() if v and n not in left},
        "tried": {
            (name, helped) for name, helped in tried if f"tried:{name}" not in left and (known or helped is False)
        },
    }


def main(arguments: list[str]) -> None:
    for blind in (False, True):
        for kind, score in measured(blind=blind).items():
            counts = f"{score.right} right, {score.wrong} wrong, {score.missed} missed"
            sys.stdout.write(
                f"{'blind' if blind else 'tune':5} {kind:9} {score.precision:.3f} {score.recall:.3f}  {counts}\n"
            )
            if "--misses" in arguments and not blind:
                sys.stdout.writelines(f"{miss}\n" for miss in score.misses)


if __name__ == "__main__":
    main(sys.argv[1:])
