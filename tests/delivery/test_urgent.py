"""Urgent mail: it goes before what waits, is retried soon, and tries the next host at once."""

from collections.abc import Sequence
from typing import Any

import pytest

from postroad.delivery import dispatcher
from postroad.storage.engine import store
from postroad.storage.mail import queue
from tests import smtp_peers
from tests.delivery import bulk_queue, engine_harness, parts
from tests.reliability import sinks

WAITING = 200


async def test_a_code_goes_before_the_mail_that_waits_for_the_same_destination(database_url: str) -> None:
    async with (
        sinks.running() as sink,
        engine_harness.running_engine(database_url, port=sink.port) as harness,
    ):
        await harness.prove()
        sink.hold(sinks.Point.CONTENT)
        await bulk_queue.fill(harness.ctx, harness.account_id, "example.net", count=WAITING)
        await sink.waiting(sinks.Point.CONTENT)
        await harness.send("code@example.net", expires_in=300)

        async def is_here() -> bool:
            return any(one.capacity.has_urgent for one in harness.engine._dispatcher.provider_queues.by_name.values())

        await parts.until(is_here)
        await parts.until(lambda: is_queued(harness))
        under_way = sink.connections
        sink.release(sinks.Point.CONTENT)
        await sink.got(WAITING + 2)
        assert sink.recipients.index("code@example.net") <= under_way + 1


async def is_queued(harness: engine_harness.EngineHarness) -> bool:
    """Whether nothing is being prepared any more."""
    return not harness.engine._dispatcher._preparations


async def test_a_code_is_retried_after_seconds_and_other_mail_after_a_minute(url: str) -> None:
    async with engine_harness.delivering_to(url, {"RCPT": "451 4.3.0 not today"}) as (_, harness):
        code, letter = await harness.send(expires_in=300), await harness.send("bob@example.net", expires_in=3600)
        for message_id, seconds in ((code, 5), (letter, 60)):
            await harness.settle(message_id)
            assert seconds <= await harness.due_in(message_id) <= seconds * 1.1
        harness.pass_seconds(await harness.due_in(code))
        await harness.settle(code, attempts=2)
        assert 10 <= await harness.due_in(code) <= 11


@pytest.mark.parametrize(
    "expires_in, reply, status",
    [
        (900, "451 4.3.0 not today", "delivered"),
        (901, "451 4.3.0 not today", "deferred"),
        # What the provider asks for holds for all.
        (900, "451 4.7.0 too many messages, slow down", "deferred"),
        (900, "450 4.7.1 Greylisted, please try again in 300 seconds", "deferred"),
    ],
)
async def test_a_code_that_one_host_cannot_take_now_is_tried_with_the_next_one(
    url: str, expires_in: int, reply: str, status: str
) -> None:
    first, second = engine_harness.loopback_addresses(2)
    zones = engine_harness.zones_of({"mx1.example.net": first, "mx2.example.net": second})
    async with (
        smtp_peers.serving({"RCPT": reply}, host=first) as busy,
        smtp_peers.serving(host=second, port=busy.port) as other,
        engine_harness.running_engine(url, port=busy.port, zones=zones) as harness,
    ):
        seen = await harness.settle(await harness.send(expires_in=expires_in))
        assert (seen.recipient.status, len(seen.attempts)) == (status, 1)
    assert len(other.transactions) == (status == "delivered")
    assert busy.verbs().count("RCPT") == 1


async def test_urgent_mail_that_cannot_be_sent_now_does_not_hide_that_of_others(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "MAX_QUEUES_PER_STEP", 2)
    wanted: list[tuple[str, bool]] = []
    claim = queue.claim

    async def noted(tx: store.Transaction, requests: Sequence[queue.ClaimRequest], **more: Any) -> list[queue.Claimed]:
        wanted.extend((queue.domain_of(request.queue_key), request.is_urgent) for request in requests)
        return await claim(tx, requests, **more)

    monkeypatch.setattr(queue, "claim", noted)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.router.known["example.net"] = parts.route_to(parts.host_at(peer.port))
        # Their name servers do not answer, and they are the first in every list.
        for name in ("a.example", "b.example", "c.example"):
            made.router.to_find[name] = made.router.known["example.net"]
            await made.accept(f"ada@{name}", expires_in=300)
        made.router.go_on.clear()
        await made.accept("code@example.net", expires_in=300)
        one = made.dispatching()
        for _ in range(2):
            await one.step()
        assert ("example.net", True) in wanted
        await one.stop()
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
