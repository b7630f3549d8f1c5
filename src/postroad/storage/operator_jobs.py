"""Long work that operators have started, with its progress, so that every process can tell of it."""

from typing import Final

import msgspec

from postroad.storage import store

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


async def insert(tx: store.Transaction, job: Job) -> None:
    """Store a job that begins."""
    await tx.execute("operator_jobs.insert", *msgspec.structs.astuple(job))


async def update(tx: store.Transaction, job: Job) -> None:
    """Store its progress, or its end."""
    await tx.execute("operator_jobs.update", job.id, job.state, job.done, job.result, job.updated_at, job.finished_at)


async def by_id(tx: store.Transaction, job_id: str) -> Job | None:
    """One job."""
    row = await tx.fetch_one("operator_jobs.by_id", job_id)
    return Job(*row) if row else None


async def latest(tx: store.Transaction, *, limit: int) -> list[Job]:
    """The newest jobs."""
    return [Job(*row) for row in await tx.fetch("operator_jobs.latest", limit)]


async def sweep(tx: store.Transaction, *, before: str) -> int:
    """Delete jobs with ids before this one."""
    return await tx.execute("operator_jobs.sweep", before)
