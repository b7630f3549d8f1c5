"""Sessions, password links and pending logins: found until they expire, taken once, and swept."""

import dataclasses

from postroad.storage.engine.store import Transaction
from postroad.storage.people import sessions
from tests.storage import samples


async def test_sessions_are_found_the_latest_used_first_until_they_expire(tx: Transaction) -> None:
    rows = [samples.session(f"tok_{number}", last_used_at=number, expires_at=10 + number) for number in range(3)]
    for row in rows:
        await sessions.insert(tx, row)
    await sessions.insert(tx, samples.session("tok_9", user_id="usr_2"))
    assert await sessions.by_id(tx, "tok_1") == rows[1]
    assert await sessions.by_id(tx, "tok_5") is None
    assert await sessions.of_user(tx, "usr_1", now=10) == [rows[2], rows[1]]


async def test_a_use_and_a_confirmation_are_stored(tx: Transaction) -> None:
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


async def test_what_was_made_in_a_session_ends_with_it(tx: Transaction) -> None:
    for session_id, parent_id in (("tok_1", None), ("tok_2", "tok_1"), ("tok_3", None)):
        await sessions.insert(tx, samples.session(session_id, parent_id=parent_id))
    assert await sessions.remove(tx, "tok_1")
    assert not await sessions.remove(tx, "tok_1")
    assert [one.id for one in await sessions.of_user(tx, "usr_1", now=0)] == ["tok_3"]


async def test_the_sessions_of_a_user_or_a_login_end_together(tx: Transaction) -> None:
    for number, (user_id, login_id) in enumerate((("usr_1", "lgn_1"), ("usr_2", "lgn_1"), ("usr_3", "lgn_2"))):
        await sessions.insert(tx, samples.session(f"tok_{number}", user_id=user_id, login_id=login_id))
    await sessions.remove_of_user(tx, "usr_1")
    assert await sessions.by_id(tx, "tok_0") is None
    assert await sessions.by_id(tx, "tok_1") is not None
    await sessions.remove_of_login(tx, "lgn_1")
    assert await sessions.by_id(tx, "tok_1") is None
    assert await sessions.by_id(tx, "tok_2") is not None


async def test_expired_sessions_are_swept_some_at_a_time(tx: Transaction) -> None:
    for number in range(6):
        await sessions.insert(tx, samples.session(f"tok_{number}", expires_at=number))
    assert [await sessions.sweep(tx, now=3, limit=3) for _ in range(3)] == [3, 1, 0]
    assert await sessions.by_id(tx, "tok_3") is None
    assert await sessions.by_id(tx, "tok_4") is not None


def link(name: str, *, user_id: str = "usr_1", expires_at: int = 5) -> sessions.PasswordLink:
    return sessions.PasswordLink(name.encode(), "acc_1", user_id, expires_at, 0)


async def test_a_new_link_replaces_the_one_before_it_and_no_other(tx: Transaction) -> None:
    for one in (link("old"), link("hers", user_id="usr_2"), link("new")):
        await sessions.replace_link(tx, one)
    assert await sessions.find_link(tx, b"old") is None
    assert await sessions.find_link(tx, b"new") == link("new")
    assert await sessions.find_link(tx, b"hers") == link("hers", user_id="usr_2")


async def test_a_link_is_taken_once(tx: Transaction) -> None:
    await sessions.replace_link(tx, link("one"))
    assert await sessions.consume_link(tx, b"other") is None
    assert await sessions.consume_link(tx, b"one") == link("one")
    assert await sessions.consume_link(tx, b"one") is None


async def test_the_links_of_a_user_can_be_invalidated(tx: Transaction) -> None:
    await sessions.replace_link(tx, link("one"))
    await sessions.replace_link(tx, link("hers", user_id="usr_2"))
    await sessions.remove_link(tx, "usr_1")
    assert await sessions.find_link(tx, b"one") is None
    assert await sessions.find_link(tx, b"hers") is not None


async def test_expired_links_go_some_at_a_time(tx: Transaction) -> None:
    for number in range(5):
        await sessions.replace_link(tx, link(f"{number}", user_id=f"usr_{number}", expires_at=number))
    assert [await sessions.sweep_links(tx, now=2, limit=2) for _ in range(2)] == [2, 1]
    assert await sessions.find_link(tx, b"3") is not None


def test_a_link_shows_nothing_of_its_token() -> None:
    assert "secret" not in repr(link("secret"))


def pending(login_id: str = "lgn_1", *, expires_at: int = 5) -> sessions.PendingLogin:
    return sessions.PendingLogin(login_id, 7, "password", expires_at)


async def test_a_pending_login_is_taken_once(tx: Transaction) -> None:
    await sessions.insert_pending(tx, b"one", pending())
    await sessions.insert_pending(tx, b"two", pending("lgn_2"))
    assert await sessions.find_pending(tx, b"one") == pending()
    assert await sessions.find_pending(tx, b"other") is None
    assert await sessions.consume_pending(tx, b"one") == pending()
    assert await sessions.consume_pending(tx, b"one") is None
    assert await sessions.find_pending(tx, b"one") is None
    assert await sessions.find_pending(tx, b"two") == pending("lgn_2")


async def test_expired_ones_go_some_at_a_time(tx: Transaction) -> None:
    for number in range(5):
        await sessions.insert_pending(tx, f"{number}".encode(), pending(expires_at=number))
    assert [await sessions.sweep_pending(tx, now=2, limit=2) for _ in range(2)] == [2, 1]
    assert await sessions.find_pending(tx, b"3") is not None
