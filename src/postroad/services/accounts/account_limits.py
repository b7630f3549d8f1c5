"""The limits of an account that an operator sets: sends per second, and recipients per day.

None means the setting `limits.request_rate`, and no daily limit. A change applies to the next message, on every host.
"""

import dataclasses
from typing import Final

from postroad import errors
from postroad.services import audit_log, context
from postroad.services.accounts import registry
from postroad.storage import accounts

# Far more than any installation accepts.
MAX_RATE: Final = 1_000_000
MAX_RECIPIENTS: Final = 1_000_000_000


async def change(
    ctx: context.Context, account_id: str, *, request_rate: int | None, recipients_per_day: int | None
) -> accounts.Account:
    """Set both limits of an account."""
    _check("request_rate", request_rate, limit=MAX_RATE)
    _check("recipients_per_day", recipients_per_day, limit=MAX_RECIPIENTS)
    async with ctx.store.transaction() as tx:
        before = await registry.lock(tx, account_id)
        after = dataclasses.replace(before, request_rate=request_rate, recipients_per_day=recipients_per_day)
        if after != before:
            await accounts.set_limits(tx, account_id, request_rate=request_rate, recipients_per_day=recipients_per_day)
            await audit_log.write(ctx, tx, account_id, "account.limits_changed", before.name, text(after))
    ctx.access_cache.invalidate()
    return after


def text(account: accounts.Account) -> str:
    """The limits of an account in words."""
    rate, daily = account.request_rate, account.recipients_per_day
    rate_text = "the default rate" if rate is None else f"{rate:,} sends per second"
    return f"{rate_text} and {'no daily limit' if daily is None else f'{daily:,} recipients per day'}"


def _check(member: str, amount: int | None, *, limit: int) -> None:
    if amount is not None and not 1 <= amount <= limit:
        raise errors.InvalidRequest(f"{member}: must be from 1 to {limit}")
