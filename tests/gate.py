"""The coverage gate: every branch of what reads user text, decides, and masks must be taken by a test.

``python -m tests.gate coverage.json`` exits 1 and names the lines where it is not so. Elsewhere it is only reported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

GATED = ("kb/parse/", "kb/mask.py", "kb/engine/", "service/llm/verify/")


def misses(report: dict[str, object]) -> list[str]:
    """One line for each gated file that is not fully covered, sorted by name; for a gated path without any, too."""
    files = report["files"]
    assert isinstance(files, dict)
    lines = [f"{path}: not in the report" for path in GATED if not any(name.startswith(path) for name in files)]
    for name in sorted(files):
        entry = files[name]
        if not name.startswith(GATED) or of_rules(name):
            continue
        branches = [f"{start}->{end}" for start, end in entry.get("missing_branches", [])]
        if entry["missing_lines"] or branches:
            lines.append(f"{name}: lines {entry['missing_lines']} branches {branches}")
    return lines


def of_rules(name: str) -> bool:
    """Whether a file is the logic of rules: the examples that every page executes hold it, not the gate."""
    folder, _, rest = name.partition("kb/rules/")
    return not folder and "/" in rest


def main() -> int:
    """Read the report named on the command line; 0 when nothing is missing."""
    found = misses(json.loads(Path(sys.argv[1]).read_text()))
    for line in found:
        sys.stderr.write(line + "\n")
    sys.stdout.write(f"coverage gate: {len(found)} files below 100 % of {', '.join(GATED)}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
