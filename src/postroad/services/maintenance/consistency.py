"""The consistency check: proves that ledger, counts and statuses of the whole database agree, and lists violations."""

from dataclasses import dataclass

from postroad.services import context
from postroad.storage import consistency


@dataclass(frozen=True, slots=True)
class Report:
    """What was examined, and every violation."""

    counts: consistency.Counts
    findings: list[consistency.Finding]


async def run(ctx: context.Context) -> Report:
    """Check one consistent snapshot of the database while the service runs."""
    async with ctx.store.scanning() as tx:
        return Report(await consistency.counts(tx), await consistency.findings(tx))
