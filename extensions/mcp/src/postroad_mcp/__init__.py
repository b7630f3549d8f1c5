"""Tools for AI agents over the Model Context Protocol (MCP), at `/mcp` and for `postroad mcp`."""

from typing import Final

from postroad import extensions

EXTENSION: Final = extensions.Extension(
    routes=("postroad_mcp.streamable_http:routes",),
    commands={
        "mcp": (
            "postroad_mcp.command:mcp",
            "Serve the tools for AI agents on standard input and output, with an API key.",
        )
    },
)
