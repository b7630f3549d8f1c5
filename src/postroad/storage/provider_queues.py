"""The status of provider queues that are slowed, paused or blocked, as workers report it: why ready mail waits."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class Status(msgspec.Struct, frozen=True):
    """A row of `provider_queues`. `until` is when the worker tries again."""

    worker: str
    name: str
    state: str
    reason: str
    until: int
    updated_at: int


async def put(tx: store.Transaction, statuses: Sequence[Status]) -> None:
    """Store the status of provider queues."""
    await tx.execute_many("provider_queues.put", [msgspec.structs.astuple(status) for status in statuses])


async def remove(tx: store.Transaction, worker: str, names: Sequence[str]) -> None:
    """Delete provider queues that are open again."""
    await tx.execute_many("provider_queues.remove", [(worker, name) for name in names])


async def remove_worker(tx: store.Transaction, worker: str) -> None:
    """Delete the provider queues of a worker that stops."""
    await tx.execute("provider_queues.remove_worker", worker)


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete the provider queues of workers that have not reported since."""
    return await tx.execute("provider_queues.sweep", before)


async def heard_since(tx: store.Transaction, since: int) -> list[Status]:
    """The provider queues that workers have reported since."""
    return [Status(*row) for row in await tx.fetch("provider_queues.heard_since", since)]
