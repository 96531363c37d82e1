"""Whether a configuration is all that the program is given, or an excerpt in which an absent option is unknown.

A command that names its program is whole, and so is a file that was attached under a configuration file's name.
Lines in a question are whole only if they hold what no run can do without; people mostly paste the few they suspect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.profiles import FOREIGN
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.model.run import Option, Region
from trainmedic.kb.parse.source import Piece

_WORDS = load_table("parse/data/words.toml")
_ENDINGS = tuple(ending for kind, endings in _WORDS["endings"].items() if kind != "log" for ending in endings)
_ENOUGH_IN_A_FILE = 2
_ENOUGH_IN_A_CALL = 6
_ENOUGH_LINES = 16
_ELLIPSES = ("...", "…", "……", "....", ".....", "......", "etc", "etc.", "省略", "略", "<snip>", "[snip]", "snip")
_AROUND = " \t#/,*-\\+|;()[]{}<>"


def elided(piece: Piece) -> bool:
    """Whether a line is only an ellipsis: ``...``, ``# ...``, ``… \\``."""
    text = piece.text
    if "..." not in text and "…" not in text and "snip" not in text and "etc" not in text and "略" not in text:
        return False
    return any(line.strip(_AROUND).lower() in _ELLIPSES for line in text.split("\n") if len(line) < 80)


def excerpt(region: Region, options: Sequence[Option], name: str) -> bool:
    """Whether a run's main ``region`` is only an excerpt of its configuration.

    ``options`` are those of the whole run, ``name`` the file that the region is said to be.
    """
    own = [option for option in options if option.scope not in FOREIGN]
    if region.source is not None and name.lower().endswith(_ENDINGS):
        return len(own) < _ENOUGH_IN_A_FILE and not _names(own, "model")
    if region.kind in ("command", "dump") or len(own) >= _ENOUGH_LINES:
        return False
    if region.kind == "python":
        return len(own) < _ENOUGH_IN_A_CALL and not _names(own, "output_dir")
    return not (_names(own, "model") and _names(own, "dataset", "output_dir"))


def _names(options: Iterable[Option], *settings: str) -> bool:
    spellings = _spellings(settings)
    return any(option.key in spellings or option.key.partition(".")[0] in spellings for option in options)


@cache
def _spellings(settings: tuple[str, ...]) -> frozenset[str]:
    return frozenset(key.key for name in settings for keys in specs()[name].columns.values() for key in keys)
