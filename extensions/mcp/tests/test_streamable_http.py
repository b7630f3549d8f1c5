"""`/mcp` over HTTP: both eras of the protocol with the SDK's client, and what is refused before a tool runs."""

import pytest

from extensions.mcp.tests.agent_server import AgentServer, error, result
from postroad import context
from postroad.services.people import credentials
from postroad.storage.people import accounts
from postroad_mcp import tools

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdks_client_lists_and_calls_the_tools(
    server: AgentServer, account: accounts.Account, mode: str
) -> None:
    async with server.client(account.id, "read", mode=mode) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [tool.name for tool in tools.TOOLS]
        assert await result(client, "search_messages") == {"messages": [], "next_cursor": None}


async def test_every_tool_has_schemas_and_hints(server: AgentServer, account: accounts.Account) -> None:
    async with server.client(account.id, "read") as client:
        listed = (await client.list_tools()).tools
    for tool in listed:
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert tool.annotations is not None
    writing = {tool.name for tool in listed if tool.annotations and not tool.annotations.read_only_hint}
    assert writing == {"diagnose_domain", "send_template"}
    assert [tool.name for tool in listed if tool.annotations and tool.annotations.destructive_hint] == ["send_template"]


async def test_only_an_api_key_opens_it(ctx: context.Context, server: AgentServer, account: accounts.Account) -> None:
    credential, password = await credentials.create(ctx, account.id, "x")
    for key in ("x", "pr_live_" + "0" * 40, password):
        async with server.http(key, **ACCEPT) as http:
            refused = await http.post("/mcp", json=INITIALIZE)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
    async with server.http("x", **ACCEPT) as http:
        refused = await http.post("/mcp", json=INITIALIZE, auth=(credential.username, password))
    assert refused.status_code == 401
    assert "API key" in refused.json()["error"]


@pytest.mark.parametrize(
    "origin, status",
    [("https://mail.example.com", 200), ("https://evil.example", 403), ("null", 403), ("http://127.0.0.1", 403)],
)
async def test_pages_of_other_origins_are_refused(
    server: AgentServer, account: accounts.Account, origin: str, status: int
) -> None:
    async with server.http(await server.key(account.id, "read"), Origin=origin, **ACCEPT) as http:
        assert (await http.post("/mcp", json=INITIALIZE)).status_code == status


async def test_there_are_no_sessions_and_no_streams(server: AgentServer, account: accounts.Account) -> None:
    async with server.http(await server.key(account.id, "read"), **ACCEPT) as http:
        for method in ("GET", "DELETE"):
            refused = await http.request(method, "/mcp")
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        begun = await http.post("/mcp", json=INITIALIZE)
        assert begun.status_code == 200
        assert begun.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in begun.headers
        assert begun.json()["result"]["serverInfo"]["name"] == "postroad"
        said = await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (said.status_code, said.content) == (202, b"")
        listen = {"jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": {}}
        unknown = await http.post("/mcp", json=listen)
        assert "error" in unknown.json()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'{"jsonrpc":"2.0"}', b'[{"jsonrpc":"2.0","id":1}]', b"\xff"])
async def test_what_is_no_message_gets_an_error_of_the_protocol(
    server: AgentServer, account: accounts.Account, body: bytes
) -> None:
    fields = {**ACCEPT, "Content-Type": "application/json"}
    async with server.http(await server.key(account.id, "read"), **fields) as http:
        refused = await http.post("/mcp", content=body)
    assert refused.status_code == 400
    assert refused.json()["error"]


@pytest.mark.parametrize(
    "levels, problem", [(2_000, "nested at most 64 levels deep"), (100_000, "at most 100000 values")]
)
async def test_nesting_without_end_gets_an_error_of_the_protocol(
    server: AgentServer, account: accounts.Account, levels: int, problem: str
) -> None:
    """The SDK failed with a RecursionError."""
    deep = "[" * levels + "]" * levels
    arguments = f'{{"name":"search_messages","arguments":{{"query":{deep}}}}}'
    async with server.http(await server.key(account.id, "read"), **ACCEPT) as http:
        for member, value in (("id", deep), ("other", deep), ("params", deep), ("params", arguments)):
            content = f'{{"jsonrpc":"2.0","method":"tools/call","{member}":{value}}}'
            refused = await http.post("/mcp", content=content, headers={"Content-Type": "application/json"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32700), member
            assert problem in refused.json()["error"]["message"]


@pytest.mark.parametrize("body", ['{{"a":{}}}', '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}}', "{}"])
async def test_a_large_body_that_is_no_message_takes_no_time(
    server: AgentServer, account: accounts.Account, body: str
) -> None:
    """The SDK described it for a second, on the event loop that others share."""
    content = body.format("[" + "{}," * 80_000 + "{}]").encode()
    async with server.http(await server.key(account.id, "read"), **ACCEPT) as http:
        refused = await http.post("/mcp", content=content, headers={"Content-Type": "application/json"})
    assert refused.status_code == 400
    error = {"code": -32700, "message": "JSON may have at most 100000 values here"}
    assert refused.json() == {"jsonrpc": "2.0", "id": None, "error": error}


async def test_a_large_body_is_refused(server: AgentServer, account: accounts.Account) -> None:
    fields = {**ACCEPT, "Content-Type": "application/json"}
    async with server.http(await server.key(account.id, "read"), **fields) as http:
        refused = await http.post("/mcp", content=b" " * (256 * 1024 + 1))
    assert (refused.status_code, refused.json()["code"]) == (413, "payload_too_large")


async def test_an_unknown_version_of_the_protocol_is_refused(server: AgentServer, account: accounts.Account) -> None:
    fields = {**ACCEPT, "MCP-Protocol-Version": "1999-01-01"}
    async with server.http(await server.key(account.id, "read"), **fields) as http:
        assert (await http.post("/mcp", json=INITIALIZE)).status_code == 400


async def test_a_tool_that_does_not_exist_is_an_error_that_names_the_others(
    server: AgentServer, account: accounts.Account
) -> None:
    async with server.client(account.id, "read") as client:
        assert "search_messages" in await error(client, "delete_everything")
