"""All tools, in the order in which they are listed; docs/mcp.md describes them."""

from typing import Final

from postroad_mcp import account_tools, api_calls, message_tools, template_tools, tool

TOOLS: Final[tuple[tool.Tool, ...]] = (*message_tools.TOOLS, *account_tools.TOOLS, *template_tools.TOOLS)
_BY_NAME: Final = {entry.name: entry for entry in TOOLS}


def find(name: str) -> tool.Tool:
    """The tool with this name. Raises ToolError."""
    if name not in _BY_NAME:
        raise api_calls.ToolError(f"there is no such tool; the tools are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
