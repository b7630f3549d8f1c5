"""The high-water mark: a send is refused while the queue is too long, and accepted again when it is not."""

import asyncio
import contextlib

import pytest

from postroad import errors
from postroad.services import accepting, context, high_water, submit
from postroad.storage import accounts, queue
from tests import mailing


async def looked(mark: high_water.HighWater) -> None:
    """Let it look, and wait until it has."""
    mark._look_at = float("-inf")
    with contextlib.suppress(errors.ServiceUnavailable):
        mark.check()
    assert mark._looking is not None
    await asyncio.wait([mark._looking])


async def test_a_send_is_refused_while_the_queue_is_over_its_mark(
    ctx: context.Context, account: accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mailing.allow(ctx, account.id)
    monkeypatch.setattr(ctx.high_water, "_most", 2)
    key = accepting.Key(submit.key_scope(mailing.caller_of(account.id)), "k", b"hash")
    first = await mailing.accept(ctx, account.id, to=("a@example.net", "b@example.net"), key=key)
    await looked(ctx.high_water)
    await mailing.accept(ctx, account.id)
    await looked(ctx.high_water)
    with pytest.raises(errors.ServiceUnavailable, match="the queue is full: more than 2 recipients") as refusal:
        await mailing.accept(ctx, account.id)
    assert refusal.value.retry_after == high_water.RETRY_SECONDS
    # What was accepted before is answered as it was then.
    assert await mailing.accept(ctx, account.id, to=("a@example.net", "b@example.net"), key=key) == first
    async with ctx.store.transaction() as tx:
        (lane,) = await queue.lanes(tx, after="", most=9)
        claimed = await queue.claim(tx, [queue.Wanted(lane, 1)], lease_until=0, worker="w")
        await queue.remove(tx, [one.key for one in claimed])
    await looked(ctx.high_water)
    await mailing.accept(ctx, account.id)


async def test_it_does_not_look_again_at_once(ctx: context.Context) -> None:
    await looked(ctx.high_water)
    before = ctx.high_water._looking
    ctx.high_water.check()
    assert ctx.high_water._looking is before


async def test_a_store_that_is_away_changes_nothing(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> bool:
        raise errors.ServiceUnavailable("away", retry_after=1)

    monkeypatch.setattr(queue, "is_longer_than", fail)
    await looked(ctx.high_water)
    ctx.high_water.check()
