"""What the operator holds, pauses or limits: it applies within a poll, and nothing else waits for it."""

import asyncio

import pytest

from postroad.delivery import dispatcher
from postroad.services.operations import destinations
from postroad.services.queue import holds
from tests import smtp_peers
from tests.delivery import parts
from tests.delivery.test_dispatcher import settle
from tests.delivery.test_dispatcher_fairness import walk


async def released(made: parts.Parts) -> None:
    (held,) = await holds.in_force(made.ctx)
    await holds.release(made.ctx, held)


@pytest.mark.parametrize("paused", [True, False])
async def test_mail_that_is_held_or_paused_stays_queued_until_its_release_and_the_rest_is_delivered(
    database_url: str, *, paused: bool
) -> None:
    async with parts.opened(database_url, poll_milliseconds=1) as made, smtp_peers.serving() as peer:
        made.router.known["gmail.com"] = parts.route_to(parts.host_at(peer.port), name="google", provider="google")
        made.router.known["example.org"] = parts.route_to(parts.host_at(peer.port))
        if paused:
            await destinations.pause(made.ctx, "google", reason="they asked", until=None)
        else:
            await holds.hold(made.ctx, domain="gmail.com")
        one = made.dispatching()
        waits, goes = await made.accept("ada@gmail.com"), await made.accept("bob@example.org")

        async def is_delivered() -> bool:
            await one.step()
            return await made.statuses(goes) == ["delivered"]

        await parts.until(is_delivered)
        assert await made.statuses(waits) == ["queued"]
        assert len(await made.ready()) == 1
        await (destinations.resume(made.ctx, "google") if paused else released(made))
        await settle(made, one)
        assert await made.statuses(waits) == ["delivered"]
        assert len(peer.transactions) == 2


async def test_everything_or_one_account_can_be_held(url: str) -> None:
    async with parts.opened(url, poll_milliseconds=1) as made:
        made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        await made.accept()
        for account_id in ("", made.account_id):
            await holds.hold(made.ctx, account_id=account_id)
            one = made.dispatching()
            assert await walk(one) == 1
            assert len(await made.ready()) == 1
            await released(made)
            await asyncio.sleep(0.002)  # longer than a poll


@pytest.mark.parametrize("paused", [True, False])
async def test_what_was_claimed_and_not_begun_goes_back_when_it_is_held_or_paused(url: str, *, paused: bool) -> None:
    async with parts.opened(url, poll_milliseconds=1) as made, smtp_peers.serving() as peer:
        (job,) = await made.jobs(route=parts.route_to(parts.host_at(peer.port)))
        if paused:
            await destinations.pause(made.ctx, "mx.example.net", reason="x", until=None)
        else:
            await holds.hold(made.ctx)
        await made.take_back(job)
        assert len(await made.ready()) == 1
        assert peer.transactions == []


async def test_holds_are_read_once_in_a_poll(url: str) -> None:
    time = parts.Time()
    async with parts.opened(url, time=time, poll_milliseconds=1000) as made:
        known = made.services.holds
        async with made.ctx.store.reading() as tx:
            await known.refresh(tx)
        await holds.hold(made.ctx)
        async with made.ctx.store.reading() as tx:
            await known.refresh(tx)
            assert not known.covers("example.net acc_1")
            time.now += 1
            await known.refresh(tx)
            assert known.covers("example.net acc_1")


async def test_nothing_expires_because_it_was_held(url: str) -> None:
    time = parts.Time()
    async with parts.opened(url, time=time, retry_seconds=[1000]) as made:
        dead = parts.host_at(25)
        made.router.known["example.net"] = parts.route_to(dead)
        parts.break_down(made.hosts, dead)
        message_id = await made.accept()
        await holds.hold(made.ctx)
        made.clock.pass_seconds(5000)
        one = made.dispatching()
        assert not await one.step()
        await released(made)

        async def step_later(seconds: int) -> None:
            made.clock.pass_seconds(seconds)
            time.now += dispatcher.EXPIRY_SEARCH_SECONDS
            made.hosts._breakers._values.clear()
            parts.break_down(made.hosts, dead)
            await one.step()

        await step_later(1000)
        assert len(await made.ready()) == 1
        await step_later(101)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert await made.statuses(message_id) == ["failed"]


async def test_urgent_mail_to_a_paused_provider_waits_too(url: str) -> None:
    async with parts.opened(url, poll_milliseconds=1) as made:
        made.router.known["example.net"] = parts.route_to(parts.host_at(25))
        await destinations.pause(made.ctx, "others", reason="x", until=None)
        await made.accept(expires_in=300)
        one = made.dispatching()
        await walk(one)
        assert len(await made.ready()) == 1


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
        assert (rate.allowed_connections, rate.rate()) == (1, 2.0)
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
