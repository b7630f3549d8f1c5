"""Dispatching: what a step takes, in whose turn, and that it takes no more than can be begun."""

import asyncio
import itertools
from collections.abc import Sequence

import msgspec
import pytest

from postroad import errors
from postroad.services.operations import operator_jobs
from postroad.services.webhooks import endpoints as services_endpoints
from postroad.storage.engine import store
from postroad.storage.mail import webhooks
from postroad.webhooks import engine
from tests import webhook_server
from tests.contexts import SECOND
from tests.webhooks import webhook_harness

# Nobody listens here; what is not attempted does not care.
NOWHERE = "http://127.0.0.1:9/"


async def test_only_as_much_is_claimed_as_there_are_places(url: str) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url)
        written = sorted([await harness.write(endpoint) for _ in range(5)])
        parts = harness.parts(slots=10, per_account=5)
        assert await parts.dispatching.step() is None
        states = [(await harness.see(endpoint, delivery_id)).standing for delivery_id in written]
        assert states == [("waiting", 1)] * 2 + [("ready", 0)] * 3
        assert parts.shares.free == 8
        await parts.finish()
        assert parts.shares.free == 10
        assert {request.body for request in await server.received(2)} == {
            (await harness.see(endpoint, delivery_id)).delivery.body for delivery_id in written[:2]
        }


async def test_a_round_without_anything_to_take_ends_and_writes_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with webhook_harness.opened(url) as harness:
        disabled, deleted = await harness.endpoint(NOWHERE), await harness.endpoint(NOWHERE)
        await harness.write(disabled)
        await harness.write(deleted)
        await harness.change(disabled, enabled=False)
        await services_endpoints.remove(harness.ctx, deleted.account_id)
        parts = harness.parts()
        monkeypatch.setattr(type(harness.ctx.store), "transaction", None)
        assert await parts.dispatching.step() == 2 * engine.IDLE_SECONDS_PER_ENDPOINT
        assert await parts.dispatching.step() == 2 * engine.IDLE_SECONDS_PER_ENDPOINT
        assert not parts.attempting.has_waiting
        await parts.finish()


async def test_a_listener_is_sent_nothing_and_is_removed_when_nobody_asks_for_its_events(url: str) -> None:
    async with webhook_harness.opened(url) as harness:
        listener = await harness.endpoint(NOWHERE)
        async with harness.ctx.store.transaction() as tx:
            await webhooks.update(tx, msgspec.structs.replace(listener, url=webhooks.LISTENER_URL))
        delivery_id = await harness.write(listener)
        parts = harness.parts()
        assert await parts.dispatching.step() is not None
        assert (await harness.see(listener, delivery_id)).standing == ("ready", 0)
        harness.clock.pass_seconds(601)
        await parts.dispatching.step()
        assert await services_endpoints.of_account(harness.ctx, listener.account_id) == []
        await parts.finish()


async def test_what_one_endpoint_does_not_need_is_for_the_others(url: str) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoints = [await harness.endpoint(server.url) for _ in range(3)]
        for endpoint in endpoints:
            await harness.write(endpoint)
        parts = harness.parts(slots=6)
        assert await parts.dispatching.step() is None
        assert parts.shares.free == 3
        await parts.finish()
        assert len(server.requests) == 3


async def test_more_slow_endpoints_than_places_for_them_all_get_their_turn(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MAX_ENDPOINTS_PER_STEP", 3)
    seconds = itertools.count(step=5)  # whoever looks at this clock finds that five seconds have passed
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoints = [await harness.endpoint(server.url) for _ in range(8)]
        for endpoint in endpoints:
            for _ in range(6):
                await harness.write(endpoint)
        parts = harness.parts(slots=2, time=lambda: next(seconds))
        for _ in range(40):
            await parts.dispatching.step()
            assert parts.shares.free >= 1
            await parts.attempting.finish(grace_seconds=webhook_harness.TIMEOUT_SECONDS)
            if len(server.requests) == 16:
                break
        await parts.finish()
        reported = [
            len([row for row in await log_of(harness, endpoint) if row.attempt_count]) for endpoint in endpoints
        ]
        assert min(reported) >= 1


async def test_an_account_that_begins_to_hang_loses_its_privilege_while_it_hangs(url: str) -> None:
    advance, seconds = asyncio.Event(), 0.0

    async def answer(_: webhook_server.ReceivedRequest) -> bytes:
        await advance.wait()
        return webhook_server.OK

    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        proven, new = await harness.endpoint(server.url), await harness.endpoint(server.url)
        parts = harness.parts(slots=4, time=lambda: seconds)
        await harness.write(proven)
        assert await parts.dispatching.step() is None
        await parts.attempting.finish(grace_seconds=webhook_harness.TIMEOUT_SECONDS)
        server.answer = answer
        for _ in range(2):
            await harness.write(proven)
        assert await parts.dispatching.step() is None
        await server.received(3)
        seconds = 1.0
        delivery_id = await harness.write(new)
        assert await parts.dispatching.step() == engine.IDLE_SECONDS_PER_ENDPOINT
        assert (await harness.see(new, delivery_id)).standing == ("ready", 0)
        assert parts.shares.free == 2, "they are for accounts that answer"
        advance.set()
        await parts.attempting.finish(grace_seconds=webhook_harness.TIMEOUT_SECONDS)
        assert await parts.dispatching.step() is None
        await parts.finish()
        assert (await harness.settle(new, delivery_id)).standing == ("succeeded", 1)


async def log_of(harness: webhook_harness.WebhookHarness, endpoint: webhooks.Webhook) -> list[webhooks.Delivery]:
    async with harness.ctx.store.scanning() as tx:
        return await webhooks.delivery_page(
            tx, endpoint.account_id, endpoint.id, before="whd_g", ended_after=0, limit=100
        )


async def test_without_a_place_nothing_is_read_and_the_end_of_an_attempt_wakes(url: str) -> None:
    advance = asyncio.Event()

    async def answer(_: webhook_server.ReceivedRequest) -> bytes:
        await advance.wait()
        return webhook_server.OK

    async with webhook_server.running(tls=False, answer=answer) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url)
        for _ in range(2):
            await harness.write(endpoint)
        parts = harness.parts(slots=1)
        assert await parts.dispatching.step() is None
        assert await parts.dispatching.step() == 0.0
        assert parts.wakes == []
        advance.set()
        await parts.attempting.finish(grace_seconds=webhook_harness.TIMEOUT_SECONDS)
        assert parts.wakes == [None]
        assert await parts.dispatching.step() is None
        await parts.finish()
        assert parts.wakes == [None], "nobody waited for the second"


async def test_while_too_many_results_are_unrecorded_nothing_is_claimed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MAX_UNRECORDED", 0)
    async with webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(NOWHERE)
        delivery_id = await harness.write(endpoint)
        parts = harness.parts()
        assert await parts.dispatching.step() == 0.0
        assert (await harness.see(endpoint, delivery_id)).standing == ("ready", 0)
        await parts.finish()


async def test_what_was_claimed_too_long_ago_is_handed_back(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url, lease_seconds=60) as harness:
        endpoint = await harness.endpoint(server.url)
        delivery_id = await harness.write(endpoint)
        parts = harness.parts()
        claim = webhooks.claim

        async def claim_slowly(
            tx: store.Transaction, wanted: Sequence[tuple[str, int]], *, lease_until: int, worker: str
        ) -> list[webhooks.Claimed]:
            harness.clock.pass_seconds(15)
            return await claim(tx, wanted, lease_until=lease_until, worker=worker)

        monkeypatch.setattr(webhooks, "claim", claim_slowly)
        await parts.dispatching.step()
        seen = await harness.see(endpoint, delivery_id)
        assert (seen.standing, seen.delivery.worker) == (("ready", 0), None)
        assert parts.shares.free == 10
        await parts.finish()
        assert server.connections == 0


async def test_what_cannot_be_handed_back_comes_back_by_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(NOWHERE)
        delivery_id = await harness.write(endpoint)
        parts = harness.parts()

        async def fail(*_: object, **__: object) -> None:
            raise errors.ServiceUnavailable("away", retry_after=1)

        take = parts.dispatching._claim

        async def take_and_stop(plan: engine.Plan, *, now: int, is_due: bool) -> engine.ClaimedBatch:
            taken = await take(plan, now=now, is_due=is_due)
            parts.dispatching.stop()
            return taken

        with monkeypatch.context() as patch:
            patch.setattr(parts.dispatching, "_claim", take_and_stop)
            patch.setattr(webhooks, "release", fail)
            await parts.dispatching.step()
        await parts.finish()
        assert harness.events() == ["webhook_lease_release_failed"]
        assert await harness.is_due(at=harness.clock.now + 30 * SECOND)
        assert (await harness.see(endpoint, delivery_id)).standing == ("waiting", 1)
        assert parts.shares.free == 10


async def test_places_are_given_back_when_the_store_fails(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(NOWHERE)
        await harness.write(endpoint)
        parts = harness.parts()

        async def fail(*_: object, **__: object) -> None:
            raise errors.TemporaryFailure("slow", retry_after=1)

        monkeypatch.setattr(webhooks, "claim", fail)
        with pytest.raises(errors.TemporaryFailure):
            await parts.dispatching.step()
        assert parts.shares.free == 10
        await parts.finish()


@pytest.mark.parametrize("change", ["disabled", "deleted"])
async def test_what_loses_its_endpoint_while_it_is_claimed_goes_back(
    url: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url)
        delivery_id = await harness.write(endpoint)
        parts, claim = harness.parts(), webhooks.claim

        async def claim_and_change(
            tx: store.Transaction, wanted: Sequence[tuple[str, int]], *, lease_until: int, worker: str
        ) -> list[webhooks.Claimed]:
            claimed = await claim(tx, wanted, lease_until=lease_until, worker=worker)
            # As PostgreSQL shows the change of another transaction to the statements that follow.
            if change == "deleted":
                await webhooks.remove_secrets(tx, endpoint.id)
            else:
                await webhooks.update(tx, msgspec.structs.replace(endpoint, enabled=0))
            return claimed

        monkeypatch.setattr(webhooks, "claim", claim_and_change)
        await parts.dispatching.step()
        assert (await harness.see(endpoint, delivery_id)).standing == ("ready", 0)
        assert parts.shares.free == 10
        await parts.finish()
        assert server.connections == 0


async def test_what_is_due_is_made_ready_even_when_nothing_can_be_claimed_of_it(url: str) -> None:
    async with webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(NOWHERE)
        delivery_id = await harness.write(endpoint)
        await harness.claim_as(endpoint, "lost", seconds=30)
        await harness.change(endpoint, enabled=False)
        harness.pass_seconds(30)
        parts = harness.parts()
        assert await parts.dispatching.step() is None
        assert await parts.dispatching.step() == engine.IDLE_SECONDS_PER_ENDPOINT
        seen = await harness.see(endpoint, delivery_id)
        assert seen.standing == ("ready", 1)
        assert [attempt.error for attempt in seen.attempts] == [engine.WORKER_LOST]
        assert (await operator_jobs.check_consistency(harness.ctx)).findings == []
        await parts.finish()


@pytest.mark.parametrize(
    "steps",
    [
        # It goes round, and ends where something was had last.
        [
            ("abcdefg", "", "ab", True),
            ("abcdefg", "c", "cd", True),
            ("abcdefg", "", "ef", True),
            ("abcdefg", "", "g", True),
            ("abcdefg", "", "ab", True),
            ("abcdefg", "", "cd", False),
            ("abcdefg", "e", "ef", True),
        ],
        # It ends although the endpoints where it began are gone.
        [("abcdef", "ac", "ab", True), ("abcdef", "ac", "cd", True), ("a", "", "", True), ("a", "", "a", False)],
        [("a", "a", "a", True), ("a", "", "a", False), ("", "", "", False)],
    ],
)
def test_the_walk_over_endpoints(steps: list[tuple[str, str, str, bool]], monkeypatch: pytest.MonkeyPatch) -> None:
    """In each step: which endpoints there are, which have work, what is looked at, and whether it goes on."""
    monkeypatch.setattr(engine, "MAX_ENDPOINTS_PER_STEP", 2)
    walk = engine.EndpointCursor()
    for names, working, expected, goes_on in steps:
        found = [name for name in names if name > walk.after][:2]
        assert ("".join(found), walk.advance(found, has_found_work=bool({*found} & {*working}))) == (expected, goes_on)
