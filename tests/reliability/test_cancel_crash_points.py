"""The moments of canceling a message, and of moving one: the process dies there.

Either all of it has happened, with the credits, or nothing; and whoever asks again, of the process that comes after,
gets what was asked for, with each credit returned once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from postroad import context
from postroad.model.units import times
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup, queue_changes
from postroad.services.operations import operator_jobs
from postroad.storage.engine import store
from postroad.storage.mail import queue_views
from tests import accepted_mail, contexts
from tests.reliability import crashable_stores
from tests.reliability.faults import Moment

HOUR = 3_600 * contexts.SECOND
# When, after how many statements, and with how much of the commit written. The last one comes before the commit.
MOMENTS = (
    *((Moment.BEFORE, count, 0.0) for count in (1, 4, 7, 20)),
    *((Moment.DURING, 0, share) for share in (0.0, 0.5, 1.0)),
    (Moment.AFTER, 0, 0.0),
)
Work = Callable[[context.Context, str, str], Awaitable[object]]


class Shop(crashable_stores.CrashHarness):
    """An account with a scheduled message."""

    async def open(self) -> None:
        await super().open()
        self.account_id = (await accounts.create(self.process.ctx, "Shop")).id
        await accepted_mail.allow_sending(self.process.ctx, self.account_id, amount=2)

    async def send(self) -> str:
        self.clock.pass_seconds(10)  # the rate allows one in a second
        return await accepted_mail.accept(
            self.process.ctx,
            self.account_id,
            to=("ada@example.net", "bob@example.org"),
            send_at=times.to_wire(self.clock.now + HOUR),
        )

    async def die(self, work: Work, message_id: str, moment: Moment, *, statements: int, share: float) -> None:
        """Do something, and die at that moment; another process comes after."""
        fault = self.engine.death(self.process, moment, statements=statements, share=share)
        self.process.store.expect(fault)
        try:
            await work(self.process.ctx, self.account_id, message_id)
        except store.UNAVAILABLE:
            assert self.process.store.has_struck
        await self.restart(fault)
        assert (await operator_jobs.check_consistency(self.process.ctx)).findings == []


@pytest.fixture
async def shop(make_engine: Callable[[], crashable_stores.Engine]) -> AsyncIterator[Shop]:
    opened = Shop(make_engine())
    await opened.open()
    yield opened
    await opened.close()


async def test_a_message_is_canceled_with_its_credits_or_not_at_all(shop: Shop) -> None:
    for moment, statements, share in MOMENTS:
        message_id = await shop.send()
        await shop.die(queue_changes.cancel_message, message_id, moment, statements=statements, share=share)
        ctx = shop.process.ctx
        _, reached = await lookup.find(ctx, shop.account_id, message_id)
        account = await accounts.find(ctx, shop.account_id)
        found = {one.status for one in reached}, (account.available, account.reserved)
        assert found in (({"queued"}, (0, 2)), ({"canceled"}, (2, 0)))
        if moment is not Moment.DURING:
            assert found[0] == ({"canceled"} if moment is Moment.AFTER else {"queued"})
        again = await queue_changes.cancel_message(ctx, shop.account_id, message_id)
        assert [one.status for one in again] == ["canceled", "canceled"]
        assert (await accounts.find(ctx, shop.account_id)).available == 2


async def test_a_message_is_moved_with_all_its_recipients_or_not_at_all(shop: Shop) -> None:
    message_id = await shop.send()
    before = (await lookup.find(shop.process.ctx, shop.account_id, message_id))[0].send_at

    def move(ctx: context.Context, account_id: str, message_id: str) -> Awaitable[object]:
        return queue_changes.reschedule(ctx, account_id, message_id, shop.clock.now + 24 * HOUR)

    await shop.die(move, message_id, Moment.BEFORE, statements=20, share=0)
    ctx = shop.process.ctx
    assert (await lookup.find(ctx, shop.account_id, message_id))[0].send_at == before
    await shop.die(move, message_id, Moment.AFTER, statements=0, share=0)
    ctx = shop.process.ctx
    message, _ = await lookup.find(ctx, shop.account_id, message_id)
    assert message.send_at == shop.clock.now + 24 * HOUR
    rows = await queue_rows(ctx, shop.account_id, message_id)
    assert rows == {("scheduled", shop.clock.now + 24 * HOUR)}


async def queue_rows(ctx: context.Context, account_id: str, message_id: str) -> set[tuple[str, int]]:
    async with ctx.store.reading() as tx:
        found = await queue_views.of_message(tx, account_id, message_id)
    assert len(found) == 2
    return {(one.state, one.due_at) for one in found}
