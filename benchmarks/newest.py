"""A check and an audit of a minimal set-up with each package at its newest release (`data/newest.toml`).

    python -m benchmarks.newest

A release beyond what is known must be said to be so, in one line; no default of it may be stated, no finding may rest
on one, and no defect without a known fix may be said to be there for certain. Budget: 0.4 s of processor time for a
process of either command. Exit code 1 if one is missed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.serving import COMMAND, own_environment
from benchmarks.table import Row, Table
from trainmedic.kb.data_files import read_toml
from trainmedic.kb.frameworks.horizon import Kind, Standing, standing
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import VersionFact
from trainmedic.ui.auditing import audit
from trainmedic.ui.checking import check

NEWEST = read_toml(Path(__file__).parent / "data" / "newest.toml")
BUDGET_S = 0.4
PROCESSES = 3


def files(package: str) -> tuple[Attachment, Attachment]:
    """The set-up of a package and its list of versions."""
    entry = NEWEST[package]
    pins = f"{package}=={entry['release']}\n"
    return Attachment(name=entry["name"], content=entry["text"]), Attachment(name="requirements.txt", content=pins)


def faults(package: str) -> Iterator[str]:
    """What is said of the newest release of a package that nothing known carries."""
    fact = VersionFact(package=package, exact=NEWEST[package]["release"], reason="")
    beyond = {kind: standing(fact, kind) is Standing.NEWER for kind in Kind}
    audited, checked = audit(*files(package)), check(*files(package))
    if package not in audited.packages:
        yield "the audit does not name it"
    lines = [item for item in audited.horizon if item.package == package]
    if len(lines) != int(any(beyond.values())):
        yield f"{len(lines)} lines of the audit say where knowledge ends"
    if beyond[Kind.DEFECTS]:
        yield from (f"{item.id} is there for certain" for item in audited.defects if item.certain and not item.fixed)
    if beyond[Kind.OPTIONS]:
        stated = [name for name, setting in checked.run.settings.items() if setting.source.startswith("default of")]
        yield from (f"a default of {name} is stated" for name in stated)
        yield from (
            f"{finding.rule_id} rests on a default"
            for finding in checked.fired
            if any(span.default for span in finding.evidence)
        )
        if checked.run.framework == package and package not in [item.package for item in checked.horizon]:
            yield "the check does not say where knowledge ends"


def seconds(package: str, command: str) -> float:
    """The processor time of a process of one command."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder, file.name) for file in files(package)]
        for path, file in zip(paths, files(package), strict=True):
            path.write_text(str(file.content), encoding="utf-8")
        words = [sys.executable, "-c", COMMAND, command, "--exit-zero", *map(str, paths)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=own_environment())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    table, wrong = Table("The newest release of each package"), []
    for package, entry in NEWEST.items():
        wrong += [f"{package} {entry['release']}: {fault}" for fault in faults(package)]
        for command in ("audit", "check"):
            taken = [seconds(package, command) for _ in range(PROCESSES)]
            what = f"{command} {package} {entry['release']}"
            # The least: what else the machine does only adds to processor time.
            table.rows.append(Row(what=what, values=taken, unit="s", budget=BUDGET_S, judged=min(taken)))
    missed = table.print()
    print("\n".join(wrong or ["Nothing is stated that is not known."]))
    return int(bool(missed or wrong))


if __name__ == "__main__":
    sys.exit(main())
