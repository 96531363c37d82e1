"""How to write a canonical setting for a framework at a release, so that a fix is in the user's own terms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.catalogue import OptionInfo
from trainmedic.kb.frameworks.entries import owners
from trainmedic.kb.frameworks.profiles import CALLS, INHERITS, Words, profiles
from trainmedic.kb.frameworks.settings import Key, Spec, specs
from trainmedic.kb.model.run import CAST, Origin, Value
from trainmedic.kb.versions import version_key

_CONSTANTS = (
    "not",
    "first",
    "second",
    "is_bf16",
    "is_fp16",
    "bf16_switch",
    "flash_switch",
    "llamafactory_attention",
    "offloads",
    "recomputes",
    "class_name",
    "if_set",
)
_DTYPE_LONG = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "auto": "auto"}
_ATTENTION_LONG = {"flash2": "flash_attention_2", "flash3": "flash_attention_3", "flex": "flex_attention"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """Write ``key`` with ``raw`` as its text (None: a bare flag), after removing the options named in ``drop``.

    ``key`` None: removing is all there is to do.
    """

    key: str | None
    raw: str | None
    drop: tuple[str, ...] = ()


def spelling(
    framework: str,
    name: str,
    value: Value,
    version: str | None = None,
    origin: Origin = Origin.FLAG,
    *,
    algorithm: str | None = None,
    prefer: str | None = None,
    scope: str = "",
) -> Spelling | None:
    """How ``name`` = ``value`` is written; None where the framework (at ``version``) cannot say it.

    ``prefer`` is the key the user wrote: it is kept where it can say the value and, if there is a version, exists in
    it. Without a version the newest release decides; a release without the algorithm's command stands for the last
    one that has it. ``scope`` is the call it is written into: a ``LoraConfig`` spells it as PEFT does,
    ``from_pretrained`` as the model classes do. ``drop`` names the other spellings of the same setting.
    """
    spec = specs().get(name)
    if spec is None:
        return None
    column = column_of(scope)
    if column:
        framework, version = column, None
    mine = () if column else owners(framework, algorithm)
    version = _with_command(framework, version, mine)
    keys = [key for key in spec.keys(framework) if key.fits(algorithm)]
    alive: list[tuple[Key, OptionInfo | bool]] = []
    for key in keys:
        usable = True if column == "model" else _usable(framework, key, version, mine, origin, prefer)
        if usable is not None:
            alive.append((key, usable))
    if prefer is not None:
        alive.sort(key=lambda pair: pair[0].key != prefer)
    for key, info in alive:
        text = _write(framework, spec, key, info, value)
        if text is None:
            continue
        others = tuple(other.key for other, _ in alive if other.key != key.key)
        if text == "":
            return Spelling(key=None, raw=None, drop=(key.key, *others))
        if isinstance(info, OptionInfo) and info.switch:
            return Spelling(key=key.key, raw=None, drop=others)
        return Spelling(key=key.key, raw=_in_file(text, origin), drop=others)
    return None


def column_of(scope: str) -> str:
    """The library whose names a call uses instead of the framework's: peft, bnb or model; else empty."""
    return CALLS.get(scope) or {"BitsAndBytesConfig": "bnb", "from_pretrained": "model", CAST: "model"}.get(scope, "")


def _with_command(framework: str, version: str | None, mine: tuple[str, ...]) -> str | None:
    """The release whose words are used: ``version``, or the last one before it that has the algorithm's command."""
    if not mine:
        return version
    known = catalogue.versions(framework)
    upto = version or (known[-1] if known else "")
    if not known or set(mine) & catalogue.commands(framework, upto):
        return version
    earlier = [release for release in known if version_key(release) <= version_key(upto)]
    return next(
        (release for release in reversed(earlier) if set(mine) & catalogue.commands(framework, release)), version
    )


def _usable(
    framework: str, key: Key, version: str | None, mine: tuple[str, ...], origin: Origin, prefer: str | None
) -> OptionInfo | bool | None:
    """The option if the release has it (True for an entry of an open dictionary)."""
    info = catalogue.option("bitsandbytes-config" if framework == "bnb" else framework, key.key, version)
    if info is None or info.abbreviated:
        head = key.key.split(".", 1)[0]
        open_entry = "." in key.key and origin is not Origin.FLAG and catalogue.option(framework, head, version)
        return True if open_entry and head.endswith(("kwargs", "config", "deepspeed")) else None
    if version is None and key.key == prefer:
        return info
    if version is None and info.last is not None:
        return None
    if mine and info.framework == framework and not set(mine) & set(info.owners):
        # a class that does not declare it again has it from TrainingArguments
        return info if framework in INHERITS and catalogue.exists("transformers", key.key, None) else None
    return info


def _write(framework: str, spec: Spec, key: Key, info: OptionInfo | bool, value: Value) -> str | None:
    """The text of ``value``; "" to leave the option out; None if this key cannot express it."""
    switch = isinstance(info, OptionInfo) and info.switch
    words = profiles()[framework].words if framework in profiles() else Words()
    if key.how:
        return _write_special(key, value, switch, words)
    if value is None:
        return words.nothing
    if spec.kind == "flag" or isinstance(value, bool):
        if switch:
            return "true" if value is True else ""
        return "true" if value is True else "false"
    if spec.kind == "dtype":
        text = _dtype(words, str(value), info)
        if framework in ("model", "bnb") and value != "auto":
            text = f"torch.{text}"
    elif spec.kind == "attention":
        text = (words.attention or _ATTENTION_LONG).get(str(value), str(value))
    elif spec.kind == "targets" and value == ("all-linear",):
        text = words.all_linear
    elif isinstance(value, tuple):
        text = words.joint.join(_number(item) for item in value)
    else:
        text = _number(value)
    choices = info.choices if isinstance(info, OptionInfo) else ()
    return text if not choices or text in {str(choice) for choice in choices} else None


def _write_special(key: Key, value: Value, switch: bool, words: Words) -> str | None:
    match key.how:
        case "not":
            on = value is False
            return "true" if on else "" if switch else "false"
        case "bf16_switch":
            return {"bf16": "true", "auto": ""}.get(str(value))
        case "flash_switch":
            return {"flash2": "true", "eager": "" if switch else "false"}.get(str(value))
        case "llamafactory_attention":
            return words.attention.get(str(value))
        case "is_bf16" | "is_fp16":
            return key.how[3:] if value is True else None
        case "offloads":
            return "cpu" if value is True else "none"
        case "recomputes":
            return "full" if value is True else ""
        case how if how not in _CONSTANTS:
            return "true" if value == how or value == (how,) else None
        case _:
            return None


def _dtype(words: Words, word: str, info: OptionInfo | bool) -> str:
    """bf16 as this option spells it: by its choices, else the short word where the framework takes it."""
    choices = {str(choice) for choice in info.choices} if isinstance(info, OptionInfo) else set()
    if word in choices or (words.short_dtypes and not choices):
        return word
    return _DTYPE_LONG.get(word, word)


def _number(value: Value) -> str:
    if isinstance(value, float):
        return re.sub(r"e([+-])0+(?=\d)", r"e\1", f"{value:g}").replace("e+", "e")
    return str(value)


def _in_file(text: str, origin: Origin) -> str:
    """Text as the file format needs it: quoted in JSON and Python; ``1.0e-6`` in YAML, where 1e-6 is text."""
    if origin in (Origin.JSON, Origin.PYTHON, Origin.DUMP):
        if text in ("true", "false"):
            return text if origin is Origin.JSON else text.capitalize()
        if _is_number(text) or text.startswith("torch."):
            return text
        return f'"{text}"'
    if origin is Origin.YAML and "e" in text and _is_number(text) and "." not in text:
        return text.replace("e", ".0e", 1)
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text not in ("nan", "inf", "infinity")
