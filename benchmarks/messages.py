"""How many pasted tracebacks of releases of the last two years are explained from the source of their release.

    python -m benchmarks.messages STORE [--count 150] [--seed 1] [--bare] [--committed]

STORE is a folder of source packs (``trainmedic kb sources read WHEEL``). Samples are ``raise X(…)`` and assertions
with a text, anywhere in the stored releases of packages whose messages are known, each printed as Python would, with
made-up values. A sample counts as explained if an answer is its file, function and condition, at its release.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from trainmedic.kb.error_messages import index
from trainmedic.kb.error_messages.explain import MessageMatch, explain
from trainmedic.kb.error_messages.packages import names
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.derived import Derived
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.statements import Message, messages_of
from trainmedic.kb.sources.tree import SourceTree

HOLE = re.compile(r"(?<!\{)\{(?!\{)[^{}]*\}(?!\})")
VALUES = ("7", "0.001", "'auto'", "cuda:0", "[2, 4]", "Qwen2ForCausalLM", "/data/run-3")
OLDEST = "2024-11-29"
BUDGET = 0.95


@dataclass(frozen=True, slots=True)
class Sample:
    """One raised message of a release."""

    tree: SourceTree
    path: str
    line: int
    message: Message | None
    """What is read of it; None if its text is worked out elsewhere: then there is nothing to explain it by."""

    def pasted(self, generator: random.Random, *, traceback: bool) -> str:
        """The end of a log with this message, and a list of packages."""
        assert self.message is not None
        text = HOLE.sub(lambda hole: generator.choice(VALUES), self.message.template)
        text = text.replace("{{", "{").replace("}}", "}")
        kind = "AssertionError" if self.message.kind == "assert" else self.message.kind
        lines = [f"{self.tree.package}=={self.tree.version}", ""]
        if traceback:
            lines += [
                "Traceback (most recent call last):",
                '  File "train.py", line 12, in <module>',
                "    main()",
            ]
            where = f"/opt/venv/lib/python3.11/site-packages/{self.path}"
            function = self.message.function.rpartition(".")[2] or "<module>"
            lines += [f'  File "{where}", line {self.message.line}, in {function}', f"    raise {kind}("]
        return "\n".join((*lines, f"{kind}: {' '.join(text.split())}", ""))

    def is_explained(self, match: MessageMatch) -> bool:
        place = match.place
        assert self.message is not None
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
        text = tree.text(path)
        statements = [node for node in ast.walk(_module(text)) if _says_something(node)]
        if statements:
            found += 1
            node = generator.choice(statements)
            inside = (
                each for each in messages_of(text, every=True) if node.lineno <= each.line <= (node.end_lineno or 0)
            )
            yield Sample(tree, path, node.lineno, next(inside, None))


def _module(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _says_something(node: ast.AST) -> TypeGuard[ast.stmt]:
    """``raise X(…)``, and assertions with a text."""
    match node:
        case ast.Raise(exc=ast.Call() as call):
            return bool(call.args or call.keywords)
        case ast.Assert(msg=message):
            return message is not None
        case _:
            return False


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
        good: list[bool] = []
        if sample.message is not None:
            text = sample.pasted(generator, traceback=not options.bare)
            begun = time.perf_counter()
            matches = explain(parse(text))
            seconds.append(time.perf_counter() - begun)
            good = [sample.is_explained(match) for match in matches]
        explained += any(good)
        first += good[:1] == [True]
        if not any(good):
            where = f"{sample.tree.package} {sample.tree.version} {sample.path}:{sample.line}"
            print(f"{where}\n    {sample.message.template if sample.message else '?'}", file=sys.stderr)
    seconds.sort()
    median = seconds[len(seconds) // 2]
    print(f"{explained} of {options.count} explained, {first} as the first answer; median {median:.2f} s")
    return int(explained < BUDGET * options.count)


if __name__ == "__main__":
    sys.exit(main())
