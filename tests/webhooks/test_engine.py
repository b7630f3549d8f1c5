"""The engine as a whole: the schedule, what changes under it, and how it stops."""

import asyncio
import json

import pytest

from postroad import errors
from postroad.protocol.signatures import webhook_signature
from postroad.services.webhooks import endpoints as services_endpoints
from postroad.storage.mail import webhooks
from postroad.webhooks import engine
from tests import webhook_server
from tests.contexts import SECOND
from tests.webhooks import webhook_harness

SCHEDULE = (5, 300, 1800, 7200, 18000, 36000)
BUSY = webhook_server.ok(503, b"busy")


async def hang(_: webhook_server.ReceivedRequest) -> bytes:
    await asyncio.Event().wait()
    return b""


async def test_a_endpoint_that_refuses_gets_exactly_seven_attempts_by_the_schedule(database_url: str) -> None:
    refusal = webhook_server.ok(429, b"no", "Retry-After: 999999")
    async with (
        webhook_server.running(tls=False, answer=refusal) as server,
        webhook_harness.opened(database_url) as harness,
    ):
        endpoint = await harness.endpoint(server.url)
        delivery_id = await harness.write(endpoint)
        began_at = harness.clock.now
        async with harness.delivering():
            for number, seconds in enumerate(SCHEDULE, start=1):
                ended_at = harness.clock.now
                seen = await harness.settle(endpoint, delivery_id, attempts=number)
                assert seen.standing == ("waiting", number)
                waits = (seen.delivery.due_at - ended_at) / SECOND
                assert waits == 5 if seconds == 5 else 0.9 * seconds <= waits <= 1.1 * seconds
                assert not await harness.is_due(at=seen.delivery.due_at - 1)
                harness.pass_until(seen.delivery.due_at)
            seen = await harness.settle(endpoint, delivery_id, attempts=7)
            assert seen.standing == ("failed", 7)
            assert seen.delivery.ended_at == harness.clock.now
            assert not await harness.is_due(at=harness.clock.now + 10**9 * SECOND)
        assert [attempt.number for attempt in seen.attempts] == [1, 2, 3, 4, 5, 6, 7]
        assert seen.statuses == [429] * 7
        assert {request.body for request in server.requests} == {seen.delivery.body}
        assert {json.loads(request.body)["id"] for request in server.requests} == {seen.delivery.event_id}
        signed_at = [int(request.headers["service-signature"][2:].partition(",")[0]) for request in server.requests]
        assert signed_at == [attempt.started_at // SECOND for attempt in seen.attempts]
        assert signed_at[0] == began_at // SECOND
        assert len(set(signed_at)) == len(server.requests) == 7
        assert harness.events() == ["webhook_retry_scheduled"] * 6 + ["webhook_failed"]
        counted = harness.ctx.metrics.webhook_attempts.values
        assert counted == {("succeeded",): 0, ("retried",): 6, ("failed",): 1}


async def test_the_log_names_the_delivery_and_nothing_that_is_secret(url: str) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url + "?token=of-the-customer")
        delivery_id = await harness.write(endpoint)
        async with harness.delivering():
            await harness.settle(endpoint, delivery_id)
        (line,) = harness.log
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
    async with webhook_server.running(tls=False, answer=BUSY) as server, webhook_harness.opened(url) as harness:
        held, other = await harness.endpoint(server.url), await harness.endpoint(server.url)
        delivery_id = await harness.write(held)
        async with harness.delivering():
            seen = await harness.settle(held, delivery_id)
            await harness.change(held, enabled=False)
            harness.pass_until(seen.delivery.due_at)
            # That another endpoint gets its event shows that the engine has polled.
            await harness.settle(other, await harness.write(other))
            assert (await harness.see(held, delivery_id)).standing == ("ready", 1)
            assert len(server.requests) == 2
            server.answer = webhook_server.OK
            await harness.change(held, enabled=True)
            assert (await harness.settle(held, delivery_id, attempts=2)).standing == ("succeeded", 2)


async def test_only_the_new_url_hears_of_what_is_still_to_be_sent(url: str) -> None:
    async with (
        webhook_server.running(tls=False, answer=BUSY) as old,
        webhook_server.running(tls=False) as new,
        webhook_harness.opened(url) as harness,
    ):
        endpoint = await harness.endpoint(old.url)
        delivery_id = await harness.write(endpoint)
        async with harness.delivering():
            seen = await harness.settle(endpoint, delivery_id)
            assert seen.delivery.url == old.url
            await harness.change(endpoint, url=new.url)
            harness.pass_until(seen.delivery.due_at)
            seen = await harness.settle(endpoint, delivery_id, attempts=2)
        assert (seen.standing, seen.delivery.url) == (("succeeded", 2), new.url)
        assert (len(old.requests), len(new.requests)) == (1, 1)


async def test_of_a_deleted_endpoint_nobody_hears_any_more(url: str) -> None:
    async with webhook_server.running(tls=False, answer=BUSY) as server, webhook_harness.opened(url) as harness:
        deleted, other = await harness.endpoint(server.url), await harness.endpoint(server.url)
        delivery_id = await harness.write(deleted)
        async with harness.delivering():
            seen = await harness.settle(deleted, delivery_id)
            await services_endpoints.remove(harness.ctx, deleted.account_id)
            harness.pass_until(seen.delivery.due_at)
            marker = await harness.write(other)
            await harness.settle(other, marker)
        assert (await harness.see(deleted, delivery_id)).standing == ("ready", 1)
        assert [request.body for request in server.requests][1:] == [(await harness.see(other, marker)).delivery.body]


async def test_while_an_old_secret_is_good_both_sign(url: str) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url)
        first = await services_endpoints.rotate(harness.ctx, endpoint.account_id)
        second = await services_endpoints.rotate(harness.ctx, endpoint.account_id, overlap_hours=1)
        async with harness.delivering():
            await harness.settle(endpoint, await harness.write(endpoint))
            harness.pass_seconds(3600)
            await harness.settle(endpoint, await harness.write(endpoint))
        during, after = server.requests

        def accepted(request: webhook_server.ReceivedRequest) -> list[bool]:
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
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(database_url) as harness:
        endpoint = await harness.endpoint(server.url)
        delivery_id = await harness.write(endpoint)
        began_at = harness.clock.now
        assert len(await harness.claim_as(endpoint, "lost", seconds=30)) == 1
        async with harness.delivering():
            harness.pass_seconds(30)
            seen = await harness.settle(endpoint, delivery_id, attempts=2)
        assert seen.standing == ("succeeded", 2)
        assert seen.statuses == [None, 200]
        assert seen.attempts[0].started_at == began_at
        assert seen.attempts[0].error == engine.WORKER_LOST
        assert harness.events() == ["webhook_retry_scheduled", "webhook_delivered"]


async def test_a_worker_lost_at_the_last_attempt_is_the_end(url: str) -> None:
    async with (
        webhook_server.running(tls=False, answer=BUSY) as server,
        webhook_harness.opened(url, retry_seconds=[5]) as harness,
    ):
        endpoint = await harness.endpoint(server.url)
        delivery_id = await harness.write(endpoint)
        async with harness.delivering():
            seen = await harness.settle(endpoint, delivery_id)
        harness.pass_until(seen.delivery.due_at)
        async with harness.ctx.store.transaction() as tx:
            await webhooks.promote(tx, now=harness.clock.now, attempts=2, limit=10)
        assert len(await harness.claim_as(endpoint, "lost", seconds=30)) == 1
        async with harness.delivering():
            harness.pass_seconds(30)
            seen = await harness.settle(endpoint, delivery_id, attempts=2)
        assert seen.standing == ("failed", 2)
        assert seen.attempts[1].error == engine.WORKER_LOST
        assert len(server.requests) == 1
        assert harness.events() == ["webhook_retry_scheduled", "webhook_failed"]


async def test_two_engines_on_one_store_send_each_event_once(clean_postgres_url: str) -> None:
    async with (
        webhook_server.running(tls=False) as server,
        webhook_harness.opened(clean_postgres_url) as here,
        webhook_harness.opened(clean_postgres_url, clock=here.clock) as there,
    ):
        endpoints = [await here.endpoint(server.url) for _ in range(4)]
        written = [(endpoint, await here.write(endpoint)) for endpoint in endpoints for _ in range(25)]
        async with here.delivering(), there.delivering():
            await here.all_succeed(written)
        bodies = [request.body for request in server.requests]
        assert len(set(bodies)) == len(bodies) == 100
        assert set(here.events() + there.events()) == {"webhook_delivered"}


async def test_an_attempt_that_outlasts_the_grace_time_is_interrupted_and_comes_back(url: str) -> None:
    async with (
        webhook_server.running(tls=False, answer=hang) as server,
        webhook_harness.opened(url, grace_seconds=1) as harness,
    ):
        endpoint = await harness.endpoint(server.url)
        delivery_id = await harness.write(endpoint)
        async with harness.delivering():
            await server.received(1)
        seen = await harness.settle(endpoint, delivery_id)
        assert seen.standing == ("waiting", 1)
        assert seen.delivery.worker is None
        assert seen.delivery.due_at == harness.clock.now + 5 * SECOND
        assert seen.attempts[0].error == engine.STOPPED
        assert harness.events() == ["webhook_grace_period_exceeded", "webhook_retry_scheduled"]
        assert harness.ctx.metrics.webhook_connections.values == {(): 0}


async def test_an_attempt_that_is_under_way_at_the_stop_may_end(url: str) -> None:
    answers = asyncio.Event()

    async def answer(_: webhook_server.ReceivedRequest) -> bytes:
        await answers.wait()
        return webhook_server.OK

    async with webhook_server.running(tls=False, answer=answer) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url)
        delivery_id, stopping = await harness.write(endpoint), asyncio.Event()
        made = engine.Engine(harness.ctx, log=harness.logger())
        task = asyncio.create_task(made.run(stopping))
        await server.received(1)
        stopping.set()
        await webhook_harness.until(lambda: made._is_stopping)
        answers.set()
        await task
        assert (await harness.see(endpoint, delivery_id)).standing == ("succeeded", 1)


async def test_what_was_claimed_while_the_stop_came_is_handed_back(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url)
        delivery_id, stopping = await harness.write(endpoint), asyncio.Event()
        made = engine.Engine(harness.ctx, log=harness.logger())
        take = made._dispatcher._claim

        async def take_and_stop(plan: engine.Plan, *, now: int, is_due: bool) -> engine.ClaimedBatch:
            taken = await take(plan, now=now, is_due=is_due)
            assert len(taken.claims) == 1
            stopping.set()
            await webhook_harness.until(lambda: made._is_stopping)
            return taken

        monkeypatch.setattr(made._dispatcher, "_claim", take_and_stop)
        await made.run(stopping)
        assert server.connections == 0
        seen = await harness.see(endpoint, delivery_id)
        assert (seen.standing, seen.delivery.worker) == (("ready", 0), None)


async def test_a_cancelled_engine_ends_in_order_too(url: str) -> None:
    async with (
        webhook_server.running(tls=False, answer=hang) as server,
        webhook_harness.opened(url, grace_seconds=1) as harness,
    ):
        endpoint = await harness.endpoint(server.url)
        delivery_id = await harness.write(endpoint)
        task = asyncio.create_task(engine.Engine(harness.ctx, log=harness.logger()).run(asyncio.Event()))
        await server.received(1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (await harness.settle(endpoint, delivery_id)).attempts[0].error == engine.STOPPED


async def test_a_store_that_is_away_is_asked_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ERROR_BACKOFF_SECONDS", 0.001)
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url)
        delivery_id, steps = await harness.write(endpoint), 0
        step = engine.Dispatcher.step

        async def fail_at_first(self: engine.Dispatcher) -> float | None:
            nonlocal steps
            steps += 1
            if steps < 3:
                raise errors.ServiceUnavailable("away", retry_after=1)
            return await step(self)

        monkeypatch.setattr(engine.Dispatcher, "step", fail_at_first)
        async with harness.delivering():
            assert (await harness.settle(endpoint, delivery_id)).standing == ("succeeded", 1)
        assert harness.events() == ["webhook_queue_unavailable"] * 2 + ["webhook_delivered"]


async def test_a_bug_in_the_walk_is_for_the_role_to_tell(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: object) -> float | None:
        raise LookupError("a bug")

    monkeypatch.setattr(engine.Dispatcher, "step", fail)
    async with webhook_harness.opened(url) as harness:
        with pytest.raises(LookupError, match="a bug"):
            await engine.Engine(harness.ctx, log=harness.logger()).run(asyncio.Event())
