"""Sender domains: registered by many accounts, verified by one; their DKIM keys, DNS checks and warm-up."""

import dataclasses

import msgspec
import pytest

from postroad.model.domains import warmup
from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.mail import domains
from tests.storage import samples


def domain(domain_id: str, name: str, *, account_id: str = "acc_1", proven: bool = False) -> domains.Domain:
    return domains.Domain(domain_id, account_id, name, samples.NOW if proven else None, samples.NOW)


async def test_domains_are_found_by_name_id_and_account(tx: Transaction) -> None:
    made = [domain("dom_1", "example.com"), domain("dom_2", "example.org", proven=True)]
    for one in made:
        assert await domains.insert(tx, one)
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


async def test_a_removed_domain_is_free_again(tx: Transaction) -> None:
    await domains.insert(tx, domain("dom_1", "example.com", proven=True))
    assert not await domains.remove(tx, "acc_2", "dom_1")
    assert await domains.remove(tx, "acc_1", "dom_1")
    assert not await domains.remove(tx, "acc_1", "dom_1")
    assert await domains.insert(tx, domain("dom_2", "example.com", account_id="acc_2"))
    assert await domains.verify(tx, "acc_2", "dom_2", by="operator", now=5)


async def test_an_operators_word_stands_in_for_that_of_dns_and_not_the_other_way(tx: Transaction) -> None:
    await domains.insert(tx, domain("dom_1", "example.com"))
    assert await domains.verify(tx, "acc_1", "dom_1", by=domains.DNS, now=5)
    assert not await domains.verify(tx, "acc_1", "dom_1", by=domains.DNS, now=6)
    await domains.record_check(tx, "acc_1", "dom_1", check_at=7, failing_since=7, return_path_domain="")
    assert await domains.verify(tx, "acc_1", "dom_1", by=domains.OPERATOR, now=8)
    assert not await domains.verify(tx, "acc_1", "dom_1", by=domains.DNS, now=9)
    found = await domains.by_id(tx, "acc_1", "dom_1")
    assert found is not None
    assert (found.verified_at, found.verified_by, found.failing_since) == (5, domains.OPERATOR, None)


async def test_a_proof_is_taken_back_only_when_dns_gave_it_and_denied_it_for_long_enough(tx: Transaction) -> None:
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


async def test_domains_that_are_due_are_claimed_once_the_longest_due_first(tx: Transaction) -> None:
    for at in range(1, 5):
        await domains.insert(tx, domain(f"dom_{at}", f"{at}.example"))
        await domains.record_check(
            tx, "acc_1", f"dom_{at}", check_at=10 * (5 - at), failing_since=None, return_path_domain=""
        )
    first = await domains.claim_due(tx, now=30, until=100, limit=2)
    second = await domains.claim_due(tx, now=30, until=100, limit=2)
    third = await domains.claim_due(tx, now=30, until=100, limit=2)
    assert {one.id for one in first} == {"dom_4", "dom_3"}
    assert [(one.id, one.check_at) for one in second] == [("dom_2", 100)]
    assert third == []
    assert len(await domains.claim_due(tx, now=100, until=200, limit=10)) == 4
    assert not await domains.record_check(tx, "acc_2", "dom_1", check_at=0, failing_since=None, return_path_domain="")


async def test_somebody_who_asks_again_too_soon_is_noticed(tx: Transaction) -> None:
    await domains.insert(tx, domain("dom_1", "example.com"))
    assert not await domains.mark_check_requested(tx, "acc_2", "dom_1", now=100, not_since=90)
    assert await domains.mark_check_requested(tx, "acc_1", "dom_1", now=100, not_since=90)
    assert not await domains.mark_check_requested(tx, "acc_1", "dom_1", now=105, not_since=95)
    assert await domains.check_requested_at(tx, "acc_1", "dom_1") == 100
    assert await domains.mark_check_requested(tx, "acc_1", "dom_1", now=110, not_since=100)
    assert await domains.check_requested_at(tx, "acc_2", "dom_1") is None


def key(domain_id: str, selector: str, *, account_id: str = "acc_1", age: int = 0) -> domains.DkimKey:
    return domains.DkimKey(account_id, domain_id, selector, b"\0sealed\xff", b"public", samples.NOW - age)


async def test_all_keys_of_a_domain_are_found_oldest_first(tx: Transaction) -> None:
    assert await domains.dkim_keys(tx, "acc_1", "dom_1") == []
    for one in (key("dom_1", "b", age=5), key("dom_1", "a"), key("dom_1", "c", age=9), key("dom_2", "d")):
        await domains.insert_dkim_keys(tx, one)
    found = await domains.dkim_keys(tx, "acc_1", "dom_1")
    assert await domains.dkim_keys(tx, "acc_2", "dom_1") == []
    assert found == [key("dom_1", "c", age=9), key("dom_1", "b", age=5), key("dom_1", "a")]


async def test_a_key_goes_through_its_life(tx: Transaction) -> None:
    made = dataclasses.replace(key("dom_1", "a"), algorithm="ed25519", status="next")
    old = dataclasses.replace(made, status="old", private_key=b"", published_at=7, retired_at=8)
    other = key("dom_1", "b")
    await domains.insert_dkim_keys(tx, made)
    await domains.insert_dkim_keys(tx, other)
    await domains.update_dkim_key(tx, old)
    assert await domains.dkim_keys(tx, "acc_1", "dom_1") == [old, other]
    await domains.remove_dkim_key(tx, old)
    assert await domains.dkim_keys(tx, "acc_1", "dom_1") == [other]


async def test_the_keys_of_a_part_of_a_list_are_found_together(tx: Transaction) -> None:
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


CHECK = domains.Check("acc_1", "dom_1", "spf", "wrong", "found v=spf1 mx -all", "v=spf1 mx -all", 5)


async def of_domain(
    database: Store, domain_id: str = "dom_1", *, account_id: str = "acc_1"
) -> dict[str, domains.Check]:
    async with database.reading() as tx:
        return await domains.checks(tx, account_id, domain_id)


async def test_the_last_word_about_each_record_is_kept(store: Store) -> None:
    key = msgspec.structs.replace(CHECK, purpose="dkim", found="")
    async with store.transaction() as tx:
        await domains.put_checks(tx, [CHECK, key])
    newer = msgspec.structs.replace(CHECK, state="ok", detail="fine", found="v=spf1 a -all", checked_at=6)
    async with store.transaction() as tx:
        await domains.put_checks(tx, [newer])
    assert await of_domain(store) == {"spf": newer, "dkim": key}


async def test_a_domain_of_another_account_has_checks_of_its_own(store: Store) -> None:
    async with store.transaction() as tx:
        await domains.put_checks(tx, [CHECK, msgspec.structs.replace(CHECK, domain_id="dom_2")])
    assert await of_domain(store, account_id="acc_2") == {}
    async with store.transaction() as tx:
        await domains.remove_checks(tx, "acc_2", "dom_1")
        await domains.remove_checks(tx, "acc_1", "dom_2")
    assert await of_domain(store) == {"spf": CHECK}
    assert await of_domain(store, "dom_2") == {}


@pytest.mark.parametrize("change", [{"purpose": "mx"}, {"state": "pending"}])
async def test_only_known_purposes_and_answers_are_kept(store: Store, change: dict[str, str]) -> None:
    bad = msgspec.structs.replace(CHECK, **change)
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await domains.put_checks(tx, [bad])


MINE, OTHER, FOREIGN = ("acc_1", "example.com"), ("acc_1", "example.org"), ("acc_2", "example.com")
STATE = warmup.State(day=20_000, step=2, used=17)


async def test_a_state_is_found_as_it_was_last_written(tx: Transaction) -> None:
    later = warmup.State(day=20_001, step=3, used=1)
    await domains.put_warmups(tx, {FOREIGN: STATE, MINE: STATE})
    await domains.put_warmups(tx, {MINE: later})
    await domains.put_warmups(tx, {})
    assert await domains.warmups(tx, [MINE, OTHER, FOREIGN]) == {MINE: later, FOREIGN: STATE}
    assert await domains.warmups(tx, []) == {}


async def test_a_state_is_deleted_when_its_day_is_over(tx: Transaction) -> None:
    await domains.put_warmups(tx, {FOREIGN: STATE, MINE: STATE})
    await domains.forget_warmups(tx, MINE, before_day=20_000)
    assert MINE in await domains.warmups(tx, [MINE])
    await domains.forget_warmups(tx, MINE, before_day=20_001)
    assert await domains.warmups(tx, [MINE, FOREIGN]) == {FOREIGN: STATE}


async def test_a_link_host_is_kept_until_it_is_removed(tx: Transaction) -> None:
    await domains.insert(tx, domain("dom_1", "example.com"))
    await domains.set_link_host(tx, "acc_1", "dom_1", link_host="links.example.com")
    await domains.set_link_host(tx, "acc_2", "dom_1", link_host="links.example.org")
    await domains.record_check(
        tx, "acc_1", "dom_1", check_at=0, failing_since=None, return_path_domain="bounces.example.com"
    )
    stored = dataclasses.replace(
        domain("dom_1", "example.com"), return_path_domain="bounces.example.com", link_host="links.example.com"
    )
    assert await domains.by_name(tx, "acc_1", "example.com") == stored
    assert await domains.of_account(tx, "acc_1") == [stored]
    assert await domains.claim_due(tx, now=1, until=2, limit=1) == [dataclasses.replace(stored, check_at=2)]
    await domains.set_link_host(tx, "acc_1", "dom_1", link_host=None)
    assert await domains.by_id(tx, "acc_1", "dom_1") == dataclasses.replace(stored, check_at=2, link_host=None)
