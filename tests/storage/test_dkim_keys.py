"""Keys of domains: the current RSA key signs, and an account sees its own."""

import dataclasses

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.mail import domains
from tests.storage import samples


def key(domain_id: str, selector: str, *, account_id: str = "acc_1", age: int = 0) -> domains.DkimKey:
    return domains.DkimKey(account_id, domain_id, selector, b"\0sealed\xff", b"public", samples.NOW - age)


async def test_all_keys_of_a_domain_are_found_oldest_first(store: Store) -> None:
    async with store.transaction() as tx:
        assert await domains.dkim_keys(tx, "acc_1", "dom_1") == []
        for one in (key("dom_1", "b", age=5), key("dom_1", "a"), key("dom_1", "c", age=9), key("dom_2", "d")):
            await domains.insert_dkim_keys(tx, one)
    async with store.reading() as tx:
        found = await domains.dkim_keys(tx, "acc_1", "dom_1")
        assert await domains.dkim_keys(tx, "acc_2", "dom_1") == []
    assert found == [key("dom_1", "c", age=9), key("dom_1", "b", age=5), key("dom_1", "a")]


async def test_a_key_goes_through_its_life(store: Store) -> None:
    made = dataclasses.replace(key("dom_1", "a"), algorithm="ed25519", status="next")
    old = dataclasses.replace(made, status="old", private_key=b"", published_at=7, retired_at=8)
    other = key("dom_1", "b")
    async with store.transaction() as tx:
        await domains.insert_dkim_keys(tx, made)
        await domains.insert_dkim_keys(tx, other)
        await domains.update_dkim_key(tx, old)
        assert await domains.dkim_keys(tx, "acc_1", "dom_1") == [old, other]
        await domains.remove_dkim_key(tx, old)
        assert await domains.dkim_keys(tx, "acc_1", "dom_1") == [other]


async def test_the_keys_of_a_part_of_a_list_are_found_together(store: Store) -> None:
    async with store.transaction() as tx:
        for one in (
            key("dom_1", "a"),
            key("dom_2", "b"),
            key("dom_2", "c", age=5),
            key("dom_4", "d"),
            key("dom_5", "e"),
            key("dom_3", "f", account_id="acc_2"),
            dataclasses.replace(key("dom_4", "g", age=-5), status="next"),
            dataclasses.replace(key("dom_4", "h", age=-5), algorithm="ed25519"),
        ):
            await domains.insert_dkim_keys(tx, one)
    async with store.scanning() as tx:
        found = await domains.dkim_keys_of_domains(tx, "acc_1", first="dom_2", last="dom_4")
    assert found == {"dom_2": key("dom_2", "b"), "dom_4": key("dom_4", "d")}


async def test_a_selector_stands_for_one_key_of_a_domain(store: Store) -> None:
    async with store.transaction() as tx:
        await domains.insert_dkim_keys(tx, key("dom_1", "a"))
        await domains.insert_dkim_keys(tx, key("dom_2", "a"))
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await domains.insert_dkim_keys(tx, key("dom_1", "a", age=5))


async def test_all_keys_of_a_domain_are_removed_and_no_others(store: Store) -> None:
    async with store.transaction() as tx:
        for one in (key("dom_1", "a"), key("dom_1", "b"), key("dom_2", "c"), key("dom_1", "d", account_id="acc_2")):
            await domains.insert_dkim_keys(tx, one)
        assert await domains.remove_dkim_keys(tx, "acc_1", "dom_1") == 2
    assert await samples.count(store, "dkim_keys") == 2


def test_a_key_does_not_show_its_private_half_where_it_is_printed() -> None:
    assert "sealed" not in repr(key("dom_1", "a"))
