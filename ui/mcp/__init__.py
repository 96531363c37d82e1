"""The Model Context Protocol: other programs' models ask trainmedic through five read-only tools.

`shapes` is what the tools return, `server` the tools and resources, `http` the endpoint ``/mcp`` of the service.
Nothing here is imported until it is used: the protocol's library takes half a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainmedic.ui.context import AppContext

if TYPE_CHECKING:
    from fastapi import FastAPI
    from mcp.server import MCPServer


def register_channel(app: FastAPI, context: AppContext) -> None:
    from trainmedic.ui.mcp.http import attach

    attach(app, context, load_server)


def load_server(context: AppContext) -> MCPServer[Any]:
    """Import the server and make one. Raises `ImportError` without the extra ``mcp``."""
    from trainmedic.ui.mcp.server import make_server

    return make_server(context)
