"""Mail on its way to its end: recipients of an accepted message, claimed, and the outcomes that end them."""

from postroad import context
from postroad.mail.results import outcomes
from postroad.model.bounces import disposition
from postroad.storage.mail import attempts, queue
from tests import accepted_mail
from tests.contexts import SECOND

WORKER = "w1"


async def accepted(
    ctx: context.Context, account_id: str, *to: str, **fields: object
) -> tuple[str, list[queue.Claimed]]:
    """A message of an account that may send, and its recipients, claimed."""
    await accepted_mail.allow_sending(ctx, account_id, amount=10)
    return await another(ctx, account_id, *to, **fields)


async def another(ctx: context.Context, account_id: str, *to: str, **fields: object) -> tuple[str, list[queue.Claimed]]:
    """The same for an account that has sent before."""
    message_id = await accepted_mail.accept(ctx, account_id, to=to, **fields)  # type: ignore[arg-type]
    return message_id, await claim_all(ctx, WORKER)


async def claim_all(ctx: context.Context, worker: str) -> list[queue.Claimed]:
    """Everything that is ready."""
    async with ctx.store.transaction() as tx:
        wanted = [queue.ClaimRequest(queue_key, 100) for queue_key in await queue.queue_keys(tx, after="", limit=100)]
        return await queue.claim(tx, wanted, lease_until=ctx.clock() + 60 * SECOND, worker=worker)


def outcome(
    ctx: context.Context,
    claimed: queue.Claimed,
    verdict: disposition.Verdict,
    *,
    recipient_count: int = 1,
    worker: str = WORKER,
    code: int | None = 250,
    response: str = "Ok",
    tried: bool = True,
    suppress: bool = False,
    fault: disposition.Fault | None = None,
    reason: str = "because",
) -> outcomes.Outcome:
    """What became of a recipient just now."""
    now = ctx.clock()
    attempt = attempts.Attempt(
        *claimed.key,
        now,
        5,
        "provider_queue",
        "mx.example.net",
        "192.0.2.1",
        "TLSv1.3",
        "content",
        verdict,
        fault,
        reason,
        code,
        "2.0.0",
        response,
        0,
    )
    return outcomes.Outcome(
        key=claimed.key,
        email_key=claimed.email_key,
        recipient_count=recipient_count,
        verdict=verdict,
        status=outcomes.STATUS[verdict],
        smtp_code=code,
        response=response,
        at=now,
        ledger_id=ctx.new_id("led_", now=now),
        worker=worker,
        next_attempt_at=now + SECOND if verdict is disposition.Verdict.RETRY else None,
        suppress=suppress,
        attempt=attempt if tried else None,
    )
