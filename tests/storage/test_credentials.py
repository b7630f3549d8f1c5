"""SMTP credentials and API keys: found by username, hash and account; dead when they are revoked."""

import dataclasses

import pytest

from postroad.model.people import callers
from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.people import credentials
from tests.storage import samples


def credential(credential_id: str, *, account_id: str = "acc_1") -> credentials.Credential:
    return credentials.Credential(
        credential_id, account_id, "name", f"user_{credential_id}", "hash", samples.NOW, None, None
    )


async def test_credentials_are_found_by_username_id_and_account(tx: Transaction) -> None:
    made = [credential("cred_1"), credential("cred_2"), credential("cred_3", account_id="acc_2")]
    for one in made:
        await credentials.insert(tx, one)
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


async def test_a_revoked_credential_stays_the_default_but_is_not_the_first_live_one(tx: Transaction) -> None:
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


def api_key(key_id: str, *, account_id: str = "acc_1") -> credentials.ApiKey:
    return credentials.ApiKey(key_id, account_id, "cred_1", "name", "…1234", "send read", samples.NOW, None, None)


async def test_keys_are_found_by_hash_and_account(tx: Transaction) -> None:
    made = [api_key("key_1"), api_key("key_2"), api_key("key_3", account_id="acc_2")]
    for one in made:
        await credentials.insert_key(tx, one, key_hash=one.id.encode())
    await credentials.touch_key(tx, "key_3", now=7)
    assert await credentials.key_by_hash(tx, b"key_2") == made[1]
    assert await credentials.key_by_hash(tx, b"key_9") is None
    assert await credentials.keys_of_account(tx, "acc_1") == made[:2]
    assert await credentials.keys_of_account(tx, "acc_1", after="key_1", limit=1) == [made[1]]
    used = await credentials.key_by_hash(tx, b"key_3")
    assert used is not None
    assert used.last_used_at == 7


async def test_the_same_secret_twice_is_refused(store: Store) -> None:
    async with store.transaction() as tx:
        await credentials.insert_key(tx, api_key("key_1"), key_hash=b"same")
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await credentials.insert_key(tx, api_key("key_2"), key_hash=b"same")


async def test_a_key_dies_by_itself_or_with_its_credential(tx: Transaction) -> None:
    async def revoked_at(key_hash: bytes) -> int | None:
        found = await credentials.key_by_hash(tx, key_hash)
        assert found is not None
        return found.revoked_at

    await credentials.insert(tx, credential("cred_1"))
    for key_id in ("key_1", "key_2"):
        await credentials.insert_key(tx, api_key(key_id), key_hash=key_id.encode())
    assert not await credentials.revoke_key(tx, "acc_2", "key_1", now=5)
    assert await credentials.revoke_key(tx, "acc_1", "key_1", now=5)
    assert not await credentials.revoke_key(tx, "acc_1", "key_1", now=6)
    assert (await revoked_at(b"key_1"), await revoked_at(b"key_2")) == (5, None)
    await credentials.revoke(tx, "acc_1", "cred_1", now=8)
    assert (await revoked_at(b"key_1"), await revoked_at(b"key_2")) == (5, 8)


async def test_limits_are_stored_changed_and_counted(tx: Transaction) -> None:
    limits = callers.KeyLimits(
        domains=("a.example", "b.example"),
        networks=("192.0.2.0/24",),
        templates=("welcome",),
        recipients_per_day=5,
        credit_budget=7,
        expires_at=9,
    )
    limited = dataclasses.replace(api_key("key_1"), limits=limits)
    for one in (limited, api_key("key_2"), api_key("key_3", account_id="acc_2")):
        await credentials.insert_key(tx, one, key_hash=one.id.encode())
    assert await credentials.key_by_hash(tx, b"key_1") == limited
    assert await credentials.key_by_id(tx, "acc_1", "key_1") == limited
    assert await credentials.key_by_id(tx, "acc_2", "key_1") is None
    assert await credentials.key_budgets(tx, {"key_1", "key_2", "key_9"}) == {
        "key_1": callers.KeyBudget(5, 7, callers.KeyUsage(0, 0, 0)),
        "key_2": callers.KeyBudget(None, None, callers.KeyUsage(0, 0, 0)),
    }
    usage = callers.KeyUsage(20, 3, 4)
    await credentials.put_key_usage(tx, {})
    await credentials.put_key_usage(tx, {("key_1", "acc_1"): callers.KeyUsage(19, 1, 1), ("key_3", "acc_2"): usage})
    await credentials.put_key_usage(tx, {("key_1", "acc_1"): usage})
    used = dataclasses.replace(limited, usage=usage)
    assert await credentials.keys_of_account(tx, "acc_1") == [used, api_key("key_2")]
    assert await credentials.key_budgets(tx, {"key_1"}) == {"key_1": callers.KeyBudget(5, 7, usage)}
    changed = dataclasses.replace(used, name="other", scopes="*", limits=callers.NO_LIMITS)
    await credentials.change_key(tx, dataclasses.replace(changed, account_id="acc_2"))
    assert await credentials.key_by_id(tx, "acc_1", "key_1") == used
    await credentials.change_key(tx, changed)
    assert await credentials.key_by_id(tx, "acc_1", "key_1") == changed


async def test_it_starts_at_zero_and_moves_by_one(tx: Transaction) -> None:
    assert await credentials.access_version(tx) == 0
    await credentials.bump_access_version(tx)
    await credentials.bump_access_version(tx)
    assert await credentials.access_version(tx) == 2
    assert await credentials.access_version(tx) == 2
