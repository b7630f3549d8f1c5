"""Pending webhook deliveries: claimed by endpoint, counted, and recorded by the lease holder."""

import asyncio

import msgspec

from postroad.storage.engine import open_store
from postroad.storage.engine.store import Store
from postroad.storage.mail import webhooks
from tests.storage.conftest import Reopen
from tests.storage.webhook_samples import (
    LEASE,
    NOW,
    SECOND,
    URL,
    add,
    claim,
    delivery,
    log,
    promote,
    record,
    result,
    webhook,
)

State = webhooks.State


async def change(store: Store, endpoint: webhooks.Webhook) -> None:
    async with store.transaction() as tx:
        await webhooks.update(tx, endpoint)


async def endpoints(store: Store, *, after: str = "", most: int = 100) -> list[str]:
    async with store.reading() as tx:
        return await webhooks.ready_endpoints(tx, after=after, limit=most)


async def is_due(store: Store, now: int) -> bool:
    async with store.reading() as tx:
        return await webhooks.is_due(tx, now=now)


async def test_what_is_new_is_ready_and_claimed_oldest_first(store: Store) -> None:
    await add(store, webhook(), *(delivery(number) for number in (3, 1, 2)))
    claimed = await claim(store, 2)
    assert claimed == [
        webhooks.Claimed(
            "acc_1", "whk_1", one.id, one.event_id, "email.delivered", one.message_id, one.body, attempt_count=1
        )
        for one in (delivery(1), delivery(2))
    ]
    assert [one.id for one in await claim(store, 2)] == [delivery(3).id]
    assert await claim(store, 2) == []


async def test_a_claim_is_a_lease_and_counts_the_attempt(store: Store) -> None:
    await add(store, webhook(), delivery(1), delivery(2))
    await claim(store, 1)
    held = msgspec.structs.replace(delivery(1), state="waiting", attempt_count=1, due_at=LEASE, worker="w1")
    assert await log(store) == [held, delivery(2)]


async def test_a_claim_takes_so_many_of_each_endpoint_and_nothing_of_others(store: Store) -> None:
    for number in (1, 2, 3):
        mine = (f"whk_{number}", f"acc_{number}")
        await add(store, webhook(*mine), *(delivery(each, *mine) for each in range(5)))
    async with store.transaction() as tx:
        wanted = [("whk_3", 1), ("whk_1", 3), ("whk_9", 5)]
        claimed = await webhooks.claim(tx, wanted, lease_until=LEASE, worker="w1")
        assert await webhooks.claim(tx, [], lease_until=LEASE, worker="w1") == []
    assert [(one.webhook_id, one.id) for one in sorted(claimed, key=lambda one: one.key)] == [
        *(("whk_1", delivery(number).id) for number in (0, 1, 2)),
        ("whk_3", delivery(0).id),
    ]
    assert [one.id for one in claimed] == sorted(one.id for one in claimed)
    assert len(await claim(store, webhook_id="whk_2")) == 5


async def test_a_disabled_endpoint_holds_what_it_has_and_an_enabled_one_gives_it(store: Store) -> None:
    await add(store, webhook(enabled=0), delivery(1))
    assert await claim(store) == []
    assert await log(store) == [delivery(1)]
    await change(store, webhook(enabled=1))
    assert len(await claim(store)) == 1


async def test_nothing_of_a_removed_endpoint_is_claimed_and_a_new_one_sees_nothing_of_it(store: Store) -> None:
    await add(store, webhook(), delivery(1))
    async with store.transaction() as tx:
        await webhooks.remove(tx, "whk_1", now=NOW)
    await add(store, webhook("whk_2"), delivery(2, "whk_2"))
    assert await claim(store) == []
    assert [one.id for one in await claim(store, webhook_id="whk_2")] == [delivery(2).id]


async def test_endpoints_with_something_ready_show_once_and_in_order(store: Store) -> None:
    for number in (3, 1, 4, 2):
        mine = (f"whk_{number}", f"acc_{number}")
        await add(store, webhook(*mine), delivery(1, *mine), delivery(2, *mine))
    await claim(store, webhook_id="whk_4")
    assert await endpoints(store) == ["whk_1", "whk_2", "whk_3"]
    assert await endpoints(store, most=2) == ["whk_1", "whk_2"]
    assert await endpoints(store, after="whk_1") == ["whk_2", "whk_3"]
    assert await endpoints(store, after="whk_1", most=1) == ["whk_2"]
    assert await endpoints(store, after="whk_3") == []


async def test_no_endpoint_shows_when_nothing_is_ready(store: Store) -> None:
    assert await endpoints(store) == []
    await add(store, webhook(), delivery(1, state="failed", ended_at=NOW))
    assert await endpoints(store) == []


async def test_workers_that_claim_at_the_same_time_share_what_there_is(store: Store, reopen: Reopen) -> None:
    await add(store, webhook(), *(delivery(number) for number in range(40)))
    others = [store, *[await reopen() for _ in range(3)]]
    taken = await asyncio.gather(*[claim(other, 10, worker=f"w{place}") for place, other in enumerate(others)])
    keys = [one.key for claimed in taken for one in claimed]
    assert len(keys) == len(set(keys))
    rest = await claim(store, 100, worker="w9")
    assert len(keys) + len(rest) == 40


async def test_on_postgres_what_another_host_is_taking_is_passed_over_without_waiting(clean_postgres_url: str) -> None:
    one = await open_store.open_current(clean_postgres_url, migrate=True)
    other = await open_store.open_store(clean_postgres_url)
    await add(one, webhook(), *(delivery(number) for number in range(5)))
    try:
        async with one.transaction() as taking:
            first = await webhooks.claim(taking, [("whk_1", 3)], lease_until=LEASE, worker="w1")
            second = await claim(other, worker="w2")
        assert [claimed.id for claimed in first] == [delivery(number).id for number in (0, 1, 2)]
        assert [claimed.id for claimed in second] == [delivery(number).id for number in (3, 4)]
        async with one.transaction() as promoting:
            held = await webhooks.promote(promoting, now=LEASE, attempts=7, limit=2)
            rest = await promote(other, LEASE)
        assert (len(held), len(rest)) == (2, 3)
        assert not {promoted.id for promoted in held} & {promoted.id for promoted in rest}
    finally:
        await one.close()
        await other.close()


async def test_a_lease_that_runs_out_comes_back_with_the_name_of_who_let_it_and_its_attempt_counts(
    store: Store,
) -> None:
    await add(store, webhook(), delivery(1))
    await claim(store)
    assert not await is_due(store, LEASE - 1)
    assert await promote(store, LEASE - 1) == []
    assert await is_due(store, LEASE)
    assert await promote(store, LEASE) == [webhooks.Promoted("acc_1", "whk_1", delivery(1).id, 1, "ready", "w1", LEASE)]
    assert await promote(store, LEASE) == []
    (again,) = await claim(store, worker="w2", until=LEASE * 2)
    assert again.attempt_count == 2


async def test_a_lease_that_runs_out_at_the_last_attempt_is_the_end(store: Store) -> None:
    rows = [delivery(1, attempt_count=6), delivery(2, attempt_count=5)]
    await add(store, webhook(), *rows)
    await claim(store)
    found = await promote(store, LEASE + 5)
    assert {(one.id, one.attempt_count, one.state, one.worker) for one in found} == {
        (rows[0].id, 7, "failed", "w1"),
        (rows[1].id, 6, "ready", "w1"),
    }
    ended, ready = await log(store)
    assert (ended.state, ended.ended_at, ended.attempt_count) == ("failed", LEASE + 5, 7)
    assert (ready.state, ready.ended_at, ready.attempt_count) == ("ready", None, 6)
    assert [one.id for one in await claim(store)] == [rows[1].id]


async def test_a_retry_that_is_due_is_ready_without_a_name_whatever_its_count(store: Store) -> None:
    """A schedule that was made shorter meanwhile takes no attempt away that was promised."""
    await add(store, webhook(), delivery(1, state="waiting", attempt_count=3, due_at=NOW + 5))
    assert await promote(store, NOW + 4, attempts=2) == []
    (found,) = await promote(store, NOW + 5, attempts=2)
    assert (found.state, found.worker, found.attempt_count) == ("ready", None, 3)


async def test_so_many_are_promoted_at_a_time_the_longest_due_first(store: Store) -> None:
    waiting = [delivery(number, state="waiting", due_at=NOW + 10 - number) for number in range(4)]
    await add(store, webhook(), *waiting, delivery(7, state="succeeded", ended_at=NOW, due_at=NOW))
    assert {one.id for one in await promote(store, NOW + 10, most=3)} == {one.id for one in waiting[1:]}
    assert [one.id for one in await promote(store, NOW + 10, most=3)] == [waiting[0].id]


async def test_a_result_ends_a_delivery_and_lets_go_of_it(store: Store) -> None:
    await add(store, webhook(), delivery(1), delivery(2))
    good, bad = await claim(store)
    failed = result(bad, state=State.FAILED, ended_at=NOW + 3, url="https://new.example.org/")
    assert await record(store, result(good), failed) == {good.key, bad.key}
    first, second = await log(store)
    assert first == msgspec.structs.replace(
        delivery(1), state="succeeded", attempt_count=1, due_at=NOW, ended_at=NOW + SECOND
    )
    assert (second.state, second.ended_at, second.url, second.worker) == (
        "failed",
        NOW + 3,
        "https://new.example.org/",
        None,
    )
    assert not await is_due(store, LEASE * 2)
    assert await endpoints(store) == []
    assert await record(store) == set()


async def test_a_result_that_asks_for_another_attempt_waits_for_its_time(store: Store) -> None:
    await add(store, webhook(), delivery(1))
    (held,) = await claim(store)
    again = result(held, state=State.WAITING, due_at=NOW + 9, ended_at=None)
    assert await record(store, again) == {held.key}
    assert (await log(store))[0].worker is None
    assert await claim(store) == []
    (found,) = await promote(store, NOW + 9)
    assert (found.state, found.worker) == ("ready", None)
    (held,) = await claim(store)
    assert held.attempt_count == 2


async def test_only_who_holds_the_lease_records(store: Store) -> None:
    await add(store, webhook(), webhook("whk_2", "acc_2"), delivery(1), delivery(1, "whk_2", "acc_2"))
    (held,) = await claim(store)
    (theirs,) = await claim(store, webhook_id="whk_2", worker="w2")
    before = await log(store)
    assert await record(store, result(held, worker="w2"), result(theirs, worker="w1")) == set()
    assert await record(store, result(held, attempt_count=2)) == set()
    assert await log(store) == before
    assert await record(store, result(held), result(theirs, worker="w3")) == {held.key}


async def test_a_result_twice_is_recorded_once(store: Store) -> None:
    await add(store, webhook(), delivery(1))
    (held,) = await claim(store)
    await record(store, result(held))
    assert await record(store, result(held, state=State.FAILED)) == set()
    assert (await log(store))[0].state == "succeeded"


async def test_a_worker_that_is_late_records_while_nobody_has_taken_up_what_it_held(store: Store) -> None:
    """The time of the lease has passed, and nobody has looked yet: the answer is still the best that is known."""
    await add(store, webhook(), delivery(1))
    (held,) = await claim(store)
    assert await is_due(store, LEASE)
    assert await record(store, result(held)) == {held.key}
    assert await promote(store, LEASE * 2) == []


async def test_a_worker_that_lost_its_lease_records_nothing_neither_before_nor_after_it_is_claimed_again(
    store: Store,
) -> None:
    await add(store, webhook(), delivery(1))
    (lost,) = await claim(store)
    await promote(store, LEASE)
    assert await record(store, result(lost)) == set()
    (held,) = await claim(store, worker="w1", until=LEASE * 2)
    assert await record(store, result(lost)) == set()
    assert await record(store, result(held)) == {held.key}


async def test_a_late_result_of_the_last_attempt_does_not_undo_the_end(store: Store) -> None:
    await add(store, webhook(), delivery(1, attempt_count=6))
    (lost,) = await claim(store)
    await promote(store, LEASE)
    assert await record(store, result(lost)) == set()
    assert (await log(store))[0].state == "failed"


async def test_what_is_handed_back_is_ready_and_its_attempt_was_none(store: Store) -> None:
    await add(store, webhook(), delivery(1), delivery(2))
    held = await claim(store)
    async with store.transaction() as tx:
        await webhooks.release(tx, [one.key for one in held], worker="somebody else")
        await webhooks.release(tx, [], worker="w1")
    assert await endpoints(store) == []
    async with store.transaction() as tx:
        await webhooks.release(tx, [held[0].key], worker="w1")
    assert await claim(store) == [held[0]]
    async with store.transaction() as tx:
        await webhooks.release(tx, [held[1].key], worker="w1")
        await webhooks.release(tx, [held[1].key], worker="w1")
    assert (await log(store))[1].attempt_count == 0


async def test_only_who_holds_a_delivery_drops_it(store: Store) -> None:
    await add(store, webhook(), *(delivery(number) for number in range(1, 5)))
    held, returned, ended = await claim(store, 3)
    await record(store, result(ended))
    async with store.transaction() as tx:
        await webhooks.release(tx, [returned.key], worker="w1")
        await webhooks.drop(tx, held.key, worker="somebody else")
        for key in (returned.key, ended.key, delivery(4).key):
            await webhooks.drop(tx, key, worker="w1")
    assert len(await log(store)) == 4
    async with store.transaction() as tx:
        await webhooks.drop(tx, held.key, worker="w1")
    assert [one.id for one in await log(store)] == [returned.id, ended.id, delivery(4).id]


async def test_what_has_ended_or_was_lost_cannot_be_handed_back(store: Store) -> None:
    await add(store, webhook(), delivery(1), delivery(2))
    ended, lost = await claim(store)
    await record(store, result(ended))
    await promote(store, LEASE)
    async with store.transaction() as tx:
        await webhooks.release(tx, [ended.key, lost.key], worker="w1")
    assert [(one.state, one.attempt_count) for one in await log(store)] == [("succeeded", 1), ("ready", 1)]


async def test_whatever_happens_there_are_no_more_attempts_than_the_schedule_has(store: Store) -> None:
    """Seven workers die one after the other, and the eighth finds nothing."""
    await add(store, webhook(), delivery(1))
    for number in range(1, 8):
        until = LEASE + number
        (held,) = await claim(store, worker=f"w{number}", until=until)
        assert held.attempt_count == number
        await promote(store, until)
    assert await claim(store) == []
    assert [(one.state, one.attempt_count) for one in await log(store)] == [("failed", 7)]
    assert (await log(store))[0].url == URL


async def counts(store: Store) -> dict[str, tuple[int, int]]:
    async with store.scanning() as tx:
        found = await webhooks.delivery_counts(tx)
    assert all(state == count.state for state, count in found.items())
    return {state: (count.deliveries, count.due_at) for state, count in found.items()}


async def test_nothing_is_counted_where_nothing_waits(store: Store) -> None:
    assert await counts(store) == {}
    await add(store, webhook(), delivery(1, state="succeeded", ended_at=NOW), delivery(2, state="failed", ended_at=NOW))
    assert await counts(store) == {}


async def test_deliveries_are_counted_by_state_over_all_endpoints(store: Store) -> None:
    for number, enabled in ((1, 1), (2, 1), (3, 0), (4, 0)):
        mine = (f"whk_{number}", f"acc_{number}")
        rows = [delivery(10 * number + each, *mine, due_at=NOW + 100 * number - each) for each in range(3)]
        await add(store, webhook(*mine, enabled=enabled), *rows)
    await claim(store, 1)
    await add(store, delivery(99, state="waiting", due_at=NOW + 7))
    assert await counts(store) == {"ready": (5, NOW + 98), "held": (6, NOW + 298), "waiting": (2, NOW + 7)}


async def test_what_is_claimed_waits_for_the_end_of_its_lease(store: Store) -> None:
    await add(store, webhook(), delivery(1))
    await claim(store)
    assert await counts(store) == {"waiting": (1, LEASE)}


async def test_what_a_removed_endpoint_left_is_neither_ready_nor_held(store: Store) -> None:
    await add(store, webhook(), delivery(1))
    async with store.transaction() as tx:
        await webhooks.remove(tx, "whk_1", now=NOW)
    assert await counts(store) == {}
