"""Several engines on one store share the work: each recipient is delivered once, whoever of them comes or goes."""

from tests.delivery import engine_harness
from tests.reliability import delivery_harness, sinks

COUNT = 300
PART = 60


async def test_two_engines_deliver_everything_once_and_one_may_stop_meanwhile(url: str) -> None:
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink)
        async with (
            delivery_harness.open_harness(url, tables) as harness,
            delivery_harness.open_context(url, tables) as other,
            engine_harness.running(other),
        ):
            async with engine_harness.running(harness.ctx):
                addresses = await harness.send(COUNT)
                await sink.got(PART)
            addresses += await harness.send(PART, domain="later.example.net")
            other.mail_wakeup.set()
            await harness.finished()
        async with delivery_harness.open_context(url, tables) as ctx:
            await delivery_harness.DeliveryHarness(ctx, harness.account_id).prove(addresses, sink)
