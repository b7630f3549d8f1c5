"""Pinging: one signed request to a real endpoint, logged whatever it says, and not again for some seconds."""

import asyncio
import json
from collections.abc import Iterator

import pytest
import trustme

from postroad import config, context, errors
from postroad.protocol.signatures import webhook_signature
from postroad.roles import composition
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints, listeners
from postroad.storage.mail import webhooks
from postroad.storage.people import accounts as stored_accounts
from tests import contexts, webhook_rows, webhook_server


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def settings(database_url: str, authority: trustme.CA) -> Iterator[config.Settings]:
    with webhook_server.authority_file(authority) as ca_file:
        yield webhook_rows.settings(database_url, ca_file=ca_file)


async def test_a_ping_is_one_signed_request_and_is_logged(
    ctx: context.Context, account: stored_accounts.Account, authority: trustme.CA
) -> None:
    async with webhook_server.running(authority=authority) as endpoint:
        secret = (await endpoints.save(ctx, account.id, url=endpoint.literal_url)).secret
        assert secret is not None
        entry = await delivery_log.ping(ctx, account.id)
        (request,) = endpoint.requests
    now = ctx.clock() // contexts.SECOND
    value = request.headers["service-signature"]
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
    assert await delivery_log.page(ctx, account.id, limit=10) == [entry]


@pytest.mark.parametrize("status, ended", [(204, "succeeded"), (302, "failed"), (410, "failed"), (500, "failed")])
async def test_whatever_the_endpoint_says_is_an_answer_and_final(
    ctx: context.Context, account: stored_accounts.Account, authority: trustme.CA, status: int, ended: str
) -> None:
    answer = webhook_server.ok(status, b"x", "Location: https://127.0.0.1/")
    async with webhook_server.running(authority=authority, answer=answer) as endpoint:
        await endpoints.save(ctx, account.id, url=endpoint.literal_url)
        entry = await delivery_log.ping(ctx, account.id)
        assert len(endpoint.requests) == 1
    assert (entry.status, entry.attempts[0].status_code, entry.next_attempt_at) == (ended, status, None)
    assert await delivery_log.page(ctx, account.id, limit=10) == [entry]


async def test_an_endpoint_that_is_not_there_fails_the_ping_and_says_why(
    ctx: context.Context, account: stored_accounts.Account, authority: trustme.CA
) -> None:
    async with webhook_server.running(authority=authority) as endpoint:
        url = endpoint.literal_url
    await endpoints.save(ctx, account.id, url=url)
    entry = await delivery_log.ping(ctx, account.id)
    (attempt,) = entry.attempts
    assert (entry.status, attempt.status_code) == ("failed", None)
    assert (attempt.error or "").startswith("connection_failed: ")


async def test_between_two_pings_some_time_passes(
    ctx: context.Context,
    account: stored_accounts.Account,
    authority: trustme.CA,
    clock: contexts.Clock,
) -> None:
    async with webhook_server.running(authority=authority) as endpoint:
        await endpoints.save(ctx, account.id, url=endpoint.literal_url)
        await delivery_log.ping(ctx, account.id)
        for passed, left in ((0.0, 15), (0.5, 15), (14.0, 1)):
            clock.pass_seconds(passed)
            with pytest.raises(errors.RateLimited) as refused:
                await delivery_log.ping(ctx, account.id)
            assert refused.value.retry_after == left
        clock.pass_seconds(0.5)
        await delivery_log.ping(ctx, account.id)
        assert len(endpoint.requests) == 2
    assert len(await delivery_log.page(ctx, account.id, limit=10)) == 2


async def test_of_twenty_who_ping_at_the_same_moment_one_gets_through(
    ctx: context.Context,
    account: stored_accounts.Account,
    authority: trustme.CA,
    settings: config.Settings,
    clock: contexts.Clock,
) -> None:
    async with (
        webhook_server.running(authority=authority) as endpoint,
        composition.open_context(settings, clock=clock) as elsewhere,
    ):
        await endpoints.save(ctx, account.id, url=endpoint.literal_url)
        pings = [delivery_log.ping(here, account.id) for here in (ctx, elsewhere) * 10]
        results = await asyncio.gather(*pings, return_exceptions=True)
        assert len(endpoint.requests) == 1
    assert sum(isinstance(result, delivery_log.Entry) for result in results) == 1
    assert sum(isinstance(result, errors.RateLimited) for result in results) == 19


async def test_a_disabled_endpoint_can_be_pinged(
    ctx: context.Context, account: stored_accounts.Account, authority: trustme.CA
) -> None:
    async with webhook_server.running(authority=authority) as endpoint:
        await endpoints.save(ctx, account.id, url=endpoint.literal_url, enabled=False)
        assert (await delivery_log.ping(ctx, account.id)).status == "succeeded"


async def test_during_an_overlap_both_secrets_sign(
    ctx: context.Context, account: stored_accounts.Account, authority: trustme.CA
) -> None:
    async with webhook_server.running(authority=authority) as endpoint:
        old = (await endpoints.save(ctx, account.id, url=endpoint.literal_url)).secret
        new = await endpoints.rotate(ctx, account.id, overlap_hours=1)
        await delivery_log.ping(ctx, account.id)
        (request,) = endpoint.requests
    value, now = request.headers["service-signature"], ctx.clock() // contexts.SECOND
    assert value.count("v1=") == 2
    for secret in (new, str(old)):
        assert webhook_signature.why_refused(value, request.body, secret=secret, now=now) is None


async def test_an_endpoint_that_is_removed_meanwhile_has_no_log_but_the_caller_has_an_answer(
    ctx: context.Context, account: stored_accounts.Account, authority: trustme.CA
) -> None:
    async def remove(_request: webhook_server.ReceivedRequest) -> bytes:
        # That this is possible shows that no transaction is open while the endpoint is asked.
        await endpoints.remove(ctx, account.id)
        await endpoints.save(ctx, account.id, url=endpoint.literal_url)
        return webhook_server.OK

    async with webhook_server.running(authority=authority, answer=remove) as endpoint:
        await endpoints.save(ctx, account.id, url=endpoint.literal_url)
        entry = await delivery_log.ping(ctx, account.id)
    assert entry.status == "succeeded"
    assert await delivery_log.page(ctx, account.id, limit=10) == []
    async with ctx.store.reading() as tx:
        assert await webhooks.delivery_by_id(tx, *entry.delivery.key, ended_after=0) is None


async def test_there_has_to_be_an_endpoint(ctx: context.Context, account: stored_accounts.Account) -> None:
    with pytest.raises(errors.NotFound, match=r"^this account has no webhook$"):
        await delivery_log.ping(ctx, account.id)


async def test_a_store_that_goes_away_meanwhile_is_the_usual_trouble(
    ctx: context.Context, account: stored_accounts.Account, authority: trustme.CA
) -> None:
    async def close(_request: webhook_server.ReceivedRequest) -> bytes:
        await ctx.store.close()
        return webhook_server.OK

    async with webhook_server.running(authority=authority, answer=close) as endpoint:
        await endpoints.save(ctx, account.id, url=endpoint.literal_url)
        with pytest.raises(errors.ServiceUnavailable):
            await delivery_log.ping(ctx, account.id)
        assert len(endpoint.requests) == 1


async def test_a_listener_has_no_url_to_ping(ctx: context.Context, account: stored_accounts.Account) -> None:
    made = await listeners.create(ctx, account.id, endpoint_settings.Changes())
    with pytest.raises(errors.Conflict, match="its events are fetched"):
        await delivery_log.ping(ctx, account.id, made.webhook.id)
    assert await delivery_log.page(ctx, account.id, made.webhook.id, limit=1) == []
