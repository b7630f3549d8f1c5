"""API keys: found by the hash of their secret, and dead when they or their credential are revoked."""

import dataclasses

import pytest

from postroad.model import key_limits
from postroad.storage import api_keys, credentials
from postroad.storage.store import ConstraintViolated, Store
from tests.storage import samples
from tests.storage.test_credentials import credential


def api_key(key_id: str, *, account_id: str = "acc_1") -> api_keys.ApiKey:
    return api_keys.ApiKey(key_id, account_id, "cred_1", "name", "…1234", "send read", samples.NOW, None, None)


async def test_keys_are_found_by_hash_and_account(store: Store) -> None:
    made = [api_key("key_1"), api_key("key_2"), api_key("key_3", account_id="acc_2")]
    async with store.transaction() as tx:
        for one in made:
            await api_keys.insert(tx, one, key_hash=one.id.encode())
        await api_keys.touch(tx, "key_3", now=7)
    async with store.reading() as tx:
        assert await api_keys.by_hash(tx, b"key_2") == made[1]
        assert await api_keys.by_hash(tx, b"key_9") is None
        assert await api_keys.of_account(tx, "acc_1") == made[:2]
        assert await api_keys.of_account(tx, "acc_1", after="key_1", limit=1) == [made[1]]
        used = await api_keys.by_hash(tx, b"key_3")
    assert used is not None
    assert used.last_used_at == 7


async def test_the_same_secret_twice_is_refused(store: Store) -> None:
    async with store.transaction() as tx:
        await api_keys.insert(tx, api_key("key_1"), key_hash=b"same")
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await api_keys.insert(tx, api_key("key_2"), key_hash=b"same")


async def test_a_key_dies_by_itself_or_with_its_credential(store: Store) -> None:
    async def revoked_at(key_hash: bytes) -> int | None:
        found = await api_keys.by_hash(tx, key_hash)
        assert found is not None
        return found.revoked_at

    async with store.transaction() as tx:
        await credentials.insert(tx, credential("cred_1"))
        for key_id in ("key_1", "key_2"):
            await api_keys.insert(tx, api_key(key_id), key_hash=key_id.encode())
        assert not await api_keys.revoke(tx, "acc_2", "key_1", now=5)
        assert await api_keys.revoke(tx, "acc_1", "key_1", now=5)
        assert not await api_keys.revoke(tx, "acc_1", "key_1", now=6)
        assert (await revoked_at(b"key_1"), await revoked_at(b"key_2")) == (5, None)
        await credentials.revoke(tx, "acc_1", "cred_1", now=8)
        assert (await revoked_at(b"key_1"), await revoked_at(b"key_2")) == (5, 8)


async def test_limits_are_stored_changed_and_counted(store: Store) -> None:
    limits = key_limits.Limits(
        domains=("a.example", "b.example"),
        networks=("192.0.2.0/24",),
        templates=("welcome",),
        recipients_per_day=5,
        credit_budget=7,
        expires_at=9,
    )
    limited = dataclasses.replace(api_key("key_1"), limits=limits)
    async with store.transaction() as tx:
        for one in (limited, api_key("key_2"), api_key("key_3", account_id="acc_2")):
            await api_keys.insert(tx, one, key_hash=one.id.encode())
        assert await api_keys.by_hash(tx, b"key_1") == limited
        assert await api_keys.by_id(tx, "acc_1", "key_1") == limited
        assert await api_keys.by_id(tx, "acc_2", "key_1") is None
        assert await api_keys.budgets(tx, {"key_1", "key_2", "key_9"}) == {
            "key_1": key_limits.Budget(5, 7, key_limits.Usage(0, 0, 0)),
            "key_2": key_limits.Budget(None, None, key_limits.Usage(0, 0, 0)),
        }
        usage = key_limits.Usage(20, 3, 4)
        await api_keys.put_usage(tx, {})
        await api_keys.put_usage(tx, {("key_1", "acc_1"): key_limits.Usage(19, 1, 1), ("key_3", "acc_2"): usage})
        await api_keys.put_usage(tx, {("key_1", "acc_1"): usage})
        used = dataclasses.replace(limited, usage=usage)
        assert await api_keys.of_account(tx, "acc_1") == [used, api_key("key_2")]
        assert await api_keys.budgets(tx, {"key_1"}) == {"key_1": key_limits.Budget(5, 7, usage)}
        changed = dataclasses.replace(used, name="other", scopes="*", limits=key_limits.NO_LIMITS)
        await api_keys.change(tx, dataclasses.replace(changed, account_id="acc_2"))
        assert await api_keys.by_id(tx, "acc_1", "key_1") == used
        await api_keys.change(tx, changed)
        assert await api_keys.by_id(tx, "acc_1", "key_1") == changed
