"""The queue: scheduled queues share the workers, claims are leases, and due recipients become ready again."""

from collections.abc import Sequence

import msgspec

from postroad.storage.engine.store import Store, Transaction
from postroad.storage.mail import messages, queue

NOW = 1_800_000_000_000_000
LEASE = NOW + 60_000_000


def recipient(number: int, *, domain: str = "example.org", account: str = "acc_1") -> messages.NewRecipient:
    email = f"Person{number}@{domain}"
    return messages.NewRecipient(f"em_{account}_{number}", f"rcp_{number:04}", account, email, email.lower(), domain)


async def fill(store: Store, rows: Sequence[messages.NewRecipient], *, now: int = NOW) -> None:
    async with store.transaction() as tx:
        await queue.insert(tx, rows, {row.message_id: 1234 for row in rows}, now=now)


async def claim(
    store: Store, *wanted: queue.ClaimRequest, worker: str = "w1", until: int = LEASE
) -> list[queue.Claimed]:
    async with store.transaction() as tx:
        return await queue.claim(tx, wanted, lease_until=until, worker=worker)


async def promote(store: Store, now: int, *, most: int = 100) -> int:
    async with store.transaction() as tx:
        return await queue.promote(tx, now=now, limit=most)


async def queue_keys(store: Store, *, after: str = "", most: int = 100) -> list[str]:
    async with store.reading() as tx:
        return await queue.queue_keys(tx, after=after, limit=most)


async def test_what_is_accepted_is_ready_at_once_and_claimed_oldest_first(store: Store) -> None:
    await fill(store, [recipient(number) for number in (3, 1, 2)])
    queue_key = queue.queue_key_of("example.org", "acc_1")
    claimed = await claim(store, queue.ClaimRequest(queue_key, 2))
    assert [one.recipient_id for one in claimed] == ["rcp_0001", "rcp_0002"]
    assert claimed[0] == queue.Claimed(
        "acc_1", "em_acc_1_1", "rcp_0001", queue_key, "Person1@example.org", "person1@example.org", 1234, 0, 0, NOW
    )
    assert [one.recipient_id for one in await claim(store, queue.ClaimRequest(queue_key, 2))] == ["rcp_0003"]
    assert await claim(store, queue.ClaimRequest(queue_key, 2)) == []


async def test_what_is_to_be_sent_later_is_ready_at_its_time_and_knows_when_it_expires(store: Store) -> None:
    now, later = recipient(1), recipient(2)
    schedules = {
        now.message_id: queue.Schedule(send_at=NOW - 1, expires_at=NOW + 9),
        later.message_id: queue.Schedule(send_at=NOW + 5),
    }
    async with store.transaction() as tx:
        sizes = {now.message_id: 1, later.message_id: 1}
        await queue.insert(tx, [now, later], sizes, now=NOW, schedules=schedules)
    wanted = queue.ClaimRequest(queue.queue_key_of("example.org", "acc_1"), 9)
    assert [(one.recipient_id, one.expires_at) for one in await claim(store, wanted)] == [("rcp_0001", NOW + 9)]
    assert await promote(store, NOW + 4) == 0
    assert await promote(store, NOW + 5) == 1
    assert [(one.recipient_id, one.expires_at) for one in await claim(store, wanted)] == [("rcp_0002", None)]


async def test_the_bytes_of_an_account_are_those_of_its_live_mail_with_each_message_once(tx: Transaction) -> None:
    one, live = recipient(1), recipient(2, account="acc_2")
    other = messages.NewRecipient(one.message_id, "rcp_0009", "acc_1", "b@example.net", "b@example.net", "example.net")
    test = recipient(3)
    sizes = {one.message_id: 1000, live.message_id: 500, test.message_id: 7000}
    simulations = {test.message_id: ""}
    await queue.insert(tx, [one, other, live, test], sizes, now=NOW, simulations=simulations)
    assert sorted(await queue.totals_by_account(tx, recipient_bytes=10), key=lambda total: total.account_id) == [
        queue.AccountTotals("acc_1", recipients=3, max_live_bytes=2020),
        queue.AccountTotals("acc_2", recipients=1, max_live_bytes=510),
    ]
    found = [await queue.live_bytes(tx, name, recipient_bytes=10) for name in ("acc_1", "acc_2", "acc_3")]
    assert found == [1020, 510, 0]


async def test_scheduled_queues_are_domains_of_accounts_and_each_shows_once(store: Store) -> None:
    rows = [
        recipient(number, domain=domain, account=account)
        for number, (domain, account) in enumerate(
            [("b.example", "acc_1"), ("a.example", "acc_2"), ("a.example", "acc_1"), ("a.example", "acc_1")]
        )
    ]
    await fill(store, rows)
    everyone = ["a.example acc_1", "a.example acc_2", "b.example acc_1"]
    assert await queue_keys(store) == everyone
    assert await queue_keys(store, most=2) == everyone[:2]
    assert await queue_keys(store, after=everyone[0]) == everyone[1:]
    assert await queue_keys(store, after=everyone[-1]) == []
    assert [queue.domain_of(queue_key) for queue_key in everyone] == ["a.example", "a.example", "b.example"]


async def test_a_claim_takes_so_many_of_each_scheduled_queue(store: Store) -> None:
    await fill(store, [recipient(n, domain="a.example") for n in range(5)])
    await fill(store, [recipient(n, domain="b.example") for n in range(5, 10)])
    claimed = await claim(store, queue.ClaimRequest("a.example acc_1", 1), queue.ClaimRequest("b.example acc_1", 3))
    assert [one.recipient_id for one in claimed] == ["rcp_0000", "rcp_0005", "rcp_0006", "rcp_0007"]
    assert await claim(store) == []


async def test_recipients_of_one_message_are_claimed_together(store: Store) -> None:
    rows = [msgspec.structs.replace(recipient(n), message_id="em_1") for n in range(5)]
    await fill(store, [*rows, recipient(7)])
    await fill(store, [msgspec.structs.replace(recipient(9, domain="other.example"), message_id="em_1")])
    claimed = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    assert [one.recipient_id for one in claimed] == [row.id for row in rows]


async def test_only_what_was_queued_before_a_time_is_claimed_when_asked_so(store: Store) -> None:
    await fill(store, [recipient(1)], now=NOW)
    await fill(store, [recipient(2)], now=NOW + 10)
    queue_key = queue.queue_key_of("example.org", "acc_1")
    claimed = await claim(store, queue.ClaimRequest(queue_key, 5, queued_before=NOW))
    assert [one.recipient_id for one in claimed] == ["rcp_0001"]


async def test_a_claim_comes_back_when_its_lease_ends_and_that_is_counted(store: Store) -> None:
    await fill(store, [recipient(1)])
    queue_key = queue.queue_key_of("example.org", "acc_1")
    await claim(store, queue.ClaimRequest(queue_key, 1))
    assert await promote(store, LEASE - 1) == 0
    async with store.reading() as tx:
        assert not (await queue.find_work(tx, now=LEASE - 1)).is_due
        assert (await queue.find_work(tx, now=LEASE)).is_due
    assert await promote(store, LEASE) == 1
    (again,) = await claim(store, queue.ClaimRequest(queue_key, 1), worker="w2")
    assert again.lost_leases == 1
    assert again.attempt_count == 0


async def test_a_lease_can_be_renewed_by_its_holder_alone(store: Store) -> None:
    await fill(store, [recipient(1)])
    (held,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    async with store.transaction() as tx:
        assert await queue.extend(tx, [held.key], lease_until=LEASE * 2, worker="somebody else") == []
    assert await promote(store, LEASE) == 1
    (held,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    async with store.transaction() as tx:
        assert await queue.extend(tx, [held.key], lease_until=LEASE * 2, worker="w1") == [held.key]
    assert await promote(store, LEASE) == 0


async def test_what_is_handed_back_is_ready_and_nothing_is_counted(store: Store) -> None:
    await fill(store, [recipient(1)])
    (held,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    async with store.transaction() as tx:
        await queue.release(tx, [held.key], now=NOW, worker="somebody else")
    assert await queue_keys(store) == []
    async with store.transaction() as tx:
        await queue.release(tx, [held.key], now=NOW, worker="w1")
    (again,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    assert again == held


async def test_a_postponed_recipient_waits_and_its_attempt_is_counted(store: Store) -> None:
    await fill(store, [recipient(1)])
    (held,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    async with store.transaction() as tx:
        await queue.postpone(tx, [(held.key, NOW + 5)], worker="w1")
    assert await queue_keys(store) == []
    assert await promote(store, NOW + 4) == 0
    assert await promote(store, NOW + 5) == 1
    (again,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    assert (again.attempt_count, again.lost_leases) == (1, 0)


async def test_an_attempt_that_does_not_count_leaves_the_schedule_as_it_is(store: Store) -> None:
    await fill(store, [recipient(1)])
    (held,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    async with store.transaction() as tx:
        assert await queue.postpone(tx, [(held.key, NOW + 5)], worker="w1", is_counted=False) == [held.key]
    assert await promote(store, NOW + 5) == 1
    (again,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    assert (again.attempt_count, again.lost_leases) == (0, 0)


async def test_a_sender_domain_and_a_tag_that_matter_have_scheduled_queues_of_their_own(store: Store) -> None:
    new = [recipient(number, domain="a.example") for number in range(4)]
    async with store.transaction() as tx:
        sizes = {one.message_id: 100 for one in new}
        tails = [("shop.example", ""), ("", "big sale"), ("shop.example", "big sale")]
        routed = {one.message_id: tail for one, tail in zip(new[1:], tails, strict=True)}
        await queue.insert(tx, new, sizes, now=NOW, routed=routed)
    keys = await queue_keys(store)
    assert [queue.parts_of(key) for key in keys] == [
        ("a.example", new[0].account_id, "", ""),
        ("a.example", new[0].account_id, "", "big sale"),
        ("a.example", new[0].account_id, "shop.example", ""),
        ("a.example", new[0].account_id, "shop.example", "big sale"),
    ]


async def test_a_worker_that_lost_its_lease_postpones_nothing(store: Store) -> None:
    await fill(store, [recipient(1)])
    (held,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    await promote(store, LEASE)
    await claim(store, queue.ClaimRequest("example.org acc_1", 1), worker="w2", until=LEASE * 2)
    async with store.transaction() as tx:
        await queue.postpone(tx, [(held.key, NOW + 5)], worker="w1")
    assert await promote(store, NOW + 5) == 0


async def test_what_is_final_is_gone(store: Store) -> None:
    await fill(store, [recipient(1), recipient(2)])
    (held,) = await claim(store, queue.ClaimRequest("example.org acc_1", 1))
    async with store.transaction() as tx:
        await queue.remove(tx, [held.key])
    await promote(store, LEASE * 2)
    assert [one.recipient_id for one in await claim(store, queue.ClaimRequest("example.org acc_1", 9))] == ["rcp_0002"]


async def test_so_many_are_promoted_at_a_time_the_longest_due_first(store: Store) -> None:
    await fill(store, [recipient(number) for number in range(3)])
    held = await claim(store, queue.ClaimRequest("example.org acc_1", 3))
    async with store.transaction() as tx:
        await queue.postpone(tx, [(one.key, NOW + 10 - n) for n, one in enumerate(held)], worker="w1")
    assert await promote(store, NOW + 10, most=2) == 2
    assert [one.recipient_id for one in await claim(store, queue.ClaimRequest("example.org acc_1", 9))] == [
        "rcp_0001",
        "rcp_0002",
    ]
