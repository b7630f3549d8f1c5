"""Telling again what failed in a period: each event once, in bounded batches, for an endpoint that is there."""

from typing import Any

import pytest

from postroad import config, context, errors
from postroad.model.events import events
from postroad.services import audit_log, usage_limits
from postroad.services.accounts import account_registry as accounts
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage.mail import webhooks
from postroad.storage.people import accounts as stored_accounts
from tests import contexts, webhook_rows
from tests.webhook_rows import URL, State

DAY = 24 * 3600


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


@pytest.fixture
async def shop(ctx: context.Context, account: stored_accounts.Account) -> str:
    """An account with an endpoint."""
    await endpoints.save(ctx, account.id, url=URL)
    return account.id


async def fail(ctx: context.Context, account_id: str, **changes: Any) -> webhooks.Delivery:
    return await webhook_rows.put_ended(ctx, account_id, State.FAILED, **changes)


async def replay_all(ctx: context.Context, account_id: str) -> delivery_log.Replayed:
    return await delivery_log.replay_failed(ctx, account_id, after=0, before=ctx.clock() + contexts.SECOND)


async def pending(ctx: context.Context, account_id: str) -> list[str | None]:
    """What waiting deliveries are replays of, oldest first."""
    found = await delivery_log.page(ctx, account_id, status="pending", limit=100)
    return [entry.delivery.replay_of for entry in found][::-1]


async def test_what_failed_in_the_period_is_sent_again_and_nothing_else(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    made = []
    for _ in range(4):
        made.append(await fail(ctx, shop))
        await webhook_rows.put_ended(ctx, shop)
        clock.pass_seconds(10)
    ctx.webhook_wakeup.clear()
    after, before = made[1].created_at, made[3].created_at
    done = await delivery_log.replay_failed(ctx, shop, after=after, before=before)
    assert (done.count, done.next_after, done.has_more) == (2, None, False)
    assert ctx.webhook_wakeup.is_set()
    found = await delivery_log.page(ctx, shop, status="pending", limit=10)
    reported = {entry.delivery.replay_of: entry.delivery for entry in found}
    assert reported.keys() == {made[1].id, made[2].id}
    again = reported[made[1].id]
    assert (again.event_id, again.body, again.attempt_count) == (made[1].event_id, made[1].body, 0)
    assert (again.due_at, again.url) == (clock.now, URL)


async def test_an_event_is_sent_again_once_unless_it_succeeded_is_a_test_or_no_longer_in_the_log(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await fail(ctx, shop)
    clock.pass_seconds(7 * DAY)
    await fail(ctx, shop, event_type=events.EventType.TEST, message_id=None, recipient_id=None)
    sent = await fail(ctx, shop)
    clock.pass_seconds(1)
    await webhook_rows.put_ended(ctx, shop, event_id=sent.event_id, replay_of=sent.id)
    clock.pass_seconds(1)
    assert (await replay_all(ctx, shop)).count == 0
    old = await fail(ctx, shop)
    clock.pass_seconds(1)
    for count in (1, 0):
        assert (await replay_all(ctx, shop)).count == count
        clock.pass_seconds(1)
    assert await pending(ctx, shop) == [old.id]


async def test_an_event_that_failed_again_is_sent_once_more_within_any_period(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    old = await fail(ctx, shop)
    clock.pass_seconds(60)
    between = clock.now - contexts.SECOND
    newer = await fail(ctx, shop, event_id=old.event_id, replay_of=old.id)
    clock.pass_seconds(60)
    # Both failures are in this period, and the newer one stands for both.
    assert (await replay_all(ctx, shop)).count == 1
    assert await pending(ctx, shop) == [newer.id]
    other = await fail(ctx, shop)
    clock.pass_seconds(60)
    await fail(ctx, shop, event_id=other.event_id, replay_of=other.id)
    # Of this one only the first failure is in the period.
    done = await delivery_log.replay_failed(ctx, shop, after=between, before=other.created_at + 1)
    assert done.count == 1
    assert set(await pending(ctx, shop)) == {newer.id, other.id}


async def test_a_call_works_in_batches_walks_only_so_far_and_says_where_the_next_one_goes_on(
    ctx: context.Context, shop: str, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "REPLAY_BATCH", 2)
    monkeypatch.setattr(delivery_log, "MAX_REPLAYED", 5)
    made = []
    for _ in range(7):
        made.append(await fail(ctx, shop))
        clock.pass_seconds(1)
    first = await replay_all(ctx, shop)
    assert (first.count, first.next_after, first.has_more) == (4, made[3].created_at, True)
    assert first.next_after is not None
    rest = await delivery_log.replay_failed(ctx, shop, after=first.next_after, before=clock.now)
    assert (rest.count, rest.has_more) == (3, False)
    assert set(await pending(ctx, shop)) == {one.id for one in made}
    monkeypatch.setattr(delivery_log, "MAX_REPLAY_BATCHES", 2)
    walked = await replay_all(ctx, shop)
    assert (walked.count, walked.next_after) == (0, made[3].created_at)


async def test_an_endpoint_has_to_be_there_and_enabled(ctx: context.Context, account: stored_accounts.Account) -> None:
    with pytest.raises(errors.NotFound, match="this account has no webhook"):
        await replay_all(ctx, account.id)
    await endpoints.save(ctx, account.id, url=URL)
    await fail(ctx, account.id)
    await endpoints.save(ctx, account.id, url=URL, enabled=False)
    with pytest.raises(errors.Conflict, match="the webhook is disabled"):
        await replay_all(ctx, account.id)
    assert await pending(ctx, account.id) == []


async def test_an_account_replays_only_its_own(ctx: context.Context, shop: str, clock: contexts.Clock) -> None:
    other = await accounts.create(ctx, "Other")
    await endpoints.save(ctx, other.id, url=URL)
    # The same event by chance of the test: nothing of another account settles it.
    mine = await fail(ctx, shop)
    await webhook_rows.put_ended(ctx, other.id, event_id=mine.event_id)
    await fail(ctx, other.id)
    clock.pass_seconds(1)
    assert (await replay_all(ctx, shop)).count == 1
    assert await pending(ctx, other.id) == []


async def test_a_period_has_to_have_a_length_and_a_call_is_one_at_a_time(ctx: context.Context, shop: str) -> None:
    for after, before in ((5, 5), (6, 5)):
        with pytest.raises(errors.InvalidRequest, match="before: must be later than after"):
            await delivery_log.replay_failed(ctx, shop, after=after, before=before)
    for after, before in ((2**62, 2**62 + 1), (0, 1), (0, 2**62)):
        assert (await delivery_log.replay_failed(ctx, shop, after=after, before=before)).count == 0
    with (
        usage_limits.acquire(ctx, delivery_log.REPLAYS, shop),
        pytest.raises(errors.RateLimited, match="replays: at most 1 at once"),
    ):
        await replay_all(ctx, shop)


async def test_the_audit_log_has_one_entry_for_a_call(
    ctx: context.Context, shop: str, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "REPLAY_BATCH", 1)

    async def lines() -> list[str]:
        entries = await audit_log.page(ctx, shop, before=None, limit=100)
        return [entry.detail for entry in entries if entry.action == "webhook.replayed"]

    assert (await replay_all(ctx, shop)).count == 0
    assert await lines() == []
    for _ in range(3):
        await fail(ctx, shop)
        clock.pass_seconds(1)
    assert (await replay_all(ctx, shop)).count == 3
    assert await lines() == ["from 1970-01-01T00:00:00.000Z to 2027-01-15T08:00:03.000Z"]
