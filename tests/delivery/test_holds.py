"""What the operator holds is not sent, and nothing else waits for it; it goes out after the release."""

import asyncio

from postroad.delivery import dispatcher
from postroad.services.queue import holds
from tests import smtp_peers
from tests.delivery import parts
from tests.delivery.test_dispatcher import settle
from tests.delivery.test_dispatcher_fairness import break_down, walk


async def released(made: parts.Parts) -> None:
    (held,) = await holds.in_force(made.ctx)
    await holds.release(made.ctx, held)


async def test_held_mail_stays_queued_until_it_is_released_and_the_rest_is_delivered(database_url: str) -> None:
    async with parts.opened(database_url, poll_milliseconds=1) as made, smtp_peers.serving() as peer:
        for domain in ("example.net", "example.org"):
            made.router.known[domain] = parts.route_to(parts.host_at(peer.port))
        await holds.hold(made.ctx, domain="example.net")
        one = made.dispatching()
        held, free = await made.accept("ada@example.net"), await made.accept("bob@example.org")

        async def is_delivered() -> bool:
            await one.step()
            return await made.statuses(free) == ["delivered"]

        await parts.until(is_delivered)
        assert await made.statuses(held) == ["queued"]
        assert len(await made.ready()) == 1
        await released(made)
        await settle(made, one)
        assert await made.statuses(held) == ["delivered"]
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


async def test_what_was_claimed_and_not_begun_goes_back_when_it_is_held(url: str) -> None:
    async with parts.opened(url, poll_milliseconds=1) as made, smtp_peers.serving() as peer:
        (job,) = await made.jobs(route=parts.route_to(parts.host_at(peer.port)))
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
        break_down(made, dead)
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
            break_down(made, dead)
            await one.step()

        await step_later(1000)
        assert len(await made.ready()) == 1
        await step_later(101)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert await made.statuses(message_id) == ["failed"]
