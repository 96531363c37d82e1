"""Fix commits as candidates for known defects, for a person to read: each with its range of releases and its diff.

A candidate is not knowledge: what goes wrong for a user, and whether anything does, is for the person to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trainmedic.ingest.update.history import UNRELEASED, History, Hunk, pull_of
from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.lazy import regex
from trainmedic.kb.serialization import to_json

MAX_DIFF = 7_000
"""Characters of a candidate's diff, tests left out."""
MAX_BODY = 1_500
_FIX = regex(
    r"fix|bug|wrong|incorrect|silent|crash|hang|deadlock|stuck|nan\b|inf\b|oom|leak|regress|broken|race|mismatch|missing"
    r"|prevent|avoid|handle|correct|restore|revert|respect|ignor|support .* resum|properly|ensure|don't|do not|修复",
    re.IGNORECASE,
)
_NOT_TRAINING = regex(
    r"\b(docs?|doc-builder|docstrings?|typos?|ci|lint|ruff|style|readme|changelog|tests?|testing|flaky|notebooks?|badge"
    r"|type hints?|typing|mypy|pre-commit|workflow|webui|gradio|studio|benchmarks?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefectCandidate:
    """One fix commit.

    ``introduced`` is empty where it cannot be told, ``fixed`` where no release has it; ``how`` is what
    `History.introduced` says of it.
    """

    package: str
    commit: str
    pull: str
    date: str
    subject: str
    body: str
    files: tuple[str, ...]
    introduced: str
    how: str
    fixed: str
    diff: str


def candidates(history: History, since: str = "", known: Collection[str] = ()) -> Iterator[DefectCandidate]:
    """The fix commits of the training code since a date (``2024-06-01``), newest first.

    Left out are those whose commit (its first 7 digits are enough) or pull request (``#4140``) is in ``known``, fixes
    that were reverted, and defects that no release ever had.
    """
    commits = tuple(_commits(history, since))
    reverted = {name for commit in commits for name in _reverts(commit)}
    skipped = frozenset(known)
    for commit, date, subject, body in commits:
        pull = pull_of(subject) or ""
        if not is_fix(subject) or known_as(commit, pull) & skipped or {commit, subject} & reverted:
            continue
        changes = history.hunks(commit)
        if not changes or sum(len(hunk.added) + len(hunk.removed) for hunk in changes) > 1_500:
            continue
        fixed = history.release_of(commit, subject)
        introduced, how = history.introduced(commit, changes, fixed)
        if how == "never released":
            continue
        yield DefectCandidate(
            package=history.package,
            commit=commit,
            pull=pull,
            date=date,
            subject=subject,
            body=body.strip()[:MAX_BODY],
            files=tuple(dict.fromkeys(hunk.path for hunk in changes)),
            introduced=introduced,
            how=how,
            fixed=fixed or UNRELEASED,
            diff=shown(changes)[:MAX_DIFF],
        )


def known_as(commit: str, pull: str) -> set[str]:
    """The names that a list of known candidates may have for a commit."""
    return {commit, commit[:7], *([f"#{pull}"] if pull else [])}


def _commits(history: History, since: str) -> Iterator[tuple[str, str, str, str]]:
    """Commit, date, subject and body of what touched the package's code, newest first."""
    options = [f"--since={since}"] if since else []
    log = history.git(
        "log", "--first-parent", "--format=%H%x1f%cs%x1f%s%x1f%b%x1e", *options, "HEAD", "--", *history.entry["code"]
    )
    for record in log.split("\x1e"):
        if record.strip():
            commit, date, subject, body = record.lstrip("\n").split("\x1f", 3)
            yield commit, date, subject, body


def _reverts(commit: tuple[str, str, str, str]) -> Iterator[str]:
    """The subject and the hash of the commit that a commit takes back."""
    _, _, subject, body = commit
    if subject.startswith('Revert "'):
        yield subject.removeprefix('Revert "').rpartition('"')[0]
        yield from (
            line.split()[3].rstrip(".") for line in body.splitlines() if line.startswith("This reverts commit ")
        )


def is_fix(subject: str) -> bool:
    """Whether a commit's subject speaks of a repair of what training runs. Taking a repair back is none."""
    if subject.startswith('Revert "') and _FIX.search(subject.removeprefix("Revert ")):
        return False
    return bool(_FIX.search(subject)) and not _NOT_TRAINING.search(subject)


def shown(changes: tuple[Hunk, ...]) -> str:
    """The changes as a diff, one header per file."""
    lines: list[str] = []
    path = ""
    for hunk in changes:
        if hunk.path != path:
            path = hunk.path
            lines.append(f"--- {path}")
        lines.append(f"@@ {hunk.start}")
        lines += [f"-{line}" for _, line in hunk.removed]
        lines += [f"+{line}" for line in hunk.added]
    return "\n".join(lines)


def added(file: Path, found: Iterable[DefectCandidate]) -> int:
    """Append candidates to a file, one JSON object a line, without those that it has; how many these are.

    Raises `InvalidRequest` if the file holds something else.
    """
    there = set(_in_file(file))
    new = [each for each in found if (each.package, each.commit or each.subject) not in there]
    with file.open("a", encoding="utf-8") as lines:
        lines.writelines(to_json(each) + "\n" for each in new)
    return len(new)


def _in_file(file: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file.exists() else (), start=1):
        try:
            entry = json.loads(line)
            yield entry["package"], entry["commit"] or entry["subject"]
        except (ValueError, KeyError, TypeError):
            raise InvalidRequest(f"{file}:{number}: not a candidate for a defect") from None


def known_names(defects: Iterable[Defect]) -> set[str]:
    """The commits and pull requests of defects, which `candidates` takes for known."""
    return {name for defect in defects for name in known_as(defect.commit, str(defect.pull or "")) if name}
