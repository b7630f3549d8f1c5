"""Counts of mail: by hour and provider for charts, by day for the bounce guard; summed, and deleted."""

import asyncio

from postroad.model.bounces.bounce_guard import Counts
from postroad.model.units import times
from postroad.storage.engine.store import Store, Transaction
from postroad.storage.mail import mail_counts
from tests.storage.conftest import Reopen

CountIncrement, BucketTotal = mail_counts.CountIncrement, mail_counts.BucketTotal
ALL = {"from_hour": 0, "until_hour": 1000, "hours": 1000}


async def count(store: Store, *rows: mail_counts.CountIncrement) -> None:
    async with store.transaction() as tx:
        await mail_counts.add_hourly(tx, rows)


async def summed(store: Store, account_id: str = "acc_1", **window: int) -> list[mail_counts.BucketTotal]:
    async with store.scanning() as tx:
        found = await mail_counts.hourly_sums(tx, account_id, **(ALL | window))
    return sorted(found, key=lambda one: (one.bucket, one.provider))


def test_an_hour_begins_with_its_first_microsecond() -> None:
    assert [mail_counts.hour_of(7 * times.HOUR + more) for more in (-1, 0, times.HOUR - 1)] == [6, 7, 7]


async def test_rows_add_up_by_account_hour_and_provider(store: Store) -> None:
    await count(store, CountIncrement(account_id="acc_1", hour=5, messages=2, recipients=3))
    await count(
        store,
        CountIncrement(account_id="acc_2", hour=5, messages=7),
        CountIncrement(account_id="acc_1", hour=5, messages=1, recipients=1),
        CountIncrement(account_id="acc_1", hour=5, provider="google", delivered=1, bounced=2, failed=3, deferred=4),
    )
    assert await summed(store) == [BucketTotal(0, "", 3, 4, 0, 0, 0, 0), BucketTotal(0, "google", 0, 0, 1, 2, 3, 4)]
    assert await summed(store, "acc_2") == [BucketTotal(0, "", 7, 0, 0, 0, 0, 0)]
    assert await summed(store, "acc_3") == []


async def test_a_provider_has_the_results_and_the_mean_delivery_time_of_all_accounts(store: Store) -> None:
    await count(
        store,
        CountIncrement(account_id="acc_1", hour=5, provider="google", delivered=1, deferred=1, delivery_time=10),
        CountIncrement(account_id="acc_2", hour=6, provider="google", delivered=3, bounced=1, delivery_time=30),
        CountIncrement(account_id="acc_2", hour=4, provider="google", delivered=9, delivery_time=9_000),
        CountIncrement(account_id="acc_2", hour=6, provider="yahoo", deferred=2),
    )
    async with store.scanning() as tx:
        google, yahoo = await mail_counts.hourly_by_provider(tx, from_hour=5)
    assert google == mail_counts.ProviderTotal("google", 0, 4, 1, 0, 1, 40)
    assert (google.attempts, google.mean_delivery_time) == (6, 10)
    assert (yahoo.attempts, yahoo.mean_delivery_time) == (2, None)


async def test_refusals_for_some_reasons_are_those_of_all_accounts(tx: Transaction) -> None:
    await mail_counts.add_failures(
        tx,
        [
            mail_counts.FailureIncrement("acc_1", 7, "google", "ip_blocked", 1, 2),
            mail_counts.FailureIncrement("acc_2", 8, "google", "low_reputation", 4, 0),
            mail_counts.FailureIncrement("acc_1", 7, "yahoo", "mailbox_full", 8, 0),
            mail_counts.FailureIncrement("acc_1", 6, "yahoo", "ip_blocked", 16, 0),
        ],
    )
    found = await mail_counts.failures_by_provider(tx, {"ip_blocked", "low_reputation"}, since_hour=7)
    assert found == {"google": 7}


async def test_the_bytes_of_accounts_are_those_of_their_messages_and_recipients_from_an_hour_on(store: Store) -> None:
    await count(
        store,
        CountIncrement(account_id="acc_1", hour=4, messages=1, recipients=1, message_bytes=9_000),
        CountIncrement(account_id="acc_1", hour=5, messages=1, recipients=2, message_bytes=300),
        CountIncrement(account_id="acc_1", hour=5, provider="google", delivered=2, delivery_time=10),
    )
    await count(
        store,
        CountIncrement(account_id="acc_1", hour=5, messages=1, recipients=1, message_bytes=400),
        CountIncrement(account_id="acc_1", hour=6, messages=1, recipients=1, message_bytes=3_000_000_000),
        CountIncrement(account_id="acc_2", hour=6, messages=1, recipients=1, message_bytes=50),
    )
    async with store.scanning() as tx:
        found = await mail_counts.bytes_by_account(tx, from_hour=5, recipient_bytes=10)
    assert found == {"acc_1": 3_000_000_740, "acc_2": 60}


async def test_the_same_hour_may_be_named_several_times_at_once(store: Store) -> None:
    rows = [CountIncrement(account_id="acc_1", hour=5, provider="google", delivered=number) for number in range(1, 5)]
    await count(store, *rows, CountIncrement(account_id="acc_1", hour=5, provider="google", failed=1))
    assert await summed(store) == [BucketTotal(0, "google", 0, 0, 10, 0, 1, 0)]


async def test_sums_are_cut_into_stretches_from_the_first_hour_on(store: Store) -> None:
    await count(
        store, *(CountIncrement(account_id="acc_1", hour=hour, messages=10 ** (hour - 9)) for hour in range(9, 17))
    )
    found = await summed(store, from_hour=10, until_hour=16, hours=3)
    assert [(one.bucket, one.messages) for one in found] == [(0, 1_110), (1, 1_110_000)]


async def test_counts_from_an_hour_on_are_those_of_all_providers(store: Store) -> None:
    await count(
        store,
        CountIncrement(account_id="acc_1", hour=4, messages=100),
        CountIncrement(account_id="acc_1", hour=5, messages=1, recipients=2),
        CountIncrement(account_id="acc_1", hour=6, provider="google", delivered=3, deferred=1),
        CountIncrement(account_id="acc_1", hour=6, provider="others", delivered=4, bounced=5, failed=6),
    )
    async with store.reading() as tx:
        assert await mail_counts.hourly_since(tx, "acc_1", from_hour=5) == (1, 2, 7, 5, 6, 1)
        assert await mail_counts.hourly_since(tx, "acc_1", from_hour=7) == (None,) * 6


async def test_old_hours_are_swept_some_at_a_time_and_the_others_stay(store: Store) -> None:
    await count(
        store,
        *(CountIncrement(account_id=f"acc_{number}", hour=hour, messages=1) for number in (1, 2) for hour in (1, 2, 3)),
    )
    removed = []
    for _ in range(3):
        async with store.transaction() as tx:
            removed.append(await mail_counts.sweep_hourly(tx, until_hour=2, limit=3))
    assert removed == [3, 1, 0]
    assert [one.messages for one in await summed(store)] == [1]


async def test_hosts_that_count_the_same_hours_at_once_lose_nothing(store: Store, reopen: Reopen) -> None:
    """In opposite orders: whoever changes rows in the order of its own list would wait for the other for ever."""
    rows = [CountIncrement(account_id="acc_1", hour=hour, messages=1) for hour in range(20)]
    other = await reopen()
    await asyncio.gather(
        *(count(host, *order) for host, order in ((store, rows), (other, rows[::-1])) for _ in range(10))
    )
    assert [one.messages for one in await summed(store, hours=1)] == [20] * 20


async def test_a_day_adds_up_and_returns_its_totals(tx: Transaction) -> None:
    assert await mail_counts.add_guard_days(tx, 5, {"acc_1": Counts(3, 1, 0)}) == {"acc_1": Counts(3, 1, 0)}
    found = await mail_counts.add_guard_days(tx, 5, {"acc_2": Counts(1, 0, 1), "acc_1": Counts(2, 0, 1)})
    assert found == {"acc_1": Counts(5, 1, 1), "acc_2": Counts(1, 0, 1)}


async def test_only_the_days_after_one_are_summed(tx: Transaction) -> None:
    for day in (3, 4, 5):
        await mail_counts.add_guard_days(tx, day, {"acc_1": Counts(10**day, 1, 0), "acc_2": Counts(1, 0, 0)})
    found = await mail_counts.guard_sums(tx, ["acc_1", "acc_3"], after_day=3)
    assert found == {"acc_1": Counts(110_000, 2, 0)}
    assert await mail_counts.guard_sums(tx, ["acc_1", "acc_2"], after_day=5) == {}


async def test_a_clean_slate_is_for_one_account(tx: Transaction) -> None:
    for day in (1, 2):
        await mail_counts.add_guard_days(tx, day, {"acc_1": Counts(1), "acc_2": Counts(1)})
    await mail_counts.forget_guard_days(tx, "acc_1")
    assert await mail_counts.guard_sums(tx, ["acc_1", "acc_2"], after_day=0) == {"acc_2": Counts(2)}


async def test_old_days_are_swept_and_the_others_stay(tx: Transaction) -> None:
    for day in (1, 2, 3):
        await mail_counts.add_guard_days(tx, day, {"acc_1": Counts(day), "acc_2": Counts(day)})
    assert await mail_counts.sweep_guard_days(tx, until_day=2, reports_until_day=0) == 4
    assert await mail_counts.sweep_guard_days(tx, until_day=2, reports_until_day=0) == 0
    assert await mail_counts.guard_sums(tx, ["acc_1"], after_day=0) == {"acc_1": Counts(3)}


async def test_a_mailbox_counts_once_in_a_window_and_for_each_account(store: Store) -> None:
    async def counts(account_id: str, day: int) -> bool:
        async with store.transaction() as tx:
            return await mail_counts.count_guard_report(tx, account_id, "a@example.net", day=day, after_day=day - 7)

    assert [await counts("acc_1", day) for day in (10, 10, 16, 17, 18, 24)] == [True, False, False, True, False, True]
    assert await counts("acc_2", 24)


async def test_mailboxes_of_old_days_are_swept_and_the_others_stay(tx: Transaction) -> None:
    async def counts(day: int, *, at: int) -> bool:
        return await mail_counts.count_guard_report(tx, "acc_1", f"{day}@example.net", day=at, after_day=0)

    for day in (1, 2, 3):
        await counts(day, at=day)
    assert [await mail_counts.sweep_guard_days(tx, until_day=0, reports_until_day=2) for _ in range(2)] == [2, 0]
    assert [await counts(day, at=4) for day in (1, 2, 3)] == [True, True, False]
