"""What an account has sent, for tests of the bounce guard: counted as those count who record results."""

from collections.abc import Sequence

from postroad import context
from postroad.mail.results import guard_counts
from postroad.model.bounces import bounce_guard
from postroad.storage.mail import mail_counts
from postroad.storage.people import accounts


async def count(
    ctx: context.Context, account_id: str, *, recipients: int = 0, bounces: int = 0, complaints: int = 0
) -> Sequence[guard_counts.Notice]:
    """Count today, by the settings of the context."""
    counts = bounce_guard.Counts(recipients, bounces, complaints)
    async with ctx.store.transaction() as tx:
        return await guard_counts.count(
            tx,
            guard_counts.rules_of(ctx.settings.bounce_guard),
            {account_id: counts},
            locked=await accounts.lock(tx, [account_id]),
            now=ctx.clock(),
        )


async def counted(ctx: context.Context, account_id: str) -> bounce_guard.Counts:
    """Everything that is kept of an account."""
    async with ctx.store.reading() as tx:
        found = await mail_counts.guard_sums(tx, [account_id], after_day=-1)
    return found.get(account_id, bounce_guard.Counts())
