"""The status of provider queues that are slowed, paused or blocked, as workers report it: why ready mail waits."""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.storage import store

# What a worker reports, the mildest first.
SEVERITY: Final = {"slowed": 0, "paused": 1, "blocked": 2}


class Status(msgspec.Struct, frozen=True):
    """A row of `provider_queues`. `until` is when the worker tries again.

    `name` is that of a provider queue, and may be followed by that of a source address: then it is about that one only.
    """

    worker: str
    name: str
    state: str
    reason: str
    until: int
    updated_at: int

    @property
    def provider_queue(self) -> str:
        """The name of the provider queue."""
        return self.name.partition(" ")[0]

    @property
    def source(self) -> str:
        """The name of the source address; empty when it is about all of them."""
        return self.name.partition(" ")[2]


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
