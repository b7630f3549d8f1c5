"""Messages: written in batches, read by their account alone, listed by filter and cursor."""

from collections.abc import Mapping, Sequence

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.mail import message_search, messages
from postroad.storage.mail.message_search import Kind
from tests.storage import samples

KINDS = {
    "status": Kind.STATUS,
    "source": Kind.SOURCE,
    "sender_key": Kind.SENDER,
    "recipient_key": Kind.RECIPIENT,
    "tag": Kind.TAG,
}


async def write(store: Store, *new: messages.NewMessage) -> None:
    async with store.transaction() as tx:
        await messages.insert(tx, new)


async def page(store: Store, account_id: str = "acc_1", *, limit: int = 10, **chosen: str) -> Sequence[str]:
    return await page_of(store, account_id, chosen, limit=limit)


async def page_of(store: Store, account_id: str, chosen: Mapping[str, str], *, limit: int = 10) -> Sequence[str]:
    conditions = [message_search.Condition(KINDS[name], value) for name, value in chosen.items() if name in KINDS]
    wanted = message_search.Filter(
        after=chosen.get("after", ""),
        before=chosen.get("before", "em_~"),
        clauses=tuple((one,) for one in conditions),
    )
    async with store.scanning() as tx:
        return [m.id for m in await message_search.page(tx, account_id, wanted, limit=limit)]


async def test_a_message_is_stored_as_it_was_accepted(store: Store) -> None:
    new = samples.message("em_1", recipient_count=3, size=11, tags=("one", "two"))
    await write(store, new)
    async with store.reading() as tx:
        stored = await messages.by_id(tx, "acc_1", "em_1")
        assert await messages.response(tx, "acc_1", "em_1") == (new.response, "req_em_1")
        assert await messages.body(tx, "acc_1", "em_1") == new.mime
    assert stored == messages.Message(
        "em_1", "acc_1", "api", new.sender, new.subject, "queued", "reserved", 3, 3, 11, "req_em_1", samples.NOW
    )
    assert await samples.count(store, "message_tags") == 2


async def test_another_account_sees_nothing_of_it(store: Store) -> None:
    await write(store, samples.message("em_1", tags=("tag",)))
    async with store.reading() as tx:
        assert await messages.by_id(tx, "acc_2", "em_1") is None
        assert await messages.response(tx, "acc_2", "em_1") is None
        assert await messages.body(tx, "acc_2", "em_1") is None
    for chosen in ({}, {"tag": "tag"}, {"recipient_key": "person0@example.org"}):
        assert await page_of(store, "acc_2", chosen) == []


async def test_the_same_message_twice_is_refused_with_all_that_came_with_it(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        await write(store, samples.message("em_1"), samples.message("em_2"), samples.message("em_1"))
    for table in ("messages", "bodies", "message_tags"):
        assert await samples.count(store, table) == 0


async def test_pages_go_back_in_time_from_a_cursor(store: Store) -> None:
    await write(store, *[samples.message(f"em_{number}") for number in range(7)])
    assert await page(store, limit=3) == ["em_6", "em_5", "em_4"]
    assert await page(store, limit=3, before="em_4") == ["em_3", "em_2", "em_1"]
    assert await page(store, limit=3, before="em_1") == ["em_0"]
    assert await page(store, after="em_2", before="em_5") == ["em_4", "em_3", "em_2"]


async def test_filters_narrow_a_page_alone_and_together(store: Store) -> None:
    await write(
        store,
        samples.message("em_1", tags=("a", "b")),
        samples.message("em_2", tags=("b",), source="smtp"),
        samples.message("em_3", sender_key="other@example.com"),
        samples.message("em_4", "acc_2", tags=("a",)),
    )
    async with store.transaction() as tx:
        people = [samples.recipient("em_1", 0), samples.recipient("em_1", 1), samples.recipient("em_2", 1)]
        await messages.insert_recipients(tx, [*people, samples.recipient("em_4", 1, "acc_2")])
    expected: list[tuple[dict[str, str], list[str]]] = [
        ({}, ["em_3", "em_2", "em_1"]),
        ({"status": "queued"}, ["em_3", "em_2", "em_1"]),
        ({"status": "delivered"}, []),
        ({"source": "smtp"}, ["em_2"]),
        ({"sender_key": "other@example.com"}, ["em_3"]),
        ({"tag": "a"}, ["em_1"]),
        ({"tag": "b"}, ["em_2", "em_1"]),
        ({"tag": "b", "source": "api"}, ["em_1"]),
        ({"recipient_key": "person1@example.org"}, ["em_2", "em_1"]),
        ({"recipient_key": "person1@example.org", "tag": "a"}, ["em_1"]),
        ({"recipient_key": "person1@example.org", "source": "smtp", "tag": "b"}, ["em_2"]),
        ({"recipient_key": "nobody@example.org"}, []),
        ({"tag": "b", "before": "em_2"}, ["em_1"]),
        ({"recipient_key": "person1@example.org", "after": "em_2"}, ["em_2"]),
        ({"tag": "' OR 1=1 --"}, []),
    ]
    for chosen, found in expected:
        assert await page_of(store, "acc_1", chosen) == found, chosen
    assert await page(store, limit=1, tag="b") == ["em_2"]


async def test_the_account_of_a_message_is_found(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(5):
            await samples.add_account(tx, f"acc_{number}")
        await messages.insert(tx, [samples.message("em_1", "acc_3"), samples.message("em_2", "acc_0")])
    async with store.scanning() as tx:
        assert await messages.account_of(tx, "em_1") == "acc_3"
        assert await messages.account_of(tx, "em_2") == "acc_0"
        assert await messages.account_of(tx, "em_3") is None
