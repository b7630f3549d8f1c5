"""Results of DNS checks: the last one is kept for each purpose."""

import msgspec
import pytest

from postroad.storage.engine import store as store_module
from postroad.storage.mail import domains

CHECK = domains.Check("acc_1", "dom_1", "spf", "wrong", "found v=spf1 mx -all", "v=spf1 mx -all", 5)


async def of_domain(
    database: store_module.Store, domain_id: str = "dom_1", *, account_id: str = "acc_1"
) -> dict[str, domains.Check]:
    async with database.reading() as tx:
        return await domains.checks(tx, account_id, domain_id)


async def test_the_last_word_about_each_record_is_kept(store: store_module.Store) -> None:
    key = msgspec.structs.replace(CHECK, purpose="dkim", found="")
    async with store.transaction() as tx:
        await domains.put_checks(tx, [CHECK, key])
    newer = msgspec.structs.replace(CHECK, state="ok", detail="fine", found="v=spf1 a -all", checked_at=6)
    async with store.transaction() as tx:
        await domains.put_checks(tx, [newer])
    assert await of_domain(store) == {"spf": newer, "dkim": key}


async def test_a_domain_of_another_account_has_checks_of_its_own(store: store_module.Store) -> None:
    async with store.transaction() as tx:
        await domains.put_checks(tx, [CHECK, msgspec.structs.replace(CHECK, domain_id="dom_2")])
    assert await of_domain(store, account_id="acc_2") == {}
    async with store.transaction() as tx:
        await domains.remove_checks(tx, "acc_2", "dom_1")
        await domains.remove_checks(tx, "acc_1", "dom_2")
    assert await of_domain(store) == {"spf": CHECK}
    assert await of_domain(store, "dom_2") == {}


@pytest.mark.parametrize("change", [{"purpose": "mx"}, {"state": "pending"}])
async def test_only_known_purposes_and_answers_are_kept(store: store_module.Store, change: dict[str, str]) -> None:
    bad = msgspec.structs.replace(CHECK, **change)
    with pytest.raises(store_module.ConstraintViolated):
        async with store.transaction() as tx:
            await domains.put_checks(tx, [bad])
