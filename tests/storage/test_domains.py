"""Sender domains: claimed by many, proven by one."""

import pytest

from postroad.storage import domains
from postroad.storage.store import ConstraintViolated, Store
from tests.storage import samples


def domain(domain_id: str, name: str, *, account_id: str = "acc_1", proven: bool = False) -> domains.Domain:
    return domains.Domain(domain_id, account_id, name, samples.NOW if proven else None, samples.NOW)


async def test_domains_are_found_by_name_id_and_account(store: Store) -> None:
    made = [domain("dom_1", "example.com"), domain("dom_2", "example.org", proven=True)]
    async with store.transaction() as tx:
        for one in made:
            assert await domains.insert(tx, one)
    async with store.reading() as tx:
        assert await domains.by_name(tx, "acc_1", "example.com") == made[0]
        assert await domains.by_name(tx, "acc_2", "example.com") is None
        assert await domains.by_id(tx, "acc_1", "dom_2") == made[1]
        assert await domains.by_id(tx, "acc_2", "dom_2") is None
        assert await domains.of_account(tx, "acc_1") == made
        assert await domains.of_account(tx, "acc_1", after="dom_1", limit=1) == [made[1]]
        assert await domains.verified_owner(tx, "example.org") == "acc_1"
        assert await domains.verified_owner(tx, "example.com") is None


async def test_a_name_is_claimed_once_an_account_and_proven_once_in_all(store: Store) -> None:
    async with store.transaction() as tx:
        assert await domains.insert(tx, domain("dom_1", "example.com"))
        assert not await domains.insert(tx, domain("dom_2", "example.com"))
        assert await domains.insert(tx, domain("dom_3", "example.com", account_id="acc_2", proven=True))
        assert not await domains.insert(tx, domain("dom_4", "example.com", account_id="acc_3", proven=True))
        assert await domains.insert(tx, domain("dom_5", "example.com", account_id="acc_3"))
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await domains.verify(tx, "acc_1", "dom_1", now=1)
    async with store.transaction() as tx:
        assert not await domains.verify(tx, "acc_2", "dom_3", now=1)  # it was already
        assert await domains.verified_owner(tx, "example.com") == "acc_2"


async def test_a_removed_domain_is_free_again(store: Store) -> None:
    async with store.transaction() as tx:
        await domains.insert(tx, domain("dom_1", "example.com", proven=True))
        assert not await domains.remove(tx, "acc_2", "dom_1")
        assert await domains.remove(tx, "acc_1", "dom_1")
        assert not await domains.remove(tx, "acc_1", "dom_1")
        assert await domains.insert(tx, domain("dom_2", "example.com", account_id="acc_2"))
        assert await domains.verify(tx, "acc_2", "dom_2", now=5)
