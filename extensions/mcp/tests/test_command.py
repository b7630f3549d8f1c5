"""`postroad mcp`: started by the SDK's own client, and what it says when something is missing."""

import os
import sys
from typing import Any

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from postroad.web import routing
from tests.api import app_server
from tests.cli import cli_runner

KEY = "pr_live_" + "0" * 40


async def templates(_context: object, request: routing.Request) -> routing.Response:
    assert request.headers.get(b"authorization") == b"Bearer member"
    return routing.Response(
        200, b'{"templates":[{"alias":"welcome","subject":"Hi\\u001b","updated_at":"x"}],"next_cursor":null}'
    )


ROUTES: tuple[routing.Route[Any], ...] = (
    routing.Route(
        method="GET",
        path="/v1/templates",
        handler=templates,
        summary="",
        tag="",
        permission=None,
        responses={200: bytes},
    ),
)


async def test_the_sdks_client_uses_a_server_over_standard_input_and_output() -> None:
    async with app_server.running(ROUTES) as running:
        started = StdioServerParameters(
            command=sys.executable,
            args=["-m", "postroad", "mcp"],
            env={**os.environ, "POSTROAD_URL": running.base_url + "/", "POSTROAD_API_KEY": "member"},
        )
        async with Client(started) as client:
            assert len((await client.list_tools()).tools) == 9
            listed = await client.call_tool("list_templates", {})
            assert listed.structured_content == {
                "templates": [
                    {
                        "alias": "welcome",
                        "subject": {"untrusted_text": "Hi\\u{1b}", "truncated": False},
                        "updated_at": "x",
                    }
                ],
                "next_cursor": None,
            }
            refused = await client.call_tool("search_messages", {})
            (text,) = refused.content
            assert refused.is_error
            assert isinstance(text, mcp_types.TextContent)
            assert text.text.startswith("not_found (404)")


@pytest.mark.parametrize(
    "environment, says",
    [
        ({"POSTROAD_URL": None, "POSTROAD_API_KEY": KEY}, "POSTROAD_URL"),
        ({"POSTROAD_URL": "http://127.0.0.1:1", "POSTROAD_API_KEY": None}, "set POSTROAD_API_KEY"),
        ({"POSTROAD_URL": "127.0.0.1:1", "POSTROAD_API_KEY": KEY}, "must begin with https://"),
    ],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str | None], says: str
) -> None:
    for name, value in environment.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    result = cli_runner.run("mcp")
    assert result.exit_code == 2
    assert says in result.output
    assert KEY not in result.output
