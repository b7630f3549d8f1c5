"""What both engines promise alike of transactions (all or nothing, errors, cancellation, closing) and of views."""

import asyncio
import contextlib
import gc
import random
from collections.abc import Awaitable, Callable

import pytest

from postroad import errors
from postroad.storage.engine.store import ConstraintViolated, Store, Transaction, TransactionAborted
from postroad.storage.mail import messages
from postroad.storage.people import accounts, credentials
from tests.storage import samples
from tests.storage.conftest import Reopen


async def version(store: Store) -> int:
    async with store.reading() as tx:
        return await credentials.access_version(tx)


async def test_a_transaction_is_seen_by_others_after_its_end_and_not_before(store: Store) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)
        assert await samples.count(store, "accounts") == 0
    assert await samples.count(store, "accounts") == 1


async def test_what_is_committed_is_there_for_the_next_process(store: Store, reopen: Reopen) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)
    await store.close()
    assert await samples.count(await reopen(), "accounts") == 1


@pytest.mark.parametrize("kind", ["transaction", "reading", "looking_up", "scanning"])
async def test_an_error_of_the_block_undoes_it_and_passes_through_unchanged(store: Store, kind: str) -> None:
    async def fail(failure: Exception) -> None:
        async with getattr(store, kind)() as tx:
            if kind == "transaction":
                await samples.add_account(tx)
            await credentials.access_version(tx)
            raise failure

    for failure in (ValueError(), TimeoutError(), OSError(), ConnectionResetError(), KeyError(), errors.NotFound("")):
        with pytest.raises(type(failure)) as raised:
            await fail(failure)
        assert raised.value is failure
    assert await samples.count(store, "accounts") == 0


async def test_a_timeout_of_the_caller_around_a_block_stays_a_timeout(store: Store) -> None:
    async def dawdle() -> None:
        async with asyncio.timeout(0.01), store.transaction() as tx:
            await samples.add_account(tx)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await dawdle()
    assert await samples.count(store, "accounts") == 0


async def test_a_cancelled_transaction_leaves_nothing_and_the_store_usable(store: Store) -> None:
    reached = asyncio.Event()

    async def write() -> None:
        async with store.transaction() as tx:
            await samples.add_account(tx)
            reached.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await samples.count(store, "accounts") == 0
    async with store.transaction() as tx:
        await samples.add_account(tx)
    assert await samples.count(store, "accounts") == 1


async def test_transactions_cancelled_anywhere_are_whole_or_nothing_and_leak_no_connection(store: Store) -> None:
    """Cancels after every possible number of turns of the event loop, several writers and readers at a time."""
    chance = random.Random(1)
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))

    async def write(number: int) -> None:
        async with store.transaction() as tx:
            await samples.add_account(tx, f"acc_{number}", credits=5)
            await messages.insert(tx, [samples.message(f"em_{number}", f"acc_{number}")])

    async def read() -> None:
        async with store.reading() as tx:
            await credentials.access_version(tx)
        async with store.looking_up() as tx:
            await credentials.access_version(tx)
        async with store.scanning() as tx:
            await accounts.page(tx, after="", limit=10)

    for number in range(60):
        tasks = [asyncio.create_task(write(number)), asyncio.create_task(read()), asyncio.create_task(read())]
        for _ in range(chance.randrange(25)):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
            if chance.random() < 0.5:
                await asyncio.sleep(0)
                task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() or task.exception() is None for task in tasks)

    stored = await samples.count(store, "accounts")
    assert await samples.count(store, "ledger") == stored
    assert await samples.count(store, "messages") == stored
    assert await samples.count(store, "bodies") == stored
    # More at a time than there are connections: a lost one would be missed.
    await asyncio.gather(*[read() for _ in range(30)], *[write(number) for number in range(100, 130)])
    assert await samples.count(store, "accounts") == stored + 30
    assert complaints == []


async def test_transactions_of_one_process_come_one_after_the_other_on_the_same_row(store: Store) -> None:
    async def bump() -> None:
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)

    await asyncio.gather(*[bump() for _ in range(40)])
    assert await version(store) == 40


async def test_a_violated_rule_undoes_its_transaction_and_does_not_kill_the_store(store: Store) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)

    async def violate() -> None:
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
            await tx.execute("test.wrong")

    columns = "id, name, status, suspended_reason, available, reserved, created_at"
    for statement in (
        f"INSERT INTO accounts ({columns}) VALUES ('acc_1', 'again', 'active', NULL, 0, 0, 0)",  # noqa: S608 - the key exists
        f"INSERT INTO accounts ({columns}) VALUES ('acc_2', 'n', 'asleep', NULL, 0, 0, 0)",  # noqa: S608 - a CHECK refuses it
        f"INSERT INTO accounts ({columns}) VALUES ('acc_2', NULL, 'active', NULL, 0, 0, 0)",  # noqa: S608
        "UPDATE accounts SET available = available - 1",
    ):
        samples.teach(store, wrong=statement)
        for _ in range(5):  # in all, more often than there are connections
            with pytest.raises(ConstraintViolated):
                await violate()
    assert await version(store) == 0
    assert await samples.count(store, "accounts") == 1
    async with store.transaction() as tx:
        await credentials.bump_access_version(tx)
    assert await version(store) == 1


TWICE = [("led_1", "acc_1", "grant", 1, 0, None, None, samples.NOW)] * 2


async def violate_a_rule(tx: Transaction) -> None:
    await tx.execute_many("ledger.insert", TWICE)


async def write_wrong_sql(tx: Transaction) -> None:
    await tx.execute("test.wrong")


async def send_too_large_a_number(tx: Transaction) -> None:
    await tx.execute("accounts.insert", "acc_2", "name", 2**70)


async def name_an_unknown_query(tx: Transaction) -> None:
    await tx.execute("test.unknown")


async def test_an_overlooked_failure_is_never_committed(store: Store) -> None:
    """PostgreSQL would answer the COMMIT with a quiet rollback, SQLite would store the half that worked."""
    samples.teach(store, wrong="SELEKT")
    async with store.transaction() as tx:
        await samples.add_account(tx)

    async def overlook(mistake: Callable[[Transaction], Awaitable[None]]) -> None:
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
            with contextlib.suppress(Exception):
                await mistake(tx)

    for mistake in (violate_a_rule, write_wrong_sql, send_too_large_a_number, name_an_unknown_query):
        with pytest.raises(TransactionAborted):
            await overlook(mistake)
        assert await version(store) == 0
        assert await samples.count(store, "ledger") == 0


async def test_a_failure_of_a_change_that_is_sent_later_is_raised_and_undoes_everything(store: Store) -> None:
    async def violate() -> None:
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
            await tx.execute_later("ledger.insert", TWICE)

    async with store.transaction() as tx:
        await samples.add_account(tx)
    for _ in range(12):  # more often than there are connections
        with pytest.raises(ConstraintViolated):
            await violate()
    assert await version(store) == 0
    assert await samples.count(store, "ledger") == 0


async def test_a_change_that_is_sent_later_is_seen_by_what_follows_and_comes_before_it(store: Store) -> None:
    """Here the same rows are added to and looked up in one transaction, each time after the change before."""
    async with store.transaction() as tx:
        await samples.add_account(tx)
        for number in range(3):
            await accounts.record_entries(tx, [samples.entry(f"led_{number}", "acc_1", available=2)])
            await accounts.record_entries(tx, [samples.entry(f"led_{number}b", "acc_1", available=-1)])
            account = await accounts.by_id(tx, "acc_1")
            assert account is not None
            assert account.available == number + 1
            assert len(await accounts.entries(tx, "acc_1", before="led_~", limit=99)) == 2 * (number + 1)
    assert await samples.balances(store, "acc_1") == (3, 0)


async def test_nothing_of_a_block_that_fails_is_sent_later(store: Store) -> None:
    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.execute_later("ledger.insert", TWICE[:1])
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert await samples.count(store, "ledger") == 0


async def test_a_closed_store_says_that_it_is_away(store: Store) -> None:
    await store.close()
    for kind in ("transaction", "reading", "looking_up", "scanning"):
        with pytest.raises(errors.ServiceUnavailable):
            async with getattr(store, kind)():
                pytest.fail("the block must not be entered")
    await store.close()


async def test_closing_waits_for_what_is_under_way(store: Store, reopen: Reopen) -> None:
    entered, go_on = asyncio.Barrier(4), asyncio.Event()

    async def write() -> None:
        async with store.transaction() as tx:
            await entered.wait()
            await go_on.wait()
            await credentials.bump_access_version(tx)

    async def look(kind: str) -> int:
        async with getattr(store, kind)() as view:
            await entered.wait()
            await go_on.wait()
            return await credentials.access_version(view)

    tasks = [asyncio.create_task(write()), *[asyncio.create_task(look(kind)) for kind in ("reading", "scanning")]]
    await entered.wait()
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0.05)
    assert not closing.done()
    go_on.set()
    await asyncio.gather(*tasks, closing)
    assert await version(await reopen()) == 1


async def test_a_closed_store_leaves_nothing_behind_to_be_reported(
    store: Store, recwarn: pytest.WarningsRecorder
) -> None:
    async with store.scanning() as tx:
        await credentials.access_version(tx)
    await store.close()
    gc.collect()
    assert not recwarn.list


@pytest.mark.parametrize("kind", ["reading", "scanning"])
async def test_a_view_stays_as_it_was_while_others_write(store: Store, kind: str) -> None:
    async with getattr(store, kind)() as view:
        before = await credentials.access_version(view)
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
        assert await credentials.access_version(view) == before
    assert await version(store) == before + 1


@pytest.mark.parametrize("kind", ["reading", "scanning"])
async def test_a_view_changes_nothing(store: Store, kind: str) -> None:
    with pytest.raises(errors.ServiceUnavailable):
        async with getattr(store, kind)() as view:
            await credentials.bump_access_version(view)
    assert await version(store) == 0


async def test_views_do_not_wait_for_a_transaction(store: Store) -> None:
    async with store.transaction() as tx:
        await credentials.bump_access_version(tx)
        assert await version(store) == 0
        async with store.scanning() as view:
            assert await credentials.access_version(view) == 0


async def test_many_more_views_than_connections_all_get_their_turn(store: Store) -> None:
    async def look(kind: str) -> int:
        async with getattr(store, kind)() as view:
            await asyncio.sleep(0)
            return await credentials.access_version(view)

    found = await asyncio.gather(*[look(kind) for kind in ("reading", "scanning") for _ in range(40)])
    assert found == [0] * 80


async def test_scans_of_one_account_keep_no_other_from_its_own(store: Store) -> None:
    end = asyncio.Event()

    async def hang() -> None:
        async with store.scanning("acc_greedy"):
            await end.wait()

    async with asyncio.timeout(60):
        hanging = [asyncio.create_task(hang()) for _ in range(20)]
        await asyncio.sleep(0.05)
        async with store.scanning("acc_modest") as view:
            assert await credentials.access_version(view) == 0
        async with store.scanning() as view:  # the service's own, such as the length of the queue
            assert await credentials.access_version(view) == 0
        end.set()
        await asyncio.gather(*hanging)


async def test_nothing_can_be_asked_after_a_failure(store: Store) -> None:
    samples.teach(store, wrong="SELEKT")
    async with store.reading() as tx:
        with pytest.raises(Exception, match="syntax error"):
            await tx.fetch("test.wrong")
        with pytest.raises(TransactionAborted):
            await credentials.access_version(tx)
    assert await version(store) == 0


async def test_failed_views_leave_the_store_usable(store: Store) -> None:
    samples.teach(store, wrong="SELECT no_such_column FROM accounts")
    for kind in ["reading", "looking_up", "scanning"] * 12:
        with pytest.raises(Exception, match="no_such_column"):
            async with getattr(store, kind)() as view:
                await view.fetch("test.wrong")
    assert await version(store) == 0


async def test_a_cancelled_scan_ends_at_once_and_frees_its_place(store: Store) -> None:
    samples.teach(store, slow=samples.SLOW)

    async def scan() -> None:
        async with store.scanning() as tx:
            await credentials.access_version(tx)
            await tx.fetch("test.slow")

    for _ in range(3):
        tasks = [asyncio.create_task(scan()) for _ in range(4)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=30)
        assert all(task.cancelled() for task in tasks)
    async with store.scanning() as tx:
        assert await credentials.access_version(tx) == 0


async def test_long_scans_keep_neither_look_ups_nor_mail_waiting(store: Store) -> None:
    samples.teach(store, slow=samples.SLOW)

    async def scan() -> None:
        async with store.scanning() as tx:
            await tx.fetch("test.slow")

    scans = [asyncio.create_task(scan()) for _ in range(12)]
    await asyncio.sleep(0.05)
    for _ in range(10):
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
    assert await version(store) == 10
    assert len([scan for scan in scans if not scan.done()]) >= 4
    for task in scans:
        task.cancel()
    await asyncio.gather(*scans, return_exceptions=True)
