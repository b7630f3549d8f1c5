"""`/operator/live`: it says every few seconds that pages of the console may have changed, to operators only."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from postroad import context
from postroad.dashboard.framework import cookies, live
from postroad.dashboard.operator import console as operator_live
from postroad.network.http import http_server
from postroad.services.people import users
from tests import contexts
from tests.dashboard.browser_client import Browser, Served

SAID = {"", ":", "event: changed", "data:"}
# A bound for machines that are busy; everything here takes a moment.
TIMEOUT = 300


@pytest_asyncio.fixture
async def listener(served: Served, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[http_server.HttpListener]:
    """The dashboard, listening; its streams look often."""
    monkeypatch.setattr(live, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(operator_live, "REFRESH_SECONDS", 0.05)
    listening = http_server.HttpListener(served, refuse=served.refuse, sweep_seconds=0.02)
    await listening.start("127.0.0.1", 0)
    yield listening
    await listening.stop(grace_seconds=TIMEOUT)


def client(listener: http_server.HttpListener, browser: Browser) -> httpx.AsyncClient:
    assert browser.session is not None
    host, port = listener.address
    headers = {"Cookie": f"{cookies.SESSION}={browser.session.token}"}
    return httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers, timeout=TIMEOUT)


async def test_it_asks_open_pages_to_refresh_again_and_again(
    listener: http_server.HttpListener, operator: Browser
) -> None:
    asked = 0
    async with client(listener, operator) as http, http.stream("GET", "/operator/live") as response:
        assert response.headers["content-type"] == "text/event-stream"
        async for line in response.aiter_lines():
            asked += line == "event: changed"
            if asked == 3:
                break
    assert asked == 3


async def test_others_get_no_stream(listener: http_server.HttpListener, browser: Browser) -> None:
    async with client(listener, browser) as http:
        assert (await http.get("/operator/live")).status_code == 403


@pytest.mark.parametrize("path, end", [("/operator/live", "role"), ("/live", "role"), ("/live", "hour")])
async def test_a_stream_ends_with_the_role_and_that_of_a_look_after_its_hour(
    ctx: context.Context,
    clock: contexts.Clock,
    listener: http_server.HttpListener,
    operator: Browser,
    stranger: Browser,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    end: str,
) -> None:
    # Nothing else ends it.
    monkeypatch.setattr(live, "STREAM_SECONDS", float("inf"))
    assert operator.user is not None
    await operator.post(f"/operator/accounts/{stranger.account_id}/view-as")
    async with client(listener, operator) as http:
        http.headers["Cookie"] += f"; {cookies.VIEW_AS}={operator.client.cookies[cookies.VIEW_AS]}"
        async with http.stream("GET", path) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == "event: changed"
            if end == "role":
                await users.remove_operator(ctx, operator.user.id)
            else:
                clock.pass_seconds(3_600)
            assert {line async for line in lines} <= SAID  # until it ends
