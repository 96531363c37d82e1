"""Write the synchronous client from the asynchronous one: ``python -m trainmedic.ingest.sync_client``.

The package `unasync` does the same for whole folders of files with equal names; here it is one file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "ui" / "client"
SOURCE, TARGET = CLIENT / "asynchronous.py", CLIENT / "synchronous.py"
HEADER = '"""The client for ordinary programs. Generated from `asynchronous.py`; do not edit."""\n'
WORDS = {
    "AsyncClient": "Client",
    "AsyncGenerator": "Generator",
    "AsyncRetrying": "Retrying",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aiter_sse": "iter_sse",
    "aread": "read",
}


def synchronous(source: str) -> str:
    """The source without ``async`` and ``await``."""
    text = HEADER + source[source.index('"""\n', 3) + 4 :]
    text = re.sub(r"AsyncGenerator\[(.+), None\]", r"AsyncGenerator[\1, None, None]", text)
    text = text.replace("``async with``", "``with``")
    text = re.sub(r"\b(?:async|await) ", "", text)
    text = re.sub(rf"\b(?:{'|'.join(WORDS)})\b", lambda match: WORDS[match[0]], text)
    # Imports change their order with their names.
    return _ruff(_ruff(text, "check", "--fix", "--select", "I"), "format")


def _ruff(text: str, *command: str) -> str:
    arguments = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(arguments, input=text, capture_output=True, text=True, check=True, cwd=CLIENT).stdout


if __name__ == "__main__":
    TARGET.write_text(synchronous(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
