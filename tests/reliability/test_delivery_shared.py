"""Several engines on one store share the work: each recipient is delivered once, whoever of them comes or goes."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.delivery import engine_harness
from tests.reliability import delivery_harness, service_process, sinks

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


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_two_processes_deliver_everything_once_and_one_may_stop_meanwhile(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink)
        async with (
            delivery_harness.open_harness(url, tables) as harness,
            delivery_harness.process(tmp_path / "one", url, tables) as one,
            delivery_harness.process(tmp_path / "two", url, tables) as two,
        ):
            await asyncio.gather(one.start(), two.start())
            addresses: list[str] = []

            async def have_both_begun() -> bool:
                # One of them may have taken all that there was before the other looked: then there is more.
                addresses.extend(await harness.send(COUNT, domain=f"{len(addresses)}.example.net"))
                return all(delivery_harness.events(service, "recipient_delivered") for service in (one, two))

            await service_process.until(have_both_begun)
            assert await one.stop() == 0
            addresses += await harness.send(PART, domain="later.example.net")
            await harness.finished()
            assert await two.stop() == 0
            # On a slow machine a process may stop without the reply to what it has just sent.
            in_doubt = [email for email, _, _, is_in_doubt in await harness.attempts() if is_in_doubt]
            await harness.prove(addresses, sink, doubts=Counter(in_doubt))
            assert one.errors() == two.errors() == []
            for service in (one, two):
                assert delivery_harness.events(service, "previous_attempt_unrecorded") == []
            delivered = [len(delivery_harness.events(service, "recipient_delivered")) for service in (one, two)]
            assert sum(delivered) == len(addresses)
