"""The user's own configuration of pip: where packages come from. pip itself is not run."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser, Error
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile, ZipFile

_CONSTANT = "pip/_internal/models/index.py"
"""Where pip says which index it asks by default."""
_COMMANDS = ("global", "install", "download")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipConfiguration:
    """``indexes`` in the order in which they are asked. They may hold a password."""

    indexes: tuple[str, ...] = field(default=(), repr=False)
    find_links: tuple[str, ...] = field(default=(), repr=False)
    certificates: Path | None = None
    proxy: str = field(default="", repr=False)
    timeout_s: float = 15.0


def pip_configuration(environ: Mapping[str, str] | None = None) -> PipConfiguration:
    """The output of ``pip config`` for this environment, as far as it says where packages come from."""
    environ = os.environ if environ is None else environ
    options: dict[str, str] = {}
    for path in _files(environ):
        options |= _options(path)
    options |= {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("PIP_") and value
    }
    first = options.get("index-url", "") or _default_index()
    indexes = (
        ()
        if options.get("no-index", "").lower() in ("1", "true", "yes", "on")
        else (*first.split(), *options.get("extra-index-url", "").split())
    )
    certificates = options.get("cert") or environ.get("REQUESTS_CA_BUNDLE") or environ.get("SSL_CERT_FILE")
    return PipConfiguration(
        indexes=tuple(dict.fromkeys(indexes)),
        find_links=tuple(options.get("find-links", "").split()),
        certificates=Path(certificates) if certificates else None,
        proxy=options.get("proxy", ""),
        timeout_s=_seconds(options.get("default-timeout") or options.get("timeout", "")),
    )


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    """The files of pip's configuration; a later one counts more."""
    own = environ.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "win32":
        yield Path(environ.get("PROGRAMDATA", "C:/ProgramData")) / "pip" / "pip.ini"
        yield home / "pip" / "pip.ini"
        yield Path(environ.get("APPDATA", home)) / "pip" / "pip.ini"
        yield Path(sys.prefix) / "pip.ini"
    else:
        if sys.platform == "darwin":
            yield Path("/Library/Application Support/pip/pip.conf")
        for folder in reversed(environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep)):
            yield Path(folder) / "pip" / "pip.conf"
        yield Path("/etc/pip.conf")
        yield home / ".pip" / "pip.conf"
        if sys.platform == "darwin":
            yield home / "Library" / "Application Support" / "pip" / "pip.conf"
        yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf"
        yield Path(sys.prefix) / "pip.conf"
    if own:
        yield Path(own)


def _options(path: Path) -> dict[str, str]:
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, Error):
        return {}
    return {
        name.replace("_", "-"): value
        for section in _COMMANDS
        if parser.has_section(section)
        for name, value in parser.items(section)
    }


def _seconds(text: str) -> float:
    try:
        return min(max(float(text), 1.0), 300.0)
    except ValueError:
        return PipConfiguration().timeout_s


def _default_index() -> str:
    """The index of the installed pip, else of the pip that Python brings; empty without either."""
    for text in _constants():
        try:
            module = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        for node in module.body:
            match node:
                case ast.Assign(targets=[ast.Name(id="PyPI")], value=ast.Call(args=[ast.Constant(value=str(url)), *_])):
                    return f"{url.rstrip('/')}/simple"
    return ""


def _constants() -> Iterable[str]:
    for folder in map(Path, filter(None, sys.path)):
        path = folder / _CONSTANT
        if path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace")
    for wheel in sorted(Path(os.__file__).parent.glob("ensurepip/_bundled/pip-*.whl")):
        try:
            with ZipFile(wheel) as archive:
                yield archive.read(_CONSTANT).decode("utf-8", "replace")
        except (OSError, BadZipFile, KeyError):
            continue
