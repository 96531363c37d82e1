"""The settings of the service, read once by the composition root: flag > environment > file > default.

The table in docs/run/settings.md is generated from the descriptions here.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from trainmedic.kb.errors import InvalidSettings
from trainmedic.kb.lazy import regex
from trainmedic.kb.suggest import closest

PREFIX = "TRAINMEDIC_"
CONFIG_VARIABLE = "TRAINMEDIC_CONFIG"
FILE_SUFFIX = "_FILE"
WELL_KNOWN = {
    "slack_bot_token": "SLACK_BOT_TOKEN",
    "slack_app_token": "SLACK_APP_TOKEN",
    "slack_signing_secret": "SLACK_SIGNING_SECRET",
}
"""Secrets that are also read under their well-known names."""
SECRET_FIELDS = (
    *WELL_KNOWN,
    "admin_keys",
    "api_keys",
    "database_url",
    "dingtalk_client_secret",
    "embedder_api_key",
    "feishu_app_secret",
    "feishu_encrypt_key",
    "feishu_verification_token",
    "model_api_key",
    "oidc_client_secret",
    "rate_limit_storage",
    "vector_store",
    "webhook_secret",
    "webhook_url",
)
"""All secrets: each can be given as ``…_FILE``."""
MASKED = "********"
SHORTEST_KEY = 16
"""Characters of a key of the settings on a service that other machines reach."""
LINK_SCHEMES = ("tcp://", "udp://", "sctp://")
MEBIBYTE = 1024 * 1024
RATE_LIMIT = regex(r"\s*\d+\s*(/|per)\s*(\d+\s*)?(second|minute|hour|day|month|year)s?\s*", re.IGNORECASE)
"""A limit as the package limits reads it, which takes too long to import here."""
DATABASE = regex(r"(sqlite|postgres|postgresql)(\+\w+)?://.*")
STORAGE = regex(r"memory|database|[\w+]+://.*")


def default_data_dir() -> Path:
    """The user's data folder, never the working directory."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "trainmedic"


class SlackChannel(BaseModel):
    """How the bot answers in one channel. ``answers``: mentions, or all messages that begin a thread."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answers: Literal["mentions", "all"] = "mentions"
    quiet: bool = False
    language: Literal["auto", "en", "zh"] = "auto"


class Settings(BaseSettings):
    """Field names are the keys of the file; environment variables are upper-case with the prefix."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, validate_default=True)

    host: str = Field(
        "127.0.0.1", description="address to listen on; beyond loopback only with `api_keys` or `require_key`"
    )
    port: int = Field(8000, ge=0, le=65535, description="port to listen on")
    api_keys: SecretStr = Field(SecretStr(""), description="bearer keys that clients must send, comma-separated")
    admin_keys: SecretStr = Field(
        SecretStr(""),
        description="bearer keys for `/review` and for `/v1/admin`, which there is only with them; they open the rest",
    )
    require_key: bool = Field(
        False,
        description="require a key of `trainmedic admin key new` even if `api_keys` is empty ([access.md](access.md))",
    )
    oidc_issuer: str = Field(
        "", description="identity provider that people sign in to the pages with ([access.md](access.md#sign-in))"
    )
    oidc_client_id: str = Field("", description="client of the service there")
    oidc_client_secret: SecretStr = Field(SecretStr(""), description="its secret; without one, PKCE alone protects it")
    oidc_scopes: str = Field("openid profile email", description="scopes to request")
    oidc_groups_claim: str = Field("groups", description="claim that lists a user's groups")
    oidc_groups: str = Field("", description="groups that may sign in, comma-separated; empty: everybody")
    oidc_admin_groups: str = Field("", description="groups of administrators, comma-separated")
    trusted_proxies: str = Field(
        "",
        description="proxies whose `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` are believed: "
        "addresses and networks, comma-separated",
    )
    rate_limit: str = Field("3000/minute", description="most requests of one client: a key, a user, else an address")
    rate_limit_ask: str = Field("120/minute", description="most of them that ask, check or compare")
    rate_limit_login: str = Field(
        "20/minute", description="most failed attempts to sign in, or wrong keys, of one address"
    )
    rate_limit_storage: SecretStr = Field(
        SecretStr("memory"),
        description="where requests are counted: `memory` (each process for itself), `database` (`database_url`), or "
        "the URL of a storage of the package limits, such as `redis://host`",
    )
    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="folder of the index and the history; default: `trainmedic` in the user's data folder",
    )
    database_url: SecretStr = Field(
        SecretStr(""),
        description="URL of the history: `postgresql://…` (extra `postgres`) or `sqlite:///…`; default: SQLite in "
        "`data_dir`; only masked text is stored",
    )
    vector_store: SecretStr = Field(
        SecretStr("faiss"),
        description="where the vectors of ingested threads are: `faiss` (`data_dir`), `milvus:<URI>` (extra `milvus`), "
        "`postgres:<URL>` (extra `postgres`)",
    )
    kb_paths: str = Field("", description="folders of your own rule and case pages, separated like PATH")
    reload_s: float = Field(
        2.0, ge=0, description="seconds between two looks for changes in these folders while serving; 0: never"
    )
    wait_for_index: bool = Field(
        False, description="serve only with a whole index; otherwise a first start answers by words until it has one"
    )
    embedder: str = Field("default", description="`default`, `st:<model or path>` (extra `st`), or `openai:<model>`")
    embedder_base_url: str = Field("", description="endpoint of an `openai:` embedder")
    embedder_api_key: SecretStr = Field(SecretStr(""), description="key of that endpoint")
    embedder_query_prefix: str = Field("", description="query prefix that an `openai:` model expects")
    embedder_document_prefix: str = Field("", description="document prefix that it expects")
    model_base_url: str = Field(
        "",
        description="OpenAI-compatible endpoint of a language model; without it, answers come from a template",
    )
    model_name: str = Field("", description="model to use; default: the first that the endpoint lists")
    model_api_key: SecretStr = Field(SecretStr(""), description="key of that endpoint")
    model_context_tokens: int = Field(8192, ge=2048, le=1_048_576, description="tokens of its context to use")
    model_max_tokens: int = Field(900, ge=64, le=16_384, description="longest text that it writes, in tokens")
    model_temperature: float = Field(0.2, ge=0.0, le=2.0, description="sampling temperature")
    model_timeout_s: float = Field(
        25.0, gt=0, description="deadline for its whole text; the template answer is returned after it"
    )
    model_first_token_s: float = Field(10.0, gt=0, description="deadline for its first word")
    model_concurrency: int = Field(8, ge=1, le=256, description="texts that it writes at once")
    model_restate: bool = Field(True, description="let it rephrase an unclear question, and search with both wordings")
    model_rerank: bool = Field(
        True, description="let it put other causes first where none is sure, each with a pasted line that bears it out"
    )
    language: str = Field("auto", pattern="^(auto|en|zh)$", description="language of answers; auto: the question's")
    max_request_mb: int = Field(80, ge=1, le=1024, description="largest request body, in MiB")
    max_attachments: int = Field(40, ge=1, le=1000, description="most attachments in one request")
    request_timeout_s: float = Field(30.0, gt=0, description="deadline of a request; an error is returned after it")
    concurrency: int = Field(4, ge=1, le=64, description="questions answered at once")
    readers: int = Field(
        4, ge=0, le=64, description="processes that read what is sent; 0: the service reads it itself, without bounds"
    )
    history_days: int = Field(90, ge=0, description="days that conversations are stored; 0 stores none")
    journal_days: int = Field(365, ge=0, description="days that the audit log is kept; 0 keeps none")
    pages: bool = Field(True, description="serve the chat and the knowledge browser too")
    public_url: str = Field("", description="address under which people open the service; links to answers use it")
    webhook_url: SecretStr = Field(
        SecretStr(""),
        description="URL notified of each answer: http(s), or one of apprise (extra `notify`) "
        "([api.md](../connect/api.md#webhook))",
    )
    webhook_secret: SecretStr = Field(SecretStr(""), description="secret that signs its requests")
    log_format: Literal["text", "json"] = Field(
        "text", description="`text`: warnings only; `json`: one object a line, with a line for each request"
    )
    otlp_endpoint: str = Field(
        "",
        pattern="^(https?://.*)?$",
        description="OpenTelemetry collector for traces, over HTTP, such as `http://collector:4318` (extra `otel`)",
    )

    slack_bot_token: SecretStr = Field(
        SecretStr(""),
        description="token of the Slack app's bot (xoxb-), also as SLACK_BOT_TOKEN ([Slack](../connect/channels.md))",
    )
    slack_app_token: SecretStr = Field(
        SecretStr(""), description="token for Slack's Socket Mode (xapp-), also as SLACK_APP_TOKEN"
    )
    slack_signing_secret: SecretStr = Field(
        SecretStr(""),
        description="secret of Slack's HTTP requests, also as SLACK_SIGNING_SECRET; used without `slack_app_token`",
    )
    slack_api_url: str = Field("https://slack.com/api/", pattern="^https?://", description="Slack's Web API")
    slack_channels: dict[str, SlackChannel] = Field(
        default_factory=dict, description="channel id (or * for all) to answers, quiet, language"
    )

    feishu_app_id: str = Field(
        "", description="id of the Feishu or Lark app, cli_… ([channels](../connect/channels.md#feishu-and-lark))"
    )
    feishu_app_secret: SecretStr = Field(SecretStr(""), description="secret of that app")
    feishu_encrypt_key: SecretStr = Field(
        SecretStr(""), description="its Encrypt Key, which encrypts and signs the events; required with `feishu_app_id`"
    )
    feishu_verification_token: SecretStr = Field(
        SecretStr(""), description="its Verification Token; if set, each event must carry it"
    )
    feishu_api_url: str = Field(
        "https://open.feishu.cn",
        pattern="^https?://",
        description="Feishu's API; for Lark `https://open.larksuite.com`",
    )
    dingtalk_client_id: str = Field(
        "", description="Client ID (AppKey) of the DingTalk app ([channels](../connect/channels.md#dingtalk))"
    )
    dingtalk_client_secret: SecretStr = Field(
        SecretStr(""), description="its Client Secret (AppSecret), which signs the requests to the robot"
    )
    dingtalk_api_url: str = Field("https://api.dingtalk.com", pattern="^https?://", description="DingTalk's API")

    @field_validator("rate_limit", "rate_limit_ask", "rate_limit_login")
    @classmethod
    def _is_limit(cls, value: str) -> str:
        if not RATE_LIMIT.fullmatch(value):
            raise _invalid(f"{value!r} is not a limit such as 100/minute or 2000 per hour")
        return value

    @field_validator("rate_limit_storage")
    @classmethod
    def _is_storage(cls, value: SecretStr) -> SecretStr:
        if not STORAGE.fullmatch(value.get_secret_value()):
            raise _invalid("must be memory, database, or a URL such as redis://host")
        return value

    @field_validator("database_url")
    @classmethod
    def _is_database(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value() and not DATABASE.fullmatch(value.get_secret_value()):
            raise _invalid("must be a URL such as postgresql://user:password@host/name or sqlite:///file")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then the environment, then secrets named by ``*_FILE``, then the TOML file."""
        sources = [init_settings, OwnVariables(settings_cls), SecretFiles(settings_cls)]
        path = settings_file()
        if path is not None:
            try:
                sources.append(TomlTables(settings_cls, toml_file=path))
            except OSError as error:
                raise InvalidSettings(f"{path} cannot be read ({error.strerror})") from error
            except ValueError as error:  # not TOML, or not UTF-8
                raise InvalidSettings(f"{path} is not TOML: {error}") from error
        return tuple(sources)

    @property
    def keys(self) -> frozenset[str]:
        """The bearer keys; empty: none is required."""
        return _keys(self.api_keys)

    @property
    def administrators(self) -> frozenset[str]:
        """The keys of those who may exchange the knowledge; empty: nobody may."""
        return _keys(self.admin_keys)

    @property
    def guarded(self) -> bool:
        """Whether callers must say who they are, also if no key is stored."""
        return bool(self.keys) or self.require_key or bool(self.oidc_issuer)

    @property
    def extra_pages(self) -> tuple[Path, ...]:
        """The folders of `kb_paths`, in order."""
        return _paths(self.kb_paths)

    @property
    def history_url(self) -> str:
        return self.database_url.get_secret_value() or f"sqlite:///{self.data_dir / 'history.sqlite3'}"


def settings_file() -> Path | None:
    """The file of settings, if there is one. Raises `InvalidSettings` if the environment names one that is missing."""
    path = Path(os.environ.get(CONFIG_VARIABLE, "trainmedic.toml"))
    if path.is_file():
        return path
    if CONFIG_VARIABLE in os.environ:
        raise InvalidSettings(f"{CONFIG_VARIABLE} names {path}, which is not a file")
    return None


def _invalid(problem: str) -> PydanticCustomError:
    return PydanticCustomError("invalid", "{problem}", {"problem": problem})


def _keys(keys: SecretStr) -> frozenset[str]:
    return frozenset(listed(keys.get_secret_value()))


class TomlTables(TomlConfigSettingsSource):
    """The file, in which ``[model]`` with ``base_url`` is the setting ``model_base_url``; a list is one text."""

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        return dict(_flat(super()._read_file(file_path)))


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, Mapping) and name != "slack_channels":  # which is a table itself
            yield from _flat(value, f"{name}_")
        elif isinstance(value, list):
            yield name, (os.pathsep if name == "kb_paths" else ",").join(map(str, value))
        else:
            yield name, value


def listed(text: str) -> tuple[str, ...]:
    """The items of a setting that lists some, comma-separated."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


class OwnVariables(EnvSettingsSource):
    """The environment without what sets nothing.

    That is what `is_service_link` knows, ``TRAINMEDIC_PORT=tcp://10.0.0.1:8000``, and an empty secret beside its file.
    """

    def __call__(self) -> dict[str, Any]:
        values = super().__call__()
        return {name: value for name, value in values.items() if not self._sets_nothing(name, value)}

    def _sets_nothing(self, name: str, value: Any) -> bool:
        if value == "" and name in SECRET_FIELDS:
            return bool(secret_file(name))
        return is_service_link(PREFIX + name.upper(), str(value))


class SecretFiles(PydanticBaseSettingsSource):
    """``TRAINMEDIC_API_KEYS_FILE=/run/secrets/keys`` and the like; secrets under their well-known names."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """The value of the well-known variable, or the content of the file named for this field, or None."""
        well_known = WELL_KNOWN.get(field_name, "")
        if value := os.environ.get(well_known):
            return value, field_name, False
        name = secret_file(field_name) if field_name in SECRET_FIELDS else ""
        if not name:
            return None, field_name, False
        path = os.environ[name]
        try:
            return Path(path).read_text(encoding="utf-8").strip(), field_name, False
        except OSError as error:
            raise InvalidSettings(f"{name}: {path} cannot be read ({error.strerror})") from error
        except UnicodeDecodeError as error:
            raise InvalidSettings(f"{name}: {path} is not UTF-8 text") from error

    def __call__(self) -> dict[str, Any]:
        values = {name: self.get_field_value(field, name)[0] for name, field in Settings.model_fields.items()}
        return {name: value for name, value in values.items() if value is not None}


def secret_file(field_name: str) -> str:
    """The variable that names the file of a secret; empty if none does."""
    bases = (PREFIX + field_name.upper(), WELL_KNOWN.get(field_name, ""))
    return next((base + FILE_SUFFIX for base in bases if base and os.environ.get(base + FILE_SUFFIX)), "")


def load_settings(flags: Mapping[str, object] | None = None) -> Settings:
    """The effective settings. Raises `InvalidSettings` for an unknown key, a bad value, or an unsafe address."""
    unknown_variables(os.environ)
    overrides: dict[str, Any] = {name: value for name, value in (flags or {}).items() if value is not None}
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        raise InvalidSettings(_explain(error)) from error
    if not settings.guarded and not is_loopback(settings.host):
        raise InvalidSettings(
            f"refusing to listen on {settings.host} without a key",
            hint=f"set {PREFIX}API_KEYS (or {PREFIX}API_KEYS_FILE) or {PREFIX}REQUIRE_KEY, or listen on 127.0.0.1",
        )
    if settings.oidc_issuer:
        _check_oidc(settings)
    if not is_loopback(settings.host):
        _check_keys(settings)
    return settings


def _check_keys(settings: Settings) -> None:
    """Raise `InvalidSettings` for a key that can be guessed by whoever reaches the port."""
    for name, keys in (("api_keys", settings.keys), ("admin_keys", settings.administrators)):
        if any(len(key) < SHORTEST_KEY for key in keys):
            raise InvalidSettings(
                f"{name} has a key of fewer than {SHORTEST_KEY} characters", hint=f"such as {secrets.token_urlsafe(24)}"
            )


def _check_oidc(settings: Settings) -> None:
    """Raise `InvalidSettings` for a sign-in that cannot work, or that anybody on the way could read."""
    for name in ("oidc_client_id", "public_url"):
        if not getattr(settings, name):
            raise InvalidSettings(f"oidc_issuer also needs {name}", hint=f"set {PREFIX}{name.upper()}")
    issuer = urlsplit(settings.oidc_issuer)
    if issuer.scheme != "https" and not is_loopback(issuer.hostname or ""):
        raise InvalidSettings("oidc_issuer must be an https URL")


def _paths(listed: str) -> tuple[Path, ...]:
    return tuple(Path(part) for part in listed.split(os.pathsep) if part)


def unknown_variables(environ: Mapping[str, str]) -> None:
    """Raise `InvalidSettings` for a variable with our prefix that is not a setting."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {CONFIG_VARIABLE}
    known |= {PREFIX + name.upper() + FILE_SUFFIX for name in SECRET_FIELDS}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and not is_service_link(name, environ[name]):
            raise InvalidSettings(f"unknown setting {name}", hint=_suggest(name, known))


def is_service_link(name: str, value: str) -> bool:
    """Whether Kubernetes set this variable: each pod gets some for every Service, also one called ``trainmedic``.

    https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
    """
    if name.endswith("_PORT") and value.startswith(LINK_SCHEMES):
        return True
    return any(part in f"{name}_" for part in ("_SERVICE_HOST_", "_SERVICE_PORT_", "_TCP_", "_UDP_", "_SCTP_"))


def is_loopback(host: str) -> bool:
    """Whether ``host`` is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def effective(settings: Settings) -> dict[str, object]:
    """All settings as JSON values in the order of declaration, secrets masked."""
    values: dict[str, object] = settings.model_dump(mode="json")
    secrets = {name for name in values if isinstance(getattr(settings, name), SecretStr)}
    return {name: MASKED if value and name in secrets else value for name, value in values.items()}


def _suggest(name: str, known: Iterable[str]) -> str | None:
    near = closest(name, sorted(known), partial=True)
    return f"did you mean {near}?" if near else None


def _explain(error: ValidationError) -> str:
    parts = []
    for item in error.errors(include_url=False, include_input=False):
        name = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            hint = _suggest(name, Settings.model_fields)
            parts.append(f"unknown setting {name}" + (f" ({hint})" if hint else ""))
        else:
            parts.append(f"{name}: {item['msg']}")
    return "; ".join(parts)
