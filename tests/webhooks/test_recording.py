"""Recording: what an answer becomes in the store, and that none is forgotten while the store is away."""

import asyncio

import pytest

from postroad import errors
from postroad.services import receivers, telling
from postroad.storage import insisting, webhook_deliveries, webhooks
from postroad.webhooks import recording
from tests.contexts import SECOND
from tests.webhooks import offices

URL = "http://127.0.0.1:9/now"
YES = receivers.Answer(status_code=204, body="", error=None)
NO = receivers.Answer(status_code=500, body="no", error=None)
SILENT = receivers.Answer(status_code=None, body=None, error="timeout: no complete response within 5 seconds")


def attempted(office: offices.Office, answer: receivers.Answer) -> telling.Attempted:
    return telling.Attempted(started_at=office.clock.now - 2 * SECOND, duration=2 * SECOND, answer=answer)


async def claimed(office: offices.Office, count: int = 1) -> tuple[webhooks.Webhook, list[webhook_deliveries.Claimed]]:
    """Deliveries that the worker of the test holds."""
    endpoint = await office.endpoint("http://127.0.0.1:9/then")
    for _ in range(count):
        await office.write(endpoint)
    return endpoint, await office.claim_as(endpoint, offices.WORKER)


@pytest.mark.parametrize("answer, state", [(YES, "succeeded"), (NO, "waiting"), (SILENT, "waiting")])
async def test_an_answer_is_kept_with_what_follows_from_it(
    database_url: str, answer: receivers.Answer, state: str
) -> None:
    async with offices.opened(database_url) as office:
        endpoint, (row,) = await claimed(office)
        parts = office.parts()
        parts.recording.attempted(row, URL, attempted(office, answer))
        await parts.finish()
        seen = await office.settle(endpoint, row.id)
        assert (seen.standing, seen.delivery.url, seen.delivery.worker) == ((state, 1), URL, None)
        assert seen.delivery.ended_at == (office.clock.now if state == "succeeded" else None)
        assert seen.delivery.due_at == office.clock.now + (0 if state == "succeeded" else 5 * SECOND)
        (attempt,) = seen.attempts
        assert (attempt.status_code, attempt.response_body, attempt.error) == (
            answer.status_code,
            answer.body,
            answer.error,
        )
        assert (attempt.number, attempt.duration) == (1, 2 * SECOND)


async def test_the_last_attempt_of_the_schedule_is_the_end(url: str) -> None:
    async with offices.opened(url, retry_seconds=[]) as office:
        endpoint, (row,) = await claimed(office)
        parts = office.parts()
        parts.recording.attempted(row, URL, attempted(office, NO))
        await parts.finish()
        assert (await office.settle(endpoint, row.id)).standing == ("failed", 1)
        (line,) = office.log
        assert (line["event"], line["status_code"], line["attempt"]) == ("webhook_failed", 500, 1)
        assert office.ctx.metrics.webhook_attempts.values["failed",] == 1


async def test_a_result_that_comes_after_the_lease_changes_nothing_and_is_logged(database_url: str) -> None:
    async with offices.opened(database_url) as office:
        endpoint, (row,) = await claimed(office)
        parts = office.parts()
        office.pass_seconds(30)
        async with office.ctx.store.transaction() as tx:
            await webhook_deliveries.promote(tx, now=office.clock.now, attempts=7, most=10)
        await office.claim_as(endpoint, "another")
        before = await office.see(endpoint, row.id)
        parts.recording.attempted(row, URL, attempted(office, YES))
        await parts.finish()
        assert await office.see(endpoint, row.id) == before
        assert office.events() == ["webhook_result_came_late"]
        assert office.ctx.metrics.webhook_attempts.values["succeeded",] == 0


async def test_a_result_is_offered_until_the_store_takes_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insisting, "FIRST_WAIT_SECONDS", 0.001)
    async with offices.opened(url) as office:
        endpoint, (row,) = await claimed(office)
        parts, offers = office.parts(), 0
        start = parts.recording._commits.start

        def start_the_third_time(ended: recording.Ended) -> asyncio.Future[bool]:
            nonlocal offers
            offers += 1
            if offers == 1:  # the line is full
                raise errors.TemporaryFailure("full", retry_after=1)
            if offers == 2:  # the commit fails
                refused: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
                refused.set_exception(errors.ServiceUnavailable("away", retry_after=1))
                return refused
            return start(ended)

        monkeypatch.setattr(parts.recording._commits, "start", start_the_third_time)
        parts.recording.attempted(row, URL, attempted(office, YES))
        await parts.finish()
        assert (await office.settle(endpoint, row.id)).standing == ("succeeded", 1)
        assert office.events() == ["webhook_result_not_recorded_yet", "webhook_delivered"]
        assert (office.log[0]["results"], office.log[0]["error"]) == (1, "temporary_failure")


async def test_while_a_result_waits_that_the_store_has_refused_nothing_is_claimed_and_a_stop_gives_it_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offices.opened(url) as office:
        endpoint, (row,) = await claimed(office)
        parts = office.parts()

        def refuse(_: recording.Ended) -> asyncio.Future[bool]:
            raise errors.ServiceUnavailable("away", retry_after=1)

        monkeypatch.setattr(parts.recording._commits, "start", refuse)
        parts.recording.attempted(row, URL, attempted(office, YES))
        assert parts.recording.is_full
        await parts.recording.close(seconds=0.01)
        assert office.events() == ["webhook_result_not_recorded_yet", "webhook_results_given_up"]
        assert office.log[-1]["results"] == 1
        assert (await office.see(endpoint, row.id)).standing == ("waiting", 1)
        assert await office.is_due(at=office.clock.now + 30 * SECOND)


async def test_when_results_no_longer_wait_the_walk_is_woken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_UNRECORDED", 2)
    async with offices.opened(url) as office:
        _, rows = await claimed(office, 2)
        parts = office.parts()
        fullness = []
        for row in rows:
            parts.recording.attempted(row, URL, attempted(office, YES))
            fullness.append(parts.recording.is_full)
        await parts.finish()
        assert fullness == [False, True]
        assert not parts.recording.is_full
        assert parts.wakes == [None]


async def test_results_of_one_moment_are_one_transaction(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with offices.opened(url) as office:
        endpoint, rows = await claimed(office, 20)
        record, batches = webhook_deliveries.record, list[int]()

        async def record_and_count(tx: object, results: list[webhook_deliveries.Result]) -> set[webhook_deliveries.Key]:
            batches.append(len(results))
            return await record(tx, results)  # type: ignore[arg-type]

        monkeypatch.setattr(webhook_deliveries, "record", record_and_count)
        parts = office.parts()
        for row in rows:
            parts.recording.attempted(row, URL, attempted(office, YES))
        await parts.finish()
        assert batches == [20]
        assert (await office.settle(endpoint, rows[-1].id)).standing == ("succeeded", 1)


async def test_a_bug_in_recording_is_loud_and_leaves_the_delivery_to_the_end_of_its_lease(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(webhook_deliveries, "record", fail)
    async with offices.opened(url) as office:
        endpoint, (row,) = await claimed(office)
        parts = office.parts()
        parts.recording.attempted(row, URL, attempted(office, YES))
        await parts.finish()
        assert [(line["event"], line["log_level"]) for line in office.log] == [("webhook_result_not_recorded", "error")]
        assert (await office.see(endpoint, row.id)).standing == ("waiting", 1)
        assert await office.is_due(at=office.clock.now + 30 * SECOND)
