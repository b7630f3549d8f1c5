"""Several processes remove old mail at once while mail arrives, leaves and bounces: the store stays consistent."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from postroad import context
from postroad.mail import return_path
from postroad.mail.results import async_bounces
from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import cleanup
from tests import reports
from tests.delivery import bulk_queue, engine_harness
from tests.reliability import delivery_harness, service_process, sinks
from tests.storage import samples

PARTS, PART = 6, 40
# Whatever has ended is old at once.
AGE = "UPDATE messages SET ended_at = 1 WHERE ended_at IS NOT NULL"
OF_MESSAGES = ("messages", "bodies", "recipients", "attempts", "queue", "async_bounces")
CREDITS = 1_000_000
# Asynchronous bounces are counted, and suspend nobody here.
GUARD: dict[str, object] = {"recipients": CREDITS}


class Traffic:
    """An account's mail, from one process to a sink and into the past, and everybody who works on it at once."""

    def __init__(self, post: delivery_harness.DeliveryHarness, other: context.Context, sink: sinks.Sink) -> None:
        self.post = post
        self.other = other
        self.sink = sink
        self.addresses: list[str] = []
        self.swept: Counter[str] = Counter()
        self.fates: Counter[str] = Counter()
        self._is_over = asyncio.Event()

    async def run(self) -> None:
        """Until all mail was sent and is final."""
        async with engine_harness.running(self.post.ctx), asyncio.TaskGroup() as group:
            for ctx in (self.post.ctx, self.other):
                group.create_task(self._again_and_again(self.sweep, ctx))
            group.create_task(self._again_and_again(self._bounce_late, self.other))
            for number in range(PARTS):
                await self._send(f"part{number}-")
                await self.post.audit()
            await self.post.finished()
            self._is_over.set()

    async def _send(self, name: str) -> None:
        """Some mail; returns when more was delivered, removed and reported late, and much is still under way."""
        taken, removed, reported = len(self.sink.taken), self.swept["messages"], self.fates.total()

        async def is_under_way() -> bool:
            return self.swept["messages"] > removed and self.fates.total() > reported

        self.addresses += await bulk_queue.fill(
            self.other, self.post.account_id, delivery_harness.DOMAIN, count=PART, each=2, name=name
        )
        self.post.ctx.mail_wakeup.set()
        await self.sink.got(taken + 1)
        await service_process.until(is_under_way)

    async def _again_and_again(self, work: Callable[[context.Context], Awaitable[None]], ctx: context.Context) -> None:
        while not self._is_over.is_set():
            await work(ctx)

    async def sweep(self, ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await tx.run_script(AGE)
        swept = await cleanup.sweep(ctx)
        self.swept.update(bodies=swept.bodies, messages=swept.messages)

    async def _bounce_late(self, ctx: context.Context) -> None:
        """A report about mail that was taken just now, which may be gone before the report is written down."""
        await self.sink.got(1)
        copy = self.sink.taken[-1]
        message_id = copy.message_id.strip("<>").partition("@")[0]
        named = return_path.ReturnPath(message_id, "")
        received = await async_bounces.receive(ctx, named, reports.report(reports.group(copy.recipient)))
        self.fates.update(str(handled.result) for handled in received.handled)


async def test_old_mail_is_removed_by_two_processes_while_mail_is_accepted_and_delivered(url: str) -> None:
    async with sinks.running() as sink:
        tables = {**delivery_harness.sections(sink), "bounce_guard": GUARD}
        async with (
            delivery_harness.open_harness(url, tables) as post,
            delivery_harness.open_context(url, tables) as other,
        ):
            traffic = Traffic(post, other, sink)
            await traffic.run()
            assert sorted(sink.recipients) == sorted(traffic.addresses)
            # Much was removed meanwhile; now everything is.
            await traffic.sweep(other)
            assert traffic.swept == {"messages": len(traffic.addresses) // 2, "bodies": len(traffic.addresses) // 2}
            assert [await samples.count(other.store, table) for table in OF_MESSAGES] == [0] * len(OF_MESSAGES)
            account = await accounts.find(other, post.account_id)
            assert (account.available, account.reserved) == (CREDITS - len(traffic.addresses), 0)
            await post.audit()
