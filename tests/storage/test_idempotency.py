"""Idempotency keys: found until they expire, then replaced or swept, and each in the scope of its credential."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import messages
from tests.storage import samples


def key(
    text: str, *, credential: str = "cred_1", message: str = "em_1", expires_at: int = 100
) -> messages.NewIdempotencyKey:
    return messages.NewIdempotencyKey(credential, text, "acc_1", message.encode(), message, expires_at)


async def write(store: Store, *keys: messages.NewIdempotencyKey) -> None:
    async with store.transaction() as tx:
        await messages.insert_idempotency_keys(tx, keys)


async def test_keys_are_found_within_their_credential_and_until_they_expire(store: Store) -> None:
    await write(store, key("a"), key("a", credential="cred_2", message="em_2"), key("b", expires_at=50))
    wanted = [("cred_1", "a"), ("cred_2", "a"), ("cred_1", "b"), ("cred_1", "c")]
    async with store.reading() as tx:
        found = await messages.idempotency_keys(tx, wanted, now=50)
        assert await messages.idempotency_keys(tx, wanted, now=100) == {}
        assert await messages.idempotency_keys(tx, [], now=0) == {}
    assert found == {
        ("cred_1", "a"): messages.StoredIdempotencyKey(b"em_1", "em_1"),
        ("cred_2", "a"): messages.StoredIdempotencyKey(b"em_2", "em_2"),
    }


async def test_a_key_may_be_used_again_when_it_has_expired(store: Store) -> None:
    await write(store, key("a", expires_at=10))
    await write(store, key("a", message="em_2", expires_at=110))
    async with store.reading() as tx:
        found = await messages.idempotency_keys(tx, [("cred_1", "a")], now=50)
    assert found == {("cred_1", "a"): messages.StoredIdempotencyKey(b"em_2", "em_2")}
    assert await samples.count(store, "idempotency_keys") == 1


async def test_a_sweep_removes_what_has_expired_some_at_a_time(store: Store) -> None:
    await write(store, *[key(f"{number:02}", expires_at=number) for number in range(20)])
    swept = []
    for _ in range(4):
        async with store.transaction() as tx:
            swept.append(await messages.sweep_idempotency_keys(tx, now=9, limit=6))
    assert swept == [6, 4, 0, 0]
    assert await samples.count(store, "idempotency_keys") == 10
