"""Users and their tokens."""

import pytest

from postroad.storage import users
from postroad.storage.store import Store
from tests.storage import samples


def person(user_id: str, *, account_id: str = "acc_1") -> users.User:
    return users.User(user_id, account_id, f"{user_id}@Example.com", "hash", "owner", samples.NOW, None, samples.NOW)


async def test_users_are_found_by_login_id_and_account(store: Store) -> None:
    people = [person("usr_1"), person("usr_2"), person("usr_3", account_id="acc_2")]
    async with store.transaction() as tx:
        for user in people:
            assert await users.insert(tx, user, email_key=user.email.lower())
        assert not await users.insert(tx, person("usr_4"), email_key="usr_1@example.com")
    async with store.reading() as tx:
        assert await users.by_email(tx, "usr_2@example.com") == people[1]
        assert await users.by_email(tx, "usr_2@Example.com") is None
        assert await users.by_id(tx, "usr_3") == people[2]
        assert await users.by_id(tx, "usr_4") is None
        assert await users.of_account(tx, "acc_1") == people[:2]


async def test_a_new_password_or_a_lock_moves_the_tokens_validity_even_when_the_clock_does_not(store: Store) -> None:
    async def valid_from(disabled_at: int | None) -> int:
        user = await users.by_id(tx, "usr_1")
        assert user is not None
        assert user.disabled_at == disabled_at
        return user.tokens_valid_from

    async with store.transaction() as tx:
        await users.insert(tx, person("usr_1"), email_key="one")
        assert await users.set_password(tx, "usr_1", password_hash="new", now=samples.NOW + 5)
        assert await valid_from(None) == samples.NOW + 5
        assert await users.set_disabled(tx, "usr_1", disabled_at=7, now=samples.NOW)
        assert await valid_from(7) == samples.NOW + 6
        assert await users.set_disabled(tx, "usr_1", disabled_at=None, now=samples.NOW + 9)
        assert await valid_from(None) == samples.NOW + 9
        assert not await users.set_password(tx, "usr_2", password_hash="new", now=0)
        assert not await users.set_disabled(tx, "usr_2", disabled_at=None, now=0)


async def test_a_password_is_replaced_only_when_it_is_still_the_old_one(store: Store) -> None:
    async with store.transaction() as tx:
        await users.insert(tx, person("usr_1"), email_key="one")
        assert not await users.replace_password(tx, "usr_1", old_hash="other", new_hash="new", now=samples.NOW + 1)
        assert await users.replace_password(tx, "usr_1", old_hash="hash", new_hash="new", now=samples.NOW + 1)
        user = await users.by_id(tx, "usr_1")
    assert user is not None
    assert (user.password_hash, user.tokens_valid_from) == ("new", samples.NOW + 1)


async def test_tokens_are_taken_back_until_they_would_have_expired(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with store.transaction() as tx:
        for number in range(6):
            await users.revoke_token(tx, f"tok_{number}", account_id="acc_1", expires_at=number)
        await users.revoke_token(tx, "tok_5", account_id="acc_1", expires_at=5)
        assert await users.is_token_revoked(tx, "tok_5")
        assert not await users.is_token_revoked(tx, "tok_9")
        monkeypatch.setattr(users, "SWEEP_ROWS", 3)
        assert [await users.sweep_tokens(tx, now=3) for _ in range(3)] == [3, 1, 0]
        assert not await users.is_token_revoked(tx, "tok_3")
        assert await users.is_token_revoked(tx, "tok_4")


async def test_who_was_invited_has_joined_with_the_first_password(store: Store) -> None:
    async with store.transaction() as tx:
        await users.insert(tx, person("usr_1"), email_key="one")
        for moment in (7, 9):
            await users.set_password(tx, "usr_1", password_hash="new", now=samples.NOW + moment)
        user = await users.by_id(tx, "usr_1")
    assert user is not None
    assert user.joined_at == samples.NOW + 7


async def test_a_role_and_the_last_login_change_and_a_user_is_removed(store: Store) -> None:
    async with store.transaction() as tx:
        for name in ("usr_1", "usr_2"):
            await users.insert(tx, person(name), email_key=name)
        await users.set_role(tx, "usr_1", "member")
        await users.note_login(tx, "usr_1", now=7)
        await users.remove(tx, "usr_2")
        (left,) = await users.of_account(tx, "acc_1")
    assert (left.id, left.role, left.last_login_at) == ("usr_1", "member", 7)
