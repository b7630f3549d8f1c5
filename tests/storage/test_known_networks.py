"""Known networks: the latest of each user, and none that was not used for long."""

from postroad.storage.engine.store import Store
from postroad.storage.people import rates


async def test_a_network_is_known_for_its_user_after_a_login(store: Store) -> None:
    async with store.transaction() as tx:
        await rates.put_network(tx, "usr_1", "192.0.2.1", now=5)
        assert await rates.is_known_network(tx, "usr_1", "192.0.2.1")
        assert not await rates.is_known_network(tx, "usr_1", "192.0.2.2")
        assert not await rates.is_known_network(tx, "usr_2", "192.0.2.1")


async def test_a_user_has_at_most_sixteen_the_latest(store: Store) -> None:
    async with store.transaction() as tx:
        await rates.put_network(tx, "usr_2", "192.0.2.0", now=1)
        for number in range(17):
            await rates.put_network(tx, "usr_1", f"192.0.2.{number}", now=10 + number)
        await rates.put_network(tx, "usr_1", "192.0.2.1", now=99)
        await rates.put_network(tx, "usr_1", "192.0.2.99", now=100)
        known = [number for number in range(100) if await rates.is_known_network(tx, "usr_1", f"192.0.2.{number}")]
        assert known == [1, *range(3, 17), 99]
        assert await rates.is_known_network(tx, "usr_2", "192.0.2.0")


async def test_a_credential_may_have_more_and_says_when_it_logged_in(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(20):
            await rates.put_network(tx, "crd_1", f"192.0.2.{number}", now=10 + number, max_networks=18)
        logins = [await rates.last_login(tx, "crd_1", f"192.0.2.{number}") for number in range(20)]
        assert logins == [None, None, *range(12, 30)]


async def test_the_networks_of_a_user_go_with_the_user(store: Store) -> None:
    async with store.transaction() as tx:
        for user_id in ("usr_1", "usr_2"):
            await rates.put_network(tx, user_id, "192.0.2.1", now=5)
        await rates.remove_networks(tx, "usr_1")
        assert not await rates.is_known_network(tx, "usr_1", "192.0.2.1")
        assert await rates.is_known_network(tx, "usr_2", "192.0.2.1")


async def test_unused_networks_go_some_at_a_time(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(5):
            await rates.put_network(tx, "usr_1", f"192.0.2.{number}", now=number)
        assert [await rates.sweep_networks(tx, before=3, limit=2) for _ in range(3)] == [2, 1, 0]
        assert await rates.is_known_network(tx, "usr_1", "192.0.2.3")
