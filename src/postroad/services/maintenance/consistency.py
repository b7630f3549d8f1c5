"""The consistency check: proves that ledger, counts and statuses of the whole database agree, and lists violations."""

import dataclasses
from typing import Any, Final

import msgspec

from postroad.services import audit_log, context, operator_jobs
from postroad.storage import consistency
from postroad.storage import operator_jobs as stored_jobs

KIND: Final = "consistency_check"
SUBJECT: Final = "the whole database"


class Report(msgspec.Struct, frozen=True):
    """What was examined, and every violation."""

    counts: consistency.Counts
    findings: list[consistency.Finding]


async def run(ctx: context.Context) -> Report:
    """Check one consistent snapshot of the database while the service runs."""
    async with ctx.store.scanning() as tx:
        return Report(await consistency.counts(tx), await consistency.findings(tx))


async def start(ctx: context.Context, jobs: operator_jobs.Jobs) -> stored_jobs.Job:
    """Start the same as a job, which reports after each check. Each check reads a snapshot of its own."""

    async def work(report: operator_jobs.Report) -> dict[str, Any]:
        async with ctx.store.scanning() as tx:
            counts = dataclasses.asdict(await consistency.counts(tx))
        findings: list[dict[str, str]] = []
        for done, check in enumerate(consistency.CHECKS, start=1):
            async with ctx.store.scanning() as tx:
                findings += [dataclasses.asdict(one) for one in await consistency.findings_of(tx, check)]
            await report(done, {"counts": counts, "findings": findings})
        return {"counts": counts, "findings": findings}

    job = await jobs.start(ctx, KIND, SUBJECT, work, total=len(consistency.CHECKS))
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, "installation.checked", SUBJECT)
    return job
