"""Shared request rates, the networks that people log in from, and the counters of failed logins."""

from postroad.model.delivery import throttle
from postroad.storage.engine.store import SWEEP_ROWS, Transaction
from postroad.storage.people import rates

ONE = rates.Rate("cred_1", "acc_1", throttle.SharedBucket(full_at=2_000, seen_at=1_000))
TWO = rates.Rate("cred_2", "acc_1", throttle.SharedBucket(full_at=3_000, seen_at=1_500))


async def test_a_bucket_is_found_as_it_was_last_written(tx: Transaction) -> None:
    later = rates.Rate("cred_1", "acc_1", throttle.SharedBucket(full_at=9_000, seen_at=8_000))
    await rates.put(tx, [TWO, ONE])
    await rates.put(tx, [later])
    await rates.put(tx, [])
    found = await rates.find(tx, {"cred_1", "cred_2", "cred_3"})
    assert found == {"cred_1": later.bucket, "cred_2": TWO.bucket}


async def test_a_sweep_takes_what_was_full_before_and_no_more_than_its_share(tx: Transaction) -> None:
    many = [
        rates.Rate(f"cred_{number}", "acc_1", throttle.SharedBucket(full_at=10, seen_at=1))
        for number in range(100, 101 + SWEEP_ROWS)
    ]
    await rates.put(tx, [ONE, TWO, *many])
    assert await rates.sweep(tx, before=3_000) == SWEEP_ROWS
    assert await rates.sweep(tx, before=3_000) == 2
    assert await rates.sweep(tx, before=3_000) == 0
    assert await rates.find(tx, {"cred_1", "cred_2"}) == {"cred_2": TWO.bucket}


async def test_a_network_is_known_for_its_user_after_a_login(tx: Transaction) -> None:
    await rates.put_network(tx, "usr_1", "192.0.2.1", now=5)
    assert await rates.is_known_network(tx, "usr_1", "192.0.2.1")
    assert not await rates.is_known_network(tx, "usr_1", "192.0.2.2")
    assert not await rates.is_known_network(tx, "usr_2", "192.0.2.1")


async def test_a_user_has_at_most_sixteen_the_latest(tx: Transaction) -> None:
    await rates.put_network(tx, "usr_2", "192.0.2.0", now=1)
    for number in range(17):
        await rates.put_network(tx, "usr_1", f"192.0.2.{number}", now=10 + number)
    await rates.put_network(tx, "usr_1", "192.0.2.1", now=99)
    await rates.put_network(tx, "usr_1", "192.0.2.99", now=100)
    known = [number for number in range(100) if await rates.is_known_network(tx, "usr_1", f"192.0.2.{number}")]
    assert known == [1, *range(3, 17), 99]
    assert await rates.is_known_network(tx, "usr_2", "192.0.2.0")


async def test_a_credential_may_have_more_and_says_when_it_logged_in(tx: Transaction) -> None:
    for number in range(20):
        await rates.put_network(tx, "crd_1", f"192.0.2.{number}", now=10 + number, max_networks=18)
    logins = [await rates.last_login(tx, "crd_1", f"192.0.2.{number}") for number in range(20)]
    assert logins == [None, None, *range(12, 30)]


async def test_the_networks_of_a_user_go_with_the_user(tx: Transaction) -> None:
    for user_id in ("usr_1", "usr_2"):
        await rates.put_network(tx, user_id, "192.0.2.1", now=5)
    await rates.remove_networks(tx, "usr_1")
    assert not await rates.is_known_network(tx, "usr_1", "192.0.2.1")
    assert await rates.is_known_network(tx, "usr_2", "192.0.2.1")


async def test_unused_networks_go_some_at_a_time(tx: Transaction) -> None:
    for number in range(5):
        await rates.put_network(tx, "usr_1", f"192.0.2.{number}", now=number)
    assert [await rates.sweep_networks(tx, before=3, limit=2) for _ in range(3)] == [2, 1, 0]
    assert await rates.is_known_network(tx, "usr_1", "192.0.2.3")


async def test_counters_are_stored_and_replaced(tx: Transaction) -> None:
    await rates.put_failures(tx, {b"a": 5, b"b": 6})
    await rates.put_failures(tx, {b"b": 7})
    await rates.put_failures(tx, {})
    assert await rates.lock_failures(tx, [b"a", b"b", b"c"]) == {b"a": 5, b"b": 7}


async def test_forgotten_counters_go_some_at_a_time(tx: Transaction) -> None:
    await rates.put_failures(tx, {bytes([number]): number for number in range(5)})
    assert [await rates.sweep_failures(tx, now=3, limit=2) for _ in range(3)] == [2, 2, 0]
    assert await rates.lock_failures(tx, [bytes([number]) for number in range(5)]) == {b"\x04": 4}
