"""The monitor of sender domains: due domains are checked again, a bounded number at a time.

A domain is claimed by moving its next check ahead, so hosts share the work and one that dies loses none. A round may be
cancelled at any moment. Only improvements take effect at once: see `model/domain_verification.py`.
"""

import asyncio
from typing import Final

from postroad import errors
from postroad.model import domain_verification, times
from postroad.services import context
from postroad.services.dkim import key_rotation
from postroad.services.domains import checks as domain_checks
from postroad.storage import domains
from postroad.telemetry import logs

# Each has five lookups or a few more, and waits for name servers, not for this host. Callers have lookups of their own:
# see `dns.py`.
BATCH_SIZE: Final = 10
# For one round; the rest is due in the next one. A batch that has begun takes seconds.
ROUND_SECONDS: Final = 30.0
# Far longer than a check takes.
CLAIM_DURATION: Final = 10 * 60 * times.SECOND
EVENTS: Final = {
    domain_verification.Change.VERIFIED: "domain_verified",
    domain_verification.Change.FAILING: "domain_failing",
    domain_verification.Change.RECOVERED: "domain_recovered",
    domain_verification.Change.LOST: "domain_unverified",
}


async def check_due(ctx: context.Context, *, log: logs.Logger) -> int:
    """Check due domains until none is left or the round's time is over; returns how many were checked."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + ROUND_SECONDS
    total = 0
    while loop.time() < ends_at:
        now = ctx.clock()
        async with ctx.store.transaction() as tx:
            claimed = await domains.claim_due(tx, now=now, until=now + CLAIM_DURATION, limit=BATCH_SIZE)
        await asyncio.gather(*(_check(ctx, domain, log) for domain in claimed))
        total += len(claimed)
        if len(claimed) < BATCH_SIZE:
            break
    return total


async def _check(ctx: context.Context, domain: domains.Domain, log: logs.Logger) -> None:
    """Check one domain. A failure does not affect the others, and the domain is due again when the claim expires."""
    try:
        checked = await domain_checks.check(ctx, domain)
        is_rotated = await key_rotation.rotate_by_age(ctx, domain)
    except errors.NotFound:
        return  # removed meanwhile
    except errors.PostroadError as trouble:
        log.warning("domain_check_failed", domain=domain.name, account_id=domain.account_id, error=trouble.message)
        return
    except Exception:
        log.exception("domain_check_failed", domain=domain.name, account_id=domain.account_id)
        return
    if checked.change in EVENTS:
        log.info(EVENTS[checked.change], domain=domain.name, account_id=domain.account_id, domain_id=domain.id)
    if is_rotated:
        log.info("domain_key_created", domain=domain.name, account_id=domain.account_id, domain_id=domain.id)
