"""Requests to a server over HTTP, for `postroad mcp`. The client is that of the MCP SDK, so it needs the same extra."""

from collections.abc import Mapping
from typing import Final

import httpx2

from postroad.agents import api_calls, mcp_server

# A DNS check of a domain takes the longest.
TIMEOUT_SECONDS: Final = 60.0


class RemoteApi:
    """The API at a URL, with a key."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def send(self, method: str, target: str, *, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """One request. A server that cannot be reached is an error of the tool, which the agent can read."""
        try:
            response = await self._client.request(method, target, content=body, headers=dict(headers))
        except httpx2.HTTPError as problem:
            raise api_calls.ToolError(f"the server cannot be reached: {type(problem).__name__}") from None
        return response.status_code, response.content


async def serve_stdio(url: str, key: str) -> None:
    """Serve the tools of a remote server on standard input and output until the input ends."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=url.rstrip("/"), headers=headers, timeout=TIMEOUT_SECONDS) as client:
        await mcp_server.serve_stdio(RemoteApi(client))
