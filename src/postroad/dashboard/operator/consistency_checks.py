"""`/operator/consistency`: proves over the whole database that ledger, counts and statuses agree."""

from typing import Final

from postroad.dashboard import requests
from postroad.dashboard.operator import console, jobs
from postroad.services import operator_jobs
from postroad.services.maintenance import consistency
from postroad.storage import operator_jobs as stored_jobs
from postroad.web import routing

PATH: Final = "/operator/consistency"


async def show(request: requests.PageRequest) -> routing.Response:
    """The checks so far, and the button that starts one."""
    now = request.ctx.clock()
    rows = jobs.rows([one for one in await operator_jobs.listed(request.ctx) if one.kind == consistency.KIND], now=now)
    is_running = any(row.state == stored_jobs.RUNNING for row in rows)
    return request.page("operator/consistency.html", rows=rows, is_running=is_running)


async def start(request: requests.PageRequest) -> routing.Response:
    """Start one."""
    job = await consistency.start(request.ctx, request.site.operator_state.jobs)
    return request.redirect(f"{jobs.PATH}/{job.id}", notice="Started. This page shows the progress.")


ROUTES: Final = (console.get(PATH, show), console.post(PATH, start))
