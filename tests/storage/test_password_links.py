"""Password links: one for each user, used once, deleted when they have expired."""

import pytest

from postroad.storage import password_links
from postroad.storage.store import Store


def link(name: str, *, user_id: str = "usr_1", expires_at: int = 5) -> password_links.Link:
    return password_links.Link(name.encode(), "acc_1", user_id, expires_at, 0)


async def test_a_new_link_replaces_the_one_before_it_and_no_other(store: Store) -> None:
    async with store.transaction() as tx:
        for one in (link("old"), link("hers", user_id="usr_2"), link("new")):
            await password_links.replace(tx, one)
        assert await password_links.find(tx, b"old") is None
        assert await password_links.find(tx, b"new") == link("new")
        assert await password_links.find(tx, b"hers") == link("hers", user_id="usr_2")


async def test_a_link_is_taken_once(store: Store) -> None:
    async with store.transaction() as tx:
        await password_links.replace(tx, link("one"))
        assert await password_links.consume(tx, b"other") is None
        assert await password_links.consume(tx, b"one") == link("one")
        assert await password_links.consume(tx, b"one") is None


async def test_the_links_of_a_user_can_be_invalidated(store: Store) -> None:
    async with store.transaction() as tx:
        await password_links.replace(tx, link("one"))
        await password_links.replace(tx, link("hers", user_id="usr_2"))
        await password_links.remove(tx, "usr_1")
        assert await password_links.find(tx, b"one") is None
        assert await password_links.find(tx, b"hers") is not None


async def test_expired_links_go_some_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_links, "SWEEP_ROWS", 2)
    async with store.transaction() as tx:
        for number in range(5):
            await password_links.replace(tx, link(f"{number}", user_id=f"usr_{number}", expires_at=number))
        assert [await password_links.sweep(tx, now=2) for _ in range(2)] == [2, 1]
        assert await password_links.find(tx, b"3") is not None


def test_a_link_shows_nothing_of_its_token() -> None:
    assert "secret" not in repr(link("secret"))
