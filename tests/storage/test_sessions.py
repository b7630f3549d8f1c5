"""Sessions: one without a row has ended."""

import dataclasses

from postroad.storage.engine.store import Store
from postroad.storage.people import sessions
from tests.storage import samples


async def test_sessions_are_found_the_latest_used_first_until_they_expire(store: Store) -> None:
    rows = [samples.session(f"tok_{number}", last_used_at=number, expires_at=10 + number) for number in range(3)]
    async with store.transaction() as tx:
        for row in rows:
            await sessions.insert(tx, row)
        await sessions.insert(tx, samples.session("tok_9", user_id="usr_2"))
        assert await sessions.by_id(tx, "tok_1") == rows[1]
        assert await sessions.by_id(tx, "tok_5") is None
        assert await sessions.of_user(tx, "usr_1", now=10) == [rows[2], rows[1]]


async def test_a_use_and_a_confirmation_are_stored(store: Store) -> None:
    async with store.transaction() as tx:
        await sessions.insert(tx, samples.session())
        await sessions.touch(tx, "tok_1", now=samples.NOW + 5)
        await sessions.touch(tx, "tok_1", now=samples.NOW + 3)
        assert await sessions.confirm(tx, "tok_1", methods="password totp", now=samples.NOW + 4)
        assert not await sessions.confirm(tx, "tok_2", methods="password totp", now=samples.NOW + 4)
        assert await sessions.by_id(tx, "tok_1") == dataclasses.replace(
            samples.session(),
            last_used_at=samples.NOW + 5,
            confirmed_at=samples.NOW + 4,
            methods="password totp",
        )


async def test_what_was_made_in_a_session_ends_with_it(store: Store) -> None:
    async with store.transaction() as tx:
        for session_id, parent_id in (("tok_1", None), ("tok_2", "tok_1"), ("tok_3", None)):
            await sessions.insert(tx, samples.session(session_id, parent_id=parent_id))
        assert await sessions.remove(tx, "tok_1")
        assert not await sessions.remove(tx, "tok_1")
        assert [one.id for one in await sessions.of_user(tx, "usr_1", now=0)] == ["tok_3"]


async def test_the_sessions_of_a_user_or_a_login_end_together(store: Store) -> None:
    async with store.transaction() as tx:
        for number, (user_id, login_id) in enumerate((("usr_1", "lgn_1"), ("usr_2", "lgn_1"), ("usr_3", "lgn_2"))):
            await sessions.insert(tx, samples.session(f"tok_{number}", user_id=user_id, login_id=login_id))
        await sessions.remove_of_user(tx, "usr_1")
        assert await sessions.by_id(tx, "tok_0") is None
        assert await sessions.by_id(tx, "tok_1") is not None
        await sessions.remove_of_login(tx, "lgn_1")
        assert await sessions.by_id(tx, "tok_1") is None
        assert await sessions.by_id(tx, "tok_2") is not None


async def test_expired_sessions_are_swept_some_at_a_time(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(6):
            await sessions.insert(tx, samples.session(f"tok_{number}", expires_at=number))
        assert [await sessions.sweep(tx, now=3, limit=3) for _ in range(3)] == [3, 1, 0]
        assert await sessions.by_id(tx, "tok_3") is None
        assert await sessions.by_id(tx, "tok_4") is not None
