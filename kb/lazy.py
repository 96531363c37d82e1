"""Regular expressions that are compiled when they are first used.

There are hundreds, most runs use a few, and compiling all of them takes a fifth of the time of a check.
"""

from __future__ import annotations

import re
from typing import AnyStr, Generic, cast

_USED = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "pattern", "flags", "groups")


class _Regex(Generic[AnyStr]):
    def __init__(self, text: AnyStr, flags: int) -> None:
        self._source: tuple[AnyStr, int] = (text, flags)

    def __getattr__(self, name: str) -> object:
        """An attribute that the first use finds missing. From then on they are attributes of the instance: as fast."""
        compiled = re.compile(*self._source)
        self.__dict__.update({name: getattr(compiled, name) for name in _USED})
        return getattr(compiled, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, for patterns of modules; one that is wrong raises at its first use.

    Not for patterns that are compared with ``match.re``, or handed to a library that looks at their type.
    """
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))
