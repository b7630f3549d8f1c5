"""Recording: what a result becomes in the store, and that none is lost while the store is unavailable."""

import asyncio
from collections.abc import Sequence

import pytest

from postroad import errors
from postroad.delivery import attempter, recorder
from postroad.mail.results import outcomes
from postroad.model.bounces import disposition as bounces_disposition
from postroad.protocol.smtp import values
from postroad.services.messages import queue_inspection
from postroad.services.operations import operator_jobs
from postroad.storage.engine import group_commit, store
from postroad.storage.mail import attempts, mail_counts, queue, queue_views, suppressions
from tests import bounce_counts
from tests.contexts import SECOND
from tests.delivery import parts
from tests.model.bounces import test_disposition

ROUTE = parts.route_to(parts.host_at(25))
ACCEPTED = values.RecipientResult(values.Stage.CONTENT, values.Reply(250, "taken", "2.0.0"))
BUSY = values.RecipientResult(values.Stage.RECIPIENT, values.Reply(450, "busy", "4.2.1"))
NOBODY = values.RecipientResult(values.Stage.RECIPIENT, values.Reply(550, "nobody here", "5.1.1"))
IN_DOUBT = values.RecipientResult(
    values.Stage.CONTENT, cause=values.Cause.CONNECTION_LOST, detail="the connection was lost", in_doubt=True
)


def attempted(result: values.RecipientResult) -> attempter.JobResult:
    return attempter.JobResult(result, bounces_disposition.classify(result), "mx.example.net", "192.0.2.1", "TLSv1.3")


async def record(made: parts.Parts, job: attempter.Job, result: values.RecipientResult) -> None:
    started_at = made.clock()
    made.clock.pass_seconds(2)
    await made.services.recorder.record_attempt(
        job, attempted(result), provider_queue="mx.example.net", started_at=started_at
    )
    await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)


async def log_of(made: parts.Parts, message_id: str) -> list[attempts.Attempt]:
    async with made.ctx.store.reading() as tx:
        return await attempts.of_message(tx, made.account_id, message_id)


async def suppressed(made: parts.Parts, email: str) -> bool:
    async with made.ctx.store.reading() as tx:
        return bool(await suppressions.find(tx, [(made.account_id, email)]))


async def test_a_delivered_message_is_final_its_attempt_is_logged_and_nothing_is_held(database_url: str) -> None:
    async with parts.opened(database_url) as made:
        (job,) = await made.jobs(route=ROUTE)
        await record(made, job, ACCEPTED)
        (recipient,) = await made.recipients(job.message[1])
        assert (recipient.status, recipient.attempt_count, recipient.last_smtp_code) == ("delivered", 1, 250)
        (attempt,) = await log_of(made, job.message[1])
        assert (attempt.host, attempt.address, attempt.tls) == ("mx.example.net", "192.0.2.1", "TLSv1.3")
        assert (attempt.provider_queue, attempt.stage, attempt.duration) == ("mx.example.net", "content", 2 * SECOND)
        assert (attempt.verdict, attempt.fault, attempt.in_doubt) == ("delivered", None, 0)
        assert len(made.held) == 0
        assert made.events() == ["recipient_delivered"]
        assert made.ctx.metrics.recipients.values["others", "delivered"] == 1
        assert made.ctx.metrics.unrecorded.values == {(): 0}
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []


@pytest.mark.parametrize("by_operator", [True, False], ids=["operator", "account"])
async def test_seven_attempts_that_are_asked_for_do_not_shorten_the_schedule(
    database_url: str, *, by_operator: bool
) -> None:
    async with parts.opened(database_url, retry_seconds=[100, 5_000]) as made:
        (job,) = await made.jobs(route=ROUTE)
        message_id = job.message[1]
        await record(made, job, BUSY)
        for _ in range(7):
            made.clock.pass_seconds(31)
            if by_operator:
                await queue_inspection.retry(made.ctx, [queue_views.Filter()])
            else:
                await queue_inspection.retry_of_account(made.ctx, made.account_id, message_id, None)
            (asked,) = attempter.jobs_of(await made.claim(), ROUTE)
            await record(made, asked, BUSY)
            assert await made.statuses(message_id) == ["deferred"]
            assert 89 * SECOND < await wait_of(made, message_id) < 111 * SECOND
        statuses = []
        for _ in range(2):
            made.clock.pass_seconds(6_000)
            async with made.ctx.store.transaction() as tx:
                await queue.promote(tx, now=made.clock(), limit=10)
            (scheduled,) = attempter.jobs_of(await made.claim(), ROUTE)
            await record(made, scheduled, BUSY)
            statuses += await made.statuses(message_id)
        assert statuses == ["deferred", "failed"]
        (recipient,) = await made.recipients(message_id)
        assert (recipient.attempt_count, len(await log_of(made, message_id))) == (10, 10)
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []


async def wait_of(made: parts.Parts, message_id: str) -> int:
    """How long the only recipient waits from now on."""
    (line,) = (await queue_inspection.entries_of_message(made.ctx, made.account_id, message_id)).values()
    return line.waiting.due_at - made.clock()


async def test_a_temporary_refusal_waits_by_the_schedule_and_fails_at_its_end(url: str) -> None:
    async with parts.opened(url, retry_seconds=[100]) as made:
        (job,) = await made.jobs(route=ROUTE)
        await record(made, job, BUSY)
        assert await made.statuses(job.message[1]) == ["deferred"]
        assert made.events() == ["recipient_deferred"]
        async with made.ctx.store.reading() as tx:
            assert not (await queue.find_work(tx, now=made.clock() + 89 * SECOND)).is_due
            assert (await queue.find_work(tx, now=made.clock() + 111 * SECOND)).is_due
        async with made.ctx.store.transaction() as tx:
            await queue.promote(tx, now=made.clock() + 111 * SECOND, limit=10)
        (again,) = attempter.jobs_of(await made.claim(), ROUTE)
        assert again.claim.attempt_count == 1
        await record(made, again, IN_DOUBT)
        assert await made.statuses(job.message[1]) == ["failed"]
        assert [attempt.in_doubt for attempt in await log_of(made, job.message[1])] == [0, 1]
        assert made.log[-1]["in_doubt"] is True
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []


@pytest.mark.parametrize("suppress", [True, False])
async def test_an_address_that_does_not_exist_is_left_alone_later_when_the_settings_say_so(
    url: str, *, suppress: bool
) -> None:
    async with parts.opened(url, suppress=suppress) as made:
        gone, good = await made.jobs("ada@example.net", "bob@example.net", route=ROUTE)
        await record(made, gone, NOBODY)
        await record(made, good, ACCEPTED)
        assert sorted(await made.statuses(gone.message[1])) == ["bounced", "delivered"]
        assert await suppressed(made, gone.claim.email_key) is suppress
        assert not await suppressed(made, good.claim.email_key)


async def test_of_all_faults_only_that_of_the_address_puts_it_onto_the_list(url: str) -> None:
    """One real refusal for each fault and verdict that there is."""
    kinds: dict[tuple[bounces_disposition.Verdict, bounces_disposition.Fault | None], values.RecipientResult] = {}
    for _, stage, wire in test_disposition.read_corpus():
        result = values.RecipientResult(stage, test_disposition.read_reply(wire))
        disposition = bounces_disposition.classify(result)
        kinds.setdefault((disposition.verdict, disposition.fault), result)
    bounced = {fault for verdict, fault in kinds if verdict is bounces_disposition.Verdict.BOUNCED}
    assert bounced >= {
        bounces_disposition.Fault.ADDRESS,
        bounces_disposition.Fault.CONTENT,
        bounces_disposition.Fault.POLICY,
        bounces_disposition.Fault.REPUTATION,
    }
    assert {fault for _, fault in kinds} >= {
        bounces_disposition.Fault.RATE,
        bounces_disposition.Fault.NETWORK,
        bounces_disposition.Fault.OURS,
    }
    async with parts.opened(url) as made:
        jobs = await made.jobs(*(f"{number}@example.net" for number in range(len(kinds))), route=ROUTE)
        for job, result in zip(jobs, kinds.values(), strict=True):
            await record(made, job, result)
        found = [await suppressed(made, job.claim.email_key) for job in jobs]
    expected = (bounces_disposition.Verdict.BOUNCED, bounces_disposition.Fault.ADDRESS)
    assert found == [kind == expected for kind in kinds]


async def test_an_attempt_that_got_nowhere_is_logged_without_a_host(url: str) -> None:
    async with parts.opened(url) as made:
        (missing,) = await made.jobs(route=ROUTE)
        await made.services.recorder.record_unroutable([missing.claim], attempter.CONTENT_MISSING)
        (broken,) = await made.jobs(route=ROUTE)
        await made.services.recorder.record_unroutable([broken.claim], attempter.INTERNAL_ERROR)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert await made.statuses(missing.message[1]) == ["bounced"]
        assert await made.statuses(broken.message[1]) == ["deferred"]
        for job in (missing, broken):
            (attempt,) = await log_of(made, job.message[1])
            assert (attempt.host, attempt.provider_queue, attempt.stage) == ("", "", "route")
            assert (attempt.reason, attempt.fault) == ("refused_here", "ours")
        assert not await suppressed(made, "ada@example.net")


async def test_the_sentence_of_a_failure_does_not_change_what_the_bounce_guard_counts(url: str) -> None:
    async with parts.opened(url) as made:
        for detail in ("the domain example.net does not exist", "example.net: NXDOMAIN", ""):
            (job,) = await made.jobs(route=ROUTE)
            result = values.RecipientResult(values.Stage.ROUTE, cause=values.Cause.DOMAIN_NOT_FOUND, detail=detail)
            await made.services.recorder.record_unroutable([job.claim], result)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        async with made.ctx.store.reading() as tx:
            (counts,) = (await mail_counts.guard_sums(tx, [made.account_id], after_day=0)).values()
    assert (counts.recipients, counts.bounces) == (3, 3)


async def test_what_is_decided_here_is_no_attempt(url: str) -> None:
    async with parts.opened(url) as made:
        (job,) = await made.jobs(route=ROUTE)
        await made.services.recorder.record_without_attempt(
            [job.claim], bounces_disposition.Verdict.BOUNCED, ["not tried"]
        )
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        (recipient,) = await made.recipients(job.message[1])
        assert (recipient.status, recipient.attempt_count, recipient.last_smtp_response) == ("bounced", 0, "not tried")
        assert await log_of(made, job.message[1]) == []
        assert made.ctx.metrics.recipients.values["none", "bounced"] == 1


async def test_a_result_is_offered_until_the_store_takes_it_and_is_held_meanwhile(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "FIRST_WAIT_SECONDS", 0.001)
    async with parts.opened(url) as made:
        (job,) = await made.jobs(route=ROUTE)
        start, held = made.ctx.outcome_commits.start, list[int]()

        async def submit_the_third_time(ended: Sequence[outcomes.Outcome]) -> outcomes.RecordResult:
            held.append(len(made.held))
            if len(held) < 3:
                raise errors.ServiceUnavailable("away", retry_after=1)
            recorded: outcomes.RecordResult = await start(ended)
            return recorded

        monkeypatch.setattr(
            made.ctx.outcome_commits, "start", lambda ended, **_: asyncio.ensure_future(submit_the_third_time(ended))
        )
        await record(made, job, ACCEPTED)
        assert held == [1, 1, 1]
        assert await made.statuses(job.message[1]) == ["delivered"]
        assert made.events() == ["results_recording_deferred", "recipient_delivered"]
        assert (made.log[0]["results"], made.log[0]["error"]) == (1, "service_unavailable")


async def test_a_transaction_has_as_many_recipients_as_it_would_have_of_single_ones(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends to many at once must not make everybody wait for one long transaction."""
    async with parts.opened(url) as made:
        claims = [job.claim for job in await made.jobs(*(f"{n}@example.net" for n in range(40)), route=ROUTE)]
        operation, together = made.ctx.outcome_commits._operation, list[int]()

        async def counted(
            tx: store.Transaction, batch: Sequence[Sequence[outcomes.Outcome]]
        ) -> Sequence[outcomes.RecordResult | errors.PostroadError]:
            together.append(sum(map(len, batch)))
            return await operation(tx, batch)

        monkeypatch.setattr(made.ctx.outcome_commits, "_operation", counted)
        for _ in range(8):
            await made.services.recorder.record_without_attempt(
                claims, bounces_disposition.Verdict.BOUNCED, ["not tried"] * 40
            )
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert together == [240, 80]


async def test_a_bug_in_recording_is_loud_and_leaves_the_recipient_to_the_end_of_its_lease(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made:
        (job,) = await made.jobs(route=ROUTE)

        async def fail(_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(made.ctx.outcome_commits, "start", lambda ended, **_: asyncio.ensure_future(fail(ended)))
        await record(made, job, ACCEPTED)
        assert [(line["event"], line["log_level"]) for line in made.log] == [("results_recording_failed", "error")]
        assert len(made.held) == 0
        assert made.ctx.metrics.unrecorded.values == {(): 0}


async def test_results_of_one_moment_are_recorded_together_and_a_bug_concerns_only_the_one_that_has_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made:
        jobs = await made.jobs(count=3, route=ROUTE)
        operation, together = made.ctx.outcome_commits._operation, list[int]()

        async def poisoned(
            tx: store.Transaction, batches: Sequence[Sequence[outcomes.Outcome]]
        ) -> Sequence[outcomes.RecordResult | errors.PostroadError]:
            together.append(sum(map(len, batches)))
            if any(outcome.key == jobs[1].key for batch in batches for outcome in batch):
                raise RuntimeError("a bug")
            return await operation(tx, batches)

        monkeypatch.setattr(made.ctx.outcome_commits, "_operation", poisoned)
        for job in jobs:
            await made.services.recorder.record_attempt(job, attempted(ACCEPTED), provider_queue="", started_at=0)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert together[0] == 3
        assert [await made.statuses(job.message[1]) for job in jobs] == [["delivered"], ["queued"], ["delivered"]]
        assert sorted(made.events()) == ["recipient_delivered", "recipient_delivered", "results_recording_failed"]
        assert made.ctx.metrics.unrecorded.values == {(): 0}
        assert len(made.held) == 0


async def test_only_so_many_results_may_be_unrecorded_then_whoever_sends_waits(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_UNRECORDED", 2)
    async with parts.opened(url) as made:
        jobs = await made.jobs(count=3, route=ROUTE)
        start, go_on = made.ctx.outcome_commits.start, asyncio.Event()

        async def submit_later(ended: Sequence[outcomes.Outcome]) -> outcomes.RecordResult:
            await go_on.wait()
            recorded: outcomes.RecordResult = await start(ended)
            return recorded

        monkeypatch.setattr(
            made.ctx.outcome_commits, "start", lambda ended, **_: asyncio.ensure_future(submit_later(ended))
        )
        tasks = [
            asyncio.create_task(
                made.services.recorder.record_attempt(job, attempted(ACCEPTED), provider_queue="", started_at=0)
            )
            for job in jobs
        ]
        for _ in range(5):
            await asyncio.sleep(0)
        assert [task.done() for task in tasks] == [True, True, False]
        assert made.ctx.metrics.unrecorded.values == {(): 2}
        go_on.set()
        await asyncio.wait(tasks)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert [await made.statuses(job.message[1]) for job in jobs] == [["delivered"]] * 3


async def test_whoever_waits_for_room_is_let_through_and_what_the_store_does_not_accept_in_time_is_abandoned(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MAX_UNRECORDED", 1)
    async with parts.opened(url) as made:
        jobs = await made.jobs(count=4, route=ROUTE)

        async def refuse(_: object) -> outcomes.RecordResult:
            raise errors.ServiceUnavailable("away", retry_after=1)

        monkeypatch.setattr(made.ctx.outcome_commits, "start", lambda ended, **_: asyncio.ensure_future(refuse(ended)))
        results = made.services.recorder
        tasks = [
            asyncio.create_task(results.record_attempt(job, attempted(ACCEPTED), provider_queue="", started_at=0))
            for job in jobs[:3]
        ]
        for _ in range(5):
            await asyncio.sleep(0)
        assert [task.done() for task in tasks] == [True, False, False]
        results.lift_limit()
        await asyncio.gather(*tasks)
        await results.record_attempt(jobs[3], attempted(ACCEPTED), provider_queue="", started_at=0)
        await results.close(seconds=0.01)
        assert made.events() == ["results_recording_deferred", "results_abandoned"]
        assert made.log[-1]["results"] == 4
        assert len(made.held) == 4  # until their leases are over


async def test_what_the_bounce_guard_does_is_logged_and_counted_once(url: str) -> None:
    async with parts.opened(url) as made:
        await bounce_counts.count(made.ctx, made.account_id, recipients=199, bounces=15)
        (job,) = await made.jobs(route=ROUTE)
        await record(made, job, NOBODY)
        assert made.events() == ["recipient_bounced", "account_suspended"]
        assert (made.log[-1]["account_id"], made.log[-1]["bounces"]) == (made.account_id, 16)
        assert made.ctx.metrics.guard.values["suspended", "bounces"] == 1


def test_a_crash_leaves_at_most_so_many_deliveries_in_doubt() -> None:
    assert recorder.MAX_UNRECORDED == 256
