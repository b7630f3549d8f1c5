"""Retention: mail is deleted by its age alone, for every account, with everything that belongs to it."""

import asyncio

from postroad.storage.engine.store import Store
from postroad.storage.mail import attempts, messages
from postroad.storage.operations import retention
from tests.storage import samples

TABLES = (
    "messages",
    "bodies",
    "recipients",
    "attempts",
    "message_tags",
    "message_metadata",
    "async_bounces",
    "resends",
)


def bounce(message_id: str, received_at: int = 1) -> attempts.AsyncBounce:
    place = ("acc_1", message_id, f"rcp_{message_id}_0", received_at)
    return attempts.AsyncBounce(*place, "failed", "5.1.1", "address", "no such user")


def attempt(message_id: str) -> attempts.Attempt:
    words = (
        "provider_queue",
        "mx.example.net",
        "192.0.2.1",
        "",
        "content",
        "delivered",
        None,
        "accepted",
        250,
        "2.0.0",
        "Ok",
        0,
    )
    return attempts.Attempt("acc_1", message_id, f"rcp_{message_id}_0", 1, 5, *words)


async def write(store: Store, message_id: str, *, ended_at: int | None, account_id: str = "acc_1") -> None:
    async with store.transaction() as tx:
        await messages.insert(tx, [samples.message(message_id, account_id, tags=("a", "b"), metadata='{"a":"b"}')])
        await messages.insert_recipients(tx, [samples.recipient(message_id, 0, account_id)])
        if account_id == "acc_1":
            await attempts.insert(tx, [attempt(message_id)])
            await attempts.insert_async_bounces(tx, [bounce(message_id)])
            await messages.insert_resend(tx, account_id, resend_of=message_id, message_id="em_9")
        if ended_at is not None:
            await messages.finish(tx, [(account_id, message_id, "delivered", "settled", ended_at)])


async def left(store: Store) -> list[int]:
    return [await samples.count(store, table) for table in TABLES]


async def remaining(store: Store, table: str, column: str) -> list[str]:
    samples.teach(store, remaining=f"SELECT {column} FROM {table} ORDER BY {column}")  # noqa: S608 - a test's own words
    return [row[0] for row in await samples.scan(store, "test.remaining")]


async def test_bodies_go_by_their_time_in_all_accounts(store: Store) -> None:
    await write(store, "em_1", ended_at=10)
    await write(store, "em_2", ended_at=11)
    await write(store, "em_3", ended_at=None)
    await write(store, "em_4", ended_at=5, account_id="acc_2")
    async with store.transaction() as tx:
        assert await retention.remove_bodies(tx, ended_before=10) == 2
        assert await retention.remove_bodies(tx, ended_before=10) == 0
    assert await remaining(store, "bodies", "message_id") == ["em_2", "em_3"]
    assert await remaining(store, "messages WHERE has_body = 0", "id") == ["em_1", "em_4"]


async def test_a_message_goes_with_all_that_belongs_to_it_and_its_neighbours_stay(store: Store) -> None:
    await write(store, "em_1", ended_at=10)
    await write(store, "em_2", ended_at=10)
    # The same id in another account, which no real one has, is another message.
    await write(store, "em_1", ended_at=99, account_id="acc_2")
    async with store.transaction() as tx:
        assert await retention.remove_messages(tx, ended_before=10) == 0
        assert await retention.remove_bodies(tx, ended_before=10) == 2
        await messages.finish(tx, [("acc_1", "em_2", "delivered", "settled", 11)])
        assert await retention.remove_messages(tx, ended_before=10) == 1
    assert await left(store) == [2, 1, 2, 1, 4, 2, 1, 1]


async def test_a_report_that_comes_while_its_message_goes_is_not_left_behind(store: Store) -> None:
    await write(store, "em_1", ended_at=10)

    async def remove() -> None:
        async with store.transaction() as tx:
            await retention.remove_bodies(tx, ended_before=10)
            await retention.remove_messages(tx, ended_before=10)

    async with store.transaction() as tx:
        assert len(await attempts.addressees(tx, "acc_1", "em_1")) == 1
        removing = asyncio.create_task(remove())
        # It has to wait for us. Were it not to, this would be time enough for it to end.
        await asyncio.wait([removing], timeout=0.3)
        await attempts.insert_async_bounces(tx, [bounce("em_1", received_at=2)])
    await removing
    assert await left(store) == [0] * len(TABLES)
