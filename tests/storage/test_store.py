"""What both engines promise alike: transactions, views, counts, batches, errors, cancellation and closing."""

import asyncio
import gc
import random

import pytest

from postroad import errors
from postroad.storage import access, accounts, ledger, messages
from postroad.storage.store import ConstraintViolated, Store, Undone
from tests.storage import samples
from tests.storage.conftest import Reopen


async def version(store: Store) -> int:
    async with store.reading() as tx:
        return await access.version(tx)


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


@pytest.mark.parametrize("failure", [ValueError("mine"), TimeoutError("mine"), OSError("mine"), KeyError("mine")])
@pytest.mark.parametrize("kind", ["transaction", "reading", "scanning"])
async def test_an_error_of_the_block_undoes_it_and_passes_through_unchanged(
    store: Store, failure: Exception, kind: str
) -> None:
    with pytest.raises(type(failure)) as raised:
        async with getattr(store, kind)() as tx:
            if kind == "transaction":
                await samples.add_account(tx)
            await access.version(tx)
            raise failure
    assert raised.value is failure
    assert await samples.count(store, "accounts") == 0


async def test_a_timeout_of_the_caller_around_a_block_stays_a_timeout(store: Store) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), store.transaction() as tx:
            await samples.add_account(tx)
            await asyncio.Event().wait()
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

    async def write(number: int) -> None:
        async with store.transaction() as tx:
            await samples.add_account(tx, f"acc_{number}", credits=5)
            await messages.insert(tx, [samples.message(f"em_{number}", f"acc_{number}")])

    async def read() -> None:
        async with store.reading() as tx:
            await access.version(tx)
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


@pytest.mark.parametrize("kind", ["reading", "scanning"])
async def test_a_view_stays_as_it_was_while_others_write(store: Store, kind: str) -> None:
    async with getattr(store, kind)() as view:
        before = await access.version(view)
        async with store.transaction() as tx:
            await access.bump(tx)
        assert await access.version(view) == before
    assert await version(store) == before + 1


@pytest.mark.parametrize("kind", ["reading", "scanning"])
async def test_a_view_changes_nothing(store: Store, kind: str) -> None:
    with pytest.raises(errors.ServiceUnavailable):
        async with getattr(store, kind)() as view:
            await access.bump(view)
    assert await version(store) == 0


async def test_views_do_not_wait_for_a_transaction(store: Store) -> None:
    async with store.transaction() as tx:
        await access.bump(tx)
        assert await version(store) == 0
        async with store.scanning() as view:
            assert await access.version(view) == 0


async def test_many_more_views_than_connections_all_get_their_turn(store: Store) -> None:
    async def look(kind: str) -> int:
        async with getattr(store, kind)() as view:
            await asyncio.sleep(0)
            return await access.version(view)

    found = await asyncio.gather(*[look(kind) for kind in ("reading", "scanning") for _ in range(40)])
    assert found == [0] * 80


async def test_transactions_of_one_process_come_one_after_the_other_on_the_same_row(store: Store) -> None:
    async def bump() -> None:
        async with store.transaction() as tx:
            await access.bump(tx)

    await asyncio.gather(*[bump() for _ in range(40)])
    assert await version(store) == 40


async def test_execute_counts_the_rows_it_touched(store: Store) -> None:
    samples.teach(
        store, rename="UPDATE accounts SET name = 'new'", remove="DELETE FROM accounts", none="SELECT 1 WHERE 1 = 2"
    )
    async with store.transaction() as tx:
        assert await tx.execute("accounts.insert", "acc_1", "one", samples.NOW) == 1
        assert await tx.execute("accounts.insert", "acc_2", "two", samples.NOW) == 1
        assert await tx.execute("test.rename") == 2
        assert await tx.execute("test.rename") == 2  # rows that match count, changed or not
        assert await tx.execute("accounts.set_status", "acc_9", "active", None) == 0
        assert await tx.execute("test.remove") == 2
        assert await tx.execute("test.remove") == 0
        assert await tx.execute("users.revoke_token", "tok_1", "acc_1", samples.NOW) == 1
        assert await tx.execute("users.revoke_token", "tok_1", "acc_1", samples.NOW) == 0
        assert await tx.execute("test.none") == 0


async def test_the_first_row_or_none_is_fetched(store: Store) -> None:
    async with store.transaction() as tx:
        assert await tx.fetch_one("accounts.by_id", "acc_1") is None
        assert await tx.fetch("accounts.page", "", 10) == []
        for number in range(3):
            await samples.add_account(tx, f"acc_{number}")
        row = await tx.fetch_one("accounts.page", "", 10)
    assert row is not None
    assert row[0] == "acc_0"


@pytest.mark.parametrize("rows", [0, 1, 2, 500])
async def test_batches_of_any_length_are_written_and_found(store: Store, rows: int) -> None:
    written = [ledger.Entry(f"led_{n:04}", "acc_1", "grant", n, -n, None, None, n) for n in range(rows)]
    async with store.transaction() as tx:
        await samples.add_account(tx)
        await tx.execute_many(
            "ledger.insert",
            [(e.id, e.account_id, e.kind, e.available, e.reserved, None, None, e.created_at) for e in written],
        )
        assert await ledger.page(tx, "acc_1", before="led_z", limit=1000) == written[::-1]
        wanted = [("acc_1",)] * rows + [("acc_9",)]
        found = await tx.fetch_many("accounts.lock", wanted)
        assert {row[0] for row in found} == ({"acc_1"} if rows else set())
        assert await tx.fetch_many("accounts.lock", []) == []


async def test_nulls_and_texts_mix_in_a_column_of_a_batch(store: Store) -> None:
    notes = [None, "note", None, ""]
    rows = [(f"led_{n}", "acc_1", "grant", 0, 0, note, note, n) for n, note in enumerate(notes)]
    async with store.transaction() as tx:
        await tx.execute_many("ledger.insert", rows)
    async with store.reading() as tx:
        entries = await ledger.page(tx, "acc_1", before="led_z", limit=10)
    assert [entry.note for entry in reversed(entries)] == notes
    assert [entry.message_id for entry in reversed(entries)] == notes


async def test_a_batch_of_nothing_but_nulls_is_written(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.execute_many("ledger.insert", [(f"led_{n}", "acc_1", "grant", 0, 0, None, None, n) for n in range(3)])
    assert await samples.count(store, "ledger") == 3


async def test_bytes_numbers_and_texts_come_back_as_they_went(store: Store) -> None:
    every_byte = bytes(range(256)) * 100
    largest = 2**63 - 1
    text = "Ünï\u0301cødé \U0001f4ee 'quotes\" \\ % _ $1 ?1 -- /* \t\r\n \x01\x7f"
    async with store.transaction() as tx:
        await samples.add_account(tx)
        await messages.insert(
            tx, [samples.message("em_1", mime=every_byte, subject=text, size=largest, response=b"", created_at=-1)]
        )
    async with store.scanning() as tx:
        stored = await messages.by_id(tx, "acc_1", "em_1")
        body = await messages.body(tx, "acc_1", "em_1")
        response = await messages.response(tx, "acc_1", "em_1")
    assert stored is not None
    assert (stored.subject, stored.size, stored.created_at) == (text, largest, -1)
    assert body == every_byte
    assert response == (b"", "req_em_1")


async def test_a_large_body_comes_back_whole(store: Store) -> None:
    mime = random.Random(2).randbytes(12 * 1024 * 1024)
    async with store.transaction() as tx:
        await messages.insert(tx, [samples.message("em_1", mime=mime)])
    async with store.scanning() as tx:
        assert await messages.body(tx, "acc_1", "em_1") == mime


async def test_half_a_surrogate_pair_is_the_callers_mistake(store: Store) -> None:
    with pytest.raises(errors.InvalidRequest):
        async with store.transaction() as tx:
            await accounts.insert(tx, "acc_1", name="\ud800", now=samples.NOW)
    with pytest.raises(errors.InvalidRequest):
        async with store.reading() as tx:
            await accounts.by_id(tx, "\udfff")
    assert await samples.count(store, "accounts") == 0


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO accounts VALUES ('acc_1', 'again', 'active', NULL, 0, 0, 0)",  # the key exists
        "INSERT INTO accounts VALUES ('acc_2', 'n', 'asleep', NULL, 0, 0, 0)",  # a CHECK refuses it
        "INSERT INTO accounts VALUES ('acc_2', NULL, 'active', NULL, 0, 0, 0)",
        "UPDATE accounts SET available = available - 1",
    ],
)
async def test_a_violated_rule_undoes_its_transaction_and_does_not_kill_the_store(store: Store, statement: str) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)
    samples.teach(store, wrong=statement)
    for _ in range(15):  # more often than there are connections
        with pytest.raises(ConstraintViolated):
            async with store.transaction() as tx:
                await access.bump(tx)
                await tx.execute("test.wrong")
    assert await version(store) == 0
    assert await samples.count(store, "accounts") == 1
    async with store.transaction() as tx:
        await access.bump(tx)
    assert await version(store) == 1


@pytest.mark.parametrize("mistake", ["a violated rule", "wrong SQL", "a value that cannot be sent", "an unknown query"])
async def test_an_overlooked_failure_is_never_committed(store: Store, mistake: str) -> None:
    """PostgreSQL would answer the COMMIT with a quiet rollback, SQLite would store the half that worked."""
    samples.teach(store, wrong="SELEKT")

    async with store.transaction() as tx:
        await samples.add_account(tx)
    with pytest.raises(Undone):
        async with store.transaction() as tx:
            await access.bump(tx)
            try:
                if mistake == "a violated rule":
                    entries = [
                        samples.entry(f"led_{n}", "acc_1", available=0, kind=kind)
                        for n, kind in enumerate(["grant", "gift"])
                    ]
                    await ledger.record(tx, entries)
                elif mistake == "wrong SQL":
                    await tx.execute("test.wrong")
                elif mistake == "a value that cannot be sent":
                    await tx.execute("accounts.insert", "acc_2", "name", 2**70)
                else:
                    await tx.execute("test.unknown")
            except Exception:  # noqa: BLE001, S110 - the mistake under test
                pass
    assert await version(store) == 0
    assert await samples.count(store, "ledger") == 0


async def test_nothing_can_be_asked_after_a_failure(store: Store) -> None:
    samples.teach(store, wrong="SELEKT")
    async with store.reading() as tx:
        with pytest.raises(Exception, match="(?i)syntax"):
            await tx.fetch("test.wrong")
        with pytest.raises(Undone):
            await access.version(tx)
    assert await version(store) == 0


async def test_failed_views_leave_the_store_usable(store: Store) -> None:
    samples.teach(store, wrong="SELECT no_such_column FROM accounts")
    for kind in ["reading", "scanning"] * 12:
        with pytest.raises(Exception, match="no_such_column"):
            async with getattr(store, kind)() as view:
                await view.fetch("test.wrong")
    assert await version(store) == 0


async def test_a_cancelled_scan_ends_at_once_and_frees_its_place(store: Store) -> None:
    samples.teach(store, slow=samples.SLOW)

    async def scan() -> None:
        async with store.scanning() as tx:
            await access.version(tx)
            await tx.fetch("test.slow")

    for _ in range(3):
        tasks = [asyncio.create_task(scan()) for _ in range(4)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=30)
        assert all(task.cancelled() for task in tasks)
    async with store.scanning() as tx:
        assert await access.version(tx) == 0


async def test_long_scans_keep_neither_look_ups_nor_mail_waiting(store: Store) -> None:
    samples.teach(store, slow=samples.SLOW)

    async def scan() -> None:
        async with store.scanning() as tx:
            await tx.fetch("test.slow")

    scans = [asyncio.create_task(scan()) for _ in range(12)]
    await asyncio.sleep(0.05)
    for _ in range(10):
        async with store.transaction() as tx:
            await access.bump(tx)
    assert await version(store) == 10
    assert not any(scan.done() for scan in scans)
    for task in scans:
        task.cancel()
    await asyncio.wait(scans)


async def test_ledger_and_balances_agree_after_random_moves_of_many_at_once(store: Store, reopen: Reopen) -> None:
    """Two processes' worth of stores move credits between balances; some moves are refused because of too few."""
    others = [store, await reopen()]
    names = [f"acc_{number}" for number in range(4)]
    async with store.transaction() as tx:
        for name in names:
            await samples.add_account(tx, name, credits=20)

    async def move(number: int) -> bool:
        chance = random.Random(number)
        chosen = chance.sample(names, chance.randint(1, 3))
        moves = [(name, chance.randint(-9, 9), chance.randint(-9, 9)) for name in chosen]
        entries = [samples.entry(f"led_{number}_{name}", name, available=a, reserved=r) for name, a, r in moves]
        try:
            async with others[number % 2].transaction() as tx:
                await accounts.lock(tx, chosen)
                await ledger.record(tx, entries)
        except ConstraintViolated:
            return False
        return True

    moved = await asyncio.gather(*[move(number) for number in range(120)])
    assert True in moved
    assert False in moved
    samples.teach(store, sums="SELECT SUM(available), SUM(reserved) FROM ledger WHERE account_id = 'ACCOUNT'")
    for name in names:
        samples.teach(store, sums=f"SELECT SUM(available), SUM(reserved) FROM ledger WHERE account_id = '{name}'")  # noqa: S608
        async with store.scanning() as tx:
            sums = await tx.fetch_one("test.sums")
        assert sums is not None
        available, reserved = await samples.balances(store, name)
        assert (available, reserved) == (int(sums[0]), int(sums[1]))
        assert min(available, reserved) >= 0


async def test_batches_over_the_same_accounts_wait_for_each_other_instead_of_dead_locking(
    store: Store, reopen: Reopen
) -> None:
    stores = [store, await reopen(), await reopen()]
    names = [f"acc_{number:02}" for number in range(30)]
    async with store.transaction() as tx:
        for name in names:
            await samples.add_account(tx, name, credits=1000)

    async def reserve(number: int, *, is_locked: bool) -> None:
        chosen = random.Random(number).sample(names, 20)
        entries = [
            samples.entry(f"led_{number}_{name}", name, available=-1, reserved=1, kind="reserve") for name in chosen
        ]
        async with stores[number % 3].transaction() as tx:
            if is_locked:
                await accounts.lock(tx, chosen)
            await ledger.record(tx, entries)

    await asyncio.gather(*[reserve(number, is_locked=number % 2 == 0) for number in range(60)])
    totals = [await samples.balances(store, name) for name in names]
    assert sum(reserved for _, reserved in totals) == 60 * 20
    assert sum(available for available, _ in totals) == 30 * 1000 - 60 * 20


async def test_a_closed_store_says_that_it_is_away(store: Store) -> None:
    await store.close()
    for kind in ("transaction", "reading", "scanning"):
        with pytest.raises(errors.ServiceUnavailable):
            async with getattr(store, kind)():
                pytest.fail("the block must not be entered")
    await store.close()


async def test_closing_waits_for_what_is_under_way(store: Store, reopen: Reopen) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        async with store.transaction() as tx:
            entered.set()
            await go_on.wait()
            await access.bump(tx)

    async def look(kind: str) -> int:
        async with getattr(store, kind)() as view:
            await go_on.wait()
            return await access.version(view)

    tasks = [asyncio.create_task(write()), *[asyncio.create_task(look(kind)) for kind in ("reading", "scanning")]]
    await entered.wait()
    await asyncio.sleep(0.05)
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
        await access.version(tx)
    await store.close()
    gc.collect()
    assert not recwarn.list
