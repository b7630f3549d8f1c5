"""SMTP credentials are generated, shown once, stored hashed, and stop at once when they are revoked."""

import asyncio
import threading

import argon2
import pytest

from postroad import context, errors
from postroad.services.accounts import account_registry as accounts
from postroad.services.people import credentials, passwords
from tests import contexts
from tests.services.people.test_schemes import basic, who_is


async def test_a_new_credential_works_and_its_password_is_its_own_and_stored_hashed(
    ctx: context.Context, account_id: str
) -> None:
    (credential, password), (other, other_password) = await asyncio.gather(
        credentials.create(ctx, account_id, "Web shop"), credentials.create(ctx, account_id, "Other")
    )
    assert credential == await credentials.find(ctx, account_id, credential.id)
    assert credential.password_hash.startswith("$argon2id$")
    assert password not in repr(credential)
    who = await who_is(ctx, basic(credential.username, password))
    assert (who.account_id, who.credential_id) == (account_id, credential.id)
    assert (credential.username == other.username, password == other_password) == (False, False)
    with pytest.raises(errors.Unauthorized):
        await who_is(ctx, basic(credential.username, other_password))
    for name in ("", "a\nb", "a\0b", "x" * 101):
        with pytest.raises(errors.InvalidRequest, match=r"^name: "):
            await credentials.create(ctx, account_id, name)


async def test_a_login_does_not_wait_until_somebody_has_created_150_credentials(
    ctx: context.Context, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await accounts.create(ctx, "Other")
    credential, password = await credentials.create(ctx, other.id, "Web shop")
    hash_password, may_end = argon2.PasswordHasher.hash, threading.Semaphore(0)

    def held(hasher: argon2.PasswordHasher, octets: bytes) -> str:
        may_end.acquire(timeout=60)
        return hash_password(hasher, octets)

    monkeypatch.setattr(argon2.PasswordHasher, "hash", held)
    find, is_checked = passwords.Passwords.find, asyncio.Event()

    async def noted(self: passwords.Passwords, password: str, hashes: list[str], *, party: str) -> int | None:
        is_checked.set()
        return await find(self, password, hashes, party=party)

    monkeypatch.setattr(passwords.Passwords, "find", noted)
    creations = [asyncio.create_task(credentials.create(ctx, account_id, f"No. {number}")) for number in range(150)]
    await asyncio.sleep(0)
    login = asyncio.create_task(who_is(ctx, basic(credential.username, password)))
    try:
        async with asyncio.timeout(60):
            await is_checked.wait()
            await asyncio.sleep(0.01)
            may_end.release()  # one of those in progress ends, and the next turn is the login's
            await login
    finally:
        may_end.release(150)
    await asyncio.gather(*creations)


async def test_the_list_comes_in_parts_oldest_first_and_keeps_what_is_revoked_and_gone_from_its_address(
    ctx: context.Context, account_id: str, clock: contexts.Clock
) -> None:
    made = []
    for number in range(3):
        credential, _ = await credentials.create(ctx, account_id, f"Number {number}")
        made.append(credential)
        clock.pass_seconds(1)
    assert await credentials.of_account(ctx, account_id) == made
    assert await credentials.of_account(ctx, account_id, after=made[0].id, limit=1) == made[1:2]
    await credentials.revoke(ctx, account_id, made[0].id)
    (listed,) = await credentials.of_account(ctx, account_id, limit=1)
    assert (listed.id, listed.revoked_at) == (made[0].id, clock.now)
    for verb in (credentials.find, credentials.revoke):
        with pytest.raises(errors.NotFound):
            await verb(ctx, account_id, made[0].id)


async def test_a_credential_that_is_unknown_or_of_another_account_does_not_exist(
    ctx: context.Context, account_id: str
) -> None:
    other = await accounts.create(ctx, "Other")
    foreign, password = await credentials.create(ctx, other.id, "Theirs")
    for credential_id in (foreign.id, "cred_" + "0" * 28, "", "cred_", "cred_" + "0" * 27 + "\0", "key_" + "0" * 28):
        for verb in (credentials.find, credentials.revoke):
            with pytest.raises(errors.NotFound):
                await verb(ctx, account_id, credential_id)
    assert await credentials.of_account(ctx, account_id) == []
    await who_is(ctx, basic(foreign.username, password))
