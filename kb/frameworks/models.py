"""The model that a run trains, and its family: by options, by a path, or by the user's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.entries import class_entry
from trainmedic.kb.frameworks.mentions import GEMMA2, Line, span_in, where
from trainmedic.kb.frameworks.profiles import BASE
from trainmedic.kb.frameworks.settings import index
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Option, Origin, Recognised, Unresolved, Value

_MODELS = load_table("frameworks/data/models.toml")
_FAMILIES = tuple(
    (name, regex(("" if name == "gemma2" else "(?<![a-z0-9])") + f"(?:{pattern.replace('<sep>', '[-_ .:]?')})"))
    for name, pattern in _MODELS["families"]
)
_FAMILY_OF_TYPE = {model_type: family for family, types in _MODELS["types"].items() for model_type in types}
_ATTRIBUTE = regex(r"[A-Za-z_]\w*\.([A-Za-z_]\w*)")
_SIZE = regex(r"[\w.\-/]*?[- ]?(?<![0-9.])[0-9]{1,4}(?:\.[0-9]{1,2})?[bB](?![A-Za-z0-9])[\w.\-]*", re.ASCII)


def named_model(framework: str | None, options: Sequence[Option]) -> Recognised | None:
    """The model by name or path; a path with an unresolved variable counts for its last part (``$DIR/Qwen2-7B``)."""
    columns = [framework] if framework not in (None, BASE) else ["trl", "openrlhf", "axolotl", "ms-swift"]
    tokenizers = [option for option in options if _names_tokenizer(option)]
    best: tuple[int, str, Option] | None = None
    flags = {option.key.replace("-", "_"): option for option in options if option.origin is Origin.FLAG}
    for option in options:
        name, rank = _written_name(option.value), 9
        if not name and isinstance(option.value, Unresolved) and (given := _argument(option.value, flags)):
            name = _written_name(given.value)
            option = replace(option, span=given.span, value_span=given.value_span)
        if not name:
            continue
        if option.scope == "from_pretrained" and option.key in ("pretrained_model_name_or_path", "0", "model_name"):
            rank = 2
        elif tokenizers == [option]:
            rank = 3
        elif option.scope.endswith("Trainer") and option.key == "model":
            rank = 1
        elif (not option.scope or class_entry(option.scope) is not None) and _means_model(columns, option.key):
            rank = 0
        if rank < 9 and (best is None or rank < best[0]):
            best = (rank, name, option)
    if best is None:
        return None
    _, name, option = best
    return Recognised(value=name, reason=option.key, span=option.value_span or option.span)


def mentioned_model(prose: Sequence[Line]) -> Recognised | None:
    """The first model that is named with its size: ``Qwen2.5-7B``, ``llama3 8b``."""
    for line in prose:
        named = find_family(line[2])
        if named is None:
            continue
        size = _SIZE.match(line[2], named[1])
        if size is not None:
            span = span_in(line, size.start(), size.start() + len(size[0].rstrip(".-")))
            return Recognised(value=span.text, reason=where(line), span=span)
    return None


def _argument(value: Unresolved, flags: Mapping[str, Option]) -> Option | None:
    """The flag that a script's ``args.model`` holds, if the command gives it."""
    attribute = _ATTRIBUTE.fullmatch(value.raw)
    return flags.get(attribute[1]) if attribute is not None else None


def _written_name(value: Value) -> str:
    if isinstance(value, Unresolved):
        _, slash, last = value.raw.strip("'\"").rpartition("/")
        return last if slash and re.fullmatch(r"[\w.\-]+", last) else ""
    return value if isinstance(value, str) else ""


def _means_model(columns: Sequence[str], key: str) -> bool:
    if key == "model.path" and columns == ["verl"]:
        return True  # the engine-based SFT trainer; its files take the model's group from elsewhere
    return any(spec.name == "model" for column in columns for spec, _ in index(column).get(key, ()))


def _names_tokenizer(option: Option) -> bool:
    return option.scope.endswith("Tokenizer.from_pretrained") and option.key == "pretrained_model_name_or_path"


def family_of(model: Recognised | None, options: Sequence[Option], prose: Sequence[Line]) -> Recognised | None:
    if model is not None:
        family = model_family(model.value)
        if family is not None:
            return Recognised(value=family, reason=f"model {model.value}", span=model.span)
    for option in options:
        if option.key.rsplit(".", 1)[-1] == "model_type" and isinstance(option.value, str):
            family = family_of_type(option.value) or model_family(option.value)
            if family is not None:
                return Recognised(value=family, reason=f"model_type {option.value}", span=option.span)
    for line in prose:
        named = find_family(line[2])
        if named is not None:
            family, start, end = named
            return Recognised(value=family, reason=where(line), span=span_in(line, start, end))
    bare = ((line, GEMMA2.search(line[2])) for line in prose) if model is None else ()
    mention = next(((line, match) for line, match in bare if match is not None), None)
    if mention is not None:
        line, match = mention
        return Recognised(value="gemma2", reason=where(line), span=span_in(line, match.start(), match.end()))
    return None


def model_family(text: str) -> str | None:
    """The family that a model id or path names. Later parts of a path take precedence."""
    parts = [part for part in text.strip().rstrip("/").split("/") if part]
    for part in reversed(parts):
        match = find_family(part)
        if match is not None:
            return match[0]
    return None


@lru_cache(maxsize=512)
def find_family(text: str) -> tuple[str, int, int] | None:
    """(family, start, end) of the first family named in ``text``; on the same spot the first one listed."""
    lowered = text.lower()
    best: tuple[int, int, str, int] | None = None
    for order, (name, pattern) in enumerate(_FAMILIES):
        match = pattern.search(lowered)
        if match and (best is None or (match.start(), order) < best[:2]):
            best = (match.start(), order, name, match.end())
    return (best[2], best[0], best[3]) if best else None


def family_of_type(model_type: str) -> str | None:
    return _FAMILY_OF_TYPE.get(model_type.strip().lower())
