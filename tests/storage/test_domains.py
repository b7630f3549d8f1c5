"""Sender domains: registered by many accounts, verified by one."""

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.mail import domains
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
            await domains.verify(tx, "acc_1", "dom_1", by="operator", now=1)
    async with store.transaction() as tx:
        assert not await domains.verify(tx, "acc_2", "dom_3", by="operator", now=1)  # it was already
        assert await domains.verified_owner(tx, "example.com") == "acc_2"


async def test_a_removed_domain_is_free_again(store: Store) -> None:
    async with store.transaction() as tx:
        await domains.insert(tx, domain("dom_1", "example.com", proven=True))
        assert not await domains.remove(tx, "acc_2", "dom_1")
        assert await domains.remove(tx, "acc_1", "dom_1")
        assert not await domains.remove(tx, "acc_1", "dom_1")
        assert await domains.insert(tx, domain("dom_2", "example.com", account_id="acc_2"))
        assert await domains.verify(tx, "acc_2", "dom_2", by="operator", now=5)


async def test_an_operators_word_stands_in_for_that_of_dns_and_not_the_other_way(store: Store) -> None:
    async with store.transaction() as tx:
        await domains.insert(tx, domain("dom_1", "example.com"))
        assert await domains.verify(tx, "acc_1", "dom_1", by=domains.DNS, now=5)
        assert not await domains.verify(tx, "acc_1", "dom_1", by=domains.DNS, now=6)
        await domains.record_check(tx, "acc_1", "dom_1", check_at=7, failing_since=7, return_path_domain="")
        assert await domains.verify(tx, "acc_1", "dom_1", by=domains.OPERATOR, now=8)
        assert not await domains.verify(tx, "acc_1", "dom_1", by=domains.DNS, now=9)
        found = await domains.by_id(tx, "acc_1", "dom_1")
    assert found is not None
    assert (found.verified_at, found.verified_by, found.failing_since) == (5, domains.OPERATOR, None)


async def test_a_proof_is_taken_back_only_when_dns_gave_it_and_denied_it_for_long_enough(store: Store) -> None:
    async with store.transaction() as tx:
        for domain_id, by in (("dom_1", domains.DNS), ("dom_2", domains.OPERATOR)):
            await domains.insert(tx, domain(domain_id, f"{domain_id[-1]}.example"))
            await domains.verify(tx, "acc_1", domain_id, by=by, now=5)
        assert not await domains.unverify(tx, "acc_1", "dom_1", failing_before=99)
        for domain_id in ("dom_1", "dom_2"):
            await domains.record_check(tx, "acc_1", domain_id, check_at=50, failing_since=10, return_path_domain="")
        assert not await domains.unverify(tx, "acc_1", "dom_1", failing_before=9)
        assert not await domains.unverify(tx, "acc_2", "dom_1", failing_before=10)
        assert not await domains.unverify(tx, "acc_1", "dom_2", failing_before=10)
        assert await domains.unverify(tx, "acc_1", "dom_1", failing_before=10)
        found = await domains.by_id(tx, "acc_1", "dom_1")
    assert found is not None
    assert (found.verified_at, found.verified_by, found.failing_since, found.check_at) == (None, None, 10, 50)


async def test_domains_that_are_due_are_claimed_once_the_longest_due_first(store: Store) -> None:
    async with store.transaction() as tx:
        for at in range(1, 5):
            await domains.insert(tx, domain(f"dom_{at}", f"{at}.example"))
            await domains.record_check(
                tx, "acc_1", f"dom_{at}", check_at=10 * (5 - at), failing_since=None, return_path_domain=""
            )
    async with store.transaction() as tx:
        first = await domains.claim_due(tx, now=30, until=100, limit=2)
        second = await domains.claim_due(tx, now=30, until=100, limit=2)
        third = await domains.claim_due(tx, now=30, until=100, limit=2)
    assert {one.id for one in first} == {"dom_4", "dom_3"}
    assert [(one.id, one.check_at) for one in second] == [("dom_2", 100)]
    assert third == []
    async with store.transaction() as tx:
        assert len(await domains.claim_due(tx, now=100, until=200, limit=10)) == 4
        assert not await domains.record_check(
            tx, "acc_2", "dom_1", check_at=0, failing_since=None, return_path_domain=""
        )


async def test_somebody_who_asks_again_too_soon_is_noticed(store: Store) -> None:
    async with store.transaction() as tx:
        await domains.insert(tx, domain("dom_1", "example.com"))
        assert not await domains.mark_check_requested(tx, "acc_2", "dom_1", now=100, not_since=90)
        assert await domains.mark_check_requested(tx, "acc_1", "dom_1", now=100, not_since=90)
        assert not await domains.mark_check_requested(tx, "acc_1", "dom_1", now=105, not_since=95)
        assert await domains.check_requested_at(tx, "acc_1", "dom_1") == 100
        assert await domains.mark_check_requested(tx, "acc_1", "dom_1", now=110, not_since=100)
        assert await domains.check_requested_at(tx, "acc_2", "dom_1") is None
