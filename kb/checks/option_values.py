"""Whether a reader takes a value: numbers, switches and words of a closed list, as that reader reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from trainmedic.kb.checks.option_verdicts import KNOWN, RETIRED, Reader, Verdict
from trainmedic.kb.frameworks.catalogue import OptionInfo
from trainmedic.kb.frameworks.profiles import BASE, INHERITS, profiles
from trainmedic.kb.frameworks.tables import of_tables, table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, Unresolved, Value
from trainmedic.kb.suggest import closest
from trainmedic.kb.versions import version_key

_OPTIONAL = regex(r"^Optional\[(.*)\]$|^(.*?) \| None$")
_WORDS = frozenset(["yes", "true", "t", "y", "1", "no", "false", "f", "n", "0"])
_PYDANTIC_WORDS = _WORDS | {"on", "off"}
_PLACEHOLDER = regex(r"[$<>{}]|^\.\.\.$|^x+$|^X+$|your", re.IGNORECASE)
_LITERAL = regex(r"^Literal\[[^\[\]]*\](?: \| None)?$")


@lru_cache(maxsize=512)
def plain(text: str) -> str:
    """``int | None`` and ``Optional[int]`` as ``int``."""
    match = _OPTIONAL.match(text)
    return (match[1] or match[2]) if match else text


def readable(option: Option, verdict: Verdict) -> OptionInfo | None:
    """The option, where its value can be judged: an accepted name with a value that is written out."""
    info = verdict.info
    if info is None or verdict.kind not in (KNOWN, RETIRED) or info.negated or option.origin is Origin.DUMP:
        return None
    if "." in option.key and "." not in verdict.name:
        return None  # an entry of a mapping, not the option itself
    if isinstance(option.value, Unresolved) or (option.raw is not None and _PLACEHOLDER.search(option.raw)):
        return None
    return info


def _declared(reader: Reader, info: OptionInfo, what: str) -> tuple[object, ...]:
    """``choices`` or ``type`` at every catalogued release that the run may use, for the command or class in use."""
    release = reader.exact if info.framework == reader.catalogue else reader.inherits
    return _declared_at(info.framework, info.key, what, release, reader.owners)


@of_tables
@lru_cache(maxsize=4096)
def _declared_at(
    framework: str, key: str, what: str, release: str | None, owners: tuple[str, ...]
) -> tuple[object, ...]:
    known = table(framework)
    if known is None:
        return ()
    places: Sequence[str] = known.versions
    if release is not None:
        wanted = version_key(release)
        before = [version for version in places if version_key(version) <= wanted]
        after = [version for version in places if version_key(version) >= wanted]
        places = (*before[-1:], *after[:1])
    declarations = []
    for version in places:
        declared = known.info(key, version)
        if declared is not None:
            special = [declared.get(f"{what}_by", {})[o] for o in owners if o in declared.get(f"{what}_by", {})]
            declarations.append(special[0] if special else declared.get(what))
    return tuple(declarations)


def choices(reader: Reader, info: OptionInfo) -> tuple[str, ...]:
    """Every word that one of the releases in question takes; empty where one of them takes any."""
    lists = _declared(reader, info, "choices")
    if not lists or not all(isinstance(words, list) for words in lists):
        return ()
    return tuple(dict.fromkeys(str(word) for words in lists if isinstance(words, list) for word in words))


def wrong_type(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
    """Why the reader cannot take the value as the number or switch that it wants, in both languages."""
    info = readable(option, verdict)
    if info is None or option.raw is None or info.nargs is not None or info.choices:
        return None
    kinds = {plain(str(declared)) for declared in _declared(reader, info, "type")}
    wanted = kinds.pop() if len(kinds) == 1 else ""
    if wanted not in ("int", "float", "bool"):
        return None
    if reader.how == "argparse" and _takes_none(option, reader):
        return None
    if reader.how == "argparse":
        refused = (
            not info.switch
            and isinstance(option.value, str | int | float | bool | None)
            and _refuses(wanted, option.raw)
        )
    elif reader.how == "pydantic":
        refused = _schema_refuses(wanted, option.value)
    else:
        refused = False
    if not refused:
        return None
    value = option.raw if len(option.raw) <= 40 else option.raw[:40] + "…"
    en = {"int": "a whole number", "float": "a number", "bool": "true or false"}[wanted]
    zh = {"int": "整数", "float": "数字", "bool": "true 或 false"}[wanted]
    return f"{value!r} is not {en}", f"{value!r} 不是{zh}"


def _takes_none(option: Option, reader: Reader) -> bool:
    """Whether ``none`` may stand for nothing."""
    since = profiles()[reader.catalogue].none_since
    if not since or (option.raw or "").lower() not in ("none", "null"):
        return False
    return reader.exact is None or version_key(reader.exact) >= version_key(since)


def _refuses(wanted: str, raw: str) -> bool:
    """As Python's ``int`` and ``float`` and the HF parser's words for truth."""
    text = raw.strip("'\"")
    try:
        if wanted == "int":
            int(text)
        elif wanted == "float":
            float(text)
        else:
            return text.lower() not in _WORDS
    except ValueError:
        return True
    return False


def _schema_refuses(wanted: str, value: Value) -> bool:
    if value is None or isinstance(value, bool):
        return False
    if isinstance(value, tuple | Mapping):
        return True
    if wanted == "bool":
        return str(value).lower() not in _PYDANTIC_WORDS
    if isinstance(value, float) and wanted == "int":
        return not value.is_integer()
    return isinstance(value, str) and _refuses(wanted, value)


def not_a_choice(option: Option, reader: Reader, verdict: Verdict) -> tuple[str, str] | None:
    """Why the value is none of the option's closed list, with the nearest of them."""
    info = readable(option, verdict)
    if info is None or option.raw is None or not info.choices or info.nargs is not None:
        return None
    if not _checks(reader, info) or isinstance(option.value, bool | tuple | Mapping) or option.value is None:
        return None
    text = option.raw.strip("'\"")
    known = choices(reader, info)
    if not known or text in known or "." in text or "(" in text:
        return None
    lowered = {word.lower(): word for word in known}
    near = closest(text.lower(), lowered, limit=max(1, min(3, len(text) // 3)))
    if near is not None:
        near = lowered[near]
        return f"{text!r}: did you mean {near!r}?", f"{text!r}：是不是 {near!r}？"
    words = [word for word in known if word != "None"]
    listed = ", ".join(words[:12]) + (" …" if len(words) > 12 else "")
    return f"{text!r} is none of {listed}", f"{text!r} 不在可选值里（{listed}）"


def _checks(reader: Reader, info: OptionInfo) -> bool:
    """Whether it refuses another word: argparse does, a schema what it declares so, and code what its profile says."""
    checked = info.key in profiles()[info.framework].checked
    if info.framework == BASE:
        return checked and (reader.exact is not None or reader.how == "argparse")
    match reader.how:
        case "argparse":
            return reader.exact is not None or info.last is None
        case "dict" | "call":
            return checked
        case "pydantic":
            return checked or bool(_LITERAL.match(info.type or ""))
        case _:
            return False


def takes_no_value(option: Option, reader: Reader, verdict: Verdict) -> bool:
    info = readable(option, verdict)
    if info is None or reader.how != "argparse" or option.raw is None:
        return False
    return info.switch and option.origin is Origin.FLAG


def lacks_value(option: Option, reader: Reader, verdict: Verdict) -> bool:
    info = readable(option, verdict)
    if info is None or reader.how != "argparse" or option.raw is not None or info.switch or info.nargs in ("?", "*"):
        return False
    if option.origin is not Origin.FLAG or option.value is not True:
        return False
    base = table(BASE)
    if reader.exact is None and info.framework in INHERITS and base is not None and info.key in base.names:
        return False  # older releases inherited it, with another type perhaps
    types = [str(declared) for declared in _declared(reader, info, "type")]
    if all(plain(name) == "bool" for name in types):
        unset = info.default is None and info.default_known and not info.default_by
        return unset and bool(types) and "bool" not in types
    return bool(types) and not any("bool" in name or name == "None" for name in types)
