"""The queue as an engine handles it, step by step: claim recipients, and record that a destination put them off."""

from postroad import context
from postroad.mail.results import outcomes
from postroad.model.bounces import disposition
from postroad.model.units import identifiers
from postroad.storage.mail import attempts, queue
from tests.contexts import SECOND

WORKER = "mail-1:42:a1b2c3d4"
RESPONSE = "4.7.1 greylisted"


async def claim(
    ctx: context.Context, account_id: str, *, most: int = 1, domain: str = "example.net"
) -> list[queue.Key]:
    """Claim exactly so many, though recipients of one message come together."""
    async with ctx.store.transaction() as tx:
        wanted = [queue.ClaimRequest(queue.queue_key_of(domain, account_id), most)]
        claimed = await queue.claim(tx, wanted, lease_until=ctx.clock() + 60 * SECOND, worker=WORKER)
        await queue.release(tx, [one.key for one in claimed[most:]], now=ctx.clock(), worker=WORKER)
    return [one.key for one in claimed[:most]]


async def defer(ctx: context.Context, key: queue.Key, *, seconds: int = 240, provider_queue: str = "google") -> None:
    """Record an attempt that the destination deferred."""
    now = ctx.clock()
    attempt = attempts.Attempt(
        *key,
        started_at=now,
        duration=250_000,
        provider_queue=provider_queue,
        host="mx.example.net",
        address="192.0.2.1",
        tls="TLSv1.3",
        stage="rcpt",
        verdict=disposition.Verdict.RETRY,
        fault=disposition.Fault.RATE,
        reason="greylisted",
        smtp_code=451,
        enhanced_code="4.7.1",
        response=RESPONSE,
        in_doubt=0,
    )
    outcome = outcomes.Outcome(
        key=key,
        email_key="ada@example.net",
        recipient_count=1,
        verdict=disposition.Verdict.RETRY,
        status=outcomes.STATUS[disposition.Verdict.RETRY],
        smtp_code=451,
        response=RESPONSE,
        at=now,
        ledger_id=ctx.new_id(identifiers.LEDGER, now=now),
        worker=WORKER,
        next_attempt_at=now + seconds * SECOND,
        attempt=attempt,
    )
    await ctx.outcome_commits.submit([outcome])
