"""Password links: one for each user, used once, deleted when they have expired."""

from postroad.storage.engine.store import Store
from postroad.storage.people import sessions


def link(name: str, *, user_id: str = "usr_1", expires_at: int = 5) -> sessions.PasswordLink:
    return sessions.PasswordLink(name.encode(), "acc_1", user_id, expires_at, 0)


async def test_a_new_link_replaces_the_one_before_it_and_no_other(store: Store) -> None:
    async with store.transaction() as tx:
        for one in (link("old"), link("hers", user_id="usr_2"), link("new")):
            await sessions.replace_link(tx, one)
        assert await sessions.find_link(tx, b"old") is None
        assert await sessions.find_link(tx, b"new") == link("new")
        assert await sessions.find_link(tx, b"hers") == link("hers", user_id="usr_2")


async def test_a_link_is_taken_once(store: Store) -> None:
    async with store.transaction() as tx:
        await sessions.replace_link(tx, link("one"))
        assert await sessions.consume_link(tx, b"other") is None
        assert await sessions.consume_link(tx, b"one") == link("one")
        assert await sessions.consume_link(tx, b"one") is None


async def test_the_links_of_a_user_can_be_invalidated(store: Store) -> None:
    async with store.transaction() as tx:
        await sessions.replace_link(tx, link("one"))
        await sessions.replace_link(tx, link("hers", user_id="usr_2"))
        await sessions.remove_link(tx, "usr_1")
        assert await sessions.find_link(tx, b"one") is None
        assert await sessions.find_link(tx, b"hers") is not None


async def test_expired_links_go_some_at_a_time(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(5):
            await sessions.replace_link(tx, link(f"{number}", user_id=f"usr_{number}", expires_at=number))
        assert [await sessions.sweep_links(tx, now=2, limit=2) for _ in range(2)] == [2, 1]
        assert await sessions.find_link(tx, b"3") is not None


def test_a_link_shows_nothing_of_its_token() -> None:
    assert "secret" not in repr(link("secret"))
