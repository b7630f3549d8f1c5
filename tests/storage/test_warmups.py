"""Warm-up states on both engines: by account and name, and deleted only when their day is over."""

from postroad.model import warmup
from postroad.storage import warmups
from postroad.storage.store import Store

MINE, OTHER, FOREIGN = ("acc_1", "example.com"), ("acc_1", "example.org"), ("acc_2", "example.com")
STATE = warmup.State(day=20_000, step=2, used=17)


async def test_a_state_is_found_as_it_was_last_written(store: Store) -> None:
    later = warmup.State(day=20_001, step=3, used=1)
    async with store.transaction() as tx:
        await warmups.put(tx, {FOREIGN: STATE, MINE: STATE})
        await warmups.put(tx, {MINE: later})
        await warmups.put(tx, {})
    async with store.reading() as tx:
        assert await warmups.find(tx, [MINE, OTHER, FOREIGN]) == {MINE: later, FOREIGN: STATE}
        assert await warmups.find(tx, []) == {}


async def test_a_state_is_deleted_when_its_day_is_over(store: Store) -> None:
    async with store.transaction() as tx:
        await warmups.put(tx, {FOREIGN: STATE, MINE: STATE})
        await warmups.forget(tx, MINE, before_day=20_000)
        assert MINE in await warmups.find(tx, [MINE])
        await warmups.forget(tx, MINE, before_day=20_001)
        assert await warmups.find(tx, [MINE, FOREIGN]) == {FOREIGN: STATE}
