"""Warm-up and the bounce guard where several processes share a store: together they are as exact as one."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from postroad import errors
from postroad.model import bounce_guard, mail, times
from postroad.services import accounts, context, submit_raw
from postroad.storage import accounts as stored_accounts
from tests import mailing, sending
from tests.contexts import SECOND, Clock
from tests.delivery import engines
from tests.reliability import delivering, serving, sinks, submitting
from tests.reliability.sinks import Point

PLENTY = {"limits": {"request_rate": 1_000_000, "request_burst": 1_000_000}}
# Recipients on the first and on the second day of a sender domain.
CAPS = (60, 100)
# Every other one of these does not exist; the guard looks long before all of them are tried.
RECIPIENTS = 200
GUARD: dict[str, object] = {"recipients": 40, "warn_percent": 10.0, "suspend_percent": 30.0}
NOBODY = "550 5.1.1 no such user"
ENGINES = 2


@contextlib.asynccontextmanager
async def hosts(
    url: str, tables: Mapping[str, Mapping[str, object]], clocks: Sequence[Clock]
) -> AsyncIterator[list[context.Context]]:
    """Contexts on one store, each with a clock of its own."""
    async with contextlib.AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(delivering.open_context(url, {**PLENTY, **tables}, clock=clock))
            for clock in clocks
        ]


async def send_raw(ctx: context.Context, account_id: str, count: int) -> None:
    """A finished message to so many, as it comes over SMTP."""
    raw = mail.RawMessage(
        sender=submitting.SENDER,
        recipients=tuple(f"person-{number}@example.net" for number in range(count)),
        content=b"From: shop@example.com\r\nSubject: Hello\r\n\r\nHello\r\n",
        trace="by here with ESMTPA; Thu, 1 Jan 1970 00:00:00 +0000",
    )
    await submit_raw.submit_raw(ctx, mailing.caller_of(account_id), raw, request_id="req_" + "0" * 28)


async def fill(processes: Sequence[context.Context], account_id: str, chance: random.Random) -> int:
    """Send from everywhere at once, by both doors, until nothing goes; returns how many recipients were taken."""

    async def attempt(process: context.Context, count: int) -> int:
        with contextlib.suppress(errors.WarmupLimited):
            if chance.random() < 0.5:
                await send_raw(process, account_id, count)
            else:
                to = tuple(f"person-{number}@example.net" for number in range(count))
                await mailing.accept(process, account_id, to=to)
            return count
        return 0

    total = 0
    for most in (9, 3, 1):
        sends = [attempt(process, chance.randint(1, most)) for process in processes for _ in range(20)]
        chance.shuffle(sends)
        total += sum(await asyncio.gather(*sends))
    return total


async def test_warm_up_gives_each_day_once_whoever_sends_and_whenever_a_host_sees_midnight(url: str) -> None:
    clocks = [Clock() for _ in range(3)]
    for clock in clocks:
        clock.now = (clock.now // times.DAY + 1) * times.DAY - SECOND
    async with hosts(url, {"warmup": {"enabled": True, "recipients_per_day": list(CAPS)}}, clocks) as processes:
        account = await accounts.create(processes[0], "Shop")
        await mailing.allow(processes[0], account.id)
        chance = random.Random(1)
        assert await fill(processes, account.id, chance) == CAPS[0]
        given = []
        for clock in clocks:
            clock.pass_seconds(2)
            given.append(await fill(processes, account.id, chance))
        assert given == [CAPS[1], 0, 0]
        assert (await accounts.find(processes[0], account.id)).reserved == sum(CAPS)
        await delivering.Post(processes[0], account.id).audit()


@contextlib.asynccontextmanager
async def engines_with_claims(
    ctx: context.Context, account_id: str, url: str, sink: sinks.Sink
) -> AsyncIterator[list[Any]]:
    """Engines that have all begun with the queue when the block begins, and emptied it at its end; their logs."""
    tables = {**delivering.sections(sink), "bounce_guard": GUARD}
    post = delivering.Post(ctx, account_id)
    logs: list[Any] = []

    async def have_all_begun() -> bool:
        return len({row.worker for row in await post.rows() if row.worker}) == ENGINES

    sink.hold(Point.CONTENT)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(ENGINES):
            worker = await stack.enter_async_context(delivering.open_context(url, tables))
            logs.append((await stack.enter_async_context(engines.running(worker)))[1])
        await serving.until(have_all_begun)
        sink.release(Point.CONTENT)
        yield logs
        await post.finished()


async def send_until_refused(ctx: context.Context, account_id: str) -> int:
    """One message after the other; who is refused once is refused by every door. Returns how many were taken."""
    count = 0
    async with asyncio.timeout(serving.PATIENCE_SECONDS):
        with contextlib.suppress(errors.AccountSuspended):
            while True:
                await mailing.accept(ctx, account_id, to=("n0@example.net",))
                count += 1
    for attempt in (mailing.accept(ctx, account_id), send_raw(ctx, account_id, 1)):
        with pytest.raises(errors.AccountSuspended, match=r"bounce guard: .* do not exist"):
            await attempt
    return count


async def test_engines_that_meet_the_threshold_together_suspend_an_account_once(url: str) -> None:
    async with sinks.running() as sink, delivering.post_office(url, PLENTY) as post:
        sink.answer = lambda to: NOBODY if int(to[0].partition("@")[0][1:]) % 2 else sinks.TAKEN
        await post.send(RECIPIENTS)
        async with engines_with_claims(post.ctx, post.account_id, url, sink) as logs:
            more = await send_until_refused(post.ctx, post.account_id)
        told = [line["event"] for log in logs for line in log]
        assert told.count("account_suspended") == 1
        account = await accounts.find(post.ctx, post.account_id)
        assert (account.status, account.suspended_by) == ("suspended", stored_accounts.BOUNCE_GUARD)
        # What was queued was delivered all the same, and every result was counted.
        assert await post.statuses() == {"bounced": RECIPIENTS // 2, "delivered": RECIPIENTS // 2 + more}
        counts = bounce_guard.Counts(RECIPIENTS + more, RECIPIENTS // 2, 0)
        assert await sending.counted(post.ctx, post.account_id) == counts
        await accounts.resume(post.ctx, post.account_id)
        await mailing.accept(post.ctx, post.account_id)
        await send_raw(post.ctx, post.account_id, 1)
        await post.audit()
