"""The queue as operators see it: counts, filters, and which recipients can be changed."""

import asyncio

from postroad.storage.engine.store import Store
from postroad.storage.mail import messages, queue, queue_views
from postroad.storage.people import accounts
from tests.storage import samples
from tests.storage.conftest import Reopen

NOW = samples.NOW
ALL = queue_views.Filter()
OF_ACCOUNT = queue_views.Filter(account_id="acc_1")
QUEUE_KEY = queue.queue_key_of("example.org", "acc_1")


async def add(store: Store, *recipient_ids: str, account_id: str = "acc_1", message_id: str = "em_1") -> None:
    """Queue the recipients of a message."""
    async with store.transaction() as tx:
        if await accounts.by_id(tx, account_id) is None:
            await samples.add_account(tx, account_id)
        await messages.insert(tx, [samples.message(message_id, account_id)])
        new = [samples.recipient(message_id, 0, account_id, id=recipient_id) for recipient_id in recipient_ids]
        await messages.insert_recipients(tx, new)
        await queue.insert(tx, new, {message_id: 100}, now=NOW)


async def claim(store: Store, most: int = 1) -> list[queue.Key]:
    async with store.transaction() as tx:
        claimed = await queue.claim(tx, [queue.ClaimRequest(QUEUE_KEY, most)], lease_until=NOW + 60, worker="w")
        # Recipients of one message come together; these tests want so many and no more.
        await queue.release(tx, [one.key for one in claimed[most:]], now=NOW, worker="w")
    return [one.key for one in claimed[:most]]


async def test_states_are_counted_with_their_oldest(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3")
    (first, _) = await claim(store, 2)
    async with store.transaction() as tx:
        await queue.postpone(tx, [(first, NOW + 300)], worker="w")
    async with store.scanning() as tx:
        assert await queue_views.counts(tx, ALL) == {
            "waiting": queue_views.Count("waiting", 1, NOW, NOW + 300),
            "sending": queue_views.Count("sending", 1, NOW, NOW + 60),
            "ready": queue_views.Count("ready", 1, NOW, NOW),
        }
        assert await queue_views.counts(tx, queue_views.Filter(account_id="acc_2")) == {}


async def test_domains_are_ranked_and_bounded(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2")
    await add(store, "rcp_3", account_id="acc_2", message_id="em_2")
    async with store.scanning() as tx:
        assert await queue_views.domains(tx, ALL, limit=1) == [("example.org", 3)]
        assert await queue_views.domains(tx, queue_views.Filter(account_id="acc_2"), limit=9) == [("example.org", 1)]


async def test_a_domain_is_found_with_the_sender_domains_that_have_their_own_scheduled_queues(store: Store) -> None:
    await add(store, "rcp_1")
    new = [samples.recipient("em_2", 0, "acc_2", id="rcp_2")]
    async with store.transaction() as tx:
        await samples.add_account(tx, "acc_2")
        await messages.insert(tx, [samples.message("em_2", "acc_2")])
        await messages.insert_recipients(tx, new)
        await queue.insert(tx, new, {"em_2": 100}, now=NOW, routed={"em_2": ("shop.example", "")})
    async with store.scanning() as tx:
        assert await queue_views.domains(tx, queue_views.Filter(domain="example.org"), limit=9) == [("example.org", 2)]
        assert await queue_views.counts(tx, queue_views.Filter(domain="example.or")) == {}


async def test_only_what_waits_without_a_lease_is_made_ready_and_no_more_than_asked_for(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3", "rcp_4")
    keys = await claim(store, 3)
    async with store.transaction() as tx:
        await queue.postpone(tx, [(key, NOW + 300) for key in keys[:2]], worker="w")
    ready: list[int] = []
    for _ in range(3):
        async with store.transaction() as tx:
            ready.append(await queue_views.make_ready(tx, OF_ACCOUNT, now=NOW + 1, limit=1))
    assert ready == [1, 1, 0]
    async with store.scanning() as tx:
        rows = await queue_views.page(tx, ALL, state=None, limit=10)
    assert [(row.state, row.due_at - NOW) for row in rows] == [
        ("ready", 1),
        ("ready", 1),
        ("sending", 60),
        ("ready", 0),
    ]


async def test_what_precedes_a_message_is_counted_by_scheduled_queue_and_up_to_a_limit(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3")
    await add(store, "rcp_4", "rcp_5", message_id="em_2")
    await add(store, "rcp_0", account_id="acc_2", message_id="em_3")
    keys = await claim(store, 1)
    async with store.transaction() as tx:
        assert await queue_views.ahead(tx, "acc_1", "em_2", limit=9) == {QUEUE_KEY: 2}
        assert await queue_views.ahead(tx, "acc_1", "em_2", limit=1) == {QUEUE_KEY: 1}
        assert await queue_views.ahead(tx, "acc_1", "em_1", limit=9) == {QUEUE_KEY: 0}
        assert await queue_views.ahead(tx, "acc_2", "em_3", limit=9) == {queue.queue_key_of("example.org", "acc_2"): 0}
        assert await queue_views.ahead(tx, "acc_2", "em_2", limit=9) == {}
        await queue.postpone(tx, [(keys[0], NOW + 300)], worker="w")
        assert await queue_views.ahead(tx, "acc_1", "em_2", limit=9) == {QUEUE_KEY: 2}


async def test_named_ones_are_made_ready_as_far_as_they_wait_without_a_lease(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3", "rcp_4")
    keys = await claim(store, 3)
    async with store.transaction() as tx:
        await queue.postpone(tx, [(key, NOW + 300) for key in keys[:2]], worker="w")
    named = [*keys[1:], ("acc_1", "em_1", "rcp_4"), ("acc_1", "em_1", "rcp_9"), ("acc_2", "em_1", keys[0][2])]
    async with store.transaction() as tx:
        assert await queue_views.make_named_ready(tx, [], now=NOW + 1) == 0
        assert await queue_views.make_named_ready(tx, named, now=NOW + 1) == 1
        assert await queue_views.make_named_ready(tx, named, now=NOW + 2) == 0
        rows = await queue_views.of_message(tx, "acc_1", "em_1")
    assert [(row.state, row.due_at - NOW) for row in rows] == [
        ("waiting", 300),
        ("ready", 1),
        ("sending", 60),
        ("ready", 0),
    ]


async def test_to_be_made_ready_gives_one_step_of_the_schedule_back(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2")
    places: list[list[int]] = []
    for _ in range(3):
        async with store.transaction() as tx:
            claimed = await queue.claim(tx, [queue.ClaimRequest(QUEUE_KEY, 2)], lease_until=NOW + 60, worker="w")
            await queue.postpone(tx, [(one.key, NOW + 300) for one in claimed], worker="w")
            places.append([one.attempt_count for one in claimed])
            assert await queue_views.make_named_ready(tx, [("acc_1", "em_1", "rcp_1")], now=NOW) == 1
            await queue.promote(tx, now=NOW + 300, limit=10)
    assert places == [[0, 0], [0, 1], [0, 2]]
    async with store.transaction() as tx:
        claimed = await queue.claim(tx, [queue.ClaimRequest(QUEUE_KEY, 2)], lease_until=NOW + 60, worker="w")
        await queue.postpone(tx, [(one.key, NOW + 300) for one in claimed], worker="w")
        assert await queue_views.make_ready(tx, OF_ACCOUNT, now=NOW, limit=10) == 2
        again = await queue.claim(tx, [queue.ClaimRequest(QUEUE_KEY, 2)], lease_until=NOW + 60, worker="w")
    assert {one.recipient_id: one.attempt_count for one in again} == {"rcp_1": 0, "rcp_2": 3}


async def test_what_nobody_holds_is_found_among_what_is_held(store: Store) -> None:
    await add(store, "rcp_1", "rcp_2", "rcp_3")
    (held,) = await claim(store)
    async with store.scanning() as tx:
        free = await queue_views.unleased(tx, ALL, limit=10)
    assert sorted(one.recipient_id for one in free) == ["rcp_2", "rcp_3"]
    async with store.transaction() as tx:
        still = await queue_views.still_unleased(tx, [held, *(one.key for one in free)])
        assert sorted(one.recipient_id for one in still) == ["rcp_2", "rcp_3"]
        assert still[0].email_key == "person0@example.org"
        assert await queue_views.still_unleased(tx, []) == []


async def test_what_is_kept_for_a_change_cannot_be_claimed_meanwhile(store: Store, reopen: Reopen) -> None:
    await add(store, "rcp_1")
    other = await reopen()
    async with store.transaction() as tx:
        (free,) = await queue_views.still_unleased(tx, [("acc_1", "em_1", "rcp_1")])
        claiming = asyncio.create_task(claim(other))
        await asyncio.sleep(0)
        await queue.remove(tx, [free.key])
    assert await claiming == []


async def test_a_recipient_is_located_between_two_places(store: Store) -> None:
    await add(store, "rcp_1")
    async with store.scanning() as tx:
        for low, high, found in (("em_1", "em_2", ("acc_1", "em_1")), ("em_0", "em_1", None), ("em_2", "em_9", None)):
            assert await queue_views.locate(tx, "rcp_1", from_message=low, to_message=high) == found
            assert await queue_views.locate(tx, "rcp_2", from_message=low, to_message=high) is None


async def test_the_first_of_an_account_is_the_oldest_as_the_page_has_it(store: Store) -> None:
    await add(store, "rcp_3", account_id="acc_0", message_id="em_0")
    await add(store, "rcp_1", "rcp_2")
    async with store.scanning() as tx:
        first = await queue_views.first(tx, "acc_1")
        assert [first] == await queue_views.page(tx, queue_views.Filter(account_id="acc_1"), state=None, limit=1)
        assert await queue_views.first(tx, "acc_2") is None
    assert first is not None
    assert first.recipient_id == "rcp_1"
