"""Record what a running service answers, and compare two recordings item by item.

    python -m benchmarks.answers record http://127.0.0.1:8000 before.jsonl [NAME:REVISION:CHECKOUT …]
    python -m benchmarks.answers compare before.jsonl after.jsonl

A recording holds every evaluation question, the five founding incidents in both languages, and the findings on each
config and script that the named checkouts ship as an example. It talks to the service over REST only, so releases with
different internals can be compared. Exit code 1 if the recordings differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from benchmarks.false_positives import Corpus
from tests.incidents import INCIDENTS

QUESTIONS = Path(__file__).parent.parent / "tests" / "eval"
VOLATILE = frozenset({"id", "conversation_id", "trace_id", "timings_ms", "kb_version", "ruleset_version", "notices"})
"""Fields that differ between two runs of the same code."""

Item = tuple[str, str, dict[str, Any]]
"""(name, route, request body)"""


def questions() -> Iterator[Item]:
    for path in sorted(QUESTIONS.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            body = {"question": item["question"], "attachments": item.get("attachments", [])}
            yield f"question:{item['id']}", "/v1/ask", body


def incidents() -> Iterator[Item]:
    for incident in INCIDENTS:
        files = [{"name": file.name, "content": _text(file.content)} for file in incident.files]
        for language, question in (("en", incident.en), ("zh", incident.zh)):
            yield f"incident:{incident.name}:{language}", "/v1/ask", {"question": question, "attachments": files}


def configs(corpora: list[str]) -> Iterator[Item]:
    for corpus in corpora:
        framework, tag, checkout = corpus.split(":", 2)
        for name, content in Corpus(framework=framework, tag=tag, checkout=checkout).files():
            body = {"attachments": [{"name": name, "content": _text(content)}]}
            yield f"config:{framework}:{name}", "/v1/check", body


def _text(content: str | bytes) -> str:
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else content


def record(url: str, out: Path, corpora: list[str]) -> int:
    items = [*questions(), *incidents(), *configs(corpora)]
    with httpx.Client(base_url=url, timeout=60) as client, ThreadPoolExecutor(2) as pool:

        def ask(item: Item) -> str:
            name, route, body = item
            response = client.post(route, json=body)
            return json.dumps({"name": name, "status": response.status_code, "body": response.json()})

        out.write_text("\n".join(pool.map(ask, items)) + "\n", encoding="utf-8")
    print(f"recorded {len(items)} items")
    return 0


def compare(before: Path, after: Path) -> int:
    old, new = _load(before), _load(after)
    fields: Counter[str] = Counter()
    different = 0
    for name in sorted(old.keys() | new.keys()):
        changed = sorted(_differences(old.get(name, {}), new.get(name, {})))
        if changed:
            different += 1
            fields.update(changed)
            print(f"{name}: {', '.join(changed)}")
    print(f"{different} of {len(old | new)} items differ; by field: {dict(fields.most_common())}")
    return 1 if different else 0


def _load(path: Path) -> dict[str, Mapping[str, Any]]:
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {line["name"]: {"status": line["status"], **line["body"]} for line in lines}


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Names of the top-level fields that differ; a field that only the newer release has is no change."""
    for field in (old.keys() if old else new.keys()) - VOLATILE:
        if old.get(field) != new.get(field):
            yield field


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("url")
    recording.add_argument("out", type=Path)
    recording.add_argument("corpora", nargs="*", metavar="NAME:REVISION:CHECKOUT")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "record":
        return record(options.url, options.out, options.corpora)
    return compare(options.before, options.after)


if __name__ == "__main__":
    sys.exit(main())
