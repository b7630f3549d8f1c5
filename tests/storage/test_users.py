"""Users: the members of accounts."""

from postroad.storage.engine.store import Store
from postroad.storage.people import users
from tests.storage import samples


def person(user_id: str, *, account_id: str = "acc_1") -> users.User:
    return users.User(user_id, account_id, f"{user_id}@Example.com", "owner", samples.NOW, None, samples.NOW)


async def test_users_are_found_by_id_email_and_account(store: Store) -> None:
    people = [person("usr_1"), person("usr_2"), person("usr_3", account_id="acc_2")]
    async with store.transaction() as tx:
        for user in people:
            assert await users.insert(tx, user, email_key=user.email.lower())
        assert not await users.insert(tx, person("usr_4"), email_key="usr_1@example.com")
    async with store.reading() as tx:
        assert await users.by_email(tx, "usr_2@example.com") == [people[1]]
        assert await users.by_email(tx, "usr_2@Example.com") == []
        assert await users.by_id(tx, "usr_3") == people[2]
        assert await users.by_id(tx, "usr_4") is None
        assert await users.of_account(tx, "acc_1") == people[:2]


async def test_an_email_is_unique_in_its_account_only(store: Store) -> None:
    async with store.transaction() as tx:
        for number in (1, 2, 3):
            assert await users.insert(tx, person(f"usr_{number}", account_id=f"acc_{number}"), email_key="one")
        assert not await users.insert(tx, person("usr_4", account_id="acc_2"), email_key="one")
        assert [one.id for one in await users.by_email(tx, "one")] == ["usr_1", "usr_2", "usr_3"]


async def test_the_users_of_a_login_are_found_and_joined_with_the_first_one(store: Store) -> None:
    async with store.transaction() as tx:
        for number in (1, 2):
            await users.insert(tx, person(f"usr_{number}", account_id=f"acc_{number}"), email_key="one")
        await users.insert_login(tx, samples.login("lgn_1"))
        await users.set_login(tx, "usr_1", login_id="lgn_1", now=samples.NOW + 7)
        await users.set_login(tx, "usr_1", login_id="lgn_2", now=samples.NOW + 9)
        await users.set_login(tx, "usr_1", login_id="lgn_1", now=samples.NOW + 9)
        await users.set_login(tx, "usr_2", login_id="lgn_1", now=samples.NOW + 8)
        found = await users.of_login(tx, "lgn_1")
    assert [(one.id, one.joined_at) for one in found] == [("usr_1", samples.NOW + 7), ("usr_2", samples.NOW + 8)]


async def test_a_lock_moves_the_tokens_validity_even_when_the_clock_does_not(store: Store) -> None:
    async def valid_from(disabled_at: int | None) -> int:
        user = await users.by_id(tx, "usr_1")
        assert user is not None
        assert user.disabled_at == disabled_at
        return user.tokens_valid_from

    async with store.transaction() as tx:
        await users.insert(tx, person("usr_1"), email_key="one")
        assert await users.set_disabled(tx, "usr_1", disabled_at=7, now=samples.NOW)
        assert await valid_from(7) == samples.NOW + 1
        assert await users.set_disabled(tx, "usr_1", disabled_at=None, now=samples.NOW + 9)
        assert await valid_from(None) == samples.NOW + 9
        assert not await users.set_disabled(tx, "usr_2", disabled_at=None, now=0)


async def test_a_role_and_the_last_login_change_and_a_user_is_removed(store: Store) -> None:
    async with store.transaction() as tx:
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


async def test_a_login_of_a_disabled_user_or_with_another_login_is_not_noted(store: Store) -> None:
    async with store.transaction() as tx:
        await users.insert(tx, person("usr_1"), email_key="one")
        await users.set_login(tx, "usr_1", login_id="lgn_1", now=5)
        read = await users.by_id(tx, "usr_1")
        assert read is not None
        await users.set_login(tx, "usr_1", login_id="lgn_2", now=6)
        assert not await users.note_login(tx, read, now=7)
        await users.set_login(tx, "usr_1", login_id="lgn_1", now=8)
        await users.set_disabled(tx, "usr_1", disabled_at=9, now=9)
        assert not await users.note_login(tx, read, now=10)
