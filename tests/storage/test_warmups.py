"""Warm-up states on both engines: by account and name, and deleted only when their day is over."""

from postroad.model.domains import warmup
from postroad.storage.engine.store import Store
from postroad.storage.mail import domains

MINE, OTHER, FOREIGN = ("acc_1", "example.com"), ("acc_1", "example.org"), ("acc_2", "example.com")
STATE = warmup.State(day=20_000, step=2, used=17)


async def test_a_state_is_found_as_it_was_last_written(store: Store) -> None:
    later = warmup.State(day=20_001, step=3, used=1)
    async with store.transaction() as tx:
        await domains.put_warmups(tx, {FOREIGN: STATE, MINE: STATE})
        await domains.put_warmups(tx, {MINE: later})
        await domains.put_warmups(tx, {})
    async with store.reading() as tx:
        assert await domains.warmups(tx, [MINE, OTHER, FOREIGN]) == {MINE: later, FOREIGN: STATE}
        assert await domains.warmups(tx, []) == {}


async def test_a_state_is_deleted_when_its_day_is_over(store: Store) -> None:
    async with store.transaction() as tx:
        await domains.put_warmups(tx, {FOREIGN: STATE, MINE: STATE})
        await domains.forget_warmups(tx, MINE, before_day=20_000)
        assert MINE in await domains.warmups(tx, [MINE])
        await domains.forget_warmups(tx, MINE, before_day=20_001)
        assert await domains.warmups(tx, [MINE, FOREIGN]) == {FOREIGN: STATE}
