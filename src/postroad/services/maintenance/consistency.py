"""The audit: proves over the whole store that the books are right, and says what is off."""

from dataclasses import dataclass

from postroad.services import context
from postroad.storage import consistency


@dataclass(frozen=True, slots=True)
class Report:
    """How much there is, and everything that is off."""

    counts: consistency.Counts
    findings: list[consistency.Finding]


async def run(ctx: context.Context) -> Report:
    """Audit one consistent view of the store, while the service goes on."""
    async with ctx.store.scanning() as tx:
        return Report(await consistency.counts(tx), await consistency.findings(tx))
