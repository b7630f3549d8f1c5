"""The webhook log and its attempts: read by account and endpoint, newest first, and deleted in batches."""

import asyncio

import msgspec
import pytest

from postroad.model.units import identifiers
from postroad.storage.engine import open_store
from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.mail import webhooks
from tests.storage import samples
from tests.storage.webhook_samples import LAST, NOW, add, attempt, claim, delivery, log, record, result, webhook


@pytest.fixture
def _two_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "SWEEP_ROWS", 2)


async def by_id(
    store: Store, delivery_id: str, *, webhook_id: str = "whk_1", account_id: str = "acc_1", ended_after: int = 0
) -> webhooks.Delivery | None:
    async with store.reading() as tx:
        return await webhooks.delivery_by_id(tx, account_id, webhook_id, delivery_id, ended_after=ended_after)


async def page(store: Store, *, before: str = LAST, ended_after: int = 0, limit: int = 10) -> list[str]:
    async with store.scanning() as tx:
        found = await webhooks.delivery_page(tx, "acc_1", "whk_1", before=before, ended_after=ended_after, limit=limit)
    return [one.event_id for one in found]


async def page_of_message(
    store: Store, message_id: str, *, before: str = LAST, ended_after: int = 0, limit: int = 10
) -> list[str]:
    async with store.scanning() as tx:
        found = await webhooks.page_of_message(
            tx, "acc_1", "whk_1", message_id, before=before, ended_after=ended_after, limit=limit
        )
    return [one.event_id for one in found]


async def sweep(store: Store, *, ended_before: int) -> int:
    async with store.transaction() as tx:
        return await webhooks.sweep(tx, ended_before=ended_before)


async def sweep_removed(store: Store, webhook_id: str = "whk_1") -> int:
    async with store.transaction() as tx:
        return await webhooks.sweep_removed(tx, "acc_1", webhook_id)


async def sweep_undelivered(store: Store, before: int) -> int:
    place = identifiers.at(identifiers.WEBHOOK_DELIVERY, before)
    async with store.transaction() as tx:
        return await webhooks.sweep_undelivered(tx, created_before=place)


async def test_a_delivery_is_read_as_it_was_written(store: Store) -> None:
    replayed = delivery(2, replay_of=delivery(1).id, body=b"\0\xff" * 1_000)
    ping = delivery(
        3,
        message_id=None,
        recipient_id=None,
        event_type="webhook.test",
        state="failed",
        attempt_count=1,
        ended_at=NOW + 9,
        worker="w1",
    )
    await add(store, delivery(1), replayed, ping)
    assert await by_id(store, delivery(1).id) == delivery(1)
    assert await by_id(store, replayed.id) == replayed
    assert await by_id(store, ping.id) == ping


async def test_a_delivery_is_stored_once(store: Store) -> None:
    await add(store, delivery(1))
    with pytest.raises(ConstraintViolated):
        await add(store, delivery(2), delivery(1))
    assert await log(store) == [delivery(1)]


async def test_one_of_another_account_or_endpoint_is_as_unknown_as_none(store: Store) -> None:
    await add(store, delivery(1))
    assert await by_id(store, delivery(1).id, account_id="acc_2") is None
    assert await by_id(store, delivery(1).id, webhook_id="whk_2") is None
    assert await by_id(store, "whd_9") is None


async def test_what_ended_too_long_ago_is_not_shown_and_what_is_pending_always_is(store: Store) -> None:
    await add(
        store,
        delivery(1, state="succeeded", ended_at=NOW, message_id="em_1"),
        delivery(2, state="failed", ended_at=NOW + 1, message_id="em_1"),
        delivery(3, message_id="em_1"),
    )
    assert await page(store, ended_after=NOW) == ["evt_3", "evt_2"]
    assert await page_of_message(store, "em_1", ended_after=NOW) == ["evt_3", "evt_2"]
    assert await by_id(store, delivery(1).id, ended_after=NOW) is None
    assert await by_id(store, delivery(2).id, ended_after=NOW) is not None
    assert await by_id(store, delivery(3).id, ended_after=NOW * 2) == delivery(3, message_id="em_1")


async def test_pages_are_newest_first_and_go_on_from_a_place(store: Store) -> None:
    neighbours = [delivery(3, "whk_2"), delivery(3, "whk_1", "acc_2")]
    await add(store, *(delivery(number) for number in (2, 5, 1, 4, 3)), *neighbours)
    assert await page(store) == ["evt_5", "evt_4", "evt_3", "evt_2", "evt_1"]
    assert await page(store, limit=2) == ["evt_5", "evt_4"]
    assert await page(store, before=delivery(4).id, limit=2) == ["evt_3", "evt_2"]
    assert await page(store, before=delivery(1).id) == []
    assert await page(store, before=identifiers.at(identifiers.WEBHOOK_DELIVERY, NOW + 3)) == ["evt_2", "evt_1"]


async def test_pages_of_a_message_hold_nothing_of_other_messages_endpoints_and_accounts(store: Store) -> None:
    await add(
        store,
        *(delivery(number, message_id="em_1") for number in (1, 2, 3)),
        delivery(4, message_id="em_2"),
        delivery(5, message_id=None),
        delivery(6, "whk_2", message_id="em_1"),
        delivery(7, "whk_1", "acc_2", message_id="em_1"),
    )
    assert await page_of_message(store, "em_1") == ["evt_3", "evt_2", "evt_1"]
    assert await page_of_message(store, "em_1", limit=1) == ["evt_3"]
    assert await page_of_message(store, "em_1", before=delivery(3).id, limit=1) == ["evt_2"]
    assert await page_of_message(store, "em_9") == []


@pytest.mark.usefixtures("_two_a_batch")
async def test_what_ended_long_ago_goes_with_its_attempts_some_at_a_time_the_oldest_first(store: Store) -> None:
    old = [delivery(number, state="succeeded", ended_at=NOW - number) for number in range(3)]
    kept = [
        delivery(3, state="failed", ended_at=NOW + 1),
        delivery(4),
        delivery(5, state="waiting", due_at=NOW - 9),
    ]
    await add(store, *old, *kept, *(attempt(one, number) for one in (*old, *kept) for number in (1, 2)))
    assert await sweep(store, ended_before=NOW) == 2
    assert await log(store) == [old[0], *kept]
    assert await samples.count(store, "webhook_attempts") == 8
    assert await sweep(store, ended_before=NOW) == 1
    assert await sweep(store, ended_before=NOW) == 0
    assert await log(store) == kept
    async with store.reading() as tx:
        left = await webhooks.attempts_of_deliveries(tx, "acc_1", "whk_1", [one.id for one in kept])
    assert len(left) == await samples.count(store, "webhook_attempts") == 6


@pytest.mark.usefixtures("_two_a_batch")
async def test_all_of_a_removed_endpoint_goes_some_at_a_time_and_nothing_of_its_successor(store: Store) -> None:
    left = [delivery(1), delivery(2, state="waiting", worker="w1"), delivery(3, state="failed", ended_at=NOW)]
    new, other = delivery(4, "whk_2"), delivery(5, "whk_3", "acc_2")
    await add(store, *left, new, other, *(attempt(one) for one in (*left, new, other)))
    assert [await sweep_removed(store) for _ in range(3)] == [2, 1, 0]
    assert await log(store) == []
    assert await log(store, "whk_2") == [new]
    assert await samples.count(store, "webhook_deliveries") == await samples.count(store, "webhook_attempts") == 2


@pytest.mark.usefixtures("_two_a_batch")
@pytest.mark.parametrize("enabled", [0, 1])
async def test_what_could_not_be_sent_for_long_is_removed_some_at_a_time(store: Store, enabled: int) -> None:
    old = [delivery(-3), delivery(-2, state="waiting"), delivery(-1)]
    kept = [delivery(-9, state="failed", ended_at=NOW - 8), delivery(0)]
    await add(store, webhook(enabled=enabled), *old, *kept, *(attempt(one) for one in (*old, *kept)))
    assert [await sweep_undelivered(store, NOW) for _ in range(3)] == [2, 1, 0]
    assert await log(store) == kept
    assert await samples.count(store, "webhook_attempts") == 2


async def test_what_removed_endpoints_have_left_is_swept_with_them(store: Store) -> None:
    await add(store, webhook(), delivery(-1))
    async with store.transaction() as tx:
        await webhooks.remove(tx, "whk_1", now=NOW)
    assert await sweep_undelivered(store, NOW) == 0


async def test_a_sweep_on_postgres_waits_for_nobody_and_leaves_no_attempt_behind(clean_postgres_url: str) -> None:
    one = await open_store.open_current(clean_postgres_url, migrate=True)
    other = await open_store.open_store(clean_postgres_url)
    try:
        await add(one, webhook(), delivery(1), delivery(2))
        held, _ = await claim(one)
        async with one.transaction() as recorder:
            await webhooks.record(recorder, [result(held)])
            async with asyncio.timeout(20):
                assert await sweep_removed(other) == 1
            async with other.transaction() as tx:
                await webhooks.remove(tx, "whk_1", now=NOW)
                await webhooks.forget(tx, "whk_1")
            await webhooks.insert_attempts(recorder, [attempt(delivery(1))])
        assert await samples.count(one, "webhooks") == 1
        assert await sweep_removed(other) == 1
        assert await samples.count(one, "webhook_attempts") == 0
    finally:
        await one.close()
        await other.close()


async def test_a_result_for_what_was_removed_is_reported_as_late(store: Store) -> None:
    await add(store, webhook(), delivery(1))
    (held,) = await claim(store)
    await sweep_removed(store)
    assert await record(store, result(held)) == set()
    assert await log(store) == []


async def test_a_replay_lives_on_when_what_it_repeats_is_swept(store: Store) -> None:
    old = delivery(1, state="failed", ended_at=NOW)
    again = msgspec.structs.replace(delivery(2), replay_of=old.id, event_id=old.event_id)
    await add(store, webhook(), old, again)
    await sweep(store, ended_before=NOW)
    assert await log(store) == [again]


async def test_the_newest_show_their_state(store: Store) -> None:
    foreign = [delivery(9, "whk_2", "acc_2"), delivery(8, "whk_3")]
    await add(store, webhook(), *(delivery(number) for number in (1, 2, 3)), *foreign)
    async with store.reading() as tx:
        found = await webhooks.newest_deliveries(tx, "acc_1", "whk_1", limit=2)
    assert [tuple(row) for row in found] == [(delivery(n).id, "ready", 0, NOW + n) for n in (3, 2)]


ONE, TWO = delivery(1), delivery(2)


async def of(store: Store, *delivery_ids: str, account_id: str = "acc_1", webhook_id: str = "whk_1") -> list[object]:
    async with store.scanning() as tx:
        found = await webhooks.attempts_of_deliveries(tx, account_id, webhook_id, delivery_ids)
    return list(found)


async def test_attempts_come_back_as_written_in_the_order_in_which_they_were_made(store: Store) -> None:
    failed = attempt(ONE, 1, status_code=None, response_body=None, error="timeout: no answer within 5 seconds")
    odd = attempt(ONE, 2, status_code=302, response_body="", error="redirect_not_followed: …", duration=0)
    good = attempt(ONE, 3, status_code=200, response_body="ok \x01 ✓")
    await add(store, good, failed, attempt(TWO), odd)
    assert await of(store, ONE.id) == [failed, odd, good]
    assert await of(store, TWO.id, ONE.id) == [failed, odd, good, attempt(TWO)]
    assert await of(store) == []


async def test_attempts_of_other_deliveries_endpoints_and_accounts_are_not_seen(store: Store) -> None:
    elsewhere = [delivery(1, "whk_2"), delivery(1, "whk_1", "acc_2")]
    await add(store, attempt(ONE), *(attempt(other, error="theirs") for other in elsewhere))
    assert await of(store, ONE.id, "whd_9") == [attempt(ONE)]
    assert await of(store, ONE.id, webhook_id="whk_9") == []
    assert await of(store, ONE.id, account_id="acc_2") == [attempt(elsewhere[1], error="theirs")]


async def test_the_same_attempt_twice_is_one_and_the_first_word_stands(store: Store) -> None:
    await add(store, attempt(ONE, error="interrupted: the worker vanished"))
    await add(store, attempt(ONE, status_code=200), attempt(ONE, 2))
    assert await of(store, ONE.id) == [attempt(ONE, error="interrupted: the worker vanished"), attempt(ONE, 2)]


async def test_attempts_go_with_their_delivery_and_the_neighbours_stay(store: Store) -> None:
    neighbours = [TWO, delivery(1, "whk_2"), delivery(1, "whk_1", "acc_2")]
    await add(store, attempt(ONE, 1), attempt(ONE, 2), *(attempt(other) for other in neighbours))
    async with store.transaction() as tx:
        await webhooks.remove_attempts(tx, [])
        await webhooks.remove_attempts(tx, [ONE.key, ("acc_1", "whk_1", "whd_9")])
    assert await of(store, ONE.id) == []
    assert await samples.count(store, "webhook_attempts") == len(neighbours)
    async with store.transaction() as tx:
        await webhooks.remove_attempts(tx, [other.key for other in neighbours])
    assert await samples.count(store, "webhook_attempts") == 0
