"""The problem matcher in docs/connect/ci.md, applied as VS Code applies it to what `check` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.incidents import KTO_SINGLE
from trainmedic.ui.cli import main

PAGE = (Path(__file__).parent.parent.parent / "docs" / "connect" / "ci.md").read_text(encoding="utf-8")
(TASK,) = json.loads(PAGE.partition("## VS Code")[2].partition("```json\n")[2].partition("```")[0])["tasks"]


def problems(output: str, patterns: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Consecutive lines match consecutive patterns; the last pattern repeats if it loops."""
    found: list[dict[str, str]] = []
    lines, start = output.splitlines(), 0
    while start < len(lines):
        fields: dict[str, str] = {}
        position = start
        for number, pattern in enumerate(patterns):
            last = number == len(patterns) - 1
            while position < len(lines) and (match := re.search(pattern["regexp"], lines[position])):
                fields |= {name: match[group] for name, group in pattern.items() if name not in ("regexp", "loop")}
                position += 1
                if last:
                    found.append(dict(fields))
                if not pattern.get("loop"):
                    break
            else:
                if not last:
                    break
        start = max(position, start + 1)
    return found


def test_the_matcher_finds_each_finding_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in TASK["args"][-2:]:
        Path(name).write_text(KTO_SINGLE if name.endswith(".sh") else "openrlhf==0.3.2\n", encoding="utf-8")
    assert TASK["command"] == "trainmedic"
    assert main(TASK["args"]) == 0
    found = problems(capsys.readouterr().out, TASK["problemMatcher"]["pattern"])
    (fault,) = [problem for problem in found if problem["code"] == "openrlhf-kto-vanilla-loss-single-class"][:1]
    assert (fault["severity"], fault["file"]) == ("error", "train.sh")
    assert "--" in KTO_SINGLE.splitlines()[int(fault["line"]) - 1]
    assert fault["message"]
    assert main([*TASK["args"][:4], "--format", "json", *TASK["args"][-2:]]) == 0
    fired = {item["rule_id"] for item in json.loads(capsys.readouterr().out)["findings"] if item["status"] == "fired"}
    assert {problem["code"] for problem in found} >= fired
