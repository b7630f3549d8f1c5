"""A sweep forgets what has expired and nothing else, in transactions of a bounded size."""

import pytest

from postroad.model import limits
from postroad.services import accepting, audit, context, submit, sweeping
from postroad.storage import accounts as stored_accounts
from postroad.storage import idempotency, pools, users
from tests import contexts, mailing

KEY_MICROSECONDS = limits.IDEMPOTENCY_KEY_SECONDS * contexts.SECOND


async def insert_keys(ctx: context.Context, count: int, *, expires_at: int) -> None:
    keys = [
        idempotency.NewKey("cred_1", f"{expires_at}-{number}", "acc_1", b"hash", "em_1", expires_at)
        for number in range(count)
    ]
    async with ctx.store.transaction() as tx:
        await idempotency.insert(tx, keys)


async def revoke_tokens(ctx: context.Context, count: int, *, expires_at: int) -> None:
    async with ctx.store.transaction() as tx:
        for number in range(count):
            await users.revoke_token(tx, f"tok_{expires_at}_{number}", account_id="acc_1", expires_at=expires_at)


async def test_expired_keys_and_tokens_go_and_the_others_stay(ctx: context.Context, clock: contexts.Clock) -> None:
    await insert_keys(ctx, 3, expires_at=clock.now)
    await insert_keys(ctx, 2, expires_at=clock.now + 1)
    await revoke_tokens(ctx, 4, expires_at=clock.now)
    await revoke_tokens(ctx, 1, expires_at=clock.now + 1)
    assert await sweeping.sweep(ctx) == sweeping.Swept(idempotency_keys=3, tokens=4, pools=0)
    assert await sweeping.sweep(ctx) == sweeping.Swept(idempotency_keys=0, tokens=0, pools=0)
    clock.pass_seconds(1)
    assert await sweeping.sweep(ctx) == sweeping.Swept(idempotency_keys=2, tokens=1, pools=0)


async def test_what_a_dead_worker_said_of_its_pools_goes(ctx: context.Context, clock: contexts.Clock) -> None:
    async with ctx.store.transaction() as tx:
        await pools.put(tx, [pools.Pool("w1", "google", "paused", "slow down", clock.now, clock.now)])
    clock.pass_seconds(600)
    assert (await sweeping.sweep(ctx)).pools == 0
    clock.pass_seconds(1)
    assert (await sweeping.sweep(ctx)).pools == 1
    async with ctx.store.reading() as tx:
        assert await pools.heard_since(tx, 0) == []


@pytest.mark.parametrize("count", [idempotency.SWEEP_ROWS, 2 * idempotency.SWEEP_ROWS + 1])
async def test_many_rows_go_in_several_batches(ctx: context.Context, clock: contexts.Clock, count: int) -> None:
    await insert_keys(ctx, count, expires_at=clock.now)
    async with ctx.store.transaction() as tx:
        assert await idempotency.sweep(tx, now=clock.now) == idempotency.SWEEP_ROWS
    assert (await sweeping.sweep(ctx)).idempotency_keys == count - idempotency.SWEEP_ROWS


async def test_one_sweep_ends_even_when_there_is_always_more(
    ctx: context.Context, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "MOST_BATCHES", 2)
    await insert_keys(ctx, 3 * idempotency.SWEEP_ROWS, expires_at=clock.now)
    assert (await sweeping.sweep(ctx)).idempotency_keys == 2 * idempotency.SWEEP_ROWS


async def test_the_key_of_a_message_goes_after_a_day_and_the_message_stays(
    ctx: context.Context, account: stored_accounts.Account, clock: contexts.Clock
) -> None:
    await mailing.allow(ctx, account.id)
    who = mailing.caller_of(account.id)
    key = accepting.Key(submit.key_scope(who), "order-7", b"hash")
    await mailing.accept(ctx, account.id, key=key)
    clock.pass_seconds(limits.IDEMPOTENCY_KEY_SECONDS - 1)
    assert (await sweeping.sweep(ctx)).idempotency_keys == 0
    clock.pass_seconds(1)
    assert (await sweeping.sweep(ctx)).idempotency_keys == 1
    report = await audit.run(ctx)
    assert (report.counts.messages, report.counts.idempotency_keys, report.findings) == (1, 0, [])
