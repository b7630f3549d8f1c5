"""The processes that run the service, as they report themselves: which roles run, and on which hosts."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class Process(msgspec.Struct, frozen=True):
    """A row of `processes`. The name is that of log lines and leases: the host's short name and the process id."""

    name: str
    host: str
    process_id: int
    roles: tuple[str, ...]
    version: str
    started_at: int
    seen_at: int
    # What it does in a second, by name, as JSON.
    rates: str = ""


async def put(tx: store.Transaction, process: Process) -> None:
    """Store that a process runs."""
    name, host, number, roles, *rest = msgspec.structs.astuple(process)
    await tx.execute("processes.put", name, host, number, " ".join(roles), *rest)


async def remove(tx: store.Transaction, name: str) -> None:
    """Delete a process that stops."""
    await tx.execute("processes.remove", name)


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete the processes that have not reported since."""
    return await tx.execute("processes.sweep", before)


async def seen_since(tx: store.Transaction, since: int) -> Sequence[Process]:
    """The processes that have reported since, the oldest first."""
    rows = await tx.fetch("processes.seen_since", since)
    return [Process(name, host, number, tuple(roles.split()), *rest) for name, host, number, roles, *rest in rows]
