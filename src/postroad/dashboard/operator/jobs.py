"""`/operator/jobs/{id}`: work that an operator has started, and its result; the consistency check."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from postroad.dashboard.framework import requests
from postroad.dashboard.operator import console
from postroad.services.operations import operator_jobs
from postroad.storage.operations import processes
from postroad.web import routing

PATH: Final = "/operator/jobs"
# What each kind is called.
TITLES: Final = {
    "queue.retry": "Retry",
    "queue.cancel": "Cancel",
    "queue.expire": "Expire",
    operator_jobs.CONSISTENCY_KIND: "Consistency check",
}


class JobRow(msgspec.Struct, frozen=True):
    """A job as it is now. `result` is an object of its kind, or a sentence if it failed, or None."""

    job: processes.Job
    title: str
    state: str
    result: Any

    @property
    def is_check(self) -> bool:
        return self.job.kind == operator_jobs.CONSISTENCY_KIND

    @property
    def progress(self) -> str:
        if self.is_check:
            return f"{self.job.done} of {self.job.total} checks"
        changed = self.result["changed"] if isinstance(self.result, dict) else 0
        return f"{changed:,} {'recipient' if changed == 1 else 'recipients'} changed"

    @property
    def violations(self) -> int:
        return len(self.result["findings"]) if self.is_check and isinstance(self.result, dict) else 0


def job_rows(some: Sequence[processes.Job], *, now: int) -> list[JobRow]:
    return [
        JobRow(
            job,
            TITLES.get(job.kind, job.kind),
            operator_jobs.state_of(job, now=now),
            msgspec.json.decode(job.result),
        )
        for job in some
    ]


async def show(request: requests.PageRequest) -> routing.Response:
    job = await operator_jobs.find(request.ctx, request.path["id"])
    (row,) = job_rows([job], now=request.ctx.clock())
    return request.page("operator/job.html", row=row)


ROUTES: Final = (console.get(f"{PATH}/{{id}}", show),)


CONSISTENCY_PATH: Final = "/operator/consistency"


async def show_consistency(request: requests.PageRequest) -> routing.Response:
    now = request.ctx.clock()
    rows = job_rows(
        [job for job in await operator_jobs.listed(request.ctx) if job.kind == operator_jobs.CONSISTENCY_KIND], now=now
    )
    is_running = any(row.state == processes.RUNNING for row in rows)
    return request.page("operator/consistency.html", rows=rows, is_running=is_running)


async def start_consistency(request: requests.PageRequest) -> routing.Response:
    job = await operator_jobs.start_consistency_check(request.ctx, request.site.operator_state.jobs)
    return request.redirect(f"{PATH}/{job.id}", notice="Started. This page shows the progress.")


CONSISTENCY_ROUTES: Final = (
    console.get(CONSISTENCY_PATH, show_consistency),
    console.post(CONSISTENCY_PATH, start_consistency),
)
