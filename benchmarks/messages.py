"""How many pasted tracebacks of releases of the last two years are explained from the source of their release.

    python benchmarks/messages.py STORE [--count 150] [--seed 1]

STORE is a folder of source packs (``trainmedic kb sources read WHEEL``). Samples are ``raise`` statements anywhere in
the stored releases of packages whose messages are known, each printed as Python would, with made-up values. A sample
counts as explained if the first answer is its file, function, exception and condition, at its release.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.error_messages import index
from trainmedic.kb.error_messages.explain import MessageMatch, explain
from trainmedic.kb.error_messages.packages import names
from trainmedic.kb.error_messages.tables import LOGGED
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.derived import Derived
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.statements import Message, messages_of
from trainmedic.kb.sources.tree import SourceTree

HOLE = re.compile(r"(?<!\{)\{(?!\{)[^{}]*\}(?!\})")
VALUES = ("7", "0.001", "'auto'", "cuda:0", "[2, 4]", "Qwen2ForCausalLM", "/data/run-3")
OLDEST = "2024-11-29"


@dataclass(frozen=True, slots=True)
class Sample:
    """One raised message of a release."""

    tree: SourceTree
    path: str
    message: Message

    def pasted(self, generator: random.Random, *, traceback: bool) -> str:
        """The end of a log with this message, and a list of packages."""
        text = HOLE.sub(lambda hole: generator.choice(VALUES), self.message.template)
        text = text.replace("{{", "{").replace("}}", "}")
        kind = "AssertionError" if self.message.kind == "assert" else self.message.kind
        lines = [f"{self.tree.package}=={self.tree.version}", ""]
        if traceback:
            lines += [
                "Traceback (most recent call last):",
                '  File "/work/train.py", line 12, in <module>',
                "    main()",
            ]
            where = f"/opt/venv/lib/python3.11/site-packages/{self.path}"
            function = self.message.function.rpartition(".")[2] or "<module>"
            lines += [f'  File "{where}", line {self.message.line}, in {function}', f"    raise {kind}("]
        return "\n".join((*lines, f"{kind}: {' '.join(text.split())}", ""))

    def is_explained(self, match: MessageMatch) -> bool:
        place = match.place
        return (
            match.entry.package == self.tree.package
            and match.entry.last == self.tree.version
            and place.file.endswith(self.path)
            and (place.function, place.condition) == (self.message.function, self.message.condition)
        )


def samples(sources: Sources, count: int, generator: random.Random) -> Iterator[Sample]:
    """Messages of as many releases as there are, evenly among packages."""
    packs = [
        pack for pack in sources.store.releases() if pack.package in names() and (pack.released or OLDEST) >= OLDEST
    ]
    packages = sorted({pack.package for pack in packs})
    found = 0
    while found < count:
        package = packages[found % len(packages)]
        pack = generator.choice([pack for pack in packs if pack.package == package])
        tree = sources.store.tree(pack)
        path = generator.choice([path for path in tree.paths() if path.endswith(".py")])
        raised = [message for message in messages_of(tree.text(path)) if message.kind not in LOGGED]
        if raised:
            found += 1
            yield Sample(tree, path, generator.choice(raised))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bare", action="store_true", help="paste the last line alone, without its traceback")
    parser.add_argument("--committed", action="store_true", help="use the shipped index alone")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    sources = Sources(options.store, "off")
    if not options.committed:
        index.read_with(Derived(sources).messages)
    explained, first, seconds = 0, 0, []
    for sample in samples(sources, options.count, generator):
        text = sample.pasted(generator, traceback=not options.bare)
        begun = time.perf_counter()
        matches = explain(parse(text))
        seconds.append(time.perf_counter() - begun)
        good = [sample.is_explained(match) for match in matches]
        explained += any(good)
        first += good[:1] == [True]
        if not any(good):
            where = f"{sample.tree.package} {sample.tree.version} {sample.path}:{sample.message.line}"
            print(f"{where}\n    {sample.message.template}", file=sys.stderr)
    seconds.sort()
    median = seconds[len(seconds) // 2]
    print(f"{explained} of {options.count} explained, {first} as the first answer; median {median:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
