"""How a release's configuration classes transform the given values, according to their source."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from trainmedic.kb.effective.model import Effective, Outcome, Outcomes
from trainmedic.kb.effective.written import known_as
from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.model.run import Value
from trainmedic.kb.sources.initialising import UNKNOWN, initialised
from trainmedic.kb.sources.tree import SourceTree

TreeOf = Callable[[str, str], SourceTree | None]
_LOG = logging.getLogger(__name__)


def by_source(tree_of: TreeOf) -> Callable[[Effective], Outcomes]:
    """Reads the classes of a run where the source of its release is at hand, and that of what they extend."""
    return lambda found: _outcomes(found, tree_of)


def _outcomes(found: Effective, tree_of: TreeOf) -> Outcomes:
    profile = profiles().get(known_as(found.framework))
    classes = [owner for owner in found.owners if owner[:1].isupper()]
    if profile is None or len(found.releases) != 1 or found.partial or not classes:
        return {}
    tree = tree_of(profile.package, found.releases[0])
    base = tree_of(profile.inherits, found.transformers) if profile.inherits and found.transformers else None
    if tree is None:
        return {}
    outcomes: dict[str, Outcome] = {}
    given = {row.name: _plain(row.value) for row in found.rows if not row.part and row.kind in _KNOWN}
    for name in classes:
        try:
            made = initialised(name, tree, *([base] if base is not None else []), values=given)
        except (NotFound, SourceError) as error:
            _LOG.info("%s of %s %s is not followed: %s", name, tree.package, tree.version, error)
            continue
        outcomes |= {
            key: (known, None if value is UNKNOWN else _frozen(value), at) for key, (known, value, at) in made.items()
        }
    return outcomes


_KNOWN = ("written", "default", "derived")


def _plain(value: Value) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Value:
    frozen: Value = tuple(_frozen(item) for item in value) if isinstance(value, list) else value
    return frozen
