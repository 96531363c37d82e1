"""Every option name that any framework has in any catalogued release: what can be an option at all."""

from __future__ import annotations

from functools import cache

from trainmedic.kb.frameworks.canonical import SETTINGS
from trainmedic.kb.frameworks.catalogue import frameworks
from trainmedic.kb.frameworks.tables import table


@cache
def option_names() -> frozenset[str]:
    """All names, dashes as underscores; of dotted names their last part as well; the canonical settings too."""
    names: set[str] = set(SETTINGS)
    for framework in frameworks():
        found = table(framework)
        if found is not None:
            names.update(name.replace("-", "_") for name in found.names)
    return frozenset(names | {name.rpartition(".")[2] for name in names})


def is_option(name: str) -> bool:
    """Whether some framework has an option of this name; leading dashes do not count, ``-`` is ``_``."""
    return name.lstrip("-").replace("-", "_") in option_names()
