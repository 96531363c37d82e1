"""All rules on one parsed configuration, and ``trainmedic check FILE`` as a process of its own.

    python -m benchmarks.rules

In process: a launch script, a log and a version listing, parsed once, with every rule run on it. As a process: from
the start of the interpreter to its end, compiled modules present as in an installed package.
Budgets (medians): 2 ms for the rules, 0.4 s for the process, and nothing of what a check has no use for is imported.
Exit code 1 where one is missed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ask import config, log
from benchmarks.serving import SERVE, own_environment
from benchmarks.table import Table
from kb.model.place import Attachment
from kb.parse import parse
from kb.rules.engine import check
from kb.rules.page import load_rules
from kb.rules.patch import with_patches

RULES_BUDGET_MS = 2.0
PROCESS_BUDGET_S = 0.4
NOT_NEEDED = (
    *("faiss", "fastapi", "gradio", "httpx", "langchain", "langchain_core", "numpy", "onnxruntime", "openai"),
    *("pydantic", "pydantic_settings", "sentence_transformers", "slack_bolt", "sqlalchemy", "starlette"),
    *("tokenizers", "torch", "uvicorn"),
)
REPEATED = 200
PROCESSES = 15
VERSIONS = "ms-swift==3.1.0\ntransformers==4.51.3\ntorch==2.6.0\ndeepspeed==0.16.4\nflash-attn==2.7.4\n"


def pasted(number: int) -> tuple[Attachment, ...]:
    """What a user drops: script, log, versions."""
    contents = {"train.sh": config(number), "train.log": log(number), "pip.txt": VERSIONS}
    return tuple(Attachment(name=name, content=content) for name, content in contents.items())


def in_process(table: Table) -> None:
    """Rules alone, and what stands around them."""
    rules = load_rules()
    evidence = parse("", pasted(1))
    report = check(evidence, rules)
    count = len(rules.rules)
    table.add(f"check: {count} rules on one run", repeated(lambda: check(evidence, rules)), "ms", RULES_BUDGET_MS)
    table.add("parse: script, log and versions, 8 kB", repeated(lambda: parse("", pasted(1))), "ms")
    table.add(
        f"patches of {len(report.fired)} findings, checked again",
        repeated(lambda: with_patches(report, evidence, rules, parse)),
        "ms",
    )


def repeated(call: object) -> list[float]:
    """Milliseconds of each of `REPEATED` calls, after one to warm up."""
    assert callable(call)
    call()
    taken = []
    for _ in range(REPEATED):
        started = time.perf_counter()
        call()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def as_process(folder: Path, table: Table) -> None:
    """``trainmedic check`` from outside."""
    for attachment in pasted(1):
        folder.joinpath(attachment.name).write_text(str(attachment.content), encoding="utf-8")
    script = str(folder / "train.sh")
    together = [str(folder / attachment.name) for attachment in pasted(1)]
    table.add("python -c pass", processes(["-c", "pass"]), "s")
    table.add("trainmedic check train.sh", processes(["-c", SERVE, "check", script]), "s", PROCESS_BUDGET_S)
    table.add("the same with its log and versions", processes(["-c", SERVE, "check", *together]), "s", PROCESS_BUDGET_S)


def processes(arguments: Sequence[str]) -> list[float]:
    """Seconds of each of `PROCESSES` runs, after one that leaves compiled modules."""
    taken = []
    for _ in range(PROCESSES + 1):
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments], env=own_environment(), stdout=subprocess.DEVNULL, check=False, timeout=60
        )
        taken.append(time.perf_counter() - started)
    return taken[1:]


def imported(folder: Path) -> tuple[frozenset[str], int]:
    """Top-level modules that one check imports, and how many modules in all."""
    listing = f"{SERVE[: SERVE.index('sys.exit')]}main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", listing, "check", str(folder / "train.sh")],
        env=own_environment(), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    names = done.stderr.splitlines()[-1].split()
    return frozenset(name.partition(".")[0] for name in names), len(names)


def main() -> int:
    """Measure, print the tables, and say whether every budget holds."""
    table = Table("rules")
    in_process(table)
    with TemporaryDirectory() as name:
        folder = Path(name)
        as_process(folder, table)
        modules, count = imported(folder)
    code = table.print()
    too_many = [name for name in NOT_NEEDED if name in modules]
    floor, process = (statistics.median(row.values) for row in table.rows[3:5])
    print(f"a check takes {process / floor:.1f} times an empty interpreter and imports {count} modules;")
    print(f"of those it has no use for: {', '.join(too_many) or 'none'}\n")
    return 1 if too_many else code


if __name__ == "__main__":
    sys.exit(main())
