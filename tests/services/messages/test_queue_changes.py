"""A sender cancels what no attempt has begun for, on both engines: the rest is left alone, and credits come back."""

import asyncio

from postroad import context
from postroad.model.bounces import disposition
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_changes
from postroad.services.operations import operator_jobs
from postroad.storage.mail import queue
from tests import accepted_mail, queue_steps, webhook_endpoints
from tests.contexts import Clock
from tests.services import claimed_mail

BOTH = ("ada@example.net", "bob@example.org")


async def cancel(ctx: context.Context, account_id: str, message_id: str) -> list[tuple[str, str]]:
    return [(one.email, one.status) for one in await queue_changes.cancel_message(ctx, account_id, message_id)]


async def balance(ctx: context.Context, account_id: str) -> tuple[int, int]:
    account = await accounts.find(ctx, account_id)
    return account.available, account.reserved


async def test_nothing_begun_everything_is_canceled_and_asking_again_says_the_same(
    ctx: context.Context, shop: str
) -> None:
    webhook = await webhook_endpoints.subscribe(ctx, shop)
    message_id = await accepted_mail.accept(ctx, shop, to=BOTH)
    all_of_it = [(email, "canceled") for email in BOTH]
    assert [await cancel(ctx, shop, message_id) for _ in range(2)] == [all_of_it, all_of_it]
    message, reached = await messages.find(ctx, shop, message_id)
    assert (message.status, message.billing_status) == ("failed", "released")
    assert {one.last_smtp_response for one in reached} == {"canceled by the sender"}
    assert await balance(ctx, shop) == (1000, 0)
    # The events of the contract tell the results of delivery.
    assert await webhook_endpoints.deliveries_for(ctx, webhook) == []
    assert await claimed_mail.claim_all(ctx, "w1") == []
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    assert b'postroad_recipients_total{provider="none",verdict="canceled"} 2.0' in ctx.metrics.render()
    # A program's requests are in the message log, not in the audit log.
    assert "message.canceled" not in [one.action for one in await audit_log.page(ctx, shop, before=None, limit=9)]


async def test_what_is_being_sent_or_was_attempted_goes_on(ctx: context.Context, shop: str, clock: Clock) -> None:
    message_id = await accepted_mail.accept(ctx, shop, to=(*BOTH, "eve@example.com"))
    (attempted,) = await queue_steps.claim(ctx, shop)
    await queue_steps.defer(ctx, attempted, seconds=1)
    await queue_steps.claim(ctx, shop, domain="example.org")
    expected = [("ada@example.net", "deferred"), ("bob@example.org", "queued"), ("eve@example.com", "canceled")]
    assert await cancel(ctx, shop, message_id) == expected
    assert await balance(ctx, shop) == (998, 2)
    # A lost lease may have been an attempt.
    clock.pass_seconds(120)
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=clock.now, limit=9)
    assert await cancel(ctx, shop, message_id) == expected
    for claim in await claimed_mail.claim_all(ctx, "w1"):
        outcome = claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED, recipient_count=3)
        await ctx.outcome_commits.submit([outcome])
    assert (await messages.find(ctx, shop, message_id))[0].status == "partial"
    assert await balance(ctx, shop) == (998, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_a_claim_that_was_returned_is_no_attempt(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop)
    (key,) = await queue_steps.claim(ctx, shop)
    async with ctx.store.transaction() as tx:
        await queue.release(tx, [key], now=ctx.clock(), worker=queue_steps.WORKER)
    assert await cancel(ctx, shop, message_id) == [("ada@example.net", "canceled")]


async def test_a_message_is_either_canceled_or_claimed(ctx: context.Context, shop: str) -> None:
    """Both at once, several times: whoever comes first, nobody is sent what was canceled."""
    for _ in range(5):
        message_id = await accepted_mail.accept(ctx, shop)
        claims, after = await asyncio.gather(
            claimed_mail.claim_all(ctx, "w1"), queue_changes.cancel_message(ctx, shop, message_id)
        )
        canceled = {one.id for one in after if one.status == "canceled"}
        assert len(canceled) + len(claims) == 1
        for claim in claims:
            outcome = claimed_mail.outcome(ctx, claim, disposition.Verdict.BOUNCED)
            await ctx.outcome_commits.submit([outcome])
    assert await balance(ctx, shop) == (1000, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_two_who_cancel_at_once_return_each_credit_once(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop, to=BOTH)
    first, second = await asyncio.gather(*(queue_changes.cancel_message(ctx, shop, message_id) for _ in range(2)))
    assert first == second
    assert await balance(ctx, shop) == (1000, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_a_result_that_comes_after_all_changes_nothing(ctx: context.Context, shop: str) -> None:
    message_id = await accepted_mail.accept(ctx, shop)
    (claim,) = await claimed_mail.claim_all(ctx, "w1")
    async with ctx.store.transaction() as tx:
        await queue.release(tx, [claim.key], now=ctx.clock(), worker="w1")
    await cancel(ctx, shop, message_id)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED)])
    assert [one.status for one in (await messages.find(ctx, shop, message_id))[1]] == ["canceled"]
    assert await balance(ctx, shop) == (1000, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []
