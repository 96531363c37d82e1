"""The functions of the condition language and the checks of their arguments.

Fact calls ask `kb.engine.facts` and take literals only, which are checked when a page is loaded. Computations take any
expression and know nothing of the run. The special functions see the unknown itself, so `kb.engine.expressions`
compiles them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trainmedic.kb.engine.log_text import LEAST_LITERAL, literal_of
from trainmedic.kb.engine.memory_places import PLACES
from trainmedic.kb.engine.values import UNKNOWN, Result, is_number
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.hang.model import Kind
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Value
from trainmedic.kb.versions import parse_range

_PACKAGE = regex(r"[a-z0-9]+(-[a-z0-9]+)*")
_TEXT_LIMIT = 4096  # a pattern looks at no more of a user's text than this


@dataclass(frozen=True, slots=True)
class FactCall:
    """A fact: at least ``least`` and at most ``most`` literal arguments, each tested by the check in its place.

    A check returns what is wrong, or None; the last one serves all further arguments.
    """

    least: int
    most: int
    checks: tuple[Callable[[str, Vocabulary], str | None], ...]
    numbers: bool = False


def _setting(text: str, words: Vocabulary) -> str | None:
    return None if text in words.settings else f"{text!r} is not a canonical setting"


def _signal(text: str, words: Vocabulary) -> str | None:
    if not words.signals or text in words.signals:
        return None
    return f"{text!r} is not a kind of signal; choose from {', '.join(sorted(words.signals))}"


def _concept(text: str, words: Vocabulary) -> str | None:
    return f"{text!r} is not in the glossary" if words.concepts and text not in words.concepts else None


def _package(text: str, words: Vocabulary) -> str | None:
    return (
        None if _PACKAGE.fullmatch(text) else f"{text!r} is not a normalised package name; write it like 'flash-attn'"
    )


def _range(text: str, words: Vocabulary) -> str | None:
    try:
        parse_range(text)
    except ValueError as error:
        return str(error)
    return None


def _word(text: str, words: Vocabulary) -> str | None:
    return None if text else "an empty text finds nothing"


def _line(text: str, words: Vocabulary) -> str | None:
    if len(literal_of(text)) >= LEAST_LITERAL:
        return None
    return f"{text!r} needs {LEAST_LITERAL} characters in a row without a wildcard"


def _number(text: str, words: Vocabulary) -> str | None:
    return None if text.replace(".", "", 1).isdigit() else f"{text} is not a number"


def _place(text: str, words: Vocabulary) -> str | None:
    return None if text in PLACES else f"{text!r} is not a place; choose from {', '.join(PLACES)}"


def _flaw(text: str, words: Vocabulary) -> str | None:
    return None if not words.flaws or text in words.flaws else f"{text!r} is not a check of training code"


def _hang(text: str, words: Vocabulary) -> str | None:
    return None if text in tuple(Kind) else f"{text!r} is not a kind; choose from {', '.join(Kind)}"


_METRICS = ("metric", "metric_first", "metric_max", "metric_min", "metric_abs_max", "has_metric")
_OPTIONS = ("option", "has_option", "option_has_value", "option_origin")
FACT_CALLS: Mapping[str, FactCall] = {
    "version": FactCall(2, 2, (_package, _range)),
    "version_of": FactCall(1, 1, (_package,)),
    "pinned": FactCall(3, 3, (_package, _package, _range)),
    **dict.fromkeys(("signal", "seen", "stated", "onset"), FactCall(1, 1, (_signal,))),
    "said": FactCall(1, 8, (_concept,)),
    **dict.fromkeys(("traceback", *_METRICS), FactCall(1, 1, (_word,))),
    "all_finite": FactCall(1, 32, (_word,)),
    **dict.fromkeys(("written", "default_used"), FactCall(1, 1, (_setting,))),
    **dict.fromkeys(_OPTIONS, FactCall(1, 2, (_word,))),
    "in_traceback": FactCall(2, 16, (_word,)),
    "log_says": FactCall(1, 16, (_line,)),
    "code": FactCall(1, 1, (_flaw,)),
    "calls": FactCall(1, 8, (_word,)),
    **dict.fromkeys(("oom_in", "oom_size", "oom_frame"), FactCall(1, 8, (_place,))),
    "hang": FactCall(1, 8, (_hang,)),
    "card_below": FactCall(1, 1, (_number,), numbers=True),
    "card_name": FactCall(0, 1, (_word,)),
}


@dataclass(frozen=True, slots=True)
class Computation:
    """A function of values. Called only when all arguments are known; never raises."""

    least: int
    most: int
    call: Callable[..., Result]


def _abs(value: Value) -> Result:
    return abs(value) if is_number(value) else UNKNOWN


def _least(*values: Value) -> Result:
    numbers = [value for value in values if is_number(value)]
    return min(numbers) if len(numbers) == len(values) else UNKNOWN


def _greatest(*values: Value) -> Result:
    numbers = [value for value in values if is_number(value)]
    return max(numbers) if len(numbers) == len(values) else UNKNOWN


def _len(value: Value) -> Result:
    if value is None:
        return 0
    return len(value) if isinstance(value, (str, tuple, Mapping)) else UNKNOWN


def _lower(value: Value) -> Result:
    return value.lower() if isinstance(value, str) else UNKNOWN


def _texts(test: Callable[[str, str], bool]) -> Callable[[Value, Value], Result]:
    def compare(text: Value, part: Value) -> Result:
        if text is None or part is None:
            return False
        if not (isinstance(text, str) and isinstance(part, str)):
            return UNKNOWN
        return test(text[:_TEXT_LIMIT].lower(), part.lower())

    return compare


def _contains_any(text: Value, parts: Value) -> Result:
    if not isinstance(parts, tuple):
        return UNKNOWN
    found = [_contains(text, part) for part in parts]
    return True if True in found else UNKNOWN if UNKNOWN in found else False


_contains = _texts(lambda text, part: part in text)

COMPUTATIONS: Mapping[str, Computation] = {
    "abs": Computation(1, 1, _abs),
    "min": Computation(2, 16, _least),
    "max": Computation(2, 16, _greatest),
    "len": Computation(1, 1, _len),
    "lower": Computation(1, 1, _lower),
    "contains": Computation(2, 2, _contains),
    "contains_any": Computation(2, 2, _contains_any),
    "startswith": Computation(2, 2, _texts(str.startswith)),
    "endswith": Computation(2, 2, _texts(str.endswith)),
    "matches": Computation(2, 2, _texts(fnmatchcase)),
}

SPECIAL: Mapping[str, tuple[int, int]] = {"maybe": (1, 1), "certain": (1, 1), "known": (1, 1), "when_known": (1, 8)}
"""Least and greatest number of arguments."""
ALL_FUNCTIONS = tuple(sorted((*FACT_CALLS, *COMPUTATIONS, *SPECIAL)))
