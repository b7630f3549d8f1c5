"""Second factors: a secret counts once it is confirmed, every code and challenge is used up by one request."""

import asyncio
import dataclasses

import pytest

from postroad.storage.engine.store import Store, Transaction
from postroad.storage.people import second_factors, users

LOGIN, OTHER = "lgn_1", "lgn_2"


@pytest.fixture(autouse=True)
async def _logins(store: Store) -> None:
    async with store.transaction() as tx:
        for login_id in (LOGIN, OTHER):
            await users.insert_login(tx, users.Login(login_id, "jo@example.com", "jo@example.com", "hash", 1, 1))


async def confirmed(store: Store, *, step: int = 10) -> None:
    async with store.transaction() as tx:
        assert await second_factors.put_totp(tx, LOGIN, b"sealed", now=1)
        assert await second_factors.confirm_totp(tx, LOGIN, secret=b"sealed", step=step, now=2)


async def test_a_secret_is_no_factor_until_it_is_confirmed(tx: Transaction) -> None:
    assert await second_factors.put_totp(tx, LOGIN, b"sealed", now=1)
    assert await second_factors.of_login(tx, LOGIN) == second_factors.Factors()
    assert await second_factors.totp(tx, LOGIN) == second_factors.Totp(b"sealed", 1, None, 0)
    assert not await second_factors.use_step(tx, LOGIN, 10)
    assert await second_factors.confirm_totp(tx, LOGIN, secret=b"sealed", step=10, now=2)
    assert await second_factors.of_login(tx, LOGIN) == second_factors.Factors(totp_since=2)
    assert (await second_factors.of_login(tx, LOGIN)).exist
    assert not (await second_factors.of_login(tx, OTHER)).exist


async def test_a_secret_is_replaced_only_before_it_is_confirmed(tx: Transaction) -> None:
    assert await second_factors.put_totp(tx, LOGIN, b"first", now=1)
    assert await second_factors.put_totp(tx, LOGIN, b"second", now=2)
    assert not await second_factors.confirm_totp(tx, LOGIN, secret=b"first", step=1, now=3)
    assert await second_factors.confirm_totp(tx, LOGIN, secret=b"second", step=1, now=3)
    assert not await second_factors.confirm_totp(tx, LOGIN, secret=b"second", step=2, now=4)
    assert not await second_factors.put_totp(tx, LOGIN, b"third", now=5)
    found = await second_factors.totp(tx, LOGIN)
    assert found == second_factors.Totp(b"second", 2, 3, 1)
    assert "second" not in repr(found)


async def test_a_step_and_those_before_it_are_used_once(store: Store) -> None:
    await confirmed(store, step=10)
    async with store.transaction() as tx:
        assert [await second_factors.use_step(tx, LOGIN, step) for step in (10, 9, 11, 11, 12)] == [
            False,
            False,
            True,
            False,
            True,
        ]


async def test_of_two_requests_with_the_same_step_one_succeeds(store: Store) -> None:
    await confirmed(store)

    async def use() -> bool:
        async with store.transaction() as tx:
            return await second_factors.use_step(tx, LOGIN, 11)

    assert sorted(await asyncio.gather(*(use() for _ in range(5)))) == [False, False, False, False, True]


async def test_recovery_codes_are_replaced_together_and_used_once(tx: Transaction) -> None:
    await second_factors.replace_codes(tx, LOGIN, [b"1", b"2"])
    await second_factors.replace_codes(tx, OTHER, [b"3"])
    await second_factors.replace_codes(tx, LOGIN, [b"4", b"5"])
    assert (await second_factors.of_login(tx, LOGIN)).recovery_codes == 2
    assert [await second_factors.use_code(tx, LOGIN, code) for code in (b"1", b"3", b"4", b"4")] == [
        False,
        False,
        True,
        False,
    ]
    # They are no factor by themselves.
    assert await second_factors.of_login(tx, LOGIN) == second_factors.Factors(recovery_codes=1)
    assert not (await second_factors.of_login(tx, LOGIN)).exist
    await second_factors.remove_codes(tx, LOGIN)
    assert (await second_factors.of_login(tx, LOGIN)).recovery_codes == 0
    assert (await second_factors.of_login(tx, OTHER)).recovery_codes == 1


async def test_of_two_requests_with_the_same_recovery_code_one_succeeds(store: Store) -> None:
    async with store.transaction() as tx:
        await second_factors.replace_codes(tx, LOGIN, [b"1", b"2"])

    async def use() -> bool:
        async with store.transaction() as tx:
            return await second_factors.use_code(tx, LOGIN, b"1")

    assert sorted(await asyncio.gather(*(use() for _ in range(5)))) == [False, False, False, False, True]


async def test_an_authenticator_app_is_removed_once(store: Store) -> None:
    await confirmed(store)
    async with store.transaction() as tx:
        assert [await second_factors.remove_totp(tx, LOGIN) for _ in range(2)] == [True, False]
        assert await second_factors.totp(tx, LOGIN) is None


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


async def test_a_passkey_is_found_by_its_login_and_by_its_credential(tx: Transaction) -> None:
    spare = dataclasses.replace(MINE, id="psk_2", credential_id=b"other", name="Spare")
    assert await second_factors.insert_passkey(tx, spare)
    assert await second_factors.insert_passkey(tx, MINE)
    assert await second_factors.passkeys(tx, "lgn_1") == [MINE, spare]
    assert await second_factors.passkeys(tx, "lgn_2") == []
    assert await second_factors.passkey_by_credential(tx, b"other") == spare
    assert await second_factors.passkey_by_credential(tx, b"unknown") is None


async def test_a_credential_belongs_to_one_login(tx: Transaction) -> None:
    assert await second_factors.insert_passkey(tx, MINE)
    assert not await second_factors.insert_passkey(tx, dataclasses.replace(MINE, id="psk_2", login_id="lgn_2"))
    assert await second_factors.passkeys(tx, "lgn_2") == []


async def test_a_count_only_rises_unless_it_stays_zero(tx: Transaction) -> None:
    await second_factors.insert_passkey(tx, MINE)
    assert await second_factors.use_passkey(tx, MINE.id, sign_count=0, now=10)
    assert await second_factors.use_passkey(tx, MINE.id, sign_count=3, now=11)
    assert not await second_factors.use_passkey(tx, MINE.id, sign_count=3, now=12)
    assert not await second_factors.use_passkey(tx, MINE.id, sign_count=0, now=13)
    assert not await second_factors.use_passkey(tx, "psk_unknown", sign_count=9, now=14)
    (used,) = await second_factors.passkeys(tx, "lgn_1")
    assert (used.sign_count, used.last_used_at) == (3, 11)


async def test_a_passkey_is_removed_by_its_own_login(tx: Transaction) -> None:
    await second_factors.insert_passkey(tx, MINE)
    await second_factors.insert_passkey(tx, dataclasses.replace(MINE, id="psk_2", credential_id=b"other"))
    assert not await second_factors.remove_passkey(tx, "lgn_2", MINE.id)
    assert await second_factors.remove_passkey(tx, "lgn_1", MINE.id)
    assert [one.id for one in await second_factors.passkeys(tx, "lgn_1")] == ["psk_2"]


async def test_a_challenge_is_used_once_until_it_expires(tx: Transaction) -> None:
    assert await second_factors.use_challenge(tx, b"one", expires_at=100, now=10)
    assert await second_factors.use_challenge(tx, b"two", expires_at=110, now=20)
    assert not await second_factors.use_challenge(tx, b"one", expires_at=100, now=99)
    # What has expired is refused elsewhere, and need not be remembered.
    assert await second_factors.use_challenge(tx, b"one", expires_at=200, now=100)
    assert not await second_factors.use_challenge(tx, b"two", expires_at=110, now=100)
