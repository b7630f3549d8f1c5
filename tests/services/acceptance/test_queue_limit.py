"""The high-water mark: a send is refused while the queue is too long, and accepted again when it is not."""

import asyncio
import contextlib

import pytest

from postroad import errors
from postroad.model import times
from postroad.services import context
from postroad.services.acceptance import queue_limit
from postroad.services.accounts import registry
from postroad.storage import accounts, queue
from tests import accepted_mail
from tests.contexts import Clock


async def looked(mark: queue_limit.QueueLimit) -> None:
    """Let it look, and wait until it has."""
    if mark._refreshing is not None:  # what it reads may be from before
        await asyncio.wait([mark._refreshing])
    mark._refresh_at = float("-inf")
    with contextlib.suppress(errors.ServiceUnavailable):
        mark.check("acc_1")
    assert mark._refreshing is not None
    await asyncio.wait([mark._refreshing])


def addresses(count: int) -> tuple[str, ...]:
    return tuple(f"{place}@example.net" for place in range(count))


async def test_a_send_is_refused_while_the_queue_is_over_its_mark(
    ctx: context.Context, account: accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    monkeypatch.setattr(ctx.queue_limit, "max_recipients", 2)
    first = await accepted_mail.accept(ctx, account.id, to=addresses(3), key="k")
    await looked(ctx.queue_limit)
    for account_id in (account.id, "acc_other"):
        with pytest.raises(errors.ServiceUnavailable, match="the queue is full: more than 2 recipients") as refusal:
            ctx.queue_limit.check(account_id)
        assert refusal.value.retry_after == 30
    with pytest.raises(errors.ServiceUnavailable, match="the queue is full"):
        await accepted_mail.accept(ctx, account.id)
    # What was accepted before is answered as it was then.
    assert await accepted_mail.accept(ctx, account.id, to=addresses(3), key="k") == first
    async with ctx.store.transaction() as tx:
        (queue_key,) = await queue.queue_keys(tx, after="", limit=9)
        claimed = await queue.claim(tx, [queue.ClaimRequest(queue_key, 1)], lease_until=0, worker="w")
        await queue.remove(tx, [one.key for one in claimed])
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, account.id)


async def test_an_account_that_schedules_without_end_leaves_room_for_others(
    ctx: context.Context, account: accounts.Account, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await registry.create(ctx, "Other")
    for account_id, domain in ((account.id, "example.com"), (other.id, "example.org")):
        await accepted_mail.allow_sending(ctx, account_id, domain=domain)
    monkeypatch.setattr(ctx.queue_limit, "max_recipients", 10)
    month = times.to_wire(clock.now + 30 * times.DAY)
    # Test mail costs no credits, so an account could schedule any number.
    await accepted_mail.accept(ctx, account.id, to=addresses(8), send_at=month, is_test=True)
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, account.id, send_at=month, is_test=True)
    await looked(ctx.queue_limit)
    for is_test in (True, False):
        with pytest.raises(errors.ServiceUnavailable, match="this account's share of the queue is full: 9 of its"):
            await accepted_mail.accept(ctx, account.id, is_test=is_test)
    await accepted_mail.accept(ctx, other.id, sender="shop@example.org")


async def test_it_does_not_look_again_at_once(ctx: context.Context) -> None:
    await looked(ctx.queue_limit)
    before = ctx.queue_limit._refreshing
    ctx.queue_limit.check("acc_1")
    assert ctx.queue_limit._refreshing is before


async def test_a_store_that_is_away_changes_nothing(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> bool:
        raise errors.ServiceUnavailable("away", retry_after=1)

    monkeypatch.setattr(queue, "is_longer_than", fail)
    await looked(ctx.queue_limit)
    ctx.queue_limit.check("acc_1")
