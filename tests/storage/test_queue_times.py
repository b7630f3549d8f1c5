"""Recipients with a time of their own: urgent ones are listed and claimed apart, and what has expired is found."""

from postroad.model.units import times
from postroad.storage.engine.store import Store
from postroad.storage.mail import messages, queue
from tests.storage import samples

NOW = 1_800_000_000_000_000
LEASE = NOW + 60_000_000
MINUTE = 60 * times.SECOND
KEY = queue.queue_key_of("example.org", "acc_1")


async def fill(store: Store, expires_in: dict[str, int | None], *, account: str = "acc_1", send_in: int = 0) -> None:
    """A message with one recipient for each name, with so much time from when it may be sent."""
    rows = [samples.recipient(name, account_id=account) for name in expires_in]
    schedules = {
        name: queue.Schedule(NOW + send_in, NOW + send_in + left) if left else queue.Schedule()
        for name, left in expires_in.items()
    }
    async with store.transaction() as tx:
        await queue.insert(tx, rows, dict.fromkeys(expires_in, 1), now=NOW, schedules=schedules)


async def claim(store: Store, *wanted: queue.ClaimRequest, worker: str = "w1") -> list[str]:
    async with store.transaction() as tx:
        return [one.message_id for one in await queue.claim(tx, wanted, lease_until=LEASE, worker=worker)]


async def claim_expired(store: Store, now: int, *, limit: int = 9, worker: str = "w1") -> list[queue.Expired]:
    async with store.transaction() as tx:
        return await queue.claim_expired(tx, now=now, limit=limit, lease_until=now + MINUTE, worker=worker)


async def work(store: Store, now: int, *, leases_until: int | None = None) -> queue.Work:
    async with store.reading() as tx:
        return await queue.find_work(tx, now=now, leases_until=leases_until)


async def urgent_keys(store: Store) -> list[str]:
    async with store.reading() as tx:
        return await queue.urgent_keys(tx, after="", limit=9)


async def test_what_has_at_most_a_quarter_of_an_hour_is_urgent_and_claimed_before_older_mail(store: Store) -> None:
    await fill(store, {"em_1": None, "em_2": 16 * MINUTE, "em_3": 15 * MINUTE, "em_4": MINUTE})
    await fill(store, {"em_5": None}, account="acc_2")
    assert await work(store, NOW) == queue.Work(is_due=False, is_urgent=True, is_expired=False)
    assert await urgent_keys(store) == [KEY]
    assert await claim(store, queue.ClaimRequest(KEY, 9, is_urgent=True)) == ["em_3", "em_4"]
    assert await urgent_keys(store) == []
    assert await work(store, NOW) == queue.Work(is_due=False, is_urgent=False, is_expired=False)
    assert await claim(store, queue.ClaimRequest(KEY, 9)) == ["em_1", "em_2"]


async def test_urgent_mail_of_several_accounts_is_listed_by_scheduled_queue_and_claimed_oldest_first(
    store: Store,
) -> None:
    await fill(store, {f"em_{number}": MINUTE for number in range(3)})
    await fill(store, {"em_9": MINUTE}, account="acc_2")
    other = queue.queue_key_of("example.org", "acc_2")
    assert await urgent_keys(store) == [KEY, other]
    wanted = [queue.ClaimRequest(KEY, 1, is_urgent=True), queue.ClaimRequest(other, 1)]
    assert await claim(store, *wanted) == ["em_0", "em_9"]
    assert await urgent_keys(store) == [KEY]


async def test_urgent_mail_for_later_is_urgent_when_its_time_has_come(store: Store) -> None:
    await fill(store, {"em_1": MINUTE}, send_in=5 * MINUTE)
    assert await urgent_keys(store) == []
    async with store.transaction() as tx:
        assert await queue.promote(tx, now=NOW + 5 * MINUTE, limit=9) == 1
    assert await urgent_keys(store) == [KEY]
    async with store.transaction() as tx:
        wanted = [queue.ClaimRequest(KEY, 1, is_urgent=True)]
        (claimed,) = await queue.claim(tx, wanted, lease_until=LEASE, worker="w1")
    assert claimed.is_urgent


async def test_what_has_expired_is_claimed_once_wherever_it_waits(store: Store) -> None:
    await fill(store, {"em_ready": MINUTE, "em_none": None, "em_later": 2 * MINUTE, "em_waiting": MINUTE})
    async with store.transaction() as tx:
        wanted = [queue.ClaimRequest(KEY, 9)]
        claimed = await queue.claim(tx, wanted, lease_until=LEASE, worker="w1")
        by_id = {one.message_id: one.key for one in claimed}
        waiting = by_id.pop("em_waiting")
        await queue.postpone(tx, [(waiting, NOW + 9 * MINUTE)], worker="w1")
        await queue.release(tx, list(by_id.values()), now=NOW, worker="w1")
    assert not (await work(store, NOW + MINUTE - 1)).is_expired
    assert (await work(store, NOW + MINUTE)).is_expired
    # A jump of the clock that is not trusted yet ends nobody's time.
    assert not (await work(store, NOW + MINUTE, leases_until=NOW)).is_expired
    assert await claim_expired(store, NOW + MINUTE - 1) == []
    first, second = await claim_expired(store, NOW + MINUTE)
    assert {first.claim.message_id, second.claim.message_id} == {"em_ready", "em_waiting"}
    assert (first.smtp_code, first.response) == (None, None)
    assert not (await work(store, NOW + MINUTE)).is_expired
    assert await claim_expired(store, NOW + MINUTE, worker="w2") == []
    assert await claim(store, queue.ClaimRequest(KEY, 9), worker="w2") == ["em_later", "em_none"]


async def test_what_is_being_sent_does_not_expire_until_its_lease_is_lost(store: Store) -> None:
    await fill(store, {"em_1": MINUTE // 2})
    assert await claim(store, queue.ClaimRequest(KEY, 9)) == ["em_1"]
    assert not (await work(store, NOW + MINUTE - 1)).is_expired
    assert await claim_expired(store, NOW + MINUTE - 1) == []
    # The worker has died: the lease ends, and then the recipient expires.
    assert (await work(store, LEASE)).is_due
    async with store.transaction() as tx:
        assert await queue.promote(tx, now=LEASE, limit=9) == 1
    (expired,) = await claim_expired(store, LEASE)
    assert (expired.claim.message_id, expired.claim.lost_leases) == ("em_1", 1)


async def test_an_expired_recipient_comes_with_the_last_reply_and_no_more_than_the_limit(store: Store) -> None:
    names = ["em_1", "em_2"]
    async with store.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(tx, [samples.message(name) for name in names])
        await messages.insert_recipients(tx, [samples.recipient(name) for name in names])
        await messages.record_results(tx, [deferred("em_1")])
    await fill(store, dict.fromkeys(names, MINUTE))
    (one,) = await claim_expired(store, NOW + MINUTE, limit=1)
    (other,) = await claim_expired(store, NOW + MINUTE, limit=1)
    found = {found.claim.message_id: (found.smtp_code, found.response) for found in (one, other)}
    assert found == {"em_1": (451, "not today"), "em_2": (None, None)}


def deferred(message_id: str) -> messages.RecipientUpdate:
    row = samples.recipient(message_id)
    return messages.RecipientUpdate(
        row.account_id, row.message_id, row.id, "deferred", "reserved", 1, 451, "not today", None, None
    )
