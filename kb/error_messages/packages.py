"""The packages whose messages are indexed, and where their code is."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.data_files import load_table

_TABLE = "error_messages/packages.toml"
_DEFECTS = "defects/packages.toml"


@dataclass(frozen=True, slots=True)
class Package:
    """``tags`` is the pattern of a release's tag, empty if releases are not tagged; ``code`` the folders and files of
    the repository that are read, except paths with one of ``skip``; ``newest``: only the newest release is indexed."""

    name: str
    repository: str
    tags: str
    code: tuple[str, ...]
    skip: tuple[str, ...] = ()
    newest: bool = False

    @property
    def above(self) -> str:
        """The folder of the repository in which the package is: ``src/``, or none."""
        return next((folder for folder in ("src/", "python/") if self.code[0].startswith(folder)), "")

    @property
    def modules(self) -> tuple[str, ...]:
        """The top modules as they are imported."""
        tops = (folder.removeprefix(self.above).partition("/")[0] for folder in self.code)
        return tuple(dict.fromkeys(top for top in tops if top.isidentifier()))

    def has(self, path: str) -> bool:
        """Whether the messages of a file are read; ``path`` is the one that it is installed at."""
        return (
            path.endswith(".py")
            and (self.above + path).startswith(self.code)
            and not any(part in f"/{path}" for part in self.skip)
        )

    def url(self, version: str, path: str, line: int) -> str | None:
        """A line of a release on GitHub; None if its tag is not known."""
        if not self.tags:
            return None
        tag = self.tags.format(version=version)
        return f"https://github.com/{self.repository}/blob/{tag}/{path}#L{line}"


def names() -> tuple[str, ...]:
    """Every package, in the order in which they are meant if several have the same message."""
    return tuple(name for name, entry in load_table(_TABLE).items() if isinstance(entry, dict))


def package(name: str) -> Package:
    """Raises `KeyError` if the package is not in the table."""
    entry = {**load_table(_DEFECTS).get(name, {}), **load_table(_TABLE)[name]}
    return Package(
        name=name,
        repository=entry["repository"],
        tags=entry.get("tags", ""),
        code=tuple(entry["code"]),
        skip=tuple(load_table(_TABLE)["skip"]),
        newest=entry.get("newest", False),
    )
