"""Requests to a server over HTTP, for `postroad mcp`. The client is that of the MCP SDK, so it needs the same extra."""

from collections.abc import Mapping
from typing import Final

import httpx2

from postroad.network.http import api_client
from postroad_mcp import api_calls, mcp_server

# A DNS check of a domain takes the longest.
TIMEOUT_SECONDS: Final = 60.0
# More than a tool asks for.
MAX_BODY_BYTES: Final = 16 * 1024 * 1024


class RemoteApi:
    """The API at a URL, with a key."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def send(self, method: str, target: str, *, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """One request. A server that cannot be reached is an error of the tool, which the agent can read."""
        answer = bytearray()
        try:
            async with self._client.stream(method, target, content=body, headers=dict(headers)) as response:
                async for part in response.aiter_bytes():
                    answer += part
                    if len(answer) > MAX_BODY_BYTES:
                        raise api_calls.ToolError(api_calls.NO_ANSWER)
        except httpx2.HTTPError as problem:
            raise api_calls.ToolError(f"the server cannot be reached: {type(problem).__name__}") from None
        return response.status_code, bytes(answer)


async def serve_stdio(url: str, key: str) -> None:
    """Serve the tools of a remote server on standard input and output until the input ends."""
    async with new_client(url, key) as client:
        await mcp_server.serve_stdio(RemoteApi(client))


def new_client(url: str, key: str) -> httpx2.AsyncClient:
    """A client with the key, which is for this server alone: redirects are not followed, and no proxy gets it."""
    return httpx2.AsyncClient(
        base_url=url.rstrip("/"),
        headers={"Authorization": f"Bearer {key}"},
        timeout=TIMEOUT_SECONDS,
        verify=api_client.tls_context(),
        trust_env=False,
    )
