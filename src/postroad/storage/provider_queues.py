"""How pools stand that are not simply open, as their workers tell it: why mail waits that could be sent."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class Pool(msgspec.Struct, frozen=True):
    """A row of `pools`. `until` is when the worker looks again."""

    worker: str
    name: str
    state: str
    reason: str
    until: int
    updated_at: int


async def put(tx: store.Transaction, pools: Sequence[Pool]) -> None:
    """Write how pools stand."""
    await tx.execute_many("pools.put", [msgspec.structs.astuple(pool) for pool in pools])


async def remove(tx: store.Transaction, worker: str, names: Sequence[str]) -> None:
    """Forget pools that are open again."""
    await tx.execute_many("pools.remove", [(worker, name) for name in names])


async def remove_worker(tx: store.Transaction, worker: str) -> None:
    """Forget the pools of a worker that stops."""
    await tx.execute("pools.remove_worker", worker)


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Forget the pools of workers that were not heard of since."""
    return await tx.execute("pools.sweep", before)


async def heard_since(tx: store.Transaction, since: int) -> list[Pool]:
    """The pools of workers that are alive."""
    return [Pool(*row) for row in await tx.fetch("pools.heard_since", since)]
