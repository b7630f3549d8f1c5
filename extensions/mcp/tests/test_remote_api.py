"""Requests to a server that may not be what it should be."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from postroad_mcp import api_calls, remote_api


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b" " * 1024 * 1024


async def test_an_endless_response_is_an_error() -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=endless()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        with pytest.raises(api_calls.ToolError, match=api_calls.NO_ANSWER):
            await api_calls.call(remote_api.RemoteApi(client), "GET", "/v1/templates")


@pytest.mark.parametrize("answer", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a": "\xff"}'])
async def test_what_is_not_json_that_we_take_is_an_error(answer: bytes) -> None:
    transport = httpx2.MockTransport(lambda _: httpx2.Response(500, content=answer))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        with pytest.raises(api_calls.ToolError, match=r"error \(500\): "):
            await api_calls.call(remote_api.RemoteApi(client), "GET", "/v1/templates")


async def test_the_key_goes_to_no_proxy_and_follows_no_redirect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with remote_api.new_client("http://127.0.0.1:1/", "pr_live_x") as client:
        assert client.trust_env is False
        assert client.follow_redirects is False
        assert client.headers["authorization"] == "Bearer pr_live_x"
