"""Recording: what an answer becomes in the store, and that none is lost while the store is unavailable."""

import asyncio

import pytest

from postroad import errors
from postroad.network.http import guarded_client as webhook_client
from postroad.services.webhooks import signed_requests as webhook_attempt
from postroad.storage.engine import group_commit
from postroad.storage.mail import webhooks
from postroad.webhooks import engine
from tests.contexts import SECOND
from tests.storage import webhook_samples
from tests.webhooks import webhook_harness

URL = "http://127.0.0.1:9/now"
ENDPOINT = webhook_samples.webhook(url=URL)
YES = webhook_client.WebhookResponse(status_code=204, body="", error=None)
NO = webhook_client.WebhookResponse(status_code=500, body="no", error=None)
SILENT = webhook_client.WebhookResponse(
    status_code=None, body=None, error="timeout: no complete response within 5 seconds"
)


def attempted(
    harness: webhook_harness.WebhookHarness, answer: webhook_client.WebhookResponse
) -> webhook_attempt.AttemptResult:
    return webhook_attempt.AttemptResult(
        started_at=harness.clock.now - 2 * SECOND, duration=2 * SECOND, response=answer
    )


async def claimed(
    harness: webhook_harness.WebhookHarness, count: int = 1
) -> tuple[webhooks.Webhook, list[webhooks.Claimed]]:
    """Deliveries that the worker of the test holds."""
    endpoint = await harness.endpoint("http://127.0.0.1:9/then")
    for _ in range(count):
        await harness.write(endpoint)
    return endpoint, await harness.claim_as(endpoint, webhook_harness.WORKER)


@pytest.mark.parametrize("answer, state", [(YES, "succeeded"), (NO, "waiting"), (SILENT, "waiting")])
async def test_an_answer_is_kept_with_what_follows_from_it(
    database_url: str, answer: webhook_client.WebhookResponse, state: str
) -> None:
    async with webhook_harness.opened(database_url) as harness:
        endpoint, (row,) = await claimed(harness)
        parts = harness.parts()
        parts.recorder.record_attempt(row, ENDPOINT, attempted(harness, answer))
        await parts.finish()
        seen = await harness.settle(endpoint, row.id)
        assert (seen.standing, seen.delivery.url, seen.delivery.worker) == ((state, 1), URL, None)
        assert seen.delivery.ended_at == (harness.clock.now if state == "succeeded" else None)
        assert seen.delivery.due_at == harness.clock.now + (0 if state == "succeeded" else 5 * SECOND)
        (attempt,) = seen.attempts
        assert (attempt.status_code, attempt.response_body, attempt.error) == (
            answer.status_code,
            answer.body,
            answer.error,
        )
        assert (attempt.number, attempt.duration) == (1, 2 * SECOND)


async def test_a_result_that_comes_after_the_lease_changes_nothing_and_is_logged(database_url: str) -> None:
    async with webhook_harness.opened(database_url) as harness:
        endpoint, (row,) = await claimed(harness)
        parts = harness.parts()
        harness.pass_seconds(30)
        async with harness.ctx.store.transaction() as tx:
            await webhooks.promote(tx, now=harness.clock.now, attempts=7, limit=10)
        await harness.claim_as(endpoint, "another")
        before = await harness.see(endpoint, row.id)
        parts.recorder.record_attempt(row, ENDPOINT, attempted(harness, YES))
        await parts.finish()
        assert await harness.see(endpoint, row.id) == before
        assert harness.events() == ["webhook_result_late"]
        assert harness.ctx.metrics.webhook_attempts.values["succeeded",] == 0


async def test_a_result_is_offered_until_the_store_takes_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "FIRST_WAIT_SECONDS", 0.001)
    async with webhook_harness.opened(url) as harness:
        endpoint, (row,) = await claimed(harness)
        parts, offers = harness.parts(), 0
        start = parts.recorder._commits.start

        def start_the_third_time(ended: engine.CompletedAttempt, *, party: str, count: int) -> asyncio.Future[bool]:
            nonlocal offers
            offers += 1
            if offers == 1:  # the line is full
                raise errors.TemporaryFailure("full", retry_after=1)
            if offers == 2:  # the commit fails
                refused: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
                refused.set_exception(errors.ServiceUnavailable("away", retry_after=1))
                return refused
            return start(ended, party=party, count=count)

        monkeypatch.setattr(parts.recorder._commits, "start", start_the_third_time)
        parts.recorder.record_attempt(row, ENDPOINT, attempted(harness, YES))
        await parts.finish()
        assert (await harness.settle(endpoint, row.id)).standing == ("succeeded", 1)
        assert harness.events() == ["webhook_result_recording_deferred", "webhook_delivered"]
        assert (harness.log[0]["results"], harness.log[0]["error"]) == (1, "temporary_failure")


async def test_while_a_result_waits_that_the_store_has_refused_nothing_is_claimed_and_a_stop_gives_it_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with webhook_harness.opened(url) as harness:
        endpoint, (row,) = await claimed(harness)
        parts = harness.parts()

        def refuse(_: engine.CompletedAttempt, **__: object) -> asyncio.Future[bool]:
            raise errors.ServiceUnavailable("away", retry_after=1)

        monkeypatch.setattr(parts.recorder._commits, "start", refuse)
        parts.recorder.record_attempt(row, ENDPOINT, attempted(harness, YES))
        assert parts.recorder.is_full
        await parts.recorder.close(seconds=0.01)
        assert harness.events() == ["webhook_result_recording_deferred", "webhook_results_abandoned"]
        assert harness.log[-1]["results"] == 1
        assert (await harness.see(endpoint, row.id)).standing == ("waiting", 1)
        assert await harness.is_due(at=harness.clock.now + 30 * SECOND)


async def test_when_results_no_longer_wait_the_walk_is_woken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_UNRECORDED", 2)
    async with webhook_harness.opened(url) as harness:
        _, rows = await claimed(harness, 2)
        parts = harness.parts()
        fullness = []
        for row in rows:
            parts.recorder.record_attempt(row, ENDPOINT, attempted(harness, YES))
            fullness.append(parts.recorder.is_full)
        await parts.finish()
        assert fullness == [False, True]
        assert not parts.recorder.is_full
        assert parts.wakes == [None]


async def test_results_of_one_moment_are_one_transaction(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with webhook_harness.opened(url) as harness:
        endpoint, rows = await claimed(harness, 20)
        record, batches = webhooks.record, list[int]()

        async def record_and_count(tx: object, results: list[webhooks.DeliveryUpdate]) -> set[webhooks.Key]:
            batches.append(len(results))
            return await record(tx, results)  # type: ignore[arg-type]

        monkeypatch.setattr(webhooks, "record", record_and_count)
        parts = harness.parts()
        for row in rows:
            parts.recorder.record_attempt(row, ENDPOINT, attempted(harness, YES))
        await parts.finish()
        assert batches == [20]
        assert (await harness.settle(endpoint, rows[-1].id)).standing == ("succeeded", 1)


async def test_a_bug_in_recording_is_loud_and_leaves_the_delivery_to_the_end_of_its_lease(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(webhooks, "record", fail)
    async with webhook_harness.opened(url) as harness:
        endpoint, (row,) = await claimed(harness)
        parts = harness.parts()
        parts.recorder.record_attempt(row, ENDPOINT, attempted(harness, YES))
        await parts.finish()
        assert [(line["event"], line["log_level"]) for line in harness.log] == [
            ("webhook_result_recording_failed", "error")
        ]
        assert (await harness.see(endpoint, row.id)).standing == ("waiting", 1)
        assert await harness.is_due(at=harness.clock.now + 30 * SECOND)
