"""Read-only mappings can be pickled once this is imported; Python itself has no way to."""

from __future__ import annotations

import copyreg
from types import MappingProxyType
from typing import Any


def _view(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(items)


copyreg.pickle(MappingProxyType, lambda view: (_view, (dict(view),)))
