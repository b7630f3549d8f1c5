"""Long work that an operator starts: it runs in the process that was asked, and every process can tell its progress.

At most a few run at once in a process, and one of a kind in the installation as far as it is known. A job is never
resumed: one whose process has stopped is `interrupted`, and can be started again.
"""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.concurrency import caches
from postroad.model.units import identifiers, times
from postroad.services import audit_log
from postroad.storage.operations import consistency, processes
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
    def __init__(self, log: logs.Logger) -> None:
        self._log = log
        self._flights = caches.SingleFlight(MAX_RUNNING, what="jobs")

    async def start(
        self, ctx: context.Context, kind: str, subject: str, work: Work, *, total: int | None = None
    ) -> processes.Job:
        """Start a job; Conflict while one of this kind runs."""
        now = ctx.clock()
        job = processes.Job(
            ctx.new_id(identifiers.JOB, now=now),
            kind,
            subject,
            processes.RUNNING,
            0,
            total,
            "null",
            ctx.actor.user_id or "",
            now,
            now,
        )
        async with ctx.store.transaction() as tx:
            for earlier in await processes.latest_jobs(tx, limit=LISTED):
                if earlier.kind == kind and state_of(earlier, now=now) == processes.RUNNING:
                    raise errors.Conflict(f"{kind}: job {earlier.id} is running; wait until it has finished")
            await processes.sweep_jobs(tx, before=identifiers.at(identifiers.JOB, now - KEPT))
            await processes.insert_job(tx, job)
        self._flights.start(job.id, lambda: self._run(ctx, job, work))
        return job

    async def _run(self, ctx: context.Context, job: processes.Job, work: Work) -> None:
        try:
            await _run(ctx, job, work)
        except Exception:  # noqa: BLE001 - logged; the job has failed
            self._log.exception("operator_job_failed", job_id=job.id, kind=job.kind)

    async def close(self) -> None:
        await self._flights.cancel()


async def _run(ctx: context.Context, job: processes.Job, work: Work) -> None:
    done = 0

    async def store_state(state: str, result: str, *, is_over: bool) -> None:
        now = ctx.clock()
        changed = msgspec.structs.replace(
            job, state=state, done=done, result=result, updated_at=now, finished_at=now if is_over else None
        )
        async with ctx.store.transaction() as tx:
            await processes.update_job(tx, changed)

    async def report(steps: int, result: Any) -> None:  # noqa: ANN401 - of any kind of job
        nonlocal done
        done = steps
        await store_state(processes.RUNNING, _json(result), is_over=False)

    try:
        result = await work(report)
    except Exception:
        await store_state(processes.FAILED, _json(FAILURE), is_over=True)
        raise
    await store_state(processes.FINISHED, _json(result), is_over=True)


async def listed(ctx: context.Context) -> list[processes.Job]:
    async with ctx.store.reading() as tx:
        return await processes.latest_jobs(tx, limit=LISTED)


async def find(ctx: context.Context, job_id: str) -> processes.Job:
    found = None
    if identifiers.is_identifier(job_id, identifiers.JOB):
        async with ctx.store.reading() as tx:
            found = await processes.job_by_id(tx, job_id)
    if found is None:
        raise errors.NotFound("the job does not exist")
    return found


def state_of(job: processes.Job, *, now: int) -> str:
    """The state of a job; one that has not reported for long was interrupted."""
    return INTERRUPTED if job.state == processes.RUNNING and now - job.updated_at > SILENT else job.state


def _json(result: Any) -> str:  # noqa: ANN401 - of any kind of job
    return msgspec.json.encode(result).decode()


CONSISTENCY_KIND: Final = "consistency_check"
CONSISTENCY_SUBJECT: Final = "the whole database"


class ConsistencyReport(msgspec.Struct, frozen=True):
    counts: consistency.Counts
    findings: list[consistency.Finding]


async def check_consistency(ctx: context.Context) -> ConsistencyReport:
    """Check one consistent snapshot of the database while the service runs."""
    async with ctx.store.scanning() as tx:
        return ConsistencyReport(await consistency.counts(tx), await consistency.findings(tx))


async def start_consistency_check(ctx: context.Context, jobs: Jobs) -> processes.Job:
    """Start the same as a job, which reports after each check. Each check reads a snapshot of its own."""

    async def work(report: Report) -> dict[str, Any]:
        async with ctx.store.scanning() as tx:
            counts = dataclasses.asdict(await consistency.counts(tx))
        findings: list[dict[str, str]] = []
        for done, check in enumerate(consistency.CHECKS, start=1):
            async with ctx.store.scanning() as tx:
                findings += [dataclasses.asdict(finding) for finding in await consistency.findings_of(tx, check)]
            await report(done, {"counts": counts, "findings": findings})
        return {"counts": counts, "findings": findings}

    job = await jobs.start(ctx, CONSISTENCY_KIND, CONSISTENCY_SUBJECT, work, total=len(consistency.CHECKS))
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, "installation.checked", CONSISTENCY_SUBJECT)
    return job
