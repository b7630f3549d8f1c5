"""Mail that is sent later, with a running engine: it goes out at its time, is retried from there, or never goes."""

from postroad.model.units import times
from postroad.services.messages import queue_changes
from tests.contexts import SECOND
from tests.delivery import engine_harness

HOUR = 3_600


async def test_a_message_goes_out_at_its_time_and_not_before(url: str) -> None:
    async with engine_harness.delivering_to(url) as (_, harness):
        send_at = times.to_wire(harness.clock.now + HOUR * SECOND)
        later, moved, canceled = [await harness.send(send_at=send_at) for _ in range(3)]
        await harness.prove()  # what is due is sent meanwhile
        assert {(await harness.see(one)).standing for one in (later, moved, canceled)} == {("queued", 0, None)}
        await queue_changes.cancel_message(harness.ctx, harness.account_id, canceled)
        await queue_changes.reschedule(harness.ctx, harness.account_id, moved, None)
        assert (await harness.settle(moved)).standing == ("delivered", 1, 250)
        harness.pass_seconds(HOUR)
        seen = await harness.settle(later)
        assert seen.standing == ("delivered", 1, 250)
        assert seen.attempt.started_at == seen.message.send_at
        assert (await harness.see(canceled)).standing == ("canceled", 0, None)
        assert await harness.credits() == (3, 0)


async def test_the_retry_period_begins_at_its_time(url: str) -> None:
    """Longer ahead than the whole retry schedule: it is tried as often as any other."""
    later = {"RCPT": "451 4.2.0 later"}
    async with engine_harness.delivering_to(url, later, retry_seconds=[60]) as (_, harness):
        message_id = await harness.send(send_at=times.to_wire(harness.clock.now + 24 * HOUR * SECOND))
        harness.pass_seconds(24 * HOUR)
        assert (await harness.settle(message_id)).standing == ("deferred", 1, 451)
        harness.pass_seconds(70)
        assert (await harness.settle(message_id, attempts=2)).standing == ("failed", 2, 451)
