"""Cases of milliseconds in one test that tells of all that fail: a test for each costs more than the case."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

Case = TypeVar("Case")
MANY = os.environ.get("HYPOTHESIS_PROFILE") == "ci"


def some(cases: Iterable[Case], step: int) -> list[Case]:
    """Every ``step``-th of cases that differ little; all of them where generated examples are many too."""
    return list(cases)[:: 1 if MANY else step]


def every_case(
    names: str | Sequence[str], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """In place of ``pytest.mark.parametrize``; the cases share the test's fixtures."""
    wanted, listed = (names,) if isinstance(names, str) else tuple(names), list(cases)

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def every(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for case in listed:
                values = dict(zip(wanted, (case,) if len(wanted) == 1 else case, strict=True))
                try:
                    test(**fixtures, **values)
                except Exception as error:
                    error.add_note(f"case: {values!r:.400}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(listed)} cases", failures)

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        every.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return every

    return decorated
