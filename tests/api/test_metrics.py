"""`/metrics` is for those who run the service: on the same host, or with the token, and for nobody else."""

import functools
from collections.abc import AsyncIterator

import httpx
import pytest
from prometheus_client import parser

from postroad import config, context
from postroad.api import authentication, monitoring
from postroad.services.operations import gauges
from postroad.services.people import authentication as caller_authentication
from postroad.web import application, routing
from tests import asgi
from tests.api import app_server

TOKEN = "token-of-the-tests-0123456789"
NOTHING = "no such path; see /docs for the list of endpoints"


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": "of the tests: 7Yq0wT4nZs9Lr2Xd5Kf8Hb1Vc6Jm3Pg"},
            "metrics": {"token": TOKEN},
        },
    )


def at(ctx: context.Context, address: str, *, is_behind_proxy: bool = False) -> httpx.AsyncClient:
    """A client that calls from this address."""
    served = application.Application(
        ctx,
        monitoring.metrics_routes(functools.partial(gauges.Gauges().text, ctx), is_behind_proxy=is_behind_proxy),
        authenticate=authentication.authenticate,
        require=caller_authentication.require,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=app_server.CapturedLog().logger(),
        counted=ctx.metrics,
    )
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(asgi.of(served), client=(address, 1)), base_url="http://postroad.test"
    )


@pytest.fixture
async def near(ctx: context.Context) -> AsyncIterator[httpx.AsyncClient]:
    async with at(ctx, "127.0.0.1") as client:
        yield client


@pytest.fixture
async def far(ctx: context.Context) -> AsyncIterator[httpx.AsyncClient]:
    async with at(ctx, "192.0.2.7") as client:
        yield client


async def test_what_is_counted_is_exposed_in_the_format_of_prometheus(
    near: httpx.AsyncClient, ctx: context.Context
) -> None:
    ctx.metrics.accepted.add("api")
    response = await near.get("/metrics")
    assert (response.status_code, response.headers["content-type"].split(";")[0]) == (200, "text/plain")
    assert response.headers["x-request-id"].startswith("req_")
    assert response.headers["cache-control"] == "no-store"
    read = {one.name: one.value for f in parser.text_string_to_metric_families(response.text) for one in f.samples}
    assert read["postroad_messages_accepted_total"] == 1
    assert read["postroad_store_up"] == 1


async def test_requests_are_counted_by_route_and_status_and_never_by_what_was_sent(
    near: httpx.AsyncClient, ctx: context.Context
) -> None:
    await near.get("/metrics")
    await near.head("/metrics")
    await near.get("/em_secret")
    await near.request("STRANGE", "/metrics")
    assert ctx.metrics.requests.values == {("GET /metrics", "200"): 2, ("none", "404"): 1, ("none", "405"): 1}
    text = (await near.get("/metrics")).text
    assert 'postroad_http_request_seconds_count{route="GET /metrics"} 2.0' in text
    assert "secret" not in text
    assert "STRANGE" not in text


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
async def test_a_client_on_this_host_may_read(ctx: context.Context, address: str) -> None:
    async with at(ctx, address) as client:
        assert (await client.get("/metrics")).status_code == 200


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.7", ""])
async def test_a_stranger_gets_not_found(ctx: context.Context, address: str) -> None:
    async with at(ctx, address) as client:
        response = await client.get("/metrics")
        nowhere = await client.get("/nowhere")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert response.json()["error"] == nowhere.json()["error"] == NOTHING


@pytest.mark.parametrize("name", monitoring.PROXY_FIELDS)
async def test_what_a_proxy_passes_on_is_not_local(near: httpx.AsyncClient, name: bytes) -> None:
    for headers in ([(name, b"192.0.2.7")], [(name, b"127.0.0.1"), (name, b"127.0.0.1")]):
        assert (await near.get("/metrics", headers=headers)).status_code == 404
    allowed = await near.get("/metrics", headers=[(name, b"192.0.2.7"), (b"Authorization", f"Bearer {TOKEN}".encode())])
    assert allowed.status_code == 200


async def test_behind_a_proxy_that_adds_no_field_nobody_is_local(ctx: context.Context) -> None:
    async with at(ctx, "127.0.0.1", is_behind_proxy=True) as client:
        assert (await client.get("/metrics")).status_code == 404
        assert (await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 200


async def test_the_token_opens_from_everywhere(far: httpx.AsyncClient) -> None:
    assert (await far.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 200


@pytest.mark.parametrize(
    "shown", [f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer", TOKEN, f"Basic {TOKEN}", "Bearer é", ""]
)
async def test_no_other_token_opens(far: httpx.AsyncClient, shown: str) -> None:
    response = await far.get("/metrics", headers=[(b"Authorization", shown.encode("latin-1"))])
    assert response.status_code == 404


async def test_the_token_sent_twice_does_not_open(far: httpx.AsyncClient) -> None:
    twice = [(b"Authorization", f"Bearer {TOKEN}".encode())] * 2
    assert (await far.get("/metrics", headers=twice)).status_code == 404


@pytest.mark.parametrize("shown", ["Bearer ", "Bearer", "", "Bearer x"])
def test_without_a_token_nobody_comes_in_from_elsewhere(shown: str) -> None:
    headers = routing.Headers([(b"authorization", shown.encode())])
    request = routing.Request(id="req_1", headers=headers, client_address="192.0.2.7")
    assert not monitoring._has_token(request, "")
