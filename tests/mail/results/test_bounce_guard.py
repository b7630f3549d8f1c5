"""The bounce guard: what counts, what does not, when it warns and suspends, and how an account gets out of it again."""

import asyncio
import dataclasses
import itertools
from collections.abc import Sequence

import msgspec
import pytest
import structlog

from postroad import config, context, errors
from postroad.mail.results import guard_counts, outcomes
from postroad.model.bounces import disposition
from postroad.model.bounces.bounce_guard import Counts, Level, Trigger
from postroad.model.people import callers
from postroad.roles import composition
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import queue_inspection
from postroad.services.operations import cleanup, operator_jobs
from postroad.storage.mail import queue, queue_views
from postroad.storage.people import accounts as stored_accounts
from postroad.telemetry import metrics
from tests import accepted_mail, bounce_counts
from tests.contexts import SECRET_KEY, Clock
from tests.services import claimed_mail

DELIVERED, BOUNCED, FAILED, RETRY = (
    disposition.Verdict.DELIVERED,
    disposition.Verdict.BOUNCED,
    disposition.Verdict.FAILED,
    disposition.Verdict.RETRY,
)
DAY_SECONDS = 24 * 3600
# Small enough to be reached with real mail: 2 of 10 warn, 4 of 10 suspend.
GUARD = {"recipients": 10, "warn_percent": 20.0, "suspend_percent": 40.0, "cooldown_hours": 48}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": SECRET_KEY},
            "bounce_guard": GUARD,
        },
    )


async def claim(ctx: context.Context, account_id: str, count: int) -> list[queue.Claimed]:
    """Recipients of a new message, claimed."""
    _, claimed = await claimed_mail.another(ctx, account_id, *[f"p{number}@example.net" for number in range(count)])
    return claimed


def ended(
    ctx: context.Context,
    claimed: Sequence[queue.Claimed],
    *,
    bounced: int = 0,
    fault: disposition.Fault = disposition.Fault.ADDRESS,
) -> list[outcomes.Outcome]:
    """The first ones bounce, the others are delivered."""
    return [
        claimed_mail.outcome(ctx, one, BOUNCED, recipient_count=0, code=550, fault=fault)
        if place < bounced
        else claimed_mail.outcome(ctx, one, DELIVERED, recipient_count=0)
        for place, one in enumerate(claimed)
    ]


async def send(ctx: context.Context, account_id: str, count: int, *, bounced: int = 0) -> Sequence[guard_counts.Notice]:
    """A message to so many, of whom the first do not exist."""
    outcomes_of_all = ended(ctx, await claim(ctx, account_id, count), bounced=bounced)
    recorded: outcomes.RecordResult = await ctx.outcome_commits.submit(outcomes_of_all)
    return recorded.notices


def triggers(notices: Sequence[guard_counts.Notice]) -> list[tuple[Level, Trigger, Counts]]:
    return [(notice.level, notice.trigger, notice.counts) for notice in notices]


async def test_every_final_recipient_that_was_tried_counts_and_only_address_faults_are_bounces(
    ctx: context.Context, sender: str
) -> None:
    claimed = await claim(ctx, sender, len(disposition.Fault) + 2)
    results = [
        claimed_mail.outcome(ctx, claimed[0], DELIVERED),
        claimed_mail.outcome(ctx, claimed[1], FAILED, code=451),
    ]
    for one, fault in zip(claimed[2:], disposition.Fault, strict=True):
        results.append(claimed_mail.outcome(ctx, one, BOUNCED, code=550, fault=fault))
    await ctx.outcome_commits.submit([msgspec.structs.replace(result, recipient_count=0) for result in results])
    assert await bounce_counts.counted(ctx, sender) == Counts(len(disposition.Fault) + 2, 1, 0)


async def test_a_schedule_that_ended_with_an_address_fault_is_no_bounce(ctx: context.Context, sender: str) -> None:
    (claimed,) = await claim(ctx, sender, 1)
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claimed, FAILED, code=451, fault=disposition.Fault.ADDRESS)]
    )
    assert await bounce_counts.counted(ctx, sender) == Counts(1, 0, 0)


async def test_what_is_not_final_or_recorded_twice_does_not_count(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    (claimed,) = await claim(ctx, sender, 1)
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, RETRY, code=451)])
    assert await bounce_counts.counted(ctx, sender) == Counts()
    clock.pass_seconds(10)
    for _ in range(2):
        await ctx.outcome_commits.submit(ended(ctx, [claimed], bounced=1))
    assert await bounce_counts.counted(ctx, sender) == Counts(1, 1, 0)


async def test_suppressed_and_cancelled_recipients_never_count(ctx: context.Context, sender: str) -> None:
    (claimed,) = await claim(ctx, sender, 1)
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claimed, BOUNCED, tried=False, code=None, response="suppressed")]
    )
    await accepted_mail.accept(ctx, sender)
    done = await queue_inspection.cancel(ctx, [queue_views.Filter(account_id=sender)])
    assert done.changed == 1
    assert await bounce_counts.counted(ctx, sender) == Counts()


async def test_an_installation_without_a_guard_counts_nothing(settings: config.Settings, clock: Clock) -> None:
    off = msgspec.structs.replace(settings, bounce_guard=msgspec.structs.replace(settings.bounce_guard, enabled=False))
    async with composition.open_context(off, clock=clock) as ctx:
        account = await accounts.create(ctx, "Shop")
        await accepted_mail.allow_sending(ctx, account.id)
        assert await send(ctx, account.id, 12, bounced=12) == ()
        assert await bounce_counts.counted(ctx, account.id) == Counts()
        assert (await accounts.sending(ctx, account)).state == "off"


async def test_an_account_is_warned_once_when_it_reaches_the_threshold(ctx: context.Context, sender: str) -> None:
    assert await send(ctx, sender, 9, bounced=1) == ()
    assert triggers(await send(ctx, sender, 1, bounced=1)) == [(Level.WARNED, Trigger.BOUNCES, Counts(10, 2, 0))]
    assert await send(ctx, sender, 2, bounced=1) == ()
    account = await accounts.find(ctx, sender)
    assert account.status == stored_accounts.ACTIVE
    assert (await accounts.sending(ctx, account)).state == "warned"


async def test_the_recipient_that_reaches_the_minimum_is_checked_even_when_it_is_delivered(
    ctx: context.Context, sender: str
) -> None:
    assert await send(ctx, sender, 9, bounced=3) == ()
    assert triggers(await send(ctx, sender, 1)) == [(Level.WARNED, Trigger.BOUNCES, Counts(10, 3, 0))]


async def test_a_suspension_is_felt_at_once_in_every_process_and_says_why(
    ctx: context.Context, sender: str, settings: config.Settings, clock: Clock
) -> None:
    async with composition.open_context(settings, clock=clock) as other:
        assert triggers(await send(ctx, sender, 10, bounced=4)) == [
            (Level.SUSPENDED, Trigger.BOUNCES, Counts(10, 4, 0))
        ]
        account = await accounts.find(ctx, sender)
        assert (account.suspended_by, account.suspended_at) == (stored_accounts.BOUNCE_GUARD, clock.now)
        for process in (ctx, other):
            with pytest.raises(errors.AccountSuspended, match=r"bounce guard: .* do not exist; clean your list"):
                await accepted_mail.accept(process, sender)


async def test_the_account_that_sends_the_notices_is_only_warned(
    sender: str, ctx: context.Context, settings: config.Settings, clock: Clock
) -> None:
    """Whoever may invite could have it suspended, with addresses that do not exist, and nobody would be told."""
    operator = msgspec.structs.replace(settings.operator, sender="postmaster@example.com")
    changed = msgspec.structs.replace(settings, operator=operator)
    async with composition.open_context(changed, clock=clock) as other:
        assert triggers(await send(other, sender, 10, bounced=4)) == [(Level.WARNED, Trigger.BOUNCES, Counts(10, 4, 0))]
        assert await send(other, sender, 10, bounced=5) == ()
        assert (await accounts.find(other, sender)).status == stored_accounts.ACTIVE


async def test_what_is_queued_is_still_delivered(ctx: context.Context, sender: str) -> None:
    waiting = await claim(ctx, sender, 3)
    await send(ctx, sender, 10, bounced=4)
    assert (await accounts.find(ctx, sender)).status == stored_accounts.SUSPENDED
    recorded = await ctx.outcome_commits.submit(ended(ctx, waiting, bounced=1))
    assert recorded.notices == ()
    assert await bounce_counts.counted(ctx, sender) == Counts(13, 5, 0)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_what_an_operator_has_said_stays(ctx: context.Context, sender: str) -> None:
    claimed = await claim(ctx, sender, 10)
    await accounts.suspend(ctx, sender, "unpaid bill")
    assert (await ctx.outcome_commits.submit(ended(ctx, claimed, bounced=10))).notices == ()
    account = await accounts.find(ctx, sender)
    assert (account.suspended_by, account.suspended_reason) == ("operator", "unpaid bill")
    assert (await accounts.sending(ctx, account)).state == "warned"


async def test_a_batch_returns_each_notice_once(ctx: context.Context, sender: str) -> None:
    claimed = await claim(ctx, sender, 10)
    async with ctx.store.transaction() as tx:
        batches = [ended(ctx, [one], bounced=int(place < 4)) for place, one in enumerate(claimed)]
        recorded = await outcomes.record(
            tx, batches, outbox=ctx.outbox, guard=guard_counts.rules_of(ctx.settings.bounce_guard)
        )
    assert [len(each.notices) for each in recorded] == [1, *[0] * 9]


async def test_two_processes_count_as_one(
    ctx: context.Context, sender: str, settings: config.Settings, clock: Clock
) -> None:
    claimed = [await claim(ctx, sender, 5) for _ in range(8)]
    async with composition.open_context(settings, clock=clock) as other:
        recorded = await asyncio.gather(
            *[
                process.outcome_commits.submit(ended(ctx, some, bounced=3))
                for process, some in zip(itertools.cycle((ctx, other)), claimed)
            ]
        )
    notices = [notice for each in recorded for notice in each.notices]
    assert [notice.level for notice in notices] == [Level.SUSPENDED]
    assert await bounce_counts.counted(ctx, sender) == Counts(40, 24, 0)


async def test_days_roll_out_of_the_window(ctx: context.Context, sender: str, clock: Clock) -> None:
    await bounce_counts.count(ctx, sender, recipients=10, bounces=1)
    clock.pass_seconds(6 * DAY_SECONDS)
    assert triggers(await bounce_counts.count(ctx, sender, bounces=1)) == [
        (Level.WARNED, Trigger.BOUNCES, Counts(10, 2, 0))
    ]
    clock.pass_seconds(DAY_SECONDS)
    assert await bounce_counts.count(ctx, sender, recipients=19, bounces=2) == []
    stands = await accounts.sending(ctx, await accounts.find(ctx, sender))
    assert (stands.recipients, stands.bounces, stands.state) == (19, 3, "ok")


async def test_a_warning_is_repeated_on_the_next_day_that_brings_more(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    assert len(await bounce_counts.count(ctx, sender, recipients=100, bounces=25)) == 1
    assert await bounce_counts.count(ctx, sender, recipients=1, bounces=1) == []
    clock.pass_seconds(DAY_SECONDS)
    assert await bounce_counts.count(ctx, sender, recipients=1) == []
    assert len(await bounce_counts.count(ctx, sender, bounces=1)) == 1
    assert await bounce_counts.count(ctx, sender, bounces=1) == []


async def test_a_share_that_grows_because_good_days_are_over_suspends_with_the_next_result(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    await bounce_counts.count(ctx, sender, recipients=80)
    clock.pass_seconds(DAY_SECONDS)
    assert await bounce_counts.count(ctx, sender, recipients=20, bounces=10) == []
    clock.pass_seconds(6 * DAY_SECONDS)
    assert (await accounts.sending(ctx, await accounts.find(ctx, sender))).state == "warned"
    assert triggers(await send(ctx, sender, 1)) == [(Level.SUSPENDED, Trigger.BOUNCES, Counts(21, 10, 0))]
    assert (await accounts.find(ctx, sender)).suspended_by == stored_accounts.BOUNCE_GUARD


async def test_faults_of_an_earlier_day_count_when_there_is_enough_mail(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    assert await send(ctx, sender, 5, bounced=5) == ()
    clock.pass_seconds(DAY_SECONDS)
    assert await send(ctx, sender, 4) == ()
    assert triggers(await send(ctx, sender, 1)) == [(Level.SUSPENDED, Trigger.BOUNCES, Counts(10, 5, 0))]


async def test_days_that_nobody_looks_at_are_swept(ctx: context.Context, sender: str, clock: Clock) -> None:
    await bounce_counts.count(ctx, sender, recipients=1)
    clock.pass_seconds(6 * DAY_SECONDS)
    assert (await cleanup.sweep(ctx)).bounce_guard_days == 0
    clock.pass_seconds(DAY_SECONDS)
    assert (await cleanup.sweep(ctx)).bounce_guard_days == 1
    assert await bounce_counts.counted(ctx, sender) == Counts()


async def test_who_is_resumed_begins_with_a_clean_slate(ctx: context.Context, sender: str) -> None:
    await send(ctx, sender, 10, bounced=4)
    await accounts.resume(ctx, sender)
    assert await bounce_counts.counted(ctx, sender) == Counts()
    assert await send(ctx, sender, 1, bounced=1) == ()
    account = await accounts.find(ctx, sender)
    assert (account.status, (await accounts.sending(ctx, account)).state) == ("active", "ok")


async def test_who_an_operator_had_suspended_keeps_what_was_counted(ctx: context.Context, sender: str) -> None:
    await send(ctx, sender, 10, bounced=3)
    await accounts.suspend(ctx, sender, "unpaid bill")
    assert (await accounts.resume(ctx, sender)).status == stored_accounts.ACTIVE
    assert await bounce_counts.counted(ctx, sender) == Counts(10, 3, 0)
    assert triggers(await send(ctx, sender, 2, bounced=2)) == [(Level.SUSPENDED, Trigger.BOUNCES, Counts(12, 5, 0))]


async def test_resuming_an_account_that_is_not_suspended_resets_nothing(ctx: context.Context, sender: str) -> None:
    await send(ctx, sender, 10, bounced=2)
    await accounts.resume(ctx, sender)
    assert await bounce_counts.counted(ctx, sender) == Counts(10, 2, 0)


async def test_a_cool_down_lifts_what_the_guard_did_and_nothing_else(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    other = await accounts.create(ctx, "Other")
    await accounts.suspend(ctx, other.id, "unpaid bill")
    await send(ctx, sender, 10, bounced=4)
    clock.pass_seconds(48 * 3600 - 1)
    assert (await cleanup.sweep(ctx)).resumed == ()
    clock.pass_seconds(1)
    assert (await cleanup.sweep(ctx)).resumed == (sender,)
    assert (await cleanup.sweep(ctx)).resumed == ()
    assert (await accounts.find(ctx, sender)).status == stored_accounts.ACTIVE
    assert await bounce_counts.counted(ctx, sender) == Counts()
    await accepted_mail.accept(ctx, sender)
    clock.pass_seconds(10**6)
    assert (await cleanup.sweep(ctx)).resumed == ()
    assert (await accounts.find(ctx, other.id)).suspended_reason == "unpaid bill"


async def test_an_operator_who_takes_over_a_suspension_keeps_it(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    await send(ctx, sender, 10, bounced=4)
    await accounts.suspend(ctx, sender, "we have to talk")
    clock.pass_seconds(10**6)
    assert (await cleanup.sweep(ctx)).resumed == ()
    assert (await accounts.find(ctx, sender)).suspended_by == stored_accounts.OPERATOR


async def test_the_audit_log_has_the_suspension_of_the_account_and_its_end(
    ctx: context.Context, sender: str, clock: Clock
) -> None:
    service = dataclasses.replace(ctx, actor=callers.SERVICE)
    clock.pass_seconds(1)
    await send(ctx, sender, 10, bounced=4)
    reason = (await accounts.find(ctx, sender)).suspended_reason or "none"
    clock.pass_seconds(48 * 3600 + 1)
    await cleanup.sweep(service)
    found = await audit_log.page(ctx, sender, before=None, limit=2)
    assert [(one.action, one.subject, one.detail) for one in found] == [
        ("account.resumed", "Shop", "the cool-down is over"),
        ("account.suspended", "Shop", reason),
    ]
    assert {(one.actor_kind, one.actor, one.user_id) for one in found} == {("service", "postroad", None)}
    assert {(one.request_id, one.client_address) for one in found} == {("", "")}


@pytest.mark.parametrize("known", [0, 1])
async def test_an_account_that_was_warned_before_keeps_no_other_from_its_suspension(
    ctx: context.Context, sender: str, known: int
) -> None:
    other = (await accounts.create(ctx, "Other")).id
    await accepted_mail.allow_sending(ctx, other, domain="other.example")
    warned, failing = (sender, other) if known else (other, sender)
    domains = {sender: "example.com", other: "other.example"}

    async def claims(account_id: str, count: int) -> list[queue.Claimed]:
        to = [f"p{number}@example.net" for number in range(count)]
        _, claimed = await claimed_mail.another(ctx, account_id, *to, sender=f"shop@{domains[account_id]}")
        return claimed

    first = await ctx.outcome_commits.submit(ended(ctx, await claims(warned, 10), bounced=3))
    assert [(notice.account_id, notice.level) for notice in first.notices] == [(warned, Level.WARNED)]
    batch = ended(ctx, await claims(warned, 1)) + ended(ctx, await claims(failing, 10), bounced=4)
    second = await ctx.outcome_commits.submit(batch)
    assert [(notice.account_id, notice.level) for notice in second.notices] == [(failing, Level.SUSPENDED)]


async def test_without_a_cool_down_only_an_operator_lifts_it(settings: config.Settings, clock: Clock) -> None:
    never = msgspec.structs.replace(
        settings, bounce_guard=msgspec.structs.replace(settings.bounce_guard, cooldown_hours=0)
    )
    async with composition.open_context(never, clock=clock) as ctx:
        account = await accounts.create(ctx, "Shop")
        await bounce_counts.count(ctx, account.id, recipients=10, bounces=10)
        clock.pass_seconds(10**9)
        assert (await cleanup.sweep(ctx)).resumed == ()
        assert (await accounts.resume(ctx, account.id)).status == stored_accounts.ACTIVE


def test_notices_are_logged_and_counted() -> None:
    counted, counts = metrics.Metrics(), Counts(10, 4, 1)
    notices = [
        guard_counts.Notice("acc_1", Level.WARNED, Trigger.COMPLAINTS, counts),
        guard_counts.Notice("acc_2", Level.SUSPENDED, Trigger.BOUNCES, counts),
    ]
    with structlog.testing.capture_logs() as lines:
        guard_counts.report_notices(notices, log=structlog.get_logger(), counted=counted)
    assert [(line["event"], line["log_level"], line["account_id"], line["cause"]) for line in lines] == [
        ("account_warned", "warning", "acc_1", "complaints"),
        ("account_suspended", "warning", "acc_2", "bounces"),
    ]
    assert (lines[0]["recipients"], lines[0]["bounces"], lines[0]["complaints"]) == (10, 4, 1)
    assert counted.guard.values["suspended", "bounces"] == 1
    assert counted.guard.values["warned", "bounces"] == 0
