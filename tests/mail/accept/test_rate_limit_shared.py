"""Rates are one for all processes: exact together, unimpressed by a restart, and free for whoever repeats."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.mail.accept import submit
from postroad.model.delivery import throttle
from postroad.model.mail import send_request, statuses
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import cleanup
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import rates
from tests import accepted_mail, contexts
from tests.contexts import SECOND

RATE, BURST = 10, 20


@pytest.fixture
def settings(settings: config.Settings) -> config.Settings:
    limits = msgspec.structs.replace(settings.limits, request_rate=RATE, request_burst=BURST)
    return msgspec.structs.replace(settings, limits=limits)


@pytest_asyncio.fixture
async def processes(
    ctx: context.Context, settings: config.Settings, clock: contexts.Clock
) -> AsyncIterator[list[context.Context]]:
    """Three processes on one store."""
    async with contextlib.AsyncExitStack() as stack:
        yield [ctx] + [
            await stack.enter_async_context(composition.open_context(settings, clock=clock)) for _ in range(2)
        ]


@pytest_asyncio.fixture
async def shop(ctx: context.Context, sender: str) -> str:
    return sender


async def send(ctx: context.Context, account_id: str, *, key: str | None = None) -> errors.PostroadError | None:
    """One message; returns why it was refused."""
    try:
        await accepted_mail.accept(ctx, account_id, key=key)
    except errors.PostroadError as refusal:
        return refusal
    return None


async def count_accepted(processes: Sequence[context.Context], account_id: str, *, each: int) -> int:
    answers = await asyncio.gather(*(send(process, account_id) for process in processes for _ in range(each)))
    assert all(answer is None or isinstance(answer, errors.RateLimited) for answer in answers)
    return sum(answer is None for answer in answers)


def header_field(ctx: context.Context, account_id: str) -> str:
    return dict(ctx.rate_limiter.headers(account_id, now=ctx.clock()))["RateLimit"]


async def test_processes_together_let_through_exactly_burst_and_rate(
    processes: list[context.Context], shop: str, clock: contexts.Clock
) -> None:
    assert await count_accepted(processes, shop, each=BURST) == BURST
    for seconds, more in ((0.1, 1), (0.05, 0), (0.05, 1), (0.5, 5), (60, BURST), (1, RATE)):
        clock.pass_seconds(seconds)
        assert await count_accepted(processes, shop, each=BURST) == more


async def test_a_restart_gives_no_new_burst(
    settings: config.Settings, ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    assert await count_accepted([ctx], shop, each=BURST) == BURST
    async with composition.open_context(settings, clock=clock) as restarted:
        refusal = await send(restarted, shop)
        assert isinstance(refusal, errors.RateLimited)
        assert refusal.retry_after == 1
        assert header_field(restarted, shop) == '"account";r=0;t=2'
        clock.pass_seconds(1)
        assert await count_accepted([restarted], shop, each=BURST) == RATE


async def test_a_process_knows_from_each_answer_what_the_others_took(
    processes: list[context.Context], shop: str
) -> None:
    one, two, _ = processes
    assert await count_accepted([one], shop, each=5) == 5
    assert await send(two, shop) is None
    assert header_field(one, shop) == '"account";r=15;t=1'
    assert header_field(two, shop) == '"account";r=14;t=1'


async def test_a_replay_costs_nothing(ctx: context.Context, shop: str) -> None:
    for _ in range(3 * BURST):
        assert await send(ctx, shop, key="order-1") is None
    assert header_field(ctx, shop) == '"account";r=19;t=1'
    assert await count_accepted([ctx], shop, each=BURST) == BURST - 1


async def test_a_request_that_is_checked_costs_even_when_a_later_check_refuses_it(
    processes: list[context.Context], account: stored_accounts.Account
) -> None:
    await accepted_mail.allow_sending(processes[0], account.id, amount=1)
    assert await send(processes[0], account.id) is None
    for number in range(BURST - 1):
        assert isinstance(await send(processes[number % 3], account.id), errors.InsufficientCredits)
    for process in processes:
        assert isinstance(await send(process, account.id), errors.RateLimited)


async def test_sends_that_are_refused_before_the_transaction_count_once_for_all_processes(
    processes: list[context.Context], shop: str, clock: contexts.Clock
) -> None:
    async def refused(process: context.Context) -> str:
        with pytest.raises((errors.Forbidden, errors.RateLimited)) as caught:
            await accepted_mail.accept(process, shop, sender="shop@foreign.example")
        return caught.value.code

    answers = [await refused(processes[number % 3]) for number in range(2 * BURST)]
    assert answers == ["forbidden"] * BURST + ["rate_limited"] * BURST
    assert await count_accepted(processes, shop, each=1) == 0
    clock.pass_seconds(1)
    together = await asyncio.gather(*(refused(process) for process in processes for _ in range(RATE)))
    assert sorted(together) == ["forbidden"] * RATE + ["rate_limited"] * 2 * RATE


async def test_a_suspended_account_is_told_so_and_pays_nothing(
    settings: config.Settings, ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await accounts.suspend(ctx, shop, "too many bounces")
    for _ in range(2 * BURST):
        assert isinstance(await send(ctx, shop), errors.AccountSuspended)
    await accounts.resume(ctx, shop)
    async with composition.open_context(settings, clock=clock) as other:
        assert await count_accepted([other], shop, each=BURST) == BURST


@pytest.mark.parametrize("more", [{"credential_id": "cred_other"}, {"is_test": True}])
async def test_the_credentials_and_the_test_mail_of_an_account_share_its_rate(
    settings: config.Settings, ctx: context.Context, shop: str, more: dict[str, Any]
) -> None:
    assert await count_accepted([ctx], shop, each=BURST + 1) == BURST
    request = send_request.SendRequest(sender="shop@example.com", to=("a@example.net",), subject="s", text="t")
    who = dataclasses.replace(accepted_mail.caller_of(shop), **more)
    # A process that has seen none of it as well.
    async with composition.open_context(settings, clock=ctx.clock) as other:
        for each in (ctx, other):
            with pytest.raises(errors.RateLimited, match=r"^more than \d+ sends per second from this account;"):
                await submit.submit(
                    each, who, request, request_id="req_" + "0" * 28, source=statuses.Source.API, key=None
                )


async def test_a_bucket_that_is_full_again_is_swept_when_no_clock_can_think_otherwise(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await send(ctx, shop)
    taken = rates.Rate(f"replays {shop}", shop, throttle.SharedBucket(clock() + SECOND // RATE, clock()))
    async with ctx.store.transaction() as tx:
        await rates.put(tx, [taken])
    clock.pass_seconds(1 / RATE + throttle.MAX_CLOCK_SKEW / SECOND)
    assert (await cleanup.sweep(ctx)).rates == 0
    clock.pass_seconds(1)
    assert (await cleanup.sweep(ctx)).rates == 1
    async with ctx.store.reading() as tx:
        assert await rates.find(tx, {taken.name}) == {}
    assert await count_accepted([ctx], shop, each=BURST + 1) == BURST
