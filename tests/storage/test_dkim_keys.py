"""Keys of domains: the newest one signs, and an account sees its own."""

import pytest

from postroad.storage import dkim_keys
from postroad.storage.store import ConstraintViolated, Store
from tests.storage import samples


def key(domain_id: str, selector: str, *, account_id: str = "acc_1", age: int = 0) -> dkim_keys.DkimKey:
    return dkim_keys.DkimKey(account_id, domain_id, selector, b"\0sealed\xff", b"public", samples.NOW - age)


async def test_the_newest_key_of_a_domain_signs(store: Store) -> None:
    async with store.transaction() as tx:
        assert await dkim_keys.newest(tx, "acc_1", "dom_1") is None
        for one in (key("dom_1", "b", age=5), key("dom_1", "a"), key("dom_1", "c", age=9)):
            await dkim_keys.insert(tx, one)
    async with store.reading() as tx:
        assert await dkim_keys.newest(tx, "acc_1", "dom_1") == key("dom_1", "a")
        assert await dkim_keys.newest(tx, "acc_2", "dom_1") is None
        assert await dkim_keys.newest(tx, "acc_1", "dom_2") is None


async def test_the_keys_of_a_part_of_a_list_are_found_together(store: Store) -> None:
    async with store.transaction() as tx:
        for one in (
            key("dom_1", "a"),
            key("dom_2", "b"),
            key("dom_2", "c", age=5),
            key("dom_4", "d"),
            key("dom_5", "e"),
            key("dom_3", "f", account_id="acc_2"),
        ):
            await dkim_keys.insert(tx, one)
    async with store.scanning() as tx:
        found = await dkim_keys.of_domains(tx, "acc_1", first="dom_2", last="dom_4")
    assert found == {"dom_2": key("dom_2", "b"), "dom_4": key("dom_4", "d")}


async def test_a_selector_stands_for_one_key_of_a_domain(store: Store) -> None:
    async with store.transaction() as tx:
        await dkim_keys.insert(tx, key("dom_1", "a"))
        await dkim_keys.insert(tx, key("dom_2", "a"))
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await dkim_keys.insert(tx, key("dom_1", "a", age=5))


async def test_all_keys_of_a_domain_are_removed_and_no_others(store: Store) -> None:
    async with store.transaction() as tx:
        for one in (key("dom_1", "a"), key("dom_1", "b"), key("dom_2", "c"), key("dom_1", "d", account_id="acc_2")):
            await dkim_keys.insert(tx, one)
        assert await dkim_keys.remove(tx, "acc_1", "dom_1") == 2
    assert await samples.count(store, "dkim_keys") == 2


def test_a_key_does_not_show_its_private_half_where_it_is_printed() -> None:
    assert "sealed" not in repr(key("dom_1", "a"))
