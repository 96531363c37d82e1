"""Memory of the serving process, and with ``--install`` what an installation takes.

    python -m benchmarks.footprint [--install]

Memory: of the process that answers questions with files in both languages, also with gradio if it is installed.
``--install`` installs what ``make install`` installs into a fresh virtual environment without pip's cache: it downloads
well over 100 MB. Budgets: 700 MB of memory, 60 s, 700 MB on disk, and neither torch nor a CUDA package installed.
Linux only. Exit code 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ask import CHINESE, ENGLISH, config, log, questions
from benchmarks.serving import Server
from benchmarks.table import Table

MEMORY_BUDGET_MB = 700.0
INSTALL_BUDGET_S = 60.0
INSTALL_BUDGET_MB = 700.0
FORBIDDEN = ("torch", "nvidia", "cuda", "triton", "sentence_transformers", "transformers")
ROOT = Path(__file__).parent.parent
SHIPPED = (
    *("trainmedic", "kb", "service", "ingest", "ui"),
    *("pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE"),
)
EXTRAS = "serve,slack,mcp,notify,ingest,postgres,otel"
ROUNDS = 3


def serving_memory(folder: Path, before: str) -> tuple[float, float, float]:
    """Megabytes of the server when it listens, after the questions, and at the peak."""
    with Server(folder, before) as server:
        client = server.client()
        server.settle(client)
        client.call("GET", "/readyz")
        idle = server.memory_mb()
        for number in range(ROUNDS):
            for place, question in enumerate(questions((*ENGLISH, *CHINESE), number + 1)):
                contents = {"train.sh": config(place), "train.log": log(place)}
                attachments = [{"name": name, "content": content} for name, content in contents.items()]
                client.call("POST", "/v1/ask", {"question": question, "attachments": attachments})
        after, peak = server.memory_mb(), server.memory_mb("VmHWM")
        client.close()
    return idle, after, peak


def memory(table: Table) -> None:
    """The server without gradio and, if it is installed, with it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        serving_memory(folder, "")  # the first start builds the index, which is not measured
        kinds = [("REST", "")]
        if find_spec("gradio") is not None:
            kinds.append(
                ("REST and gradio", "import os; os.environ['GRADIO_ANALYTICS_ENABLED'] = 'False'; import gradio")
            )
        for what, before in kinds:
            idle, after, peak = serving_memory(folder, before)
            table.add(f"{what}: listening", [idle], "MB")
            table.add(f"{what}: after {ROUNDS * len((*ENGLISH, *CHINESE))} questions with files", [after], "MB")
            table.add(f"{what}: at most", [peak], "MB", MEMORY_BUDGET_MB)


def installation(table: Table) -> list[str]:
    """Measure a fresh installation. Returns the packages that should not be in it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "source"
        source.mkdir()
        for part in SHIPPED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, source / part)
        started, processor = time.perf_counter(), children_s()
        venv.create(folder / "env", with_pip=True)
        pip(folder, "--constraint", str(source / "constraints.txt"), f"{source}[{EXTRAS}]", str(source / "kb" / "data"))
        table.add("venv and pip install, nothing cached", [time.perf_counter() - started], "s", INSTALL_BUDGET_S)
        table.add("of that, processor time", [children_s() - processor], "s")
        packages = next((folder / "env").glob("lib/python*/site-packages"))
        table.add("on disk", [megabytes(folder / "env")], "MB", INSTALL_BUDGET_MB)
        table.add("packages", [len(list(packages.glob("*.dist-info")))], "")
        return sorted(path.name for path in packages.glob("*.dist-info") if path.name.lower().startswith(FORBIDDEN))


def pip(folder: Path, *arguments: str) -> None:
    python = folder / "env" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "install", "-qq", "--no-cache-dir", *arguments],
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        check=True,
    )


def children_s() -> float:
    """Processor time of all finished child processes, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def megabytes(folder: Path) -> float:
    """The size of all files under a folder, without following links."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) / 1_000_000


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.footprint", description=__doc__)
    parser.add_argument("--install", action="store_true", help="also install into a fresh environment (downloads)")
    options = parser.parse_args(argv)
    table = Table("memory")
    memory(table)
    code = table.print()
    if not options.install:
        return code
    table = Table("installation")
    unwanted = installation(table)
    code = max(code, table.print())
    for package in unwanted:
        print(f"✗ {package} was installed")
    return 1 if unwanted else code


if __name__ == "__main__":
    sys.exit(main())
