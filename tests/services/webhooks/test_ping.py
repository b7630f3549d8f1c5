"""Pinging: one signed request to a real endpoint, logged whatever it says, and not again for some seconds."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.protocol.signatures import webhook_signature
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints, listeners
from postroad.storage.mail import webhooks
from tests import contexts, event_formats, webhook_rows, webhook_server
from tests.services import audit_entries


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[webhook_server.WebhookServer]:
    async with webhook_server.running() as running:
        yield running


@pytest.fixture
def settings(database_url: str, endpoint: webhook_server.WebhookServer) -> config.Settings:
    return webhook_rows.settings(database_url, ca_file=endpoint.ca_file)


@pytest_asyncio.fixture
async def shop(ctx: context.Context, account_id: str, endpoint: webhook_server.WebhookServer) -> str:
    """An account with this endpoint."""
    await endpoints.save(ctx, account_id, url=endpoint.literal_url)
    return account_id


async def test_a_ping_is_one_signed_request_and_is_logged(
    ctx: context.Context, account_id: str, endpoint: webhook_server.WebhookServer
) -> None:
    with pytest.raises(errors.NotFound, match=r"^this account has no webhook$"):
        await delivery_log.ping(ctx, account_id)
    old = (await endpoints.save(ctx, account_id, url=endpoint.literal_url)).secret
    new = await endpoints.rotate(ctx, account_id, overlap_hours=1)
    entry = await delivery_log.ping(ctx, account_id)
    (request,) = endpoint.requests
    value, now = request.headers["service-signature"], ctx.clock() // contexts.SECOND
    assert value.count("v1=") == 2
    for secret in (new, str(old)):
        assert webhook_signature.why_refused(value, request.body, secret=secret, now=now) is None
    assert request.headers["content-type"] == "application/json"
    reported = json.loads(request.body)
    assert (reported["id"], reported["type"], reported["data"]["test"]) == (
        entry.delivery.event_id,
        "webhook.test",
        True,
    )
    assert entry.delivery.body == request.body
    (attempt,) = entry.attempts
    assert (attempt.status_code, attempt.response_body, attempt.error) == (200, "ok", None)
    assert (entry.status, entry.delivery.attempt_count, entry.next_attempt_at) == ("succeeded", 1, None)
    assert (await delivery_log.page(ctx, account_id, limit=10)).rows == [entry]


@pytest.mark.parametrize("status, ended", [(204, "succeeded"), (302, "failed"), (410, "failed"), (500, "failed")])
async def test_whatever_the_endpoint_says_is_an_answer_and_final(
    ctx: context.Context, shop: str, endpoint: webhook_server.WebhookServer, status: int, ended: str
) -> None:
    endpoint.answer = webhook_server.ok(status, b"x", "Location: https://127.0.0.1/")
    await endpoints.save(ctx, shop, url=endpoint.literal_url, enabled=False)  # which can be pinged, too
    entry = await delivery_log.ping(ctx, shop)
    assert len(endpoint.requests) == 1
    assert (entry.status, entry.attempts[0].status_code, entry.next_attempt_at) == (ended, status, None)
    assert (await delivery_log.page(ctx, shop, limit=10)).rows == [entry]


async def test_an_endpoint_that_is_not_there_fails_the_ping_and_says_why(ctx: context.Context, shop: str) -> None:
    async with webhook_server.running() as gone:
        url = gone.literal_url
    await endpoints.save(ctx, shop, url=url)
    entry = await delivery_log.ping(ctx, shop)
    (attempt,) = entry.attempts
    assert (entry.status, attempt.status_code) == ("failed", None)
    assert (attempt.error or "").startswith("connection_failed: ")


async def test_of_twenty_who_ping_at_the_same_moment_one_gets_through_and_between_two_some_time_passes(
    ctx: context.Context,
    other_process: context.Context,
    shop: str,
    endpoint: webhook_server.WebhookServer,
    clock: contexts.Clock,
) -> None:
    pings = [delivery_log.ping(here, shop) for here in (ctx, other_process) * 10]
    results = await asyncio.gather(*pings, return_exceptions=True)
    assert len(endpoint.requests) == 1
    assert sum(isinstance(result, delivery_log.Entry) for result in results) == 1
    assert sum(isinstance(result, errors.RateLimited) for result in results) == 19
    for passed, left in ((0.0, 15), (0.5, 15), (14.0, 1)):
        clock.pass_seconds(passed)
        with pytest.raises(errors.RateLimited) as refused:
            await delivery_log.ping(ctx, shop)
        assert refused.value.retry_after == left
    clock.pass_seconds(0.5)
    await delivery_log.ping(ctx, shop)
    assert len(endpoint.requests) == len((await delivery_log.page(ctx, shop, limit=10)).rows) == 2


async def test_a_new_endpoint_in_place_of_a_removed_one_waits_as_that_did(
    ctx: context.Context, shop: str, endpoint: webhook_server.WebhookServer, clock: contexts.Clock
) -> None:
    changes = endpoint_settings.Changes(url=endpoint.literal_url)
    for number in range(2):
        webhook = (await endpoints.create(ctx, shop, changes)).webhook
        if number:
            with pytest.raises(errors.RateLimited):
                await delivery_log.ping(ctx, shop, webhook.id)
            clock.pass_seconds(15)
        await delivery_log.ping(ctx, shop, webhook.id)
        await endpoints.remove(ctx, shop, webhook.id)
    # One that was there is not held up by another's.
    await delivery_log.ping(ctx, shop)
    assert len(endpoint.requests) == 3


async def test_a_ping_in_a_format_that_is_not_installed_leaves_no_trace(
    ctx: context.Context, shop: str, endpoint: webhook_server.WebhookServer
) -> None:
    changes = endpoint_settings.Changes(url=endpoint.literal_url, format_events=["sent"])
    made = await endpoints.create(event_formats.with_format(ctx), shop, changes, of_format="other")
    for _ in range(2):
        with pytest.raises(errors.Conflict, match=r"^this webhook has the format of an extension \(other\)"):
            await delivery_log.ping(ctx, shop, made.webhook.id)
    assert "webhook.pinged" not in [action for action, *_ in await audit_entries.summaries(ctx, shop)]


async def test_an_endpoint_that_is_removed_meanwhile_has_no_log_but_the_caller_has_an_answer(
    ctx: context.Context, shop: str, endpoint: webhook_server.WebhookServer
) -> None:
    async def remove(_request: webhook_server.ReceivedRequest) -> bytes:
        # That this is possible shows that no transaction is open while the endpoint is asked.
        await endpoints.remove(ctx, shop)
        await endpoints.save(ctx, shop, url=endpoint.literal_url)
        return webhook_server.OK

    endpoint.answer = remove
    entry = await delivery_log.ping(ctx, shop)
    assert entry.status == "succeeded"
    assert (await delivery_log.page(ctx, shop, limit=10)).rows == []
    async with ctx.store.reading() as tx:
        assert await webhooks.delivery_by_id(tx, *entry.delivery.key, ended_after=0) is None


async def test_a_store_that_goes_away_meanwhile_is_the_usual_trouble(
    ctx: context.Context, shop: str, endpoint: webhook_server.WebhookServer
) -> None:
    async def close(_request: webhook_server.ReceivedRequest) -> bytes:
        await ctx.store.close()
        return webhook_server.OK

    endpoint.answer = close
    with pytest.raises(errors.ServiceUnavailable):
        await delivery_log.ping(ctx, shop)
    assert len(endpoint.requests) == 1


async def test_a_listener_has_no_url_to_ping(ctx: context.Context, account_id: str) -> None:
    made = await listeners.create(ctx, account_id, endpoint_settings.Changes())
    with pytest.raises(errors.Conflict, match="its events are fetched"):
        await delivery_log.ping(ctx, account_id, made.webhook.id)
    assert (await delivery_log.page(ctx, account_id, made.webhook.id, limit=1)).rows == []
