"""Plugins: entry points of four groups, imported when they are asked for.

Our own are in pyproject.toml; another package adds its own in the same way. What an entry point names:

`CHANNELS`   ``register_channel(app, context)``: adds its routes to the application, and `ui.context.during` adds what
             runs beside the requests; does nothing if the settings do not ask for it
`COMMANDS`   a module as those of `ui.cli`: a verb of the command line
`SOURCES`    ``read(options)``: the items of a source of `ingest`
`SETTINGS`   a `Section` of `service.settings` that its owner reads; the entry point's name begins its settings' names
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from trainmedic.kb.errors import InvalidRequest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["channels", "commands", "sources", "settings"]
GROUPS: tuple[Group, ...] = get_args(Group)
CHANNELS, COMMANDS, SOURCES, SETTINGS = GROUPS


@cache
def registered(group: Group) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name, sorted."""
    from importlib.metadata import entry_points  # most checks need none of it

    return {entry.name: entry for entry in sorted(entry_points(group=f"trainmedic.{group}"))}


def load(group: Group, name: str) -> Any:
    """The object of an entry point. Raises `InvalidRequest` if there is none, `ImportError` without its packages."""
    entry = registered(group).get(name)
    if entry is None:
        known = ", ".join(registered(group))
        raise InvalidRequest(f"no {name!r} in {group}", hint=f"one of: {known}")
    return entry.load()
