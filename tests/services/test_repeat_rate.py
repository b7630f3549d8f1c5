"""The rate of retries and replays: exact, also at once and over hosts; operators are not bound."""

import asyncio

import pytest

from postroad import context, errors
from postroad.model.delivery import throttle
from postroad.services import usage_limits
from postroad.services.accounts import account_registry as accounts
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from tests.contexts import SECOND, Clock
from tests.services.audit_entries import as_user

RETRIES, REPLAYS = usage_limits.Repeat.RETRIES, usage_limits.Repeat.REPLAYS


def set_rate(monkeypatch: pytest.MonkeyPatch, *, rate: int, burst: int) -> None:
    monkeypatch.setattr(usage_limits, "REPEAT_RATE", throttle.RateLimit(rate=rate, burst=burst))


@pytest.fixture
def person(ctx: context.Context, owner: users.User, monkeypatch: pytest.MonkeyPatch) -> context.Context:
    """The owner of an account that may repeat two things a second, and four at once."""
    set_rate(monkeypatch, rate=2, burst=4)
    return as_user(ctx, owner)


async def repeat(ctx: context.Context, account_id: str, kind: usage_limits.Repeat = RETRIES) -> int:
    """0 when a request is allowed, else the time to wait."""
    try:
        async with ctx.store.transaction() as tx:
            await stored_accounts.lock(tx, [account_id])
            await usage_limits.take_repeat(ctx, tx, account_id, kind)
    except errors.RateLimited as refusal:
        return refusal.retry_after or -1
    return 0


async def test_the_burst_is_allowed_and_then_the_rate(
    person: context.Context, account: stored_accounts.Account, clock: Clock
) -> None:
    assert [await repeat(person, account.id) for _ in range(6)] == [0, 0, 0, 0, 1, 1]
    clock.pass_seconds(0.5)
    assert [await repeat(person, account.id) for _ in range(2)] == [0, 1]
    clock.now += SECOND // 2 - 1
    assert await repeat(person, account.id) == 1
    clock.now += 1
    assert await repeat(person, account.id) == 0


async def test_requests_at_once_do_not_pass_the_rate_together(
    person: context.Context, account: stored_accounts.Account
) -> None:
    waits = await asyncio.gather(*(repeat(person, account.id) for _ in range(10)))
    assert sorted(waits) == [0] * 4 + [1] * 6


async def test_each_kind_and_each_account_has_its_own(
    ctx: context.Context, person: context.Context, account: stored_accounts.Account
) -> None:
    other = await accounts.create(ctx, "Other")
    for account_id, kind in ((account.id, RETRIES), (account.id, REPLAYS), (other.id, RETRIES)):
        assert [await repeat(person, account_id, kind) for _ in range(5)] == [0, 0, 0, 0, 1]


async def test_what_is_refused_later_in_its_transaction_does_not_count(
    person: context.Context, account: stored_accounts.Account
) -> None:
    async def in_vain() -> None:
        async with person.store.transaction() as tx:
            await stored_accounts.lock(tx, [account.id])
            await usage_limits.take_repeat(person, tx, account.id, RETRIES)
            raise errors.Conflict("nothing waits")

    for _ in range(8):
        with pytest.raises(errors.Conflict):
            await in_vain()
    assert await repeat(person, account.id) == 0


async def test_an_operator_is_not_limited(
    ctx: context.Context, account: stored_accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rate(monkeypatch, rate=1, burst=1)
    assert {await repeat(ctx, account.id) for _ in range(3)} == {0}


async def test_a_refusal_says_the_limit_and_what_to_do(
    person: context.Context, account: stored_accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rate(monkeypatch, rate=1, burst=1)
    async with person.store.transaction() as tx:
        await usage_limits.take_repeat(person, tx, account.id, REPLAYS)
        with pytest.raises(errors.RateLimited, match=r"^more than 1 replays per second; wait for Retry-After seconds$"):
            await usage_limits.take_repeat(person, tx, account.id, REPLAYS)
