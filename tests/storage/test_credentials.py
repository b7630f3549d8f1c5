"""SMTP credentials: found by username and account; the first of an account stays its first."""

import dataclasses

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.people import credentials
from tests.storage import samples


def credential(credential_id: str, *, account_id: str = "acc_1") -> credentials.Credential:
    return credentials.Credential(
        credential_id, account_id, "name", f"user_{credential_id}", "hash", samples.NOW, None, None
    )


async def test_credentials_are_found_by_username_id_and_account(store: Store) -> None:
    made = [credential("cred_1"), credential("cred_2"), credential("cred_3", account_id="acc_2")]
    async with store.transaction() as tx:
        for one in made:
            await credentials.insert(tx, one)
    async with store.reading() as tx:
        assert await credentials.by_username(tx, "user_cred_2") == made[1]
        assert await credentials.by_username(tx, "user_cred_9") is None
        assert await credentials.by_id(tx, "acc_1", "cred_1") == made[0]
        assert await credentials.by_id(tx, "acc_2", "cred_1") is None
        assert await credentials.of_account(tx, "acc_1") == made[:2]
        assert await credentials.of_account(tx, "acc_1", after="cred_1", limit=1) == [made[1]]


async def test_a_username_belongs_to_one(store: Store) -> None:
    async with store.transaction() as tx:
        await credentials.insert(tx, credential("cred_1"))
    other = dataclasses.replace(credential("cred_2", account_id="acc_2"), username="user_cred_1")
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await credentials.insert(tx, other)


async def test_a_revoked_credential_stays_the_default_but_is_not_the_first_live_one(store: Store) -> None:
    async with store.transaction() as tx:
        assert await credentials.default_of(tx, "acc_1") is None
        assert await credentials.first_live(tx, "acc_1") is None
        for credential_id in ("cred_2", "cred_1"):
            await credentials.insert(tx, credential(credential_id))
        assert not await credentials.revoke(tx, "acc_2", "cred_1", now=5)
        assert await credentials.revoke(tx, "acc_1", "cred_1", now=5)
        assert not await credentials.revoke(tx, "acc_1", "cred_1", now=6)
        assert await credentials.default_of(tx, "acc_1") == "cred_1"
        assert await credentials.first_live(tx, "acc_1") == "cred_2"
        await credentials.touch(tx, "cred_1", now=9)
        used = await credentials.by_id(tx, "acc_1", "cred_1")
    assert used is not None
    assert (used.revoked_at, used.last_used_at) == (5, 9)
