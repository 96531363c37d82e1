"""The Model Context Protocol: other programs' models ask trainmedic through five read-only tools.

`shapes` is what the tools return, `server` the tools and resources, `http` the endpoint ``/mcp`` of the service.
Nothing here is imported until it is used: the protocol's library takes half a second to import.
"""
