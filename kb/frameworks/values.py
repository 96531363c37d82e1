"""One way to write each value: dtypes, attention, numbers, switches.

`normalise` never fails: what it cannot read stays the user's own text, so that a rule compares with what was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Unresolved, Value


class Nothing:
    """The option does not decide the setting (an axolotl ``sdp_attention: false``)."""


NOTHING: Final = Nothing()

_SPELLINGS = load_table("frameworks/data/values.toml")
DTYPES: Mapping[str, str] = {word: dtype for dtype, words in _SPELLINGS["dtypes"].items() for word in words}
ATTENTION: Mapping[str, str] = {word: name for name, words in _SPELLINGS["attention"].items() for word in words}
_LONGEST = 300  # digits: a longer number is text, for nothing can be reckoned with it
_NUMBER = regex(r"^[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][+-]?\d+)?$")
_TRUE = ("true", "yes", "on", "1", "t", "y")
_FALSE = ("false", "no", "off", "0", "f", "n")
_UNSET = ("none", "null", "~", "")


def normalise(kind: str, how: str, value: Value, *, negated: bool = False) -> Value | Nothing:
    """``value`` as the canonical setting has it.

    ``kind`` is the setting's kind, ``how`` the reading of this spelling, ``negated`` where it was a ``--no_x`` switch.
    """
    if isinstance(value, Unresolved):
        return value
    if negated:
        value = False
    if how:
        return _special(kind, how, value)
    return _plain(kind, value)


def _plain(kind: str, value: Value) -> Value:
    if isinstance(value, str) and value.strip().lower() in _UNSET:
        return None
    if value is None or isinstance(value, Unresolved):
        return value
    match kind:
        case "int" | "number":
            return number(value)
        case "flag":
            return truth(value)
        case "dtype":
            return dtype(value)
        case "enum":
            return str(value).strip().rpartition(".")[2].upper()
        case "attention":
            return attention(value)
        case "list":
            return items(value)
        case "targets":
            found = items(value)
            return ("all-linear",) if found in (("all",), ("all-linear",)) else found
        case _:
            return value


def _special(kind: str, how: str, value: Value) -> Value | Nothing:
    if value is None and how not in ("bf16_switch", "flash_switch"):
        return NOTHING if how in ("first", "second") or kind in ("attention", "targets", "dtype", "text") else None
    match how:
        case "not":
            answer = truth(value)
            return not answer if isinstance(answer, bool) else answer
        case "first" | "second":
            pair = tuple(number(item) for item in _sequence(value))
            return pair[how == "second"] if len(pair) == 2 else NOTHING
        case "is_bf16" | "is_fp16":
            return dtype(value) == how[3:]
        case "bf16_switch":
            return "bf16" if truth(value) is True else "auto"
        case "flash_switch":
            return "flash2" if truth(value) is True else "eager"
        case "llamafactory_attention":
            return attention(value) if not isinstance(value, bool) else ("flash2" if value else "eager")
        case "if_set":
            return _plain(kind, value)
        case "class_name":
            return str(value).rpartition(".")[2]
        case "offloads" | "recomputes":
            return str(value).lower() not in ("none", "false", "")
        case _:
            return how if truth(value) is True else NOTHING


def number(value: Value) -> Value:
    if isinstance(value, str) and len(value) <= _LONGEST and _NUMBER.match(value.strip()):
        text = value.strip().replace("_", "")
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    return value


def truth(value: Value) -> Value:
    if isinstance(value, str):
        text = value.strip().lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value in (0, 1):
        return bool(value)
    return value


def dtype(value: Value) -> Value:
    """One word for a dtype: ``torch.half``, ``"half"``, ``float16`` and ``np.float16`` are all ``fp16``."""
    text = str(value).strip().lower()
    return DTYPES.get(text) or DTYPES.get(text.rpartition(".")[2], value)


def attention(value: Value) -> Value:
    """One word for an attention implementation; hub kernels by what they hold."""
    if isinstance(value, bool):
        return "flash2" if value else "eager"
    text = str(value).strip().lower()
    if "/" in text and "flash-attn" in text:
        return "flash3" if "3" in text.rsplit("/", 1)[1] else "flash2"
    return ATTENTION.get(text, value)


def items(value: Value) -> Value:
    """A list, or text with commas or blanks between the items, as a tuple."""
    if isinstance(value, str):
        text = value.strip().strip("[]")
        if any(sign in text for sign in "(|^$*\\"):
            return (value,)
        return tuple(part.strip().strip("'\"") for part in re.split(r"[,\s]+", text) if part.strip())
    return value if isinstance(value, tuple) else (value,)


def _sequence(value: Value) -> tuple[Value, ...]:
    found = items(value)
    return found if isinstance(found, tuple) else (found,)
