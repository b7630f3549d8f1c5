"""The suppression list: by account, the first reason is kept, and entries can be paged and removed."""

import msgspec
import pytest

from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.mail import suppressions
from tests.storage import samples


def suppression(email_key: str, account_id: str = "acc_1", **changes: object) -> suppressions.Suppression:
    plain = suppressions.Suppression(
        account_id, email_key, suppressions.Source.BOUNCE, "no such user", 550, "em_1", samples.NOW
    )
    return msgspec.structs.replace(plain, **changes)


async def add(store: Store, *rows: suppressions.Suppression) -> None:
    async with store.transaction() as tx:
        await suppressions.add(tx, rows)


async def test_an_address_is_found_in_its_account_only(store: Store) -> None:
    first = suppression("a@example.net")
    second = suppression("b@example.net", "acc_2", source=suppressions.Source.OPERATOR, message_id=None)
    await add(store, first, second)
    pairs = [("acc_1", "a@example.net"), ("acc_1", "b@example.net"), ("acc_2", "b@example.net"), ("acc_3", "x")]
    async with store.reading() as tx:
        found = await suppressions.find(tx, pairs)
        assert await suppressions.find(tx, []) == {}
    assert found == {("acc_1", "a@example.net"): first, ("acc_2", "b@example.net"): second}


async def test_the_first_reason_stays(store: Store) -> None:
    await add(store, suppression("a@example.net", reason="first"))
    await add(store, suppression("a@example.net", reason="second"), suppression("b@example.net"))
    await add(store)
    async with store.reading() as tx:
        listed = await suppressions.of_account(tx, "acc_1", after="", limit=10)
    assert [(row.email_key, row.reason) for row in listed] == [
        ("a@example.net", "first"),
        ("b@example.net", "no such user"),
    ]


async def test_it_returns_which_addresses_are_new(tx: Transaction) -> None:
    assert await suppressions.add(tx, [suppression("a@example.net")]) == [("acc_1", "a@example.net")]
    both = [suppression("a@example.net"), suppression("b@example.net"), suppression("a@example.net", "acc_2")]
    assert sorted(await suppressions.add(tx, both)) == [("acc_1", "b@example.net"), ("acc_2", "a@example.net")]
    assert await suppressions.add(tx, []) == []


async def test_the_list_can_be_of_one_source(store: Store) -> None:
    await add(store, suppression("a@example.net"), suppression("b@example.net", source=suppressions.Source.IMPORT))
    async with store.reading() as tx:
        listed = await suppressions.of_account(tx, "acc_1", after="", limit=10, source=suppressions.Source.IMPORT)
    assert [row.email_key for row in listed] == ["b@example.net"]


async def test_the_same_address_twice_in_a_batch_is_one(store: Store) -> None:
    await add(store, suppression("a@example.net"), suppression("a@example.net"))
    assert await samples.count(store, "suppressions") == 1


async def test_the_list_is_paged_in_the_order_of_the_addresses(store: Store) -> None:
    keys = [f"{letter}@example.net" for letter in "dbaec"]
    await add(store, *map(suppression, keys), suppression("a@example.net", "acc_2"))
    async with store.reading() as tx:
        first = await suppressions.of_account(tx, "acc_1", after="", limit=3)
        rest = await suppressions.of_account(tx, "acc_1", after=first[-1].email_key, limit=3)
    assert [row.email_key for row in (*first, *rest)] == sorted(keys)


async def test_an_address_can_be_taken_off_the_list(store: Store) -> None:
    await add(store, suppression("a@example.net"), suppression("a@example.net", "acc_2"))
    async with store.transaction() as tx:
        assert await suppressions.remove(tx, "acc_1", "a@example.net")
        assert not await suppressions.remove(tx, "acc_1", "a@example.net")
        assert list(await suppressions.find(tx, [("acc_1", "a@example.net"), ("acc_2", "a@example.net")])) == [
            ("acc_2", "a@example.net")
        ]


async def test_who_left_a_list_is_apart_from_who_is_suppressed(store: Store) -> None:
    page = suppressions.ListSource.PAGE
    left = [
        suppression("a@example.net", account, source=page, reason="", smtp_code=None, list_name=name)
        for account, name in (("acc_1", "news"), ("acc_1", "tips"), ("acc_2", "news"))
    ]
    await add(store, *left, suppression("b@example.net"))
    await add(store, msgspec.structs.replace(left[0], created_at=samples.NOW + 1))
    keys = [row.key for row in left]
    async with store.transaction() as tx:
        assert await suppressions.find_left(tx, [*keys, ("acc_1", "news", "b@example.net")]) == dict(
            zip(keys, left, strict=True)
        )
        assert await suppressions.find(tx, [("acc_1", "a@example.net")]) == {}
        assert await suppressions.count(tx, "acc_1") == 1
        assert await suppressions.lists(tx, "acc_1", limit=10) == ["news", "tips"]
        assert await suppressions.lists(tx, "acc_1", limit=1) == ["news"]
        assert await suppressions.lists(tx, "acc_3", limit=10) == []
        assert await suppressions.of_lists(tx, "acc_1", "", "", limit=10) == left[:2]
        assert await suppressions.of_lists(tx, "acc_1", "news", "a@example.net", limit=10) == [left[1]]
        assert await suppressions.of_list(tx, "acc_1", "news", after="", limit=10, source=page) == [left[0]]
        assert await suppressions.of_list(tx, "acc_1", "news", after="", limit=10, source="account") == []
        assert await suppressions.of_list(tx, "acc_1", "news", after="a@example.net", limit=10) == []
        assert await suppressions.get(tx, "acc_1", "a@example.net") is None
        assert await suppressions.get(tx, "acc_1", "a@example.net", "tips") == left[1]
        assert not await suppressions.remove(tx, "acc_1", "a@example.net")
        assert await suppressions.remove(tx, "acc_1", "a@example.net", "news")
        assert not await suppressions.remove(tx, "acc_1", "a@example.net", "news")
        assert set(await suppressions.find_left(tx, keys)) == set(keys[1:])


async def test_a_source_that_is_none_is_refused(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        await add(store, suppression("a@example.net", source="rumour"))
