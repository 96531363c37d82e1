"""Store digests of the sentences in the pages' sources, and check that the sources exist.

``python -m trainmedic.ingest.tools.originals OWNER/NAME=CHECKOUT … [--texts FOLDER …]`` reads each source of a page
that is a file or commit of a given repository, at the tag in its address, and reports those that do not exist. The
texts of threads can be given as folders. The digests are added to `source-sentences.txt`, with which
`tests/test_originality.py` compares every page; the texts themselves are not stored.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trainmedic.ingest.tools.originality import digest, sentences
from trainmedic.kb.lazy import regex
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.rule import load_rules

STORED = Path(__file__).with_name("source-sentences.txt")
_FILE = regex(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:blob|raw)/([^#?]+)")
_COMMIT = regex(r"https://github\.com/([\w.-]+/[\w.-]+)/commit/([0-9a-f]{7,40})")
_MARKS = regex(r"^[ \t]*(?:#+|//|\*|\"\"\")[ \t]?", re.MULTILINE)


def read_source(url: str, checkouts: Mapping[str, Path]) -> str | None:
    """The text behind an address; None where its repository is not at hand.

    Raises `LookupError` where the repository does not hold it.
    """
    if found := _FILE.match(url):
        repository, rest = found.groups()
        if repository not in checkouts:
            return None
        parts = rest.split("/")
        # A tag or branch may hold slashes itself, so every way to cut the address is tried.
        for cut in range(1, len(parts)):
            text = _show(checkouts[repository], f"{'/'.join(parts[:cut])}:{'/'.join(parts[cut:])}")
            if text is not None:
                return text
        raise LookupError(url)
    if found := _COMMIT.match(url):
        repository, commit = found.groups()
        if repository not in checkouts:
            return None
        text = _show(checkouts[repository], commit)
        if text is None:
            raise LookupError(url)
        return text
    return None


def _show(checkout: Path, what: str) -> str | None:
    where = ["--git-dir", str(checkout)] if (checkout / "HEAD").is_file() else ["-C", str(checkout)]
    shown = subprocess.run(["git", *where, "show", what], capture_output=True, check=False)
    return shown.stdout.decode("utf-8", "replace") if shown.returncode == 0 else None


def addresses() -> tuple[str, ...]:
    """Every source that a page names, sorted."""
    named = {source.url for case in load_cases().cases for source in case.sources}
    return tuple(sorted(named | {source.url for rule in load_rules().rules for source in rule.sources}))


def digests(texts: Iterable[str]) -> set[str]:
    """The digests of all sentences; comment marks at the beginning of lines are taken away."""
    return {digest(sentence) for text in texts for sentence in sentences(_MARKS.sub("", text))}


def main(argv: Sequence[str] | None = None) -> int:
    """Read, report, keep. 1 where a source named by a page is not there."""
    parser = argparse.ArgumentParser(prog="python -m trainmedic.ingest.tools.originals", description=__doc__)
    parser.add_argument("checkout", nargs="*", metavar="OWNER/NAME=PATH")
    parser.add_argument("--texts", action="append", default=[], type=Path, metavar="FOLDER")
    options = parser.parse_args(argv)
    checkouts = {name: Path(path) for name, _, path in (each.partition("=") for each in options.checkout)}
    texts: list[str] = []
    absent, elsewhere = [], 0
    for url in addresses():
        try:
            text = read_source(url, checkouts)
        except LookupError:
            absent.append(url)
            continue
        elsewhere += text is None
        texts += [text] if text is not None else []
    read = len(texts)
    for folder in options.texts:
        texts += [p.read_text(encoding="utf-8", errors="replace") for p in sorted(folder.rglob("*")) if p.is_file()]
    stored = set(STORED.read_text(encoding="utf-8").split()) if STORED.exists() else set()
    stored |= digests(texts)
    STORED.write_text("".join(f"{line}\n" for line in sorted(stored)), encoding="utf-8")
    sys.stdout.write("".join(f"not there: {url}\n" for url in absent))
    sys.stdout.write(
        f"{read} sources read, {len(absent)} not there, {elsewhere} of repositories not given or threads\n"
    )
    return 1 if absent else 0


if __name__ == "__main__":
    raise SystemExit(main())
