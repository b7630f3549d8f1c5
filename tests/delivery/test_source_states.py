"""What holds for a source address at run time applies within a poll: paused, draining, warming."""

import msgspec

from postroad.services.messages import queue_inspection
from postroad.services.queue import sources
from postroad.storage.mail import mail_counts
from tests import contexts, smtp_peers
from tests.delivery import engine_harness, parts
from tests.delivery.test_sources import source


def two(*addresses: str) -> list[dict[str, str]]:
    """Two addresses of one pool."""
    return [source(f"out{number}", address) for number, address in enumerate(addresses, start=1)]


async def used(harness: engine_harness.EngineHarness, number: int) -> list[str]:
    """The source addresses of so many messages, one after the other."""
    seen = [await harness.settle(await harness.send()) for _ in range(number)]
    return [one.attempt.source for one in seen]


async def test_nothing_leaves_from_a_paused_address_also_over_open_connections(database_url: str) -> None:
    ours = two(*engine_harness.loopback_addresses(2))
    async with engine_harness.delivering_to(database_url, sources=ours, idle_seconds=300) as (peer, harness):
        assert await used(harness, 2) == ["out1", "out2"]
        assert peer.connections == 2
        await sources.pause(harness.ctx, "out1", reason="listed", until=None)
        await parts.until(lambda: is_paused(harness, "out1"))
        assert await used(harness, 3) == ["out2"] * 3
        await sources.resume(harness.ctx, "out1")
        await parts.until(lambda: is_paused(harness, "out1", is_so=False))
        assert await used(harness, 2) == ["out1", "out2"]
        assert peer.connections == 2


async def is_paused(harness: engine_harness.EngineHarness, name: str, *, is_so: bool = True) -> bool:
    """Whether the engine knows."""
    return harness.engine._dispatcher._services.sources.is_paused(name, "mx.example.net") is is_so


async def test_mail_waits_while_its_pool_may_not_send_and_says_why(database_url: str) -> None:
    first, second = engine_harness.loopback_addresses(2)
    ours = [source("out1", first), source("own", second, pool="partners")]
    rules = [{"tags": ["partner"], "pool": "partners"}]
    async with engine_harness.delivering_to(database_url, sources=ours, routes=rules) as (_, harness):
        await sources.drain(harness.ctx, "own", reason="moves to another host")
        await parts.until(lambda: is_draining(harness, "own"))
        waiting = await harness.send(tags=["partner"])
        assert await used(harness, 1) == ["out1"]
        (entry,) = (await queue_inspection.entries_of_message(harness.ctx, harness.account_id, waiting)).values()
        assert (entry.reason.code, entry.reason.text) == (
            "no_source",
            "no address of this service may send this mail now",
        )
        (course,) = (await queue_inspection.trace(harness.ctx, waiting)).courses
        assert "no source address of pool partners may send now (own: moves to another host)" in course.why
        await sources.resume(harness.ctx, "own")
        assert (await harness.settle(waiting)).attempt.source == "own"


async def is_draining(harness: engine_harness.EngineHarness, name: str) -> bool:
    """Whether the engine knows."""
    known = harness.engine._dispatcher._services.sources
    return all(one.name != name for pool in ("default", "partners") for one in known.usable(pool, "mx.example.net"))


async def test_a_pause_for_one_provider_is_for_that_one_only(url: str) -> None:
    ours = two(*engine_harness.loopback_addresses(2))
    async with engine_harness.delivering_to(url, sources=ours) as (_, harness):
        await sources.pause(harness.ctx, "out1", provider="google", reason="x", until=None)
        await sources.pause(harness.ctx, "out2", provider="others", reason="x", until=None)
        await parts.until(lambda: is_paused(harness, "out2"))
        assert await used(harness, 2) == ["out1", "out1"]


async def test_a_pause_lasts_over_a_restart_and_ends_with_its_time(url: str) -> None:
    ours = two(*engine_harness.loopback_addresses(2))
    clock = contexts.Clock()
    async with smtp_peers.serving() as peer:
        async with engine_harness.running_engine(url, port=peer.port, sources=ours, clock=clock) as harness:
            until = clock.now + 60 * contexts.SECOND
            await sources.pause(harness.ctx, "out1", reason="x", until=until)
        async with engine_harness.running_engine(
            url, port=peer.port, sources=ours, clock=clock, account_id=harness.account_id
        ) as harness:
            assert await used(harness, 2) == ["out2", "out2"]
            harness.pass_seconds(61)
            await parts.until(lambda: is_paused(harness, "out1", is_so=False))
            assert sorted(await used(harness, 2)) == ["out1", "out2"]


async def test_a_new_address_sends_what_its_schedule_has_and_the_rest_leaves_from_others(database_url: str) -> None:
    ours = two(*engine_harness.loopback_addresses(2))
    clock = contexts.Clock()
    async with smtp_peers.serving() as peer:
        async with engine_harness.running_engine(database_url, port=peer.port, sources=ours, clock=clock) as harness:
            limit(harness, 4, 8)
            await sources.warm_up(harness.ctx, "out1")
            await parts.until(lambda: is_warming(harness, "out1"))
            # More recipients than the day has, in one message.
            seen = await harness.settle(await harness.send(*(f"u{number}@example.net" for number in range(9))))
            from_each = [one.source for one in seen.attempts]
            assert from_each.count("out1") <= 4
            assert len(from_each) == 9
            await used(harness, 6)
            assert await counted(harness, "out1") == 4
        async with engine_harness.running_engine(
            database_url, port=peer.port, sources=ours, clock=clock, account_id=harness.account_id
        ) as harness:
            limit(harness, 4, 8)
            assert await used(harness, 2) == ["out2", "out2"]
            harness.pass_seconds(24 * 3600)
            await parts.until(lambda: is_warming(harness, "out1", room=8))
            assert sorted(await used(harness, 2)) == ["out1", "out2"]


def limit(harness: engine_harness.EngineHarness, *caps: int) -> None:
    """Shorten the schedule."""
    warmup = msgspec.structs.replace(harness.ctx.settings.warmup, source_recipients_per_day=caps)
    msgspec.structs.force_setattr(harness.ctx.settings, "warmup", warmup)


async def is_warming(harness: engine_harness.EngineHarness, name: str, *, room: int = 4) -> bool:
    """Whether the engine knows, and how much is left."""
    return harness.engine._dispatcher._services.sources.room(name, "mx.example.net") == room


async def counted(harness: engine_harness.EngineHarness, name: str) -> int:
    """The attempts from an address."""
    async with harness.ctx.store.reading() as tx:
        return sum(one.attempts for one in await mail_counts.sources_since(tx, 0) if one.source == name)
