"""Warm-up and the bounce guard where several processes share a store: together they are as exact as one."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from postroad import context, errors
from postroad.mail.accept import submit_mime
from postroad.model.bounces import bounce_guard
from postroad.model.mail import statuses
from postroad.model.units import times
from postroad.services.accounts import account_registry as accounts
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, bounce_counts
from tests.contexts import SECOND, Clock
from tests.delivery import engine_harness
from tests.reliability import delivery_harness, service_process, sinks, submission_service
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
            await stack.enter_async_context(delivery_harness.open_context(url, {**PLENTY, **tables}, clock=clock))
            for clock in clocks
        ]


async def send_raw(ctx: context.Context, account_id: str, count: int) -> None:
    """A finished message to so many, as it comes over SMTP."""
    raw = statuses.RawMessage(
        sender=submission_service.SENDER,
        recipients=tuple(f"person-{number}@example.net" for number in range(count)),
        content=b"From: shop@example.com\r\nSubject: Hello\r\n\r\nHello\r\n",
        trace="by here with ESMTPA; Thu, 1 Jan 1970 00:00:00 +0000",
    )
    await submit_mime.submit_mime(ctx, accepted_mail.caller_of(account_id), raw, request_id="req_" + "0" * 28)


async def fill(processes: Sequence[context.Context], account_id: str, chance: random.Random) -> int:
    """Send from all processes at once, over HTTP and SMTP, until all is refused; returns the recipients accepted."""

    async def attempt(process: context.Context, count: int) -> int:
        with contextlib.suppress(errors.WarmupLimited):
            if chance.random() < 0.5:
                await send_raw(process, account_id, count)
            else:
                to = tuple(f"person-{number}@example.net" for number in range(count))
                await accepted_mail.accept(process, account_id, to=to)
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
        await accepted_mail.allow_sending(processes[0], account.id)
        chance = random.Random(1)
        assert await fill(processes, account.id, chance) == CAPS[0]
        given = []
        for clock in clocks:
            clock.pass_seconds(2)
            given.append(await fill(processes, account.id, chance))
        assert given == [CAPS[1], 0, 0]
        assert (await accounts.find(processes[0], account.id)).reserved == sum(CAPS)
        await delivery_harness.DeliveryHarness(processes[0], account.id).audit()


@contextlib.asynccontextmanager
async def engines_with_claims(
    ctx: context.Context, account_id: str, url: str, sink: sinks.Sink
) -> AsyncIterator[list[Any]]:
    """Engines that have all begun with the queue when the block begins, and emptied it at its end; their logs."""
    tables = {**delivery_harness.sections(sink), "bounce_guard": GUARD}
    harness = delivery_harness.DeliveryHarness(ctx, account_id)
    logs: list[Any] = []

    async def have_all_begun() -> bool:
        return len({row.worker for row in await harness.rows() if row.worker}) == ENGINES

    sink.hold(Point.CONTENT)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(ENGINES):
            worker = await stack.enter_async_context(delivery_harness.open_context(url, tables))
            logs.append((await stack.enter_async_context(engine_harness.running(worker)))[1])
        await service_process.until(have_all_begun)
        sink.release(Point.CONTENT)
        yield logs
        await harness.finished()


async def send_until_refused(ctx: context.Context, account_id: str) -> int:
    """One message after the other; who is refused once is refused by every listener. Returns how many were accepted."""
    count = 0
    async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
        with contextlib.suppress(errors.AccountSuspended):
            while True:
                await accepted_mail.accept(ctx, account_id, to=("n0@example.net",))
                count += 1
    for attempt in (accepted_mail.accept(ctx, account_id), send_raw(ctx, account_id, 1)):
        with pytest.raises(errors.AccountSuspended, match=r"bounce guard: .* do not exist"):
            await attempt
    return count


async def test_engines_that_meet_the_threshold_together_suspend_an_account_once(url: str) -> None:
    async with sinks.running() as sink, delivery_harness.open_harness(url, PLENTY) as harness:
        sink.answer = lambda to: NOBODY if int(to[0].partition("@")[0][1:]) % 2 else sinks.ACCEPTED
        await harness.send(RECIPIENTS)
        async with engines_with_claims(harness.ctx, harness.account_id, url, sink) as logs:
            more = await send_until_refused(harness.ctx, harness.account_id)
        logged = [line["event"] for log in logs for line in log]
        assert logged.count("account_suspended") == 1
        account = await accounts.find(harness.ctx, harness.account_id)
        assert (account.status, account.suspended_by) == ("suspended", stored_accounts.BOUNCE_GUARD)
        # What was queued was delivered all the same, and every result was counted.
        assert await harness.statuses() == {"bounced": RECIPIENTS // 2, "delivered": RECIPIENTS // 2 + more}
        counts = bounce_guard.Counts(RECIPIENTS + more, RECIPIENTS // 2, 0)
        assert await bounce_counts.counted(harness.ctx, harness.account_id) == counts
        await accounts.resume(harness.ctx, harness.account_id)
        await accepted_mail.accept(harness.ctx, harness.account_id)
        await send_raw(harness.ctx, harness.account_id, 1)
        await harness.audit()
