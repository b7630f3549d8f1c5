"""Several engines on one store share the work: each recipient is delivered once, whoever of them comes or goes."""

import asyncio
from pathlib import Path

import pytest

from tests.delivery import engines
from tests.reliability import delivering, serving, sinks

COUNT = 300
PART = 60


async def test_two_engines_deliver_everything_once_and_one_may_stop_meanwhile(url: str) -> None:
    async with sinks.running() as sink:
        tables = delivering.sections(sink)
        async with (
            delivering.post_office(url, tables) as post,
            delivering.open_context(url, tables) as other,
            engines.running(other),
        ):
            async with engines.running(post.ctx):
                addresses = await post.send(COUNT)
                await sink.got(PART)
            addresses += await post.send(PART, domain="later.example.net")
            other.arrivals.set()
            await post.finished()
        async with delivering.open_context(url, tables) as ctx:
            await delivering.Post(ctx, post.account_id).prove(addresses, sink)


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_two_processes_deliver_everything_once_and_one_may_stop_meanwhile(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink:
        tables = delivering.sections(sink)
        async with (
            delivering.post_office(url, tables) as post,
            delivering.process(tmp_path / "one", url, tables) as one,
            delivering.process(tmp_path / "two", url, tables) as two,
        ):
            await asyncio.gather(one.start(), two.start())
            addresses: list[str] = []

            async def have_both_begun() -> bool:
                # One of them may have taken all that there was before the other looked: then there is more.
                addresses.extend(await post.send(COUNT, domain=f"{len(addresses)}.example.net"))
                return all(delivering.events(service, "recipient_delivered") for service in (one, two))

            await serving.until(have_both_begun)
            assert await one.stop() == 0
            addresses += await post.send(PART, domain="later.example.net")
            await post.finished()
            assert await two.stop() == 0
            await post.prove(addresses, sink)
            assert one.errors() == two.errors() == []
            for service in (one, two):
                assert delivering.events(service, "tried_before_without_result") == []
            delivered = [len(delivering.events(service, "recipient_delivered")) for service in (one, two)]
            assert sum(delivered) == len(addresses)
