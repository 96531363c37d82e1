"""The git checkout that a team's pages are in, if they are in one. Nothing is ever pushed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file for everyone atomically, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def commit_page(path: Path, message: str) -> tuple[str, str]:
    """Commit this file alone with the checkout's own identity. Returns the short id of the commit and the problem.

    Both are empty if the folder is not a checkout. A page that is the same as before makes no commit.
    """
    if _git(path.parent, "rev-parse", "--is-inside-work-tree").stdout.strip() != "true":
        return "", ""
    added = _git(path.parent, "add", "--", path.name)
    if added.returncode:
        return "", _problem(added)
    if not _git(path.parent, "diff", "--cached", "--quiet", "--", path.name).returncode:
        return "", ""
    commit = _git(path.parent, "commit", "--quiet", f"--message={message}", "--", path.name)
    if commit.returncode:
        return "", _problem(commit)
    return _git(path.parent, "rev-parse", "--short", "HEAD").stdout.strip(), ""


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "git is not installed")


def _problem(process: subprocess.CompletedProcess[str]) -> str:
    return (process.stderr or process.stdout).strip() or f"git ended with {process.returncode}"
