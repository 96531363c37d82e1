"""Reading the settings: flag > environment > file > default.

A setting has one name everywhere: ``model_base_url`` is TRAINMEDIC_MODEL_BASE_URL in the environment, and in the file
also ``base_url`` in the table ``[model]``.
"""

from __future__ import annotations

import os
import secrets
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, reduce
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import SecretStr, ValidationError, create_model
from pydantic.fields import FieldInfo

from trainmedic.kb import plugins
from trainmedic.kb.errors import InvalidSettings
from trainmedic.kb.suggest import closest
from trainmedic.service.settings import Section, Settings, is_loopback

PREFIX = "TRAINMEDIC_"
CONFIG_VARIABLE = "TRAINMEDIC_CONFIG"
FILE_SUFFIX = "_FILE"
MASKED = "********"
SHORTEST_KEY = 16
"""Characters of a key of the settings on a service that other machines reach."""


class Setting(NamedTuple):
    """One setting: its name, its place in `Settings`, and the environment variables that give it."""

    name: str
    path: tuple[str, ...]
    field: FieldInfo
    variables: tuple[str, ...]

    @property
    def is_secret(self) -> bool:
        return self.field.annotation is SecretStr

    @property
    def files(self) -> tuple[str, ...]:
        """The variables that name a file with the value."""
        return tuple(name + FILE_SUFFIX for name in self.variables) if self.is_secret else ()


class _Portable(Settings):
    """Settings that another process can be given: their class is made at run time, so it is made again there."""

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.model_dump(),)


def _restored(values: Mapping[str, object]) -> Settings:
    return _model().model_validate(values)


@cache
def _model() -> type[Settings]:
    """The settings of the core and of all plugins."""
    owned = {name: plugins.load(plugins.SETTINGS, name) for name in plugins.registered(plugins.SETTINGS)}
    fields: dict[str, Any] = {name: (section, section()) for name, section in owned.items()}
    return create_model("Settings", __base__=_Portable, **fields)


@cache
def known_settings() -> Mapping[str, Setting]:
    """All settings by name, in the order of declaration."""
    return {setting.name: setting for setting in _settings_in(_model())}


def _settings_in(model: type[Section], section: tuple[str, ...] = ()) -> Iterator[Setting]:
    for key, field in model.model_fields.items():
        path, inner = (*section, key), field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            yield from _settings_in(inner, path)
            continue
        name = field.alias or "_".join(path)
        others = (name.upper(),) if model.well_known and field.annotation is SecretStr else ()
        yield Setting(name, path, field, (PREFIX + name.upper(), *others))


def load_settings(flags: Mapping[str, object] | None = None) -> Settings:
    """The effective settings. Raises `InvalidSettings` for an unknown name, a bad value, or an unsafe address."""
    unknown_variables(os.environ)
    overrides = {name: value for name, value in (flags or {}).items() if value is not None}
    settings = settings_from({**_in_file(), **_in_environment(os.environ), **overrides})
    if not settings.guarded and not is_loopback(settings.host):
        raise InvalidSettings(
            f"refusing to listen on {settings.host} without a key",
            hint=f"set {PREFIX}API_KEYS (or {PREFIX}API_KEYS_FILE) or {PREFIX}REQUIRE_KEY, or listen on 127.0.0.1",
        )
    if not is_loopback(settings.host):
        _check_keys(settings)
    return settings


def settings_from(values: Mapping[str, object]) -> Settings:
    """The settings with these values by name, the others as by default. Raises `InvalidSettings`."""
    known = known_settings()
    if unknown := [name for name in values if name not in known]:
        hints = {name: _suggest(name, known) for name in unknown}
        raise InvalidSettings(
            "; ".join(f"unknown setting {name}{hint and f' ({hint})'}" for name, hint in hints.items())
        )
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *section, field = known[name].path
        reduce(lambda place, part: place.setdefault(part, {}), section, tree)[field] = value
    try:
        return _model().model_validate(tree)
    except ValidationError as error:
        raise InvalidSettings(_explain(error)) from error


def _explain(error: ValidationError) -> str:
    names = {setting.path: setting.name for setting in known_settings().values()}
    parts = []
    for item in error.errors(include_url=False, include_input=False):
        place = tuple(map(str, item["loc"]))
        length = next(length for length in (1, 2) if place[:length] in names)
        name = ".".join((names[place[:length]], *place[length:]))
        parts.append(f"unknown setting {name}" if item["type"] == "extra_forbidden" else f"{name}: {item['msg']}")
    return "; ".join(parts)


def settings_file() -> Path | None:
    """The file of settings, if there is one. Raises `InvalidSettings` if the environment names one that is missing."""
    path = Path(os.environ.get(CONFIG_VARIABLE, "trainmedic.toml"))
    if path.is_file():
        return path
    if CONFIG_VARIABLE in os.environ:
        raise InvalidSettings(f"{CONFIG_VARIABLE} names {path}, which is not a file")
    return None


def _in_file() -> dict[str, object]:
    path = settings_file()
    if path is None:
        return {}
    try:
        return dict(_flat(tomllib.loads(path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be read ({error.strerror})") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise InvalidSettings(f"{path} is not TOML: {error}") from error


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The values of a file by the names of their settings; a list is one text."""
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, Mapping) and any(known.startswith(f"{name}_") for known in known_settings()):
            yield from _flat(value, f"{name}_")
        elif isinstance(value, list):
            yield name, (os.pathsep if name == "kb_paths" else ",").join(map(str, value))
        else:
            yield name, value


def _in_environment(environ: Mapping[str, str]) -> dict[str, str]:
    given = {name: _given(setting, environ) for name, setting in known_settings().items()}
    return {name: value for name, value in given.items() if value is not None}


def _given(setting: Setting, environ: Mapping[str, str]) -> str | None:
    """The value of a variable, else the content of the file that one names. An empty secret is none."""
    for name in setting.variables:
        value = environ.get(name)
        if value is not None and (value or not setting.is_secret) and not is_service_link(name, value):
            return value
    return next((_content(name, environ[name]) for name in setting.files if environ.get(name)), None)


def _content(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InvalidSettings(f"{variable}: {path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"{variable}: {path} is not UTF-8 text") from error


def unknown_variables(environ: Mapping[str, str]) -> None:
    """Raise `InvalidSettings` for a variable with our prefix that is not a setting."""
    known = {CONFIG_VARIABLE}.union(*((*setting.variables, *setting.files) for setting in known_settings().values()))
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and not is_service_link(name, environ[name]):
            raise InvalidSettings(f"unknown setting {name}", hint=_suggest(name, known) or None)


def is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes set this variable: each pod gets some for every Service, also one called ``trainmedic``.

    https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
    """
    if name.endswith("_PORT") and value.startswith(("tcp://", "udp://", "sctp://")):
        return True
    return any(part in f"{name}_" for part in ("_SERVICE_HOST_", "_SERVICE_PORT_", "_TCP_", "_UDP_", "_SCTP_"))


def _suggest(name: str, known: Iterable[str]) -> str:
    near = closest(name, sorted(known), partial=True)
    return f"did you mean {near}?" if near else ""


def _check_keys(settings: Settings) -> None:
    """Raise `InvalidSettings` for a key that can be guessed by whoever reaches the port."""
    for name, keys in (("api_keys", settings.keys), ("admin_keys", settings.administrators)):
        if any(len(key) < SHORTEST_KEY for key in keys):
            raise InvalidSettings(
                f"{name} has a key of fewer than {SHORTEST_KEY} characters", hint=f"such as {secrets.token_urlsafe(24)}"
            )


def effective(settings: Settings) -> dict[str, object]:
    """All settings by name as JSON values, in the order of declaration, secrets masked."""
    dumped = settings.model_dump(mode="json")
    shown: dict[str, object] = {}
    for name, setting in known_settings().items():
        value = reduce(lambda place, part: place[part], setting.path, dumped)
        shown[name] = MASKED if value and setting.is_secret else value
    return shown
