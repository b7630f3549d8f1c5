"""What an operator changes of a provider queue applies within a poll, and to new processes."""

import asyncio

from postroad.services.operations import destinations
from tests import smtp_peers
from tests.delivery import parts
from tests.delivery.test_dispatcher import settle
from tests.delivery.test_dispatcher_fairness import walk


async def test_a_paused_provider_gets_nothing_until_it_is_resumed_and_others_go_on(database_url: str) -> None:
    async with parts.opened(database_url, poll_milliseconds=1) as made, smtp_peers.serving() as peer:
        made.router.known["gmail.com"] = parts.route_to(parts.host_at(peer.port), name="google", provider="google")
        made.router.known["example.org"] = parts.route_to(parts.host_at(peer.port))
        await destinations.pause(made.ctx, "google", reason="they asked", until=None)
        one = made.dispatching()
        waits, goes = await made.accept("ada@gmail.com"), await made.accept("bob@example.org")

        async def is_delivered() -> bool:
            await one.step()
            return await made.statuses(goes) == ["delivered"]

        await parts.until(is_delivered)
        assert await made.statuses(waits) == ["queued"]
        assert len(await made.ready()) == 1
        await destinations.resume(made.ctx, "google")
        await settle(made, one)
        assert await made.statuses(waits) == ["delivered"]


async def test_urgent_mail_to_a_paused_provider_waits_too(url: str) -> None:
    async with parts.opened(url, poll_milliseconds=1) as made:
        made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        await destinations.pause(made.ctx, "others", reason="x", until=None)
        await made.accept(expires_in=300)
        one = made.dispatching()
        await walk(one)
        assert len(await made.ready()) == 1


async def test_what_was_claimed_and_not_begun_goes_back_when_its_provider_is_paused(url: str) -> None:
    async with parts.opened(url, poll_milliseconds=1) as made, smtp_peers.serving() as peer:
        (job,) = await made.jobs(route=parts.route_to(parts.host_at(peer.port)))
        await destinations.pause(made.ctx, "mx.example.net", reason="x", until=None)
        await made.take_back(job)
        assert len(await made.ready()) == 1
        assert peer.transactions == []


async def test_changed_limits_apply_to_a_queue_that_is_there_and_end_with_their_time(url: str) -> None:
    async with parts.opened(url, poll_milliseconds=1) as made:
        route = made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        one = made.dispatching()
        rate = one.provider_queues.of(route).adaptive_rate
        of_settings = made.ctx.settings.providers.others
        assert rate.limits == of_settings
        until = made.ctx.clock() + 60_000_000
        limits = {"connections": 1, "messages_per_second": 2}
        await destinations.set_limits(made.ctx, "others", limits, reason="x", until=until)
        await one.step()
        assert one.provider_queues.of(route).adaptive_rate is rate
        in_force = rate.limits
        assert (in_force.connections, in_force.messages_per_second) == (1, 2)
        assert in_force.messages_per_connection == of_settings.messages_per_connection
        assert (rate.allowed_connections(), rate.rate()) == (1, 2.0)
        # A single host has precedence over all others.
        await destinations.set_limits(made.ctx, "mx.example.net", {"connections": 3}, reason="x", until=None)
        await asyncio.sleep(0.002)  # longer than a poll
        await one.step()
        assert one.provider_queues.of(route).adaptive_rate.limits.connections == 3
        await destinations.restore(made.ctx, "mx.example.net")
        made.clock.pass_seconds(61)
        await asyncio.sleep(0.002)
        await one.step()
        one.provider_queues.of(route)
        assert rate.limits == of_settings
