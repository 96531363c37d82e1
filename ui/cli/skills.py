"""Tell coding agents on this machine when and how to call trainmedic: a skill file for them.

Without --target it goes into the skills folder of each agent that has a folder in your home directory (.agents,
.claude, .codex), and into .agents if there is none.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from trainmedic.ui.cli._input import write

FREES_NOTHING = True
AGENTS = (".agents", ".claude", ".codex")
NAME = "trainmedic/SKILL.md"


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="install|show", required=True)
    install = actions.add_parser("install", help=f"write {NAME} into the skills folders")
    install.add_argument("--target", type=Path, metavar="DIR", help="only this skills folder")
    actions.add_parser("show", help="print the file")


def run(options: argparse.Namespace) -> int:
    from trainmedic.ui import doctor

    text = (Path(doctor.__path__[0]) / "SKILL.md").read_text(encoding="utf-8")
    if options.action == "show":
        sys.stdout.write(text)
        return 0
    for folder in [options.target] if options.target is not None else _folders():
        file = folder / NAME
        with suppress(OSError):  # writing says what is wrong
            file.parent.mkdir(parents=True, exist_ok=True)
        write(str(file), text.encode())
        print(file)
    return 0


def _folders() -> list[Path]:
    home = Path.home()
    return [home / name / "skills" for name in AGENTS if (home / name).is_dir()] or [home / AGENTS[0] / "skills"]
