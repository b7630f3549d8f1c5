"""Passkeys on both engines: one credential is stored once, a count only rises, a challenge is used once."""

import dataclasses

from postroad.storage.engine.store import Store
from postroad.storage.people import second_factors

MINE = second_factors.Passkey(
    id="psk_1",
    login_id="lgn_1",
    credential_id=b"\x00credential",
    public_key=b"\xffkey",
    sign_count=0,
    user_handle=b"handle",
    rp_id="mail.example.net",
    transports="hybrid internal",
    name="Laptop",
    created_at=5,
)


async def test_a_passkey_is_found_by_its_login_and_by_its_credential(store: Store) -> None:
    spare = dataclasses.replace(MINE, id="psk_2", credential_id=b"other", name="Spare")
    async with store.transaction() as tx:
        assert await second_factors.insert_passkey(tx, spare)
        assert await second_factors.insert_passkey(tx, MINE)
        assert await second_factors.passkeys(tx, "lgn_1") == [MINE, spare]
        assert await second_factors.passkeys(tx, "lgn_2") == []
        assert await second_factors.passkey_by_credential(tx, b"other") == spare
        assert await second_factors.passkey_by_credential(tx, b"unknown") is None


async def test_a_credential_belongs_to_one_login(store: Store) -> None:
    async with store.transaction() as tx:
        assert await second_factors.insert_passkey(tx, MINE)
        assert not await second_factors.insert_passkey(tx, dataclasses.replace(MINE, id="psk_2", login_id="lgn_2"))
        assert await second_factors.passkeys(tx, "lgn_2") == []


async def test_a_count_only_rises_unless_it_stays_zero(store: Store) -> None:
    async with store.transaction() as tx:
        await second_factors.insert_passkey(tx, MINE)
        assert await second_factors.use_passkey(tx, MINE.id, sign_count=0, now=10)
        assert await second_factors.use_passkey(tx, MINE.id, sign_count=3, now=11)
        assert not await second_factors.use_passkey(tx, MINE.id, sign_count=3, now=12)
        assert not await second_factors.use_passkey(tx, MINE.id, sign_count=0, now=13)
        assert not await second_factors.use_passkey(tx, "psk_unknown", sign_count=9, now=14)
        (used,) = await second_factors.passkeys(tx, "lgn_1")
    assert (used.sign_count, used.last_used_at) == (3, 11)


async def test_a_passkey_is_removed_by_its_own_login(store: Store) -> None:
    async with store.transaction() as tx:
        await second_factors.insert_passkey(tx, MINE)
        await second_factors.insert_passkey(tx, dataclasses.replace(MINE, id="psk_2", credential_id=b"other"))
        assert not await second_factors.remove_passkey(tx, "lgn_2", MINE.id)
        assert await second_factors.remove_passkey(tx, "lgn_1", MINE.id)
        assert [one.id for one in await second_factors.passkeys(tx, "lgn_1")] == ["psk_2"]


async def test_a_challenge_is_used_once_until_it_expires(store: Store) -> None:
    async with store.transaction() as tx:
        assert await second_factors.use_challenge(tx, b"one", expires_at=100, now=10)
        assert await second_factors.use_challenge(tx, b"two", expires_at=110, now=20)
    async with store.transaction() as tx:
        assert not await second_factors.use_challenge(tx, b"one", expires_at=100, now=99)
        # What has expired is refused elsewhere, and need not be remembered.
        assert await second_factors.use_challenge(tx, b"one", expires_at=200, now=100)
        assert not await second_factors.use_challenge(tx, b"two", expires_at=110, now=100)
