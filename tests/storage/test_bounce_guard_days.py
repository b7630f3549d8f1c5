"""The counts of the bounce guard: added by account and day, summed over a window, and deleted."""

from postroad.model.bounces.bounce_guard import Counts
from postroad.storage.engine.store import Store
from postroad.storage.mail import mail_counts


async def test_a_day_adds_up_and_returns_its_totals(store: Store) -> None:
    async with store.transaction() as tx:
        assert await mail_counts.add_guard_days(tx, 5, {"acc_1": Counts(3, 1, 0)}) == {"acc_1": Counts(3, 1, 0)}
        found = await mail_counts.add_guard_days(tx, 5, {"acc_2": Counts(1, 0, 1), "acc_1": Counts(2, 0, 1)})
        assert found == {"acc_1": Counts(5, 1, 1), "acc_2": Counts(1, 0, 1)}


async def test_only_the_days_after_one_are_summed(store: Store) -> None:
    async with store.transaction() as tx:
        for day in (3, 4, 5):
            await mail_counts.add_guard_days(tx, day, {"acc_1": Counts(10**day, 1, 0), "acc_2": Counts(1, 0, 0)})
        found = await mail_counts.guard_sums(tx, ["acc_1", "acc_3"], after_day=3)
        assert found == {"acc_1": Counts(110_000, 2, 0)}
        assert await mail_counts.guard_sums(tx, ["acc_1", "acc_2"], after_day=5) == {}


async def test_a_clean_slate_is_for_one_account(store: Store) -> None:
    async with store.transaction() as tx:
        for day in (1, 2):
            await mail_counts.add_guard_days(tx, day, {"acc_1": Counts(1), "acc_2": Counts(1)})
        await mail_counts.forget_guard_days(tx, "acc_1")
        assert await mail_counts.guard_sums(tx, ["acc_1", "acc_2"], after_day=0) == {"acc_2": Counts(2)}


async def test_old_days_are_swept_and_the_others_stay(store: Store) -> None:
    async with store.transaction() as tx:
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


async def test_mailboxes_of_old_days_are_swept_and_the_others_stay(store: Store) -> None:
    async with store.transaction() as tx:
        for day in (1, 2, 3):
            await mail_counts.count_guard_report(tx, "acc_1", f"{day}@example.net", day=day, after_day=0)
        assert await mail_counts.sweep_guard_days(tx, until_day=0, reports_until_day=2) == 2
        assert await mail_counts.sweep_guard_days(tx, until_day=0, reports_until_day=2) == 0
        found = [
            await mail_counts.count_guard_report(tx, "acc_1", f"{day}@example.net", day=4, after_day=0)
            for day in (1, 2, 3)
        ]
        assert found == [True, True, False]
