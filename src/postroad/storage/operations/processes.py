"""What runs: the processes of the service, provider queues that are slowed, and long work of operators."""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.storage.engine import queries, store


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
    name, host, number, roles, *rest = msgspec.structs.astuple(process)
    await tx.execute("processes.put", name, host, number, " ".join(roles), *rest)


@queries.change("processes.remove")
async def remove(tx: store.Transaction, name: str) -> None: ...
@queries.changes("processes.sweep")
async def sweep(tx: store.Transaction, *, before: int) -> int: ...


async def seen_since(tx: store.Transaction, since: int) -> Sequence[Process]:
    """The processes that have reported since, the oldest first."""
    rows = await tx.fetch("processes.seen_since", since)
    return [Process(name, host, number, tuple(roles.split()), *rest) for name, host, number, roles, *rest in rows]


# The schema version from which on the version that started last is recorded.
LAST_VERSION_SCHEMA: Final = 2


# None before the first start.
@queries.row("processes.last_version", str)
async def last_version(tx: store.Transaction) -> str | None: ...
@queries.change("processes.record_version")
async def record_version(tx: store.Transaction, version: str) -> None: ...


# What a worker reports, the mildest first.
QUEUE_SEVERITY: Final = {"slowed": 0, "paused": 1, "blocked": 2}


class QueueStatus(msgspec.Struct, frozen=True):
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
        return self.name.partition(" ")[0]

    @property
    def source(self) -> str:
        """The name of the source address; empty when it is about all of them."""
        return self.name.partition(" ")[2]


async def put_queues(tx: store.Transaction, statuses: Sequence[QueueStatus]) -> None:
    await tx.execute_many("provider_queues.put", [msgspec.structs.astuple(status) for status in statuses])


async def remove_queues(tx: store.Transaction, worker: str, names: Sequence[str]) -> None:
    """Delete provider queues that are open again."""
    await tx.execute_many("provider_queues.remove", [(worker, name) for name in names])


@queries.change("provider_queues.remove_worker")
async def remove_queues_of(tx: store.Transaction, worker: str) -> None: ...
@queries.changes("provider_queues.sweep")
async def sweep_queues(tx: store.Transaction, *, before: int) -> int: ...
@queries.rows("provider_queues.heard_since", QueueStatus)
async def queues_since(tx: store.Transaction, since: int) -> list[QueueStatus]: ...


RUNNING: Final = "running"
FINISHED: Final = "finished"
FAILED: Final = "failed"


class Job(msgspec.Struct, frozen=True):
    """A row of `operator_jobs`. `done` of `total` steps, if their number is known; `result` is JSON."""

    id: str
    kind: str
    subject: str
    state: str
    done: int
    total: int | None
    result: str
    created_by: str
    created_at: int
    updated_at: int
    finished_at: int | None = None


async def insert_job(tx: store.Transaction, job: Job) -> None:
    await tx.execute("operator_jobs.insert", *msgspec.structs.astuple(job))


async def update_job(tx: store.Transaction, job: Job) -> None:
    """Store its progress, or its end."""
    await tx.execute("operator_jobs.update", job.id, job.state, job.done, job.result, job.updated_at, job.finished_at)


@queries.row("operator_jobs.by_id", Job)
async def job_by_id(tx: store.Transaction, job_id: str) -> Job | None: ...
@queries.rows("operator_jobs.latest", Job)
async def latest_jobs(tx: store.Transaction, *, limit: int) -> list[Job]: ...
@queries.changes("operator_jobs.sweep")
async def sweep_jobs(tx: store.Transaction, *, before: str) -> int: ...


async def database_time(tx: store.Transaction) -> int:
    """Microseconds since 1970. On SQLite it is the clock of this host."""
    row = await tx.fetch_one("clock.now")
    assert row is not None  # noqa: S101 - it has one row
    return int(row[0])
