"""Logins: several with one email, held while one logs in, and deleted with their last user."""

import dataclasses

from postroad.storage.engine.store import Store
from postroad.storage.people import rates, sessions, users
from tests.storage import samples
from tests.storage.test_users import person


async def test_logins_of_an_email_are_those_that_an_enabled_user_has(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(1, 4):
            await users.insert_login(tx, samples.login(f"lgn_{number}", email_key="one"))
            await users.insert(tx, person(f"usr_{number}", account_id=f"acc_{number}"), email_key="one")
            await users.set_login(tx, f"usr_{number}", login_id=f"lgn_{number}", now=1)
        await users.insert_login(tx, samples.login("lgn_4", email_key="one"))
        await users.set_disabled(tx, "usr_2", disabled_at=1, now=1)
        assert [one.id for one in await users.logins_by_email(tx, "one")] == ["lgn_1", "lgn_3"]
        assert await users.logins_by_email(tx, "two") == []
        assert await users.login_by_id(tx, "lgn_4") == samples.login("lgn_4", email_key="one")


async def test_logins_of_an_email_are_found_by_a_network_and_share_a_salt(store: Store) -> None:
    async with store.transaction() as tx:
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


async def test_a_login_is_held_only_as_it_was_read(store: Store) -> None:
    async with store.transaction() as tx:
        await users.insert_login(tx, samples.login())
        before = samples.login()
        assert await users.lock_login(tx, before)
        await users.set_password(tx, "lgn_1", password_hash="new", now=samples.NOW)
        assert not await users.lock_login(tx, before)
        after = await users.login_by_id(tx, "lgn_1")
        assert after == dataclasses.replace(before, password_hash="new", tokens_valid_from=samples.NOW + 1)
        assert await users.lock_login(tx, after)


async def test_a_password_is_replaced_only_when_it_is_still_the_old_one(store: Store) -> None:
    async with store.transaction() as tx:
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


async def test_a_login_goes_with_its_last_user_and_all_that_belongs_to_it(store: Store) -> None:
    async with store.transaction() as tx:
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
