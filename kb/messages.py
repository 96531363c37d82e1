"""User-visible text in English and Chinese: one TOML catalogue for each package that speaks to users.

A catalogue is a file ``messages.toml`` beside the code that uses it. Each message is a table with one text per
language, a ``str.format`` template; English may give two plural forms, chosen by the value ``count``. Tables nest, and
a message is named by its dotted path::

    [receipt]
    en = "Read: {inputs}."
    zh = "已读取：{inputs}。"

    [summary.errors]
    en = { one = "{count} error", other = "{count} errors" }
    zh = "{count} 个错误"

>>> messages = load_messages("trainmedic.service.answer")
>>> messages("summary.errors", "en", count=1)
'1 error'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trainmedic.kb.data_files import read_toml
from trainmedic.kb.model.report import Text

LANGUAGES = ("en", "zh")
PLURAL_FORMS = frozenset({"one", "other"})

Forms = Mapping[str, str]
"""The texts of one message: ``en``, ``zh`` and, if English has a plural, ``en.one``."""


class Messages(Mapping[str, Forms]):
    """The messages of one catalogue, by their dotted names. Call it for a text."""

    def __init__(self, forms: Mapping[str, Forms]) -> None:
        self._forms = forms

    def __call__(self, name: str, language: str, /, **values: object) -> str:
        """The text of ``name`` in ``language`` (English unless ``zh``). Raises `KeyError` for an unknown name."""
        forms = self._forms[name]
        if language == "zh":
            template = forms["zh"]
        elif values.get("count") == 1:
            template = forms.get("en.one", forms["en"])
        else:
            template = forms["en"]
        # A text without values is used as it is: braces in it are not placeholders.
        return template.format(**values) if values else template

    def both(self, name: str) -> Text:
        """The message in both languages; it must have neither values nor a plural."""
        return Text(**self._forms[name])

    def __getitem__(self, name: str) -> Forms:
        return self._forms[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._forms)

    def __len__(self) -> int:
        return len(self._forms)


@cache
def load_messages(package: str, file: str = "messages.toml") -> Messages:
    """The catalogue of ``package``. Raises `ValueError` if a message lacks a language or has an unknown plural form."""
    # Not `importlib.resources`: it imports archives and temporary folders, a twentieth of a check's time.
    folder = Path(import_module(package).__path__[0])
    return Messages(MappingProxyType(dict(_flattened(read_toml(folder / file), ""))))


def _flattened(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Forms]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if not isinstance(value, Mapping):
            raise ValueError(f"message {name}: a text belongs under 'en' or 'zh'")
        if value.keys() & set(LANGUAGES):
            yield name, MappingProxyType(_forms(name, value))
        else:
            yield from _flattened(value, f"{name}.")


def _forms(name: str, message: Mapping[str, Any]) -> dict[str, str]:
    if message.keys() != set(LANGUAGES):
        raise ValueError(f"message {name}: needs exactly {' and '.join(LANGUAGES)}")
    english = message["en"]
    plural = english if isinstance(english, Mapping) else {"other": english}
    if "other" not in plural or not plural.keys() <= PLURAL_FORMS:
        raise ValueError(f"message {name}: plural forms are 'one' and 'other'")
    forms = {"en": plural["other"], "zh": message["zh"]}
    return {**forms, "en.one": plural["one"]} if "one" in plural else forms
