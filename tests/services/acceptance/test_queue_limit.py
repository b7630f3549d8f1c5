"""The high-water mark: a send is refused while the queue is too long, and accepted again when it is not."""

import asyncio
import contextlib

import pytest

from postroad import errors
from postroad.services import context
from postroad.services.acceptance import queue_limit
from postroad.storage import accounts, queue
from tests import accepted_mail


async def looked(mark: queue_limit.QueueLimit) -> None:
    """Let it look, and wait until it has."""
    mark._refresh_at = float("-inf")
    with contextlib.suppress(errors.ServiceUnavailable):
        mark.check()
    assert mark._refreshing is not None
    await asyncio.wait([mark._refreshing])


async def test_a_send_is_refused_while_the_queue_is_over_its_mark(
    ctx: context.Context, account: accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    monkeypatch.setattr(ctx.queue_limit, "max_recipients", 2)
    first = await accepted_mail.accept(ctx, account.id, to=("a@example.net", "b@example.net"), key="k")
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, account.id)
    await looked(ctx.queue_limit)
    with pytest.raises(errors.ServiceUnavailable, match="the queue is full: more than 2 recipients") as refusal:
        await accepted_mail.accept(ctx, account.id)
    assert refusal.value.retry_after == 30
    # What was accepted before is answered as it was then.
    assert await accepted_mail.accept(ctx, account.id, to=("a@example.net", "b@example.net"), key="k") == first
    async with ctx.store.transaction() as tx:
        (queue_key,) = await queue.queue_keys(tx, after="", limit=9)
        claimed = await queue.claim(tx, [queue.ClaimRequest(queue_key, 1)], lease_until=0, worker="w")
        await queue.remove(tx, [one.key for one in claimed])
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, account.id)


async def test_it_does_not_look_again_at_once(ctx: context.Context) -> None:
    await looked(ctx.queue_limit)
    before = ctx.queue_limit._refreshing
    ctx.queue_limit.check()
    assert ctx.queue_limit._refreshing is before


async def test_a_store_that_is_away_changes_nothing(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> bool:
        raise errors.ServiceUnavailable("away", retry_after=1)

    monkeypatch.setattr(queue, "is_longer_than", fail)
    await looked(ctx.queue_limit)
    ctx.queue_limit.check()
