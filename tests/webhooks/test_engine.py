"""The engine as a whole: the schedule, what changes under it, and how it stops."""

import asyncio
import json

import pytest

from postroad import errors
from postroad.protocol import webhook_signature
from postroad.services import webhooks as services_webhooks
from postroad.storage import webhook_deliveries
from postroad.webhooks import attempting, dispatching, engine
from tests import webhook_receivers
from tests.contexts import SECOND
from tests.webhooks import offices

SCHEDULE = (5, 300, 1800, 7200, 18000, 36000)
BUSY = webhook_receivers.ok(503, b"busy")


async def hang(_: webhook_receivers.Received) -> bytes:
    await asyncio.Event().wait()
    return b""


async def test_a_receiver_that_refuses_is_told_exactly_seven_times_by_the_schedule(database_url: str) -> None:
    refusal = webhook_receivers.ok(429, b"no", "Retry-After: 999999")
    async with (
        webhook_receivers.receiving(tls=False, answer=refusal) as receiver,
        offices.opened(database_url) as office,
    ):
        endpoint = await office.endpoint(receiver.url)
        delivery_id = await office.write(endpoint)
        began_at = office.clock.now
        async with office.telling():
            for number, seconds in enumerate(SCHEDULE, start=1):
                ended_at = office.clock.now
                seen = await office.settle(endpoint, delivery_id, attempts=number)
                assert seen.standing == ("waiting", number)
                waits = (seen.delivery.due_at - ended_at) / SECOND
                assert waits == 5 if seconds == 5 else 0.9 * seconds <= waits <= 1.1 * seconds
                assert not await office.is_due(at=seen.delivery.due_at - 1)
                office.pass_until(seen.delivery.due_at)
            seen = await office.settle(endpoint, delivery_id, attempts=7)
            assert seen.standing == ("failed", 7)
            assert seen.delivery.ended_at == office.clock.now
            assert not await office.is_due(at=office.clock.now + 10**9 * SECOND)
        assert [attempt.number for attempt in seen.attempts] == [1, 2, 3, 4, 5, 6, 7]
        assert seen.statuses == [429] * 7
        assert {request.body for request in receiver.requests} == {seen.delivery.body}
        assert {json.loads(request.body)["id"] for request in receiver.requests} == {seen.delivery.event_id}
        signed_at = [int(request.headers["service-signature"][2:].partition(",")[0]) for request in receiver.requests]
        assert signed_at == [attempt.started_at // SECOND for attempt in seen.attempts]
        assert signed_at[0] == began_at // SECOND
        assert len(set(signed_at)) == len(receiver.requests) == 7
        assert office.events() == ["webhook_tried"] * 6 + ["webhook_failed"]
        counted = office.ctx.metrics.webhook_attempts.values
        assert counted == {("succeeded",): 0, ("retried",): 6, ("failed",): 1}


async def test_a_success_ends_it(url: str) -> None:
    answers = [BUSY, BUSY, webhook_receivers.ok(204)]
    async with (
        webhook_receivers.receiving(tls=False, answer=lambda _: answers.pop(0)) as receiver,
        offices.opened(url) as office,
    ):
        endpoint = await office.endpoint(receiver.url)
        delivery_id = await office.write(endpoint)
        async with office.telling():
            for number in (1, 2):
                seen = await office.settle(endpoint, delivery_id, attempts=number)
                office.pass_until(seen.delivery.due_at)
            seen = await office.settle(endpoint, delivery_id, attempts=3)
            assert seen.standing == ("succeeded", 3)
            assert seen.statuses == [503, 503, 204]
            assert not await office.is_due(at=office.clock.now + 10**9 * SECOND)
        assert office.events() == ["webhook_tried", "webhook_tried", "webhook_delivered"]
        assert office.ctx.metrics.webhook_connections.values == {(): 0}


async def test_the_log_names_the_delivery_and_nothing_that_is_secret(url: str) -> None:
    async with webhook_receivers.receiving(tls=False) as receiver, offices.opened(url) as office:
        endpoint = await office.endpoint(receiver.url + "?token=of-the-customer")
        delivery_id = await office.write(endpoint)
        async with office.telling():
            await office.settle(endpoint, delivery_id)
        (line,) = office.log
        assert line == {
            "event": "webhook_delivered",
            "log_level": "info",
            "delivery_id": delivery_id,
            "event_type": "email.delivered",
            "message_id": "em_1",
            "status_code": 200,
            "error": None,
            "attempt": 1,
        }


async def test_a_disabled_endpoint_holds_what_it_has_and_goes_on_when_it_is_enabled(url: str) -> None:
    async with webhook_receivers.receiving(tls=False, answer=BUSY) as receiver, offices.opened(url) as office:
        held, other = await office.endpoint(receiver.url), await office.endpoint(receiver.url)
        delivery_id = await office.write(held)
        async with office.telling():
            seen = await office.settle(held, delivery_id)
            await office.change(held, enabled=False)
            office.pass_until(seen.delivery.due_at)
            # That another endpoint is told shows that the engine has looked.
            await office.settle(other, await office.write(other))
            assert (await office.see(held, delivery_id)).standing == ("ready", 1)
            assert len(receiver.requests) == 2
            receiver.answer = webhook_receivers.OK
            await office.change(held, enabled=True)
            assert (await office.settle(held, delivery_id, attempts=2)).standing == ("succeeded", 2)


async def test_only_the_new_url_hears_of_what_is_still_to_be_told(url: str) -> None:
    async with (
        webhook_receivers.receiving(tls=False, answer=BUSY) as old,
        webhook_receivers.receiving(tls=False) as new,
        offices.opened(url) as office,
    ):
        endpoint = await office.endpoint(old.url)
        delivery_id = await office.write(endpoint)
        async with office.telling():
            seen = await office.settle(endpoint, delivery_id)
            assert seen.delivery.url == old.url
            await office.change(endpoint, url=new.url)
            office.pass_until(seen.delivery.due_at)
            seen = await office.settle(endpoint, delivery_id, attempts=2)
        assert (seen.standing, seen.delivery.url) == (("succeeded", 2), new.url)
        assert (len(old.requests), len(new.requests)) == (1, 1)


async def test_of_a_deleted_endpoint_nobody_hears_any_more(url: str) -> None:
    async with webhook_receivers.receiving(tls=False, answer=BUSY) as receiver, offices.opened(url) as office:
        deleted, other = await office.endpoint(receiver.url), await office.endpoint(receiver.url)
        delivery_id = await office.write(deleted)
        async with office.telling():
            seen = await office.settle(deleted, delivery_id)
            await services_webhooks.remove(office.ctx, deleted.account_id)
            office.pass_until(seen.delivery.due_at)
            marker = await office.write(other)
            await office.settle(other, marker)
        assert (await office.see(deleted, delivery_id)).standing == ("ready", 1)
        assert [request.body for request in receiver.requests][1:] == [(await office.see(other, marker)).delivery.body]


async def test_while_an_old_secret_is_good_both_sign(url: str) -> None:
    async with webhook_receivers.receiving(tls=False) as receiver, offices.opened(url) as office:
        endpoint = await office.endpoint(receiver.url)
        first = await services_webhooks.rotate(office.ctx, endpoint.account_id)
        second = await services_webhooks.rotate(office.ctx, endpoint.account_id, overlap_hours=1)
        async with office.telling():
            await office.settle(endpoint, await office.write(endpoint))
            office.pass_seconds(3600)
            await office.settle(endpoint, await office.write(endpoint))
        during, after = receiver.requests

        def accepted(request: webhook_receivers.Received) -> list[bool]:
            header = request.headers["service-signature"]
            now = int(header[2:].partition(",")[0])
            return [
                webhook_signature.why_refused(header, request.body, secret=secret, now=now) is None
                for secret in (second, first)
            ]

        assert during.headers["service-signature"].count("v1=") == 2
        assert accepted(during) == [True, True]
        assert after.headers["service-signature"].count("v1=") == 1
        assert accepted(after) == [True, False]


async def test_a_lost_workers_attempt_counts_and_the_next_one_follows(database_url: str) -> None:
    async with webhook_receivers.receiving(tls=False) as receiver, offices.opened(database_url) as office:
        endpoint = await office.endpoint(receiver.url)
        delivery_id = await office.write(endpoint)
        began_at = office.clock.now
        assert len(await office.claim_as(endpoint, "lost", seconds=30)) == 1
        async with office.telling():
            office.pass_seconds(30)
            seen = await office.settle(endpoint, delivery_id, attempts=2)
        assert seen.standing == ("succeeded", 2)
        assert seen.statuses == [None, 200]
        assert seen.attempts[0].started_at == began_at
        assert seen.attempts[0].error == dispatching.LOST
        assert office.events() == ["webhook_tried", "webhook_delivered"]


async def test_a_worker_lost_at_the_last_attempt_is_the_end(url: str) -> None:
    async with (
        webhook_receivers.receiving(tls=False, answer=BUSY) as receiver,
        offices.opened(url, retry_seconds=[5]) as office,
    ):
        endpoint = await office.endpoint(receiver.url)
        delivery_id = await office.write(endpoint)
        async with office.telling():
            seen = await office.settle(endpoint, delivery_id)
        office.pass_until(seen.delivery.due_at)
        async with office.ctx.store.transaction() as tx:
            await webhook_deliveries.promote(tx, now=office.clock.now, attempts=2, most=10)
        assert len(await office.claim_as(endpoint, "lost", seconds=30)) == 1
        async with office.telling():
            office.pass_seconds(30)
            seen = await office.settle(endpoint, delivery_id, attempts=2)
        assert seen.standing == ("failed", 2)
        assert seen.attempts[1].error == dispatching.LOST
        assert len(receiver.requests) == 1
        assert office.events() == ["webhook_tried", "webhook_failed"]


async def test_two_engines_on_one_store_tell_each_event_once(clean_postgres_url: str) -> None:
    async with (
        webhook_receivers.receiving(tls=False) as receiver,
        offices.opened(clean_postgres_url) as here,
        offices.opened(clean_postgres_url, clock=here.clock) as there,
    ):
        endpoints = [await here.endpoint(receiver.url) for _ in range(4)]
        written = [(endpoint, await here.write(endpoint)) for endpoint in endpoints for _ in range(25)]
        async with here.telling(), there.telling():
            await here.all_succeed(written)
        bodies = [request.body for request in receiver.requests]
        assert len(set(bodies)) == len(bodies) == 100
        assert set(here.events() + there.events()) == {"webhook_delivered"}


async def test_an_attempt_that_outlasts_the_grace_time_is_interrupted_and_comes_back(url: str) -> None:
    async with (
        webhook_receivers.receiving(tls=False, answer=hang) as receiver,
        offices.opened(url, grace_seconds=1) as office,
    ):
        endpoint = await office.endpoint(receiver.url)
        delivery_id = await office.write(endpoint)
        async with office.telling():
            await receiver.received(1)
        seen = await office.settle(endpoint, delivery_id)
        assert seen.standing == ("waiting", 1)
        assert seen.delivery.worker is None
        assert seen.delivery.due_at == office.clock.now + 5 * SECOND
        assert seen.attempts[0].error == attempting.STOPPED
        assert office.events() == ["webhook_grace_time_over", "webhook_tried"]
        assert office.ctx.metrics.webhook_connections.values == {(): 0}


async def test_an_attempt_that_is_under_way_at_the_stop_may_end(url: str) -> None:
    answers = asyncio.Event()

    async def answer(_: webhook_receivers.Received) -> bytes:
        await answers.wait()
        return webhook_receivers.OK

    async with webhook_receivers.receiving(tls=False, answer=answer) as receiver, offices.opened(url) as office:
        endpoint = await office.endpoint(receiver.url)
        delivery_id, stopping = await office.write(endpoint), asyncio.Event()
        made = engine.Engine(office.ctx, log=office.logger())
        task = asyncio.create_task(made.run(stopping))
        await receiver.received(1)
        stopping.set()
        await offices.until(lambda: made._is_stopping)
        answers.set()
        await task
        assert (await office.see(endpoint, delivery_id)).standing == ("succeeded", 1)


async def test_what_was_claimed_while_the_stop_came_is_handed_back(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with webhook_receivers.receiving(tls=False) as receiver, offices.opened(url) as office:
        endpoint = await office.endpoint(receiver.url)
        delivery_id, stopping = await office.write(endpoint), asyncio.Event()
        made = engine.Engine(office.ctx, log=office.logger())
        take = made._dispatching._take

        async def take_and_stop(plan: dispatching.Plan, *, now: int, is_due: bool) -> dispatching.Taken:
            taken = await take(plan, now=now, is_due=is_due)
            assert len(taken.claims) == 1
            stopping.set()
            await offices.until(lambda: made._is_stopping)
            return taken

        monkeypatch.setattr(made._dispatching, "_take", take_and_stop)
        await made.run(stopping)
        assert receiver.connections == 0
        seen = await office.see(endpoint, delivery_id)
        assert (seen.standing, seen.delivery.worker) == (("ready", 0), None)


async def test_a_cancelled_engine_ends_in_order_too(url: str) -> None:
    async with (
        webhook_receivers.receiving(tls=False, answer=hang) as receiver,
        offices.opened(url, grace_seconds=1) as office,
    ):
        endpoint = await office.endpoint(receiver.url)
        delivery_id = await office.write(endpoint)
        task = asyncio.create_task(engine.Engine(office.ctx, log=office.logger()).run(asyncio.Event()))
        await receiver.received(1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (await office.settle(endpoint, delivery_id)).attempts[0].error == attempting.STOPPED


async def test_a_store_that_is_away_is_asked_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TROUBLE_SECONDS", 0.001)
    async with webhook_receivers.receiving(tls=False) as receiver, offices.opened(url) as office:
        endpoint = await office.endpoint(receiver.url)
        delivery_id, steps = await office.write(endpoint), 0
        step = dispatching.Dispatching.step

        async def fail_at_first(self: dispatching.Dispatching) -> float | None:
            nonlocal steps
            steps += 1
            if steps < 3:
                raise errors.ServiceUnavailable("away", retry_after=1)
            return await step(self)

        monkeypatch.setattr(dispatching.Dispatching, "step", fail_at_first)
        async with office.telling():
            assert (await office.settle(endpoint, delivery_id)).standing == ("succeeded", 1)
        assert office.events() == ["webhooks_not_reached"] * 2 + ["webhook_delivered"]


async def test_a_bug_in_the_walk_is_for_the_role_to_tell(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: object) -> float | None:
        raise LookupError("a bug")

    monkeypatch.setattr(dispatching.Dispatching, "step", fail)
    async with offices.opened(url) as office:
        with pytest.raises(LookupError, match="a bug"):
            await engine.Engine(office.ctx, log=office.logger()).run(asyncio.Event())
