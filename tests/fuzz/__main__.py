"""Fuzz one target with atheris: ``python -m tests.fuzz TARGET [--runs N] [--new FOLDER] [--seconds S]``.

atheris is not among the test tools, because it instruments what it loads: install it beside them. What it finds stays
in ``--new``, and inputs worth keeping are moved to ``tests/fuzz/corpus/TARGET`` by hand; test_corpus.py replays these.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import atheris

CORPUS = Path(__file__).with_name("corpus")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("target")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=0, help="stop after so many (0: after the runs)")
    parser.add_argument("--new", type=Path, help="folder for new inputs (a temporary one)")
    options = parser.parse_args()
    atheris.enabled_hooks.add("str")
    with atheris.instrument_imports(include=["trainmedic"]):
        from tests.fuzz.targets import TARGETS, seeds, words
    new = options.new or Path(tempfile.mkdtemp(prefix="fuzz-"))
    new.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(options.target)):
        (new / f"seed-{number}").write_bytes(seed)
    dictionary = new.with_suffix(".dict")
    dictionary.write_text("".join(f'"{escaped(word)}"\n' for word in words(options.target)), encoding="ascii")
    kept = CORPUS / options.target
    arguments = [
        sys.argv[0],
        f"-runs={options.runs}",
        f"-max_total_time={options.seconds}",
        f"-dict={dictionary}",
        "-max_len=1500",
        "-timeout=20",
        "-seed=1",
        f"-artifact_prefix={new}-",
        "-print_final_stats=1",
        str(new),
        *([str(kept)] if kept.is_dir() else []),
    ]
    atheris.Setup(arguments, TARGETS[options.target])
    atheris.Fuzz()


def escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
