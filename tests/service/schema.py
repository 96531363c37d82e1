"""A validator for what the published OpenAPI description uses of JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
KNOWN = {
    "$ref", "type", "properties", "required", "items", "anyOf", "enum", "const", "additionalProperties", "title",
    "description", "default", "minLength", "maxLength", "pattern", "minimum", "maximum", "minItems",
    "exclusiveMinimum", "propertyNames",
}  # fmt: skip


def problems(value: object, schema: Mapping[str, Any], document: Mapping[str, Any], at: str = "$") -> Iterator[str]:
    """What is wrong with ``value``. A keyword that this validator does not know is a problem too. Extra keys are."""
    unknown = set(schema) - KNOWN
    if unknown:
        yield f"{at}: the schema uses {sorted(unknown)}"
    if "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from problems(value, target, document, at)
    if "anyOf" in schema and all(any(True for _ in problems(value, s, document, at)) for s in schema["anyOf"]):
        yield f"{at}: {value!r:.80} is none of the alternatives"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r:.80} is not one of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r:.80} is not {schema['const']}"
    if "type" in schema and (
        not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean")
    ):
        yield f"{at}: {value!r:.80} is no {schema['type']}"
        return
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from problems(item, schema["items"], document, f"{at}[{number}]")
    if isinstance(value, dict) and schema.get("type") == "object":
        yield from _object(value, schema, document, at)


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], document: Mapping[str, Any], at: str) -> Iterator[str]:
    named = schema.get("properties", {})
    yield from (f"{at}: {key} is missing" for key in schema.get("required", ()) if key not in value)
    more = schema.get("additionalProperties", not named)
    for key, item in value.items():
        if key in named:
            yield from problems(item, named[key], document, f"{at}.{key}")
        elif isinstance(more, Mapping):
            yield from problems(item, more, document, f"{at}.{key}")
        elif not more:
            yield f"{at}: {key} is not described"
