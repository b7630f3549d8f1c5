"""Long work that an operator starts: it runs in the process that was asked, and every process can tell its progress.

At most a few run at once in a process, and one of a kind in the installation as far as it is known. A job is never
resumed: one whose process has stopped is `interrupted`, and can be started again.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.concurrency import single_flight
from postroad.model import cursors, identifiers, times
from postroad.services import context
from postroad.storage import operator_jobs
from postroad.telemetry import logs

MAX_RUNNING: Final = 4
LISTED: Final = 50
KEPT: Final = 30 * times.DAY
# A running job reports after every step, which takes seconds; a check of a very large database takes minutes.
SILENT: Final = 15 * 60 * times.SECOND
INTERRUPTED: Final = "interrupted"
FAILURE: Final = "the job failed; the log has the details"

# Reports how many steps are done, and the result so far.
Report = Callable[[int, Any], Awaitable[None]]
Work = Callable[[Report], Awaitable[Any]]


class Jobs:
    """The jobs that this process runs."""

    def __init__(self, log: logs.Logger) -> None:
        self._log = log
        self._flights = single_flight.SingleFlight(MAX_RUNNING, what="jobs")

    async def start(
        self, ctx: context.Context, kind: str, subject: str, work: Work, *, total: int | None = None
    ) -> operator_jobs.Job:
        """Start a job; Conflict while one of this kind runs."""
        now = ctx.clock()
        job = operator_jobs.Job(
            ctx.new_id(identifiers.JOB, now=now),
            kind,
            subject,
            operator_jobs.RUNNING,
            0,
            total,
            "null",
            ctx.actor.user_id or "",
            now,
            now,
        )
        async with ctx.store.transaction() as tx:
            for one in await operator_jobs.latest(tx, limit=LISTED):
                if one.kind == kind and state_of(one, now=now) == operator_jobs.RUNNING:
                    raise errors.Conflict(f"{kind}: job {one.id} is running; wait until it has finished")
            await operator_jobs.sweep(tx, before=cursors.at(identifiers.JOB, now - KEPT))
            await operator_jobs.insert(tx, job)
        self._flights.start(job.id, lambda: self._run(ctx, job, work))
        return job

    async def _run(self, ctx: context.Context, job: operator_jobs.Job, work: Work) -> None:
        try:
            await _run(ctx, job, work)
        except Exception:  # noqa: BLE001 - logged; the job has failed
            self._log.exception("operator_job_failed", job_id=job.id, kind=job.kind)

    async def close(self) -> None:
        """End the jobs of this process."""
        await self._flights.cancel()


async def _run(ctx: context.Context, job: operator_jobs.Job, work: Work) -> None:
    done = 0

    async def store_state(state: str, result: str, *, is_over: bool) -> None:
        now = ctx.clock()
        changed = msgspec.structs.replace(
            job, state=state, done=done, result=result, updated_at=now, finished_at=now if is_over else None
        )
        async with ctx.store.transaction() as tx:
            await operator_jobs.update(tx, changed)

    async def report(steps: int, result: Any) -> None:  # noqa: ANN401 - of any kind of job
        nonlocal done
        done = steps
        await store_state(operator_jobs.RUNNING, _json(result), is_over=False)

    try:
        result = await work(report)
    except Exception:
        await store_state(operator_jobs.FAILED, _json(FAILURE), is_over=True)
        raise
    await store_state(operator_jobs.FINISHED, _json(result), is_over=True)


async def listed(ctx: context.Context) -> list[operator_jobs.Job]:
    """The newest jobs."""
    async with ctx.store.reading() as tx:
        return await operator_jobs.latest(tx, limit=LISTED)


async def find(ctx: context.Context, job_id: str) -> operator_jobs.Job:
    """One job."""
    found = None
    if identifiers.is_identifier(job_id, identifiers.JOB):
        async with ctx.store.reading() as tx:
            found = await operator_jobs.by_id(tx, job_id)
    if found is None:
        raise errors.NotFound("the job does not exist")
    return found


def state_of(job: operator_jobs.Job, *, now: int) -> str:
    """The state of a job; one that has not reported for long was interrupted."""
    is_silent = job.state == operator_jobs.RUNNING and now - job.updated_at > SILENT
    return INTERRUPTED if is_silent else job.state


def _json(result: Any) -> str:  # noqa: ANN401 - of any kind of job
    return msgspec.json.encode(result).decode()
