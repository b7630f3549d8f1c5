"""Users are the members of accounts; with one login they are one person."""

import dataclasses

from postroad.storage.engine.store import Store, Transaction
from postroad.storage.people import rates, sessions, users
from tests.storage import samples


def person(user_id: str, *, account_id: str = "acc_1") -> users.User:
    return users.User(user_id, account_id, f"{user_id}@Example.com", "owner", samples.NOW, None, samples.NOW)


async def test_users_are_found_by_id_email_and_account(tx: Transaction) -> None:
    people = [person("usr_1"), person("usr_2"), person("usr_3", account_id="acc_2")]
    for user in people:
        assert await users.insert(tx, user, email_key=user.email.lower())
    assert not await users.insert(tx, person("usr_4"), email_key="usr_1@example.com")
    assert await users.by_email(tx, "usr_2@example.com") == [people[1]]
    assert await users.by_email(tx, "usr_2@Example.com") == []
    assert await users.by_id(tx, "usr_3") == people[2]
    assert await users.by_id(tx, "usr_4") is None
    assert await users.of_account(tx, "acc_1") == people[:2]


async def test_an_email_is_unique_in_its_account_only(tx: Transaction) -> None:
    for number in (1, 2, 3):
        assert await users.insert(tx, person(f"usr_{number}", account_id=f"acc_{number}"), email_key="one")
    assert not await users.insert(tx, person("usr_4", account_id="acc_2"), email_key="one")
    assert [one.id for one in await users.by_email(tx, "one")] == ["usr_1", "usr_2", "usr_3"]


async def test_the_users_of_a_login_are_found_and_joined_with_the_first_one(tx: Transaction) -> None:
    for number in (1, 2):
        await users.insert(tx, person(f"usr_{number}", account_id=f"acc_{number}"), email_key="one")
    await users.insert_login(tx, samples.login("lgn_1"))
    await users.set_login(tx, "usr_1", login_id="lgn_1", now=samples.NOW + 7)
    await users.set_login(tx, "usr_1", login_id="lgn_2", now=samples.NOW + 9)
    await users.set_login(tx, "usr_1", login_id="lgn_1", now=samples.NOW + 9)
    await users.set_login(tx, "usr_2", login_id="lgn_1", now=samples.NOW + 8)
    found = await users.of_login(tx, "lgn_1")
    assert [(one.id, one.joined_at) for one in found] == [("usr_1", samples.NOW + 7), ("usr_2", samples.NOW + 8)]


async def test_a_lock_moves_the_tokens_validity_even_when_the_clock_does_not(tx: Transaction) -> None:
    async def valid_from(disabled_at: int | None) -> int:
        user = await users.by_id(tx, "usr_1")
        assert user is not None
        assert user.disabled_at == disabled_at
        return user.tokens_valid_from

    await users.insert(tx, person("usr_1"), email_key="one")
    assert await users.set_disabled(tx, "usr_1", disabled_at=7, now=samples.NOW)
    assert await valid_from(7) == samples.NOW + 1
    assert await users.set_disabled(tx, "usr_1", disabled_at=None, now=samples.NOW + 9)
    assert await valid_from(None) == samples.NOW + 9
    assert not await users.set_disabled(tx, "usr_2", disabled_at=None, now=0)


async def test_a_role_and_the_last_login_change_and_a_user_is_removed(tx: Transaction) -> None:
    for name in ("usr_1", "usr_2"):
        await users.insert(tx, person(name), email_key=name)
    await users.set_role(tx, "usr_1", "developer")
    await users.set_login(tx, "usr_1", login_id="lgn_1", now=5)
    joined = await users.by_id(tx, "usr_1")
    assert joined is not None
    assert await users.note_login(tx, joined, now=7)
    await users.remove(tx, "usr_2")
    (left,) = await users.of_account(tx, "acc_1")
    assert (left.id, left.role, left.last_login_at) == ("usr_1", "developer", 7)


async def test_a_login_of_a_disabled_user_or_with_another_login_is_not_noted(tx: Transaction) -> None:
    await users.insert(tx, person("usr_1"), email_key="one")
    await users.set_login(tx, "usr_1", login_id="lgn_1", now=5)
    read = await users.by_id(tx, "usr_1")
    assert read is not None
    await users.set_login(tx, "usr_1", login_id="lgn_2", now=6)
    assert not await users.note_login(tx, read, now=7)
    await users.set_login(tx, "usr_1", login_id="lgn_1", now=8)
    await users.set_disabled(tx, "usr_1", disabled_at=9, now=9)
    assert not await users.note_login(tx, read, now=10)


async def test_logins_of_an_email_are_those_that_an_enabled_user_has(tx: Transaction) -> None:
    for number in range(1, 4):
        await users.insert_login(tx, samples.login(f"lgn_{number}", email_key="one"))
        await users.insert(tx, person(f"usr_{number}", account_id=f"acc_{number}"), email_key="one")
        await users.set_login(tx, f"usr_{number}", login_id=f"lgn_{number}", now=1)
    await users.insert_login(tx, samples.login("lgn_4", email_key="one"))
    await users.set_disabled(tx, "usr_2", disabled_at=1, now=1)
    assert [one.id for one in await users.logins_by_email(tx, "one")] == ["lgn_1", "lgn_3"]
    assert await users.logins_by_email(tx, "two") == []
    assert await users.login_by_id(tx, "lgn_4") == samples.login("lgn_4", email_key="one")


async def test_logins_of_an_email_are_found_by_a_network_and_share_a_salt(tx: Transaction) -> None:
    assert await users.any_password_hash(tx, "one") is None
    for number, password_hash in enumerate((None, "first", "second"), 1):
        login = samples.login(f"lgn_{number}", email_key="one")
        await users.insert_login(tx, dataclasses.replace(login, password_hash=password_hash))
    await users.insert_login(tx, samples.login("lgn_4", email_key="two"))
    for login_id in ("lgn_2", "lgn_3", "lgn_4"):
        await rates.put_network(tx, login_id, "192.0.2.1", now=1)
    assert await users.logins_used_from(tx, "one", "192.0.2.1") == {"lgn_2", "lgn_3"}
    assert await users.logins_used_from(tx, "one", "192.0.2.2") == set()
    assert await users.any_password_hash(tx, "one") == "first"


async def test_a_login_is_held_only_as_it_was_read(tx: Transaction) -> None:
    await users.insert_login(tx, samples.login())
    before = samples.login()
    assert await users.lock_login(tx, before)
    await users.set_password(tx, "lgn_1", password_hash="new", now=samples.NOW)
    assert not await users.lock_login(tx, before)
    after = await users.login_by_id(tx, "lgn_1")
    assert after == dataclasses.replace(before, password_hash="new", tokens_valid_from=samples.NOW + 1)
    assert await users.lock_login(tx, after)


async def test_a_password_is_replaced_only_when_it_is_still_the_old_one(tx: Transaction) -> None:
    await users.insert_login(tx, samples.login())
    assert not await users.replace_password(tx, "lgn_1", old_hash="other", new_hash="new", now=samples.NOW + 1)
    assert await users.replace_password(tx, "lgn_1", old_hash="hash", new_hash="new", now=samples.NOW + 1)
    found = await users.login_by_id(tx, "lgn_1")
    assert found is not None
    assert (found.password_hash, found.tokens_valid_from) == ("new", samples.NOW + 1)


async def test_a_new_password_invalidates_the_tokens_of_the_users_of_its_login(store: Store) -> None:
    samples.teach(store, read="SELECT id, tokens_valid_from FROM users ORDER BY id")
    async with store.transaction() as tx:
        await users.insert_login(tx, samples.login())
        for number in (1, 2):
            await users.insert(tx, person(f"usr_{number}", account_id=f"acc_{number}"), email_key="one")
        await users.set_login(tx, "usr_1", login_id="lgn_1", now=1)
        await users.set_password(tx, "lgn_1", password_hash="new", now=samples.NOW + 5)
        assert [tuple(row) for row in await tx.fetch("test.read")] == [
            ("usr_1", samples.NOW + 5),
            ("usr_2", samples.NOW),
        ]


async def test_a_login_goes_with_its_last_user_and_all_that_belongs_to_it(tx: Transaction) -> None:
    await users.insert_login(tx, samples.login())
    await users.insert(tx, person("usr_1"), email_key="one")
    await users.set_login(tx, "usr_1", login_id="lgn_1", now=1)
    await sessions.insert(tx, samples.session())
    await rates.put_network(tx, "lgn_1", "192.0.2.1", now=1)
    await users.remove_unused_logins(tx, "lgn_1")
    assert await users.login_by_id(tx, "lgn_1") is not None
    await users.remove(tx, "usr_1")
    await users.remove_unused_logins(tx, "lgn_1")
    assert await users.login_by_id(tx, "lgn_1") is None
    assert await sessions.by_id(tx, "tok_1") is None
    assert await rates.networks_of(tx, "lgn_1") == []
