"""How a tool uses the service: by requests to its HTTP API, with the caller's API key.

So scopes, limits, rates, quotas and the audit log are those of the API, and a tool can do nothing that the key cannot.
`postroad mcp` sends the requests over HTTP; `/mcp` hands them to the application of its process (`web/local_api.py`).
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib import parse

import msgspec

from postroad_mcp import untrusted_text

_OK: Final = range(200, 300)
NO_ANSWER: Final = "the response of the service could not be read"


class ToolError(Exception):
    """The failure of a tool, as the agent reads it: what went wrong and what to do."""


class Reply(msgspec.Struct, frozen=True):
    """The answer to a request. A body that is not a JSON object counts as empty."""

    status: int
    body: Mapping[str, Any]


class Api(Protocol):
    """Sends one request with the caller's API key."""

    async def send(self, method: str, target: str, *, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The status and the body of the response."""
        ...


async def call(
    api: Api,
    method: str,
    path: str,
    *,
    query: Mapping[str, object] | None = None,
    body: Mapping[str, Any] | None = None,
    key: str = "",
) -> Mapping[str, Any]:
    """The JSON object of a successful response. Raises ToolError with the error of the API."""
    reply = await ask(api, method, path, query=query, body=body, key=key)
    if reply.status not in _OK:
        raise refusal(reply)
    return reply.body


async def ask(
    api: Api,
    method: str,
    path: str,
    *,
    query: Mapping[str, object] | None = None,
    body: Mapping[str, Any] | None = None,
    key: str = "",
) -> Reply:
    """The response, whatever its status. `path` is split at slashes and quoted."""
    given = {name: str(value) for name, value in (query or {}).items() if value is not None}
    target = parse.quote(path, safe="/") + (f"?{parse.urlencode(given)}" if given else "")
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if key:
        headers["Idempotency-Key"] = key
    content = b"" if body is None else msgspec.json.encode(body)
    status, answer = await api.send(method, target, body=content, headers=headers)
    try:
        decoded = msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        decoded = {}
    return Reply(status, decoded)


def refusal(reply: Reply) -> ToolError:
    """The error of the API. Its text is ours, but it may quote what was sent."""
    code, text = reply.body.get("code", "error"), reply.body.get("error", NO_ANSWER)
    return ToolError(untrusted_text.escape(f"{code} ({reply.status}): {text}"))


def segment(text: str) -> str:
    """An argument as one segment of a path."""
    if not text or "/" in text or text in {".", ".."}:
        raise ToolError("not_found (404): there is nothing with this name")
    return text
