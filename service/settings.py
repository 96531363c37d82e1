"""The settings of the core: ``model_base_url`` is ``settings.model.base_url``. `service.configuration` reads them.

The table in docs/run/settings.md is generated from the descriptions here and in the plugins.
"""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError

from trainmedic.kb.data_files import default_data_dir
from trainmedic.kb.lazy import regex

NO_SECRET = SecretStr("")
MEBIBYTE = 1024 * 1024
RATE_LIMIT = regex(r"\s*\d+\s*(/|per)\s*(\d+\s*)?(second|minute|hour|day|month|year)s?\s*", re.IGNORECASE)
"""A limit as the package limits reads it, which takes too long to import here."""
DATABASE = regex(r"(sqlite|postgres|postgresql)(\+\w+)?://.*")
STORAGE = regex(r"memory|database|[\w+]+://.*")


def _invalid(problem: str) -> PydanticCustomError:
    return PydanticCustomError("invalid", "{problem}", {"problem": problem})


class Section(BaseModel):
    """Settings that belong together; a plugin owns a section of its own (`kb.plugins`).

    The alias of a field is the whole name of its setting. ``well_known``: secrets are also read from the variables
    that other programs read, without our prefix.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, populate_by_name=True, loc_by_alias=False
    )
    well_known: ClassVar[bool] = False


S = TypeVar("S", bound=Section)


class Rate(Section):
    limit: str = Field("3000/minute", description="most requests of one client: a key, else an address")
    limit_ask: str = Field("120/minute", description="most of them that ask, check or compare")
    limit_storage: SecretStr = Field(
        SecretStr("memory"),
        description="where requests are counted: `memory` (each process for itself), `database` (`database_url`), or "
        "the URL of a storage of the package limits, such as `redis://host`",
    )

    @field_validator("limit", "limit_ask")
    @classmethod
    def _is_limit(cls, value: str) -> str:
        if not RATE_LIMIT.fullmatch(value):
            raise _invalid(f"{value!r} is not a limit such as 100/minute or 2000 per hour")
        return value

    @field_validator("limit_storage")
    @classmethod
    def _is_storage(cls, value: SecretStr) -> SecretStr:
        if not STORAGE.fullmatch(value.get_secret_value()):
            raise _invalid("must be memory, database, or a URL such as redis://host")
        return value


class EmbedderSettings(Section):
    name: str = Field(
        "default", alias="embedder", description="`default`, `st:<model or path>` (extra `st`), or `openai:<model>`"
    )
    base_url: str = Field("", description="endpoint of an `openai:` embedder")
    api_key: SecretStr = Field(NO_SECRET, description="key of that endpoint")


class ModelSettings(Section):
    base_url: str = Field(
        "", description="OpenAI-compatible endpoint of a language model; without it, answers come from a template"
    )
    name: str = Field("", description="model to use; default: the first that the endpoint lists")
    api_key: SecretStr = Field(NO_SECRET, description="key of that endpoint")
    context_tokens: int = Field(8192, ge=2048, le=1_048_576, description="tokens of its context to use")
    max_tokens: int = Field(2_000, ge=64, le=16_384, description="longest answer, in tokens")
    timeout_s: float = Field(
        25.0,
        gt=0,
        description="deadline for its whole text, and at two fifths of it for the first word; "
        "the template answer is returned after it",
    )
    role: Literal["auto", "decides", "elects"] = Field(
        "auto", description="`decides`: it diagnoses; `elects`: it weighs the program's causes; `auto`: as measured"
    )


class Settings(Section):
    """The settings of the core. `load_settings` returns them with those of the plugins, which `of` finds."""

    host: str = Field(
        "127.0.0.1", description="address to listen on; beyond loopback only with `api_keys` or `require_key`"
    )
    port: int = Field(8000, ge=0, le=65535, description="port to listen on")
    api_keys: SecretStr = Field(NO_SECRET, description="bearer keys that clients must send, comma-separated")
    admin_keys: SecretStr = Field(
        NO_SECRET,
        description="bearer keys for `/v1/admin`, which there is only with them; they open the rest",
    )
    require_key: bool = Field(
        False,
        description="require a key of `trainmedic admin key new` even if `api_keys` is empty ([access.md](access.md))",
    )
    trusted_proxies: str = Field(
        "",
        description="proxies whose `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` are trusted: "
        "addresses and networks, comma-separated",
    )
    rate: Rate = Rate()
    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="folder of the index and the history; default: `trainmedic` in the user's data folder",
    )
    database_url: SecretStr = Field(
        NO_SECRET,
        description="URL of the history: `postgresql://…` (extra `postgres`) or `sqlite:///…`; default: SQLite in "
        "`data_dir`; only masked text is stored",
    )
    kb_paths: str = Field("", description="folders of your own pages, separated like PATH")
    embedder: EmbedderSettings = EmbedderSettings()
    model: ModelSettings = ModelSettings()
    sources: Literal["installed", "index", "off"] = Field(
        "installed",
        description="whose source code is read: that of `installed` packages, also that of the `index` which pip is "
        "configured for, or none but what is stored (`off`) ([sources.md](../use/sources.md))",
    )
    sources_mib: int = Field(
        2048,
        ge=64,
        description="MiB of stored source up to which releases of the `index` are fetched for a question; those that "
        "were not used for longest go",
    )
    request_timeout_s: float = Field(30.0, gt=0, description="deadline of a request; an error is returned after it")
    concurrency: int = Field(
        4,
        ge=1,
        le=64,
        description="questions answered at once, and processes that read what is sent; a model writes twice as many "
        "texts at once",
    )
    history_days: int = Field(90, ge=0, description="days that conversations are stored; 0 stores none")
    pages: bool = Field(True, description="serve the chat and the knowledge browser too")
    public_url: str = Field("", description="address under which people open the service; links to answers use it")

    @field_validator("database_url")
    @classmethod
    def _is_database(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value() and not DATABASE.fullmatch(value.get_secret_value()):
            raise _invalid("must be a URL such as postgresql://user:password@host/name or sqlite:///file")
        return value

    @property
    def keys(self) -> frozenset[str]:
        """The bearer keys; empty: none is required."""
        return frozenset(listed(self.api_keys.get_secret_value()))

    @property
    def administrators(self) -> frozenset[str]:
        """The keys of those who may exchange the knowledge; empty: no one may."""
        return frozenset(listed(self.admin_keys.get_secret_value()))

    @property
    def guarded(self) -> bool:
        """Whether callers must say who they are, also if no key is stored."""
        return bool(self.keys) or self.require_key

    @property
    def extra_pages(self) -> tuple[Path, ...]:
        """The folders of `kb_paths`, in order."""
        return tuple(Path(part) for part in self.kb_paths.split(os.pathsep) if part)

    @property
    def calibrations(self) -> Path:
        """The folder with what was measured of models here."""
        return self.data_dir / "calibrations"

    @property
    def history_url(self) -> str:
        return self.database_url.get_secret_value() or f"sqlite:///{self.data_dir / 'history.sqlite3'}"

    def of(self, owner: type[S]) -> S:
        """The section of a plugin; its defaults if these are the core's settings alone."""
        return next((section for _, section in self if isinstance(section, owner)), owner())


def is_loopback(host: str) -> bool:
    """Whether ``host`` is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listed(text: str) -> tuple[str, ...]:
    """The items of a setting that lists some, comma-separated."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
