"""The delivery log: in pages, for 7 days, for its own account alone; and sending something again."""

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
from tests.webhook_rows import MESSAGE_ID, URL, State

DAY = 24 * 3600
UNKNOWN_IDS = ["whd_" + "0" * 28, "", "whd_", "whd_" + "0" * 27 + "\0", "em_" + "0" * 28]


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


async def listed(ctx: context.Context, account_id: str, *, limit: int = 100, **where: Any) -> list[str]:
    return [entry.delivery.id for entry in (await delivery_log.page(ctx, account_id, limit=limit, **where)).rows]


async def test_the_log_comes_in_parts_newest_first(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    assert await listed(ctx, account_id) == []
    await endpoints.save(ctx, account_id, url=URL)
    assert await listed(ctx, account_id) == []
    made = []
    for _ in range(5):
        made.append((await webhook_rows.put(ctx, account_id)).id)
        clock.pass_seconds(1)
    newest_first = made[::-1]
    assert await listed(ctx, account_id) == newest_first
    first = await delivery_log.page(ctx, account_id, limit=3)
    assert ([entry.delivery.id for entry in first.rows], first.next_cursor) == (newest_first[:3], newest_first[2])
    second = await delivery_log.page(ctx, account_id, before=first.next_cursor, limit=3)
    assert ([entry.delivery.id for entry in second.rows], second.next_cursor) == (newest_first[3:], None)
    assert await listed(ctx, account_id, before=newest_first[4]) == []
    for before in UNKNOWN_IDS[1:]:
        with pytest.raises(errors.InvalidRequest, match=r"^before: "):
            await listed(ctx, account_id, before=before)


async def test_deliveries_about_one_message_are_found_by_it(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    await endpoints.save(ctx, account_id, url=URL)
    first = await webhook_rows.put(ctx, account_id)
    await webhook_rows.put(ctx, account_id, message_id="em_" + "2" * 28)
    clock.pass_seconds(1)
    second = await webhook_rows.put(ctx, account_id)
    assert await listed(ctx, account_id, message_id=MESSAGE_ID) == [second.id, first.id]
    assert await listed(ctx, account_id, message_id=MESSAGE_ID, limit=1) == [second.id]
    assert await listed(ctx, account_id, message_id=MESSAGE_ID, before=second.id) == [first.id]
    for nothing in ("em_" + "0" * 28, "em_\0", "", "x" * 5000, first.id):
        assert await listed(ctx, account_id, message_id=nothing) == []
    other = await accounts.create(ctx, "Other")
    await endpoints.save(ctx, other.id, url=URL)
    assert await listed(ctx, other.id) == await listed(ctx, other.id, message_id=MESSAGE_ID) == []


async def test_an_entry_has_its_attempts_in_their_order(ctx: context.Context, account_id: str) -> None:
    await endpoints.save(ctx, account_id, url=URL)
    delivery = await webhook_rows.put(ctx, account_id, attempt_count=2, state=State.WAITING)
    other = await webhook_rows.put(ctx, account_id)
    second = await webhook_rows.put_attempt(ctx, delivery, 2, status_code=None, error="timeout: nothing came")
    first = await webhook_rows.put_attempt(ctx, delivery, 1, status_code=503)
    entries = {entry.delivery.id: entry for entry in (await delivery_log.page(ctx, account_id, limit=10)).rows}
    assert entries[delivery.id].attempts == [first, second]
    assert entries[other.id].attempts == []
    assert entries[delivery.id].delivery == delivery


@pytest.mark.parametrize(
    "state, status", [("ready", "pending"), ("waiting", "pending"), ("succeeded", "succeeded"), ("failed", "failed")]
)
async def test_who_waits_for_an_attempt_is_pending(
    ctx: context.Context, account_id: str, state: str, status: str
) -> None:
    await endpoints.save(ctx, account_id, url=URL)
    ended_at = ctx.clock() if status != "pending" else None
    await webhook_rows.put(ctx, account_id, state=state, ended_at=ended_at)
    (entry,) = (await delivery_log.page(ctx, account_id, limit=10)).rows
    assert entry.status == status
    assert (entry.next_attempt_at is None) == (status != "pending")


async def test_the_next_attempt_is_shown_unless_one_is_under_way_or_the_endpoint_disabled(
    ctx: context.Context, account_id: str
) -> None:
    await endpoints.save(ctx, account_id, url=URL)
    now = ctx.clock()
    later = now + 300 * contexts.SECOND
    rows: dict[str, webhooks.Delivery] = {
        "new": await webhook_rows.put(ctx, account_id),
        "waits": await webhook_rows.put(ctx, account_id, state=State.WAITING, due_at=later),
        "under way": await webhook_rows.put(ctx, account_id, state=State.WAITING, due_at=later, worker="w"),
        "was let go of": await webhook_rows.put(ctx, account_id, due_at=later),
    }

    async def due() -> dict[str, int | None]:
        found = {e.delivery.id: e.next_attempt_at for e in (await delivery_log.page(ctx, account_id, limit=10)).rows}
        return {name: found[row.id] for name, row in rows.items()}

    assert await due() == {"new": now, "waits": later, "under way": None, "was let go of": now}
    await endpoints.save(ctx, account_id, url=URL, enabled=False)
    assert set((await due()).values()) == {None}


@pytest.mark.parametrize("state", State)
async def test_a_replay_is_a_new_delivery_of_the_same_event_and_bytes(
    ctx: context.Context, account_id: str, clock: contexts.Clock, state: webhooks.State
) -> None:
    await endpoints.save(ctx, account_id, url=URL)
    old = await webhook_rows.put(ctx, account_id, state=state, attempt_count=3, url=URL + "/old")
    ctx.webhook_wakeup.clear()
    clock.pass_seconds(60)
    entry = await delivery_log.replay(ctx, account_id, old.id)
    again = entry.delivery
    assert (again.event_id, again.event_type, again.body) == (old.event_id, old.event_type, old.body)
    assert (again.message_id, again.recipient_id) == (old.message_id, old.recipient_id)
    assert (again.replay_of, again.state, again.attempt_count) == (old.id, State.READY, 0)
    assert again.id > old.id
    assert (again.url, again.due_at, again.created_at) == (URL, ctx.clock(), ctx.clock())
    assert ctx.webhook_wakeup.is_set()
    assert (await delivery_log.page(ctx, account_id, limit=1)).rows == [
        delivery_log.Entry(again, [], next_attempt_at=ctx.clock())
    ]
    assert entry.status == "pending"


async def test_entries_are_found_by_their_status(ctx: context.Context, account_id: str, clock: contexts.Clock) -> None:
    await endpoints.save(ctx, account_id, url=URL)
    made: dict[str, list[str]] = {"pending": [], "succeeded": [], "failed": []}
    for _ in range(2):
        for status, state in (("succeeded", State.SUCCEEDED), ("failed", State.FAILED)):
            made[status].append((await webhook_rows.put_ended(ctx, account_id, state)).id)
            clock.pass_seconds(1)
        for state in (State.READY, State.WAITING):
            made["pending"].append((await webhook_rows.put(ctx, account_id, state=state)).id)
            clock.pass_seconds(1)
    for status, ids in made.items():
        newest_first = ids[::-1]
        assert await listed(ctx, account_id, status=status) == newest_first
        assert await listed(ctx, account_id, status=status, limit=1) == newest_first[:1]
        assert await listed(ctx, account_id, status=status, before=newest_first[0]) == newest_first[1:]
        assert await listed(ctx, account_id, status=status, message_id=MESSAGE_ID) == newest_first
        assert await listed(ctx, account_id, status=status, message_id="em_" + "2" * 28) == []
    other = await accounts.create(ctx, "Other")
    await endpoints.save(ctx, other.id, url=URL)
    for status in made:
        assert await listed(ctx, other.id, status=status) == []
    clock.pass_seconds(7 * DAY)
    assert await listed(ctx, account_id, status="failed") == await listed(ctx, account_id, status="succeeded") == []
    assert await listed(ctx, account_id, status="pending") == made["pending"][::-1]


async def test_a_status_without_an_index_is_looked_for_only_so_far_at_once(
    ctx: context.Context, account_id: str, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "MAX_SCANNED_ROWS", 3)
    await endpoints.save(ctx, account_id, url=URL)
    waiting = await webhook_rows.put(ctx, account_id)
    for _ in range(6):
        clock.pass_seconds(1)
        await webhook_rows.put_ended(ctx, account_id)
    place, parts = None, []
    for _ in range(3):
        found = await delivery_log.page(ctx, account_id, status="pending", before=place, limit=2)
        parts.append([entry.delivery.id for entry in found.rows])
        place = found.next_cursor
    assert (parts, place) == ([[], [], [waiting.id]], None)


async def test_one_entry_is_found_and_replayed_by_its_id_in_its_own_account_while_it_is_kept(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    with pytest.raises(errors.NotFound):
        await delivery_log.find(ctx, account.id, UNKNOWN_IDS[0])
    for account_id in (account.id, other.id):
        await endpoints.save(ctx, account_id, url=URL)
    mine, foreign = [await webhook_rows.put_ended(ctx, account_id) for account_id in (account.id, other.id)]
    found = await delivery_log.find(ctx, account.id, mine.id)
    assert (found.delivery, found.status, len(found.attempts)) == (mine, "succeeded", 1)
    assert [found] == (await delivery_log.page(ctx, account.id, limit=10)).rows
    for delivery_id in (*UNKNOWN_IDS, foreign.id):
        for verb in (delivery_log.find, delivery_log.replay):
            with pytest.raises(errors.NotFound, match=r"^no such webhook delivery in this account$"):
                await verb(ctx, account.id, delivery_id)
    await endpoints.save(ctx, account.id, url=URL, enabled=False)
    with pytest.raises(errors.Conflict, match=r"^the webhook is disabled; enable it and try again$"):
        await delivery_log.replay(ctx, account.id, mine.id)
    assert await listed(ctx, account.id) == [mine.id]
    clock.pass_seconds(7 * DAY)
    with pytest.raises(errors.NotFound):
        await delivery_log.find(ctx, account.id, mine.id)


# Sending again what failed in a period: each event once, in bounded batches, for an endpoint that is there.


@pytest.fixture
async def shop(ctx: context.Context, account_id: str) -> str:
    """An account with an endpoint."""
    await endpoints.save(ctx, account_id, url=URL)
    return account_id


async def fail(ctx: context.Context, account_id: str, **changes: Any) -> webhooks.Delivery:
    return await webhook_rows.put_ended(ctx, account_id, State.FAILED, **changes)


async def replay_all(ctx: context.Context, account_id: str) -> delivery_log.Replayed:
    return await delivery_log.replay_failed(ctx, account_id, after=0, before=ctx.clock() + contexts.SECOND)


async def pending(ctx: context.Context, account_id: str) -> list[str | None]:
    """What waiting deliveries are replays of, oldest first."""
    found = (await delivery_log.page(ctx, account_id, status="pending", limit=100)).rows
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
    found = (await delivery_log.page(ctx, shop, status="pending", limit=10)).rows
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


async def test_an_endpoint_has_to_be_there_and_enabled(ctx: context.Context, account_id: str) -> None:
    with pytest.raises(errors.NotFound, match="this account has no webhook"):
        await replay_all(ctx, account_id)
    await endpoints.save(ctx, account_id, url=URL)
    await fail(ctx, account_id)
    await endpoints.save(ctx, account_id, url=URL, enabled=False)
    with pytest.raises(errors.Conflict, match="the webhook is disabled"):
        await replay_all(ctx, account_id)
    assert await pending(ctx, account_id) == []


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
