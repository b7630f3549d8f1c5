"""`/operator`: the checks of `postroad doctor`, processes, database, certificates and the latest jobs."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad.dashboard.framework import requests, verdicts
from postroad.dashboard.operator import alerts, console, jobs, providers
from postroad.model.units import times
from postroad.services.accounts import directory
from postroad.services.operations import destinations, operator_jobs, operator_queue, operator_state
from postroad.services.operations.checks import findings, table
from postroad.services.queue import holds, sources
from postroad.storage.operations import processes
from postroad.web import routing

# A certificate that is renewed by ACME has more than this left.
FEW_DAYS: Final = 14
JOBS: Final = 5


class ProcessRow(msgspec.Struct, frozen=True):
    """A process, and what it does in a second."""

    process: processes.Process
    is_alive: bool
    rates: Mapping[str, float]


class CheckRow(msgspec.Struct, frozen=True):
    name: str
    finding: findings.Finding

    @property
    def is_problem(self) -> bool:
        return self.finding.state in (findings.State.WARNING, findings.State.ERROR)


async def show(request: requests.PageRequest) -> routing.Response:
    """The state of the installation. Checks take seconds, so the page shows the last run and begins another one."""
    checks = request.site.operator_state.checks
    run = checks.latest(request.ctx, renew=not request.is_refresh)
    rows = [] if run is None else _worst_first(run.results)
    found = await operator_state.read_health(request.ctx)
    counted = await request.site.operator_state.queue.read(request.ctx) or operator_queue.NOTHING
    held = await holds.in_force(request.ctx)
    suspended = await directory.page(request.ctx, search="", state="suspended", after="", limit=alerts.MAX_NAMED + 1)
    rate = verdicts.rate_of(counted.recent, now=found.now, zone=request.zone)
    facts = alerts.AlertFacts(
        now=found.now,
        checks=() if run is None else run.results,
        silent=[process for process in found.processes if not found.is_alive(process)],
        holds=held,
        names=await directory.names(request.ctx, {hold.account_id for hold in held if hold.account_id}),
        suspended=[row.account.name for row in suspended],
        provider_queues=await destinations.listed(request.ctx),
        deferring=tuple(verdicts.deferring(counted.recent, now=found.now)),
        addresses=await sources.listed(request.ctx),
        totals=counted.totals,
    )
    return request.page(
        "operator/health.html",
        verdict=verdicts.compose(
            [*alerts.alerts(facts), *verdicts.fallen(rate, providers.PATH)],
            rate,
            is_complete=run is not None and counted.at is not None,
        ),
        run=run,
        state=None if run is None else table.worst(result.state for result in run.results),
        problems=[row for row in rows if row.is_problem],
        others=[row for row in rows if not row.is_problem],
        is_checking=checks.is_running,
        processes=[
            ProcessRow(process, found.is_alive(process), msgspec.json.decode(process.rates or "{}"))
            for process in found.processes
        ],
        store=found.store,
        certificates=[
            (certificate, None if certificate.expires_at is None else (certificate.expires_at - found.now) // times.DAY)
            for certificate in found.certificates
        ],
        few_days=FEW_DAYS,
        jobs=jobs.job_rows((await operator_jobs.listed(request.ctx))[:JOBS], now=found.now),
    )


def _worst_first(results: Sequence[table.Result]) -> list[CheckRow]:
    order = list(reversed(findings.State))
    rows = [CheckRow(result.name, each) for result in results for each in result.findings]
    return sorted(rows, key=lambda row: order.index(row.finding.state))


ROUTES: Final = (console.get("/operator", show),)
