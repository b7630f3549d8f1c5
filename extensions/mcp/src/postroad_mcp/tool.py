"""A tool as data: its name, description and hints, the types of its input and output, and the function.

The JSON Schemas are generated from the types, as those of the HTTP API are.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from postroad_mcp import api_calls


class Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The arguments of a tool."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. `is_read_only`: it changes nothing; `is_destructive`: what it does cannot be undone."""

    name: str
    title: str
    description: str
    arguments: type[Input]
    result: type[msgspec.Struct]
    run: Callable[[api_calls.Api, Any], Awaitable[msgspec.Struct]]
    is_read_only: bool = True
    is_destructive: bool = False
    is_idempotent: bool = True

    async def call(self, api: api_calls.Api, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result as JSON values. Raises ToolError, also for wrong arguments."""
        try:
            given = msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as problem:
            raise api_calls.ToolError(f"invalid arguments: {problem}") from None
        result: Mapping[str, Any] = msgspec.to_builtins(await self.run(api, given))
        return result


def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a Struct, with an object at its root, as MCP wants it."""
    _, components = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    root: dict[str, Any] = components.pop(kind.__name__)
    return {**root, "$defs": components} if components else root


def as_text(result: Mapping[str, Any]) -> str:
    """The result as JSON, for clients that do not read structured results."""
    return msgspec.json.encode(result).decode()
