"""`/mcp`: the tools over the streamable HTTP transport of MCP, with an API key.

Each POST is answered by itself with JSON: there are no sessions and no event streams, so nothing is kept between
requests, any frontend and any host can answer, and GET and DELETE are 405, as the protocol provides. The SDK reads the
messages; authentication, the rate and the size of the body are those of the other routes. A browser's page of another
origin is refused (DNS rebinding), although it would not have the key.
"""

import asyncio
import importlib
import types
from collections.abc import MutableMapping
from typing import Any, Final, Literal
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.model.people import callers
from postroad.protocol.text import strict_json
from postroad.web import local_api, routing
from postroad_mcp import api_calls

PATH: Final = "/mcp"
# A send to 500 recipients has room. The SDK validates on the event loop, and takes longer than our own reader.
MAX_BODY_BYTES: Final = 256 * 1024
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
# What the SDK reads of a request.
_PASSED: Final = (b"accept", b"content-type", b"mcp-protocol-version", b"mcp-method", b"mcp-name")


class Message(msgspec.Struct, frozen=True):
    """What every message to us is. The SDK would take a second to describe what is wrong with a large other one."""

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] | None = None


def routes(mount: extension_api.Mount) -> tuple[routing.Route[context.Context], ...]:
    """The route. The tools ask the application that serves it."""
    origin = _origin(mount.public_url)

    def require_key(
        who: callers.Caller, permission: callers.Permission, *, scope: callers.Scope | None, client_address: str
    ) -> None:
        del scope
        if who.key is None:
            raise errors.Unauthorized("Authorization: /mcp needs an API key: Bearer pr_live_…")
        # Any scope is sufficient here; each tool needs its own. This also counts the request.
        mount.require(who, permission, scope=next(iter(sorted(who.key.scopes)), None), client_address=client_address)

    async def serve(_ctx: context.Context, request: routing.Request) -> routing.Response:
        sent = request.headers.get(b"origin")
        if sent is not None and (not origin or sent.decode("latin-1").lower() != origin):
            raise errors.Forbidden("Origin: requests from pages of other sites are not allowed")
        # It imports the SDK, which takes a second the first time.
        server = await asyncio.to_thread(importlib.import_module, "postroad_mcp.mcp_server")
        refused = _refusal(request.body)
        if refused is not None:
            return refused
        authorization = request.headers.get(b"authorization") or b""
        api = local_api.LocalApi(mount.get_app(), authorization=authorization, client_address=request.client_address)
        return await _answer(server, api, request)

    return (
        routing.Route(
            method="POST",
            path=PATH,
            handler=serve,
            summary="Model Context Protocol",
            tag="Agents",
            permission=callers.Permission.VIEW,
            require=require_key,
            body=bytes,
            body_limit=MAX_BODY_BYTES,
            responses={200: bytes},
        ),
    )


def _origin(url: str) -> str:
    """The origin of a URL, as browsers send it."""
    parts = parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else ""


def _refusal(body: bytes) -> routing.Response | None:
    """The error of the protocol for what is no message."""
    try:
        msgspec.convert(strict_json.read(body), Message)
    except strict_json.JsonError as problem:  # also of nesting on which the SDK would exhaust the stack
        error = {"code": PARSE_ERROR, "message": str(problem)}
    except msgspec.ValidationError as problem:
        error = {"code": INVALID_REQUEST, "message": f"not a JSON-RPC request or notification: {problem}"}
    else:
        return None
    return routing.Response(400, msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}))


async def _answer(server: types.ModuleType, api: api_calls.Api, request: routing.Request) -> routing.Response:
    """The answer of the SDK, which is an ASGI application."""
    fields = [(name, value) for name in _PASSED for value in request.headers.all(name)]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "headers": fields,
    }
    parts, sent = [request.body], []

    async def receive() -> dict[str, Any]:
        if not parts:
            await asyncio.get_running_loop().create_future()  # the client stays until the answer is there
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await server.serve_request(api, scope, receive, send)
    answer = b"".join(message.get("body", b"") for message in sent)
    # An answer without content, such as to a notification, has no type either.
    return routing.Response(sent[0]["status"], answer or None)
