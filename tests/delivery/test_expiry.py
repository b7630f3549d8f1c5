"""Recipients with a time of their own: when it is over they expire at once, and are never sent."""

import contextlib

import pytest

from postroad.model.units import times
from postroad.services.operations import operator_jobs
from postroad.services.queue import holds
from postroad.storage.mail import delivery_controls as stored_holds
from postroad.storage.mail import queue
from tests import contexts, smtp_peers
from tests.delivery import engine_harness, parts
from tests.reliability import sinks

LEASE_SECONDS = 60


@pytest.fixture
def trusted_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that a test moves is right, and no jump."""
    monkeypatch.setattr(times, "LEASE_TOLERANCE", 10**15)


async def ended(harness: engine_harness.EngineHarness, message_id: str) -> engine_harness.Seen:
    """The message when its only recipient is final."""

    async def is_final() -> bool:
        return (await harness.see(message_id)).recipient.status not in {"queued", "deferred"}

    await parts.until(is_final)
    await harness.rest(message_id)
    assert (await operator_jobs.check_consistency(harness.ctx)).findings == []
    return await harness.see(message_id)


async def in_force(harness: engine_harness.EngineHarness) -> list[stored_holds.Hold]:
    async with harness.ctx.store.reading() as tx:
        return list((await stored_holds.holds_in_force(tx)).values())


@pytest.mark.usefixtures("trusted_clock")
async def test_a_recipient_that_waits_expires_with_the_last_reply_and_its_credit_comes_back(database_url: str) -> None:
    async with engine_harness.delivering_to(database_url, {"RCPT": "451 4.3.0 not today"}) as (peer, harness):
        message_id = await harness.send(expires_in=3600)
        assert (await harness.settle(message_id)).standing == ("deferred", 1, 451)
        harness.pass_seconds(3600)
        seen = await ended(harness, message_id)
        assert seen.standing == ("expired", 1, 451)
        assert seen.recipient.last_smtp_response == "4.3.0 not today"
        assert (seen.message.status, seen.message.billing_status) == ("failed", "released")
        assert await harness.credits() == (0, 0)
        assert "recipient_expired" in [entry["event"] for entry in harness.log]
        harness.pass_seconds(86_400)
        assert (await harness.settle(await harness.send("bob@example.net"))).recipient.status == "deferred"
    assert peer.verbs().count("RCPT") == 2


@pytest.mark.usefixtures("trusted_clock")
async def test_what_is_held_expires_in_its_time_and_is_never_sent(url: str) -> None:
    async with engine_harness.delivering_to(url) as (peer, harness):
        await holds.hold(harness.ctx, account_id=harness.account_id)
        message_id = await harness.send(expires_in=60)
        harness.pass_seconds(60)
        seen = await ended(harness, message_id)
        assert (seen.standing, seen.attempts) == (("expired", 0, None), [])
        assert seen.recipient.last_smtp_response == "not attempted before it expired"
        assert await harness.credits() == (0, 0)
    assert peer.transactions == []


@pytest.mark.usefixtures("trusted_clock")
async def test_the_last_attempt_comes_before_the_end(url: str) -> None:
    script: smtp_peers.Script = {"RCPT": ["451 4.3.0 not yet", "451 4.3.0 not yet", "250 2.1.5 ok"]}
    async with engine_harness.delivering_to(url, script, retry_seconds=[60, 7200]) as (peer, harness):
        message_id = await harness.send(expires_in=3600)
        await harness.settle(message_id)
        harness.pass_seconds(await harness.due_in(message_id))
        await harness.settle(message_id, attempts=2)
        due_in = await harness.due_in(message_id)
        passed = (harness.clock.now - contexts.Clock().now) / contexts.SECOND
        assert passed + due_in == 3540
        harness.pass_seconds(due_in)
        assert (await harness.settle(message_id, attempts=3)).standing == ("delivered", 3, 250)
    assert len(peer.transactions) == 1


@pytest.mark.usefixtures("trusted_clock")
@pytest.mark.parametrize(
    "reply, status", [(sinks.ACCEPTED, "delivered"), ("451 4.3.0 busy", "expired")], ids=["delivered", "expired"]
)
async def test_a_message_that_is_sent_at_its_end_ends_as_the_destination_says(
    url: str, reply: str, status: str
) -> None:
    async with (
        sinks.running() as sink,
        engine_harness.running_engine(url, port=sink.port, lease_seconds=600) as harness,
    ):
        sink.answer = lambda recipients: reply if recipients == ["ada@example.net"] else sinks.ACCEPTED
        sink.hold(sinks.Point.CONTENT)
        message_id = await harness.send(expires_in=60)
        await sink.waiting(sinks.Point.CONTENT)
        gate = sink.let_others_pass(sinks.Point.CONTENT)
        harness.pass_seconds(61)
        # The engine has looked at the queue since.
        await harness.settle(await harness.send("bob@example.net"))
        assert (await harness.see(message_id)).standing == ("queued", 0, None)
        gate.set()
        seen = await ended(harness, message_id)
        assert (seen.recipient.status, seen.recipient.attempt_count) == (status, 1)
        assert seen.recipient.last_smtp_response == reply[4:]
        assert await harness.credits() == (1 + (status == "delivered"), 0)
    assert sink.recipients.count("ada@example.net") == (status == "delivered")


@pytest.mark.usefixtures("trusted_clock")
async def test_an_attempt_is_ended_with_the_time_of_its_recipient(url: str) -> None:
    async with sinks.running() as sink, engine_harness.running_engine(url, port=sink.port) as harness:
        sink.hold(sinks.Point.DATA)
        await holds.hold(harness.ctx)
        message_id = await harness.send(expires_in=60)
        harness.pass_seconds(59.8)
        for one in await in_force(harness):
            await holds.release(harness.ctx, one)
        # A reply may take longer.
        assert (await harness.settle(message_id)).recipient.status == "deferred"
        harness.pass_seconds(1)
        assert (await ended(harness, message_id)).recipient.status == "expired"
        sink.release(sinks.Point.DATA)
    assert sink.taken == []


# Clocks that jump, and workers that die.


async def test_a_jump_of_the_clock_ends_nobodys_time_before_a_lease_has_passed(database_url: str) -> None:
    time = parts.Time()
    async with parts.opened(database_url, time=time) as made:
        one = made.dispatching()
        await holds.hold(made.ctx)
        message_id = await made.accept(expires_in=1800)
        await one.step()
        made.clock.pass_seconds(3600)
        for monotonic, status in ((1, "queued"), (LEASE_SECONDS - 2, "queued"), (3, "expired")):
            time.now += monotonic
            await one.step()
            await parts.until(lambda: len(made.held) == 0)
            assert await made.statuses(message_id) == [status]
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []


async def test_a_clock_that_is_set_right_again_has_ended_nobodys_time(database_url: str) -> None:
    time = parts.Time()
    async with parts.opened(database_url, time=time) as made:
        one = made.dispatching()
        await holds.hold(made.ctx)
        message_id = await made.accept(expires_in=1800)
        for jump in (0, 3600, -3600, 0):
            made.clock.pass_seconds(jump)
            time.now += LEASE_SECONDS - 1
            await one.step()
        assert await made.statuses(message_id) == ["queued"]


@pytest.mark.usefixtures("trusted_clock")
@pytest.mark.parametrize("died", ["while it was expiring", "while it was sending"])
async def test_what_a_dead_worker_held_expires_once_and_is_not_sent(database_url: str, died: str) -> None:
    async with parts.opened(database_url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        one = made.dispatching()
        message_id = await made.accept(expires_in=60)
        is_expiring = died == "while it was expiring"
        made.clock.pass_seconds(60 if is_expiring else 30)
        async with made.ctx.store.transaction() as tx:
            now = made.clock()
            until = now + LEASE_SECONDS * contexts.SECOND
            if is_expiring:
                assert len(await queue.claim_expired(tx, now=now, limit=9, lease_until=until, worker="dead")) == 1
            else:
                wanted = [queue.ClaimRequest(queue.queue_key_of("example.net", made.account_id), 9)]
                assert len(await queue.claim(tx, wanted, lease_until=until, worker="dead")) == 1
        made.clock.pass_seconds(LEASE_SECONDS - 1)
        await one.step()
        assert await made.statuses(message_id) == ["queued"]
        made.clock.pass_seconds(1)
        await one.step()  # finds the lease over
        await one.step()
        await parts.until(lambda: len(made.held) == 0)
        assert await made.statuses(message_id) == ["expired"]
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []
        await one.stop()
    assert peer.transactions == []


@pytest.mark.usefixtures("trusted_clock")
async def test_an_urgent_message_that_waits_for_a_connection_expires_in_its_time(url: str) -> None:
    async with (
        parts.opened(url, connections=5) as made,
        smtp_peers.serving() as peer,
        contextlib.AsyncExitStack() as busy,
    ):
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        for _ in range(4):
            await busy.enter_async_context(
                made.services.permits.acquire(made.account_id, is_responsive=True, on_slow=lambda: None)
            )
        one = made.dispatching()
        message_id = await made.accept(expires_in=60)
        made.clock.pass_seconds(30)
        await one.step()
        await parts.until(lambda: one.provider_queues.by_name["mx.example.net"]._jobs.count == 1)
        made.clock.pass_seconds(30)
        await one.step()  # returns it
        await one.step()
        await parts.until(lambda: len(made.held) == 0)
        assert await made.statuses(message_id) == ["expired"]
        await busy.aclose()
        await one.stop()
    assert peer.transactions == []
