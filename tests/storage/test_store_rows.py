"""What both engines promise alike of rows: counts, batches, values as they went, balances under contention."""

import asyncio
import random

import pytest

from postroad import errors
from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.mail import messages
from postroad.storage.people import accounts
from tests.storage import samples
from tests.storage.conftest import Reopen


async def test_execute_counts_the_rows_it_touched(store: Store) -> None:
    samples.teach(
        store, rename="UPDATE accounts SET name = 'new'", remove="DELETE FROM accounts", none="SELECT 1 WHERE 1 = 2"
    )
    async with store.transaction() as tx:
        assert await tx.execute("accounts.insert", "acc_1", "one", "one", samples.NOW) == 1
        assert await tx.execute("accounts.insert", "acc_2", "two", "two", samples.NOW) == 1
        assert await tx.execute("test.rename") == 2
        assert await tx.execute("test.rename") == 2  # rows that match count, changed or not
        assert await tx.execute("accounts.resume", "acc_9") == 0
        assert await tx.execute("test.remove") == 2
        assert await tx.execute("test.remove") == 0
        user = ("usr_1", "acc_1", "jo@example.com", "jo@example.com", "owner", samples.NOW, None, None)
        assert await tx.execute("users.insert", *user) == 1
        assert await tx.execute("users.insert", *user) == 0
        assert await tx.execute("test.none") == 0


async def test_the_first_row_or_none_is_fetched(tx: Transaction) -> None:
    assert await tx.fetch_one("accounts.by_id", "acc_1") is None
    assert await tx.fetch("accounts.page", "", 10) == []
    for number in range(3):
        await samples.add_account(tx, f"acc_{number}")
    row = await tx.fetch_one("accounts.page", "", 10)
    assert row is not None
    assert row[0] == "acc_0"


@pytest.mark.parametrize("rows", [0, 1, 2, 500])
async def test_batches_of_any_length_are_written_and_found(tx: Transaction, rows: int) -> None:
    written = [samples.entry(f"led_{n:04}", "acc_1", available=n, reserved=-n, created_at=n) for n in range(rows)]
    await samples.add_account(tx)
    await tx.execute_many(
        "ledger.insert",
        [(e.id, e.account_id, e.kind, e.available, e.reserved, None, None, e.created_at) for e in written],
    )
    assert await accounts.entries(tx, "acc_1", before="led_z", limit=1000) == written[::-1]
    wanted = [("acc_1",)] * rows + [("acc_9",)]
    found = await tx.fetch_many("accounts.lock", wanted)
    assert {row[0] for row in found} == ({"acc_1"} if rows else set())
    assert await tx.fetch_many("accounts.lock", []) == []


@pytest.mark.parametrize("rows", [0, 1, 300])
async def test_rows_are_added_in_bulk_as_they_are(store: Store, rows: int) -> None:
    bodies = [("acc_1", f"em_{number:03}", bytes([number % 256]) * number) for number in range(rows)]
    async with store.transaction() as tx:
        await tx.add_rows("bodies", ("account_id", "message_id", "mime"), bodies)
    samples.teach(store, bodies="SELECT account_id, message_id, mime FROM bodies ORDER BY message_id")
    assert [tuple(row) for row in await samples.scan(store, "test.bodies")] == bodies


@pytest.mark.parametrize("notes", [[None, "note", None, ""], [None, None, None]])
async def test_nulls_and_texts_mix_in_a_column(tx: Transaction, notes: list[str | None]) -> None:
    names = ("id", "account_id", "kind", "available", "reserved", "message_id", "note", "created_at")
    rows = [(f"led_{number}", "acc_1", "grant", 0, 0, note, note, number) for number, note in enumerate(notes * 2)]
    await tx.execute_many("ledger.insert", rows[: len(notes)])
    await tx.add_rows("ledger", names, rows[len(notes) :])
    entries = await accounts.entries(tx, "acc_1", before="led_~", limit=10)
    assert [(entry.note, entry.message_id) for entry in reversed(entries)] == [(note, note) for note in notes * 2]


async def test_one_wrong_row_added_in_bulk_undoes_all_and_leaves_the_store_usable(store: Store) -> None:
    async def add(*accounts_rows: tuple[object, ...]) -> None:
        async with store.transaction() as tx:
            names = ("id", "name", "status", "available", "reserved", "created_at")
            await tx.add_rows("accounts", names, accounts_rows)

    good = ("acc_1", "name", "active", 0, 0, 0)
    for wrong, failure in (
        (good, ConstraintViolated),
        (("acc_2", "name", "asleep", 0, 0, 0), ConstraintViolated),
        (("acc_2", None, "active", 0, 0, 0), ConstraintViolated),
        (("acc_2", "\ud800", "active", 0, 0, 0), errors.InvalidRequest),
    ):
        for _ in range(4):
            with pytest.raises(failure):
                await add(good, wrong)
    assert await samples.count(store, "accounts") == 0
    await add(good)
    assert await samples.count(store, "accounts") == 1


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
                await accounts.record_entries(tx, entries)
        except ConstraintViolated:
            return False
        return True

    moved = await asyncio.gather(*[move(number) for number in range(120)])
    assert True in moved
    assert False in moved
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
            await accounts.record_entries(tx, entries)

    await asyncio.gather(*[reserve(number, is_locked=number % 2 == 0) for number in range(60)])
    totals = [await samples.balances(store, name) for name in names]
    assert sum(reserved for _, reserved in totals) == 60 * 20
    assert sum(available for available, _ in totals) == 30 * 1000 - 60 * 20
