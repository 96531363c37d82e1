"""All rules on one parsed configuration, and ``trainmedic check FILE`` as a separate process.

    python -m benchmarks.rules

In process: a configuration of each framework with its log and versions, parsed once, with every rule run on it. As a
process: from the start of the interpreter to its end, compiled modules present as in an installed package.
Budgets (medians): 2 ms for the rules, 0.3 s for the process, and none of the modules in `NOT_NEEDED` is imported.
Exit code 1 if one is missed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ask import config, log
from benchmarks.serving import COMMAND, own_environment
from benchmarks.table import Table, milliseconds
from tests.incidents import KTO_COMMAND, KTO_YAML, TRL_COMMAND
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse

RULES_BUDGET_MS = 2.0
PROCESS_BUDGET_S = 0.3
NOT_NEEDED = (
    *("faiss", "fastapi", "gradio", "httpx", "langchain", "langchain_core", "numpy", "onnxruntime", "openai"),
    *("pydantic", "sentence_transformers", "slack_bolt", "sqlalchemy", "starlette"),
    *("tokenizers", "torch", "uvicorn"),
)
REPEATED = 200
PROCESSES = 15
VERSIONS = "transformers==4.51.3\ntorch==2.6.0\ndeepspeed==0.16.4\nflash-attn==2.7.4\npeft==0.15.0\n"


def inputs() -> dict[str, tuple[Attachment, ...]]:
    """Typical files of each framework's users: a configuration, a log, versions."""
    configurations = {
        "ms-swift": ("train.sh", config(1), "3.1.0"),
        "openrlhf": ("train.sh", KTO_COMMAND, "0.3.4"),
        "llamafactory": ("train.yaml", KTO_YAML, "0.9.2"),
        "trl": ("train.sh", TRL_COMMAND, "0.12.0"),
    }
    return {
        framework: (
            Attachment(name=name, content=content),
            Attachment(name="train.log", content=log(1)),
            Attachment(name="pip.txt", content=f"{framework}=={version}\n{VERSIONS}"),
        )
        for framework, (name, content, version) in configurations.items()
    }


def in_process(table: Table) -> None:
    rules = load_rules()
    for framework, attachments in inputs().items():
        evidence = parse("", attachments)
        recognised = evidence.run.framework
        if recognised is None or recognised.value != framework:
            raise RuntimeError(f"{framework} is not recognised: this would measure nothing")
        apply = f"{framework}, {len(rules.for_framework(framework))} of {len(rules.rules)} rules apply"
        table.add(f"rules: {apply}", repeated(partial(check, evidence, rules)), "ms", RULES_BUDGET_MS)
    attachments = inputs()["ms-swift"]
    evidence = parse("", attachments)
    report = check(evidence, rules)
    table.add("parse: script, log and versions, 8 kB", repeated(lambda: parse("", attachments)), "ms")
    patches = repeated(lambda: with_patches(report, evidence, rules, parse))
    table.add(f"patches of {len(report.fired)} findings, checked again", patches, "ms")
    table.add("load all rules", repeated(load_rules, 20), "ms")


def repeated(call: Callable[[], object], times: int = REPEATED) -> list[float]:
    """Milliseconds of each of ``times`` calls, after one to warm up."""
    call()
    return [milliseconds(call) for _ in range(times)]


def as_process(folder: Path, table: Table) -> tuple[float, float]:
    """Median seconds of an empty interpreter, and of one ``trainmedic check``."""
    for attachment in inputs()["ms-swift"]:
        folder.joinpath(attachment.name).write_text(str(attachment.content), encoding="utf-8")
    script = str(folder / "train.sh")
    all_files = [script, str(folder / "train.log"), str(folder / "pip.txt")]
    floor, one = processes(["-c", "pass"]), processes(["-c", COMMAND, "check", script])
    table.add("python -c pass", floor, "s")
    table.add("trainmedic check train.sh", one, "s", PROCESS_BUDGET_S)
    table.add(
        "the same with its log and versions", processes(["-c", COMMAND, "check", *all_files]), "s", PROCESS_BUDGET_S
    )
    return statistics.median(floor), statistics.median(one)


def processes(arguments: Sequence[str]) -> list[float]:
    """Seconds of each of `PROCESSES` runs, after one that leaves compiled modules."""
    command, environment = [sys.executable, *arguments], own_environment()

    def run() -> None:
        # Without a timeout, with which Python looks for the end only every 50 ms.
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)

    return [duration / 1000 for duration in repeated(run, PROCESSES)]


def imported(folder: Path) -> tuple[frozenset[str], int]:
    """Top-level modules that one check imports, and how many modules in all."""
    listing = "import sys; from trainmedic.ui.cli import main; main(); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", listing, "check", str(folder / "train.sh")]
    process = subprocess.run(command, env=own_environment(), capture_output=True, text=True, check=True, timeout=60)
    names = process.stderr.splitlines()[-1].split()
    return frozenset(name.partition(".")[0] for name in names), len(names)


def main() -> int:
    table = Table("rules")
    in_process(table)
    with TemporaryDirectory() as name:
        folder = Path(name)
        floor, process = as_process(folder, table)
        modules, count = imported(folder)
    code = table.print()
    unneeded = [name for name in NOT_NEEDED if name in modules]
    print(f"a check takes {process / floor:.1f} times an empty interpreter and imports {count} modules;")
    print(f"of those it does not need: {', '.join(unneeded) or 'none'}\n")
    return 1 if unneeded else code


if __name__ == "__main__":
    sys.exit(main())
