"""The only way to record a result: recipient, queue, attempt log, credits, message and event change together.

It works on a batch (storage/engine/group_commit.py). The accounts are locked first, as when mail is accepted: the
holder sees every earlier result, so the last recipient of a message finishes it, on one host or on many.

A final status never changes, and only the holder of the lease can defer. A result after a final one, or a retry from a
worker that lost its lease, is kept in the attempt log and changes nothing else. So a batch can be recorded twice when
it is unknown whether the first time succeeded. Results of test messages count nowhere: they are kept with the message,
and endpoints in test mode hear of them.

The bounce guard counts in the same transaction (`guard_counts.py`).
"""

import collections
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, context
from postroad.config import sections
from postroad.mail import outbox as webhook_outbox
from postroad.mail.results import guard_counts
from postroad.model.bounces import bounce_guard, disposition, failure_causes, reasons
from postroad.model.delivery import providers
from postroad.model.events import events
from postroad.model.mail import statuses
from postroad.model.units import identifiers, times
from postroad.storage.engine import group_commit, store
from postroad.storage.mail import attempts, mail_counts, messages, queue, suppressions, webhooks
from postroad.storage.people import accounts

# How much of a server's reply a recipient shows; the attempt log keeps more.
RESPONSE_CHARACTERS: Final = 1_000

STATUS: Final = {
    disposition.Verdict.DELIVERED: statuses.RecipientStatus.DELIVERED,
    disposition.Verdict.BOUNCED: statuses.RecipientStatus.BOUNCED,
    disposition.Verdict.FAILED: statuses.RecipientStatus.FAILED,
    disposition.Verdict.RETRY: statuses.RecipientStatus.DEFERRED,
}
# The hourly count of a status. What is canceled is no result of delivery.
COUNTED: Final = {
    statuses.RecipientStatus.DELIVERED: "delivered",
    statuses.RecipientStatus.BOUNCED: "bounced",
    statuses.RecipientStatus.FAILED: "failed",
    statuses.RecipientStatus.EXPIRED: "failed",
    statuses.RecipientStatus.DEFERRED: "deferred",
}


# The count of a source address for the verdict of an attempt; all others are refusals.
_ENDED: Final = {disposition.Verdict.DELIVERED: "delivered", disposition.Verdict.RETRY: "deferred"}
# The statuses that return the credit.
RELEASED: Final = frozenset(
    status for status, billing in statuses.BILLING.items() if billing is statuses.BillingStatus.RELEASED
)
# The status and the billing of a message by the final status of its only recipient.
ENDED_ALONE: Final = {
    status: (
        statuses.message_status(recipients=1, delivered=int(status is statuses.RecipientStatus.DELIVERED)),
        statuses.message_billing(recipients=1, released=int(status in RELEASED)),
    )
    for status in statuses.BILLING
}
# The counts of recipients that failed finally.
FAILURES: Final = ("bounced", "failed")
# The causes in events of what is decided without an attempt, unless the outcome has one.
_CAUSES: Final = {events.EventType.BOUNCED: events.SUPPRESSED_CAUSE, events.EventType.EXPIRED: events.EXPIRED_CAUSE}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one recipient. `attempt` is None when it was decided without one.

    `recipient_count` is the message's, or 0 when unknown. `status` is that of the verdict, unless a recipient was
    canceled, or the time that its sender gave it is over; the verdict is FAILED then.
    """

    key: queue.Key
    email_key: str
    recipient_count: int
    verdict: disposition.Verdict
    status: statuses.RecipientStatus
    smtp_code: int | None
    response: str
    at: int
    ledger_id: str
    worker: str
    next_attempt_at: int | None = None
    keeps_schedule: bool = False  # the attempt does not count as a step of the retry schedule
    suppress: bool = False
    attempt: attempts.Attempt | None = None
    # Of a bounce without an attempt; None for the suppression list.
    cause: str | None = None
    conversation: str = ""  # what was said in an attempt that did not succeed
    delivery_time: int = 0  # microseconds since it was queued, once it is delivered


class RecordResult(msgspec.Struct, frozen=True):
    """Side effects of recording: how many webhook events were written, and the bounce guard's actions."""

    events: int
    notices: tuple[guard_counts.Notice, ...] = ()


RecordOperation = group_commit.Operation[Sequence[Outcome], RecordResult]


def recording(settings: config.Settings, outbox: context.Outbox) -> RecordOperation:
    read: sections.BounceGuard | None = None
    rules: bounce_guard.Rules | None = None

    async def record_batches(tx: store.Transaction, batches: Sequence[Sequence[Outcome]]) -> Sequence[RecordResult]:
        nonlocal read, rules
        if settings.bounce_guard is not read:  # settings can be reloaded
            read = settings.bounce_guard
            rules = guard_counts.rules_of(read, notices_from=settings.operator.sender)
        return await record(tx, batches, outbox=outbox, guard=rules)

    return record_batches


async def record(
    tx: store.Transaction,
    batches: Sequence[Sequence[Outcome]],
    *,
    outbox: context.Outbox,
    guard: bounce_guard.Rules | None = None,
) -> Sequence[RecordResult]:
    """Store the outcomes of several mail transactions.

    Each result has the events of all of them. The guard's actions are in the first one, so that they are reported once.
    """
    outcomes = {outcome.key: outcome for batch in batches for outcome in batch}
    locked = await accounts.lock(tx, {key[0] for key in outcomes})
    deferred = await _defer(tx, outcomes)
    final = [outcome for outcome in outcomes.values() if outcome.verdict is not disposition.Verdict.RETRY]
    changed = await messages.record_results(tx, _recipient_updates([*final, *deferred]))
    await queue.remove(tx, [outcome.key for outcome in final])
    attempted = [(outcome.attempt, outcome.conversation) for outcome in outcomes.values() if outcome.attempt]
    await attempts.insert(tx, [attempt for attempt, _ in attempted])
    if unsuccessful := [pair for pair in attempted if pair[1]]:
        await attempts.insert_conversations(tx, unsuccessful)
    finished = [outcome for outcome in final if outcome.key in changed]
    recorded = [*finished, *(outcome for outcome in deferred if outcome.key in changed)]
    uncharged = await _uncharged(tx, recorded, locked)
    if charged := [outcome for outcome in finished if outcome.key[:2] not in uncharged]:
        await accounts.record_entries(tx, _entries(charged))
    await _finish_messages(tx, finished)
    # Test messages are never charged.
    live = [outcome for outcome in finished if not uncharged.get(outcome.key[:2])]
    gone = [_suppression(outcome) for outcome in live if outcome.suppress]
    suppressed = await suppressions.add(tx, gone) if gone else ()
    now = max([outcome.at for outcome in live], default=0)
    notices: Sequence[guard_counts.Notice] = ()
    if guard is not None and (counted := guard_increments(live)):
        notices = await guard_counts.count(tx, guard, counted, locked=locked, now=now)
    counted_outcomes = [outcome for outcome in recorded if not uncharged.get(outcome.key[:2])]
    await mail_counts.add_hourly(tx, _count_increments(counted_outcomes))
    failed = [outcome for outcome in counted_outcomes if COUNTED.get(outcome.status) in FAILURES]
    if failed:
        await mail_counts.add_failures(tx, _failure_increments(failed))
    if sent := [outcome.attempt for outcome in recorded if outcome.attempt and outcome.attempt.source]:
        await mail_counts.add_sources(tx, _source_increments(sent))
    written = 0
    # An account without endpoints names no event: recording its mail costs nothing more.
    listening = {account_id for account_id, account in locked.items() if account.subscribed_events}
    if listening:
        heard = [outcome for outcome in recorded if outcome.key[0] in listening]
        written = await _write_events(tx, heard, suppressed=set(suppressed), locked=locked, outbox=outbox)
    if notices:
        written += await outbox.write_account(tx, guard_counts.events_of(notices, now=now))
    return [RecordResult(written, tuple(notices) if index == 0 else ()) for index in range(len(batches))]


def _recipient_updates(outcomes: Sequence[Outcome]) -> list[messages.RecipientUpdate]:
    return [
        messages.RecipientUpdate(
            *outcome.key,
            status=outcome.status,
            billing_status=statuses.BILLING[outcome.status],
            attempts=1 if outcome.attempt else 0,
            last_smtp_code=outcome.smtp_code,
            last_smtp_response=outcome.response[:RESPONSE_CHARACTERS],
            delivered_at=outcome.at if outcome.status is statuses.RecipientStatus.DELIVERED else None,
            bounced_at=outcome.at if outcome.status is statuses.RecipientStatus.BOUNCED else None,
            cause=outcome.cause,
        )
        for outcome in outcomes
    ]


async def _defer(tx: store.Transaction, outcomes: Mapping[queue.Key, Outcome]) -> list[Outcome]:
    """Set the times of next attempts; returns the outcomes whose worker held the lease."""
    together: dict[tuple[str, bool], list[tuple[queue.Key, int]]] = {}  # a batch has one worker, except in tests
    for outcome in outcomes.values():
        if outcome.next_attempt_at is not None:
            kind = outcome.worker, not outcome.keeps_schedule
            together.setdefault(kind, []).append((outcome.key, outcome.next_attempt_at))
    deferred: list[queue.Key] = []
    for (worker, is_counted), rows in together.items():
        deferred += await queue.postpone(tx, rows, worker=worker, is_counted=is_counted)
    return [outcomes[key] for key in deferred]


async def _uncharged(
    tx: store.Transaction, recorded: Sequence[Outcome], locked: Mapping[str, accounts.Account]
) -> Mapping[tuple[str, str], bool]:
    """The messages that cost no credits, and whether they are tests. Most accounts have none: nothing is looked up."""
    marked = {account_id for account_id, account in locked.items() if account.has_uncharged}
    suspects = {outcome.key[:2] for outcome in recorded if outcome.key[0] in marked}
    return await messages.uncharged(tx, suspects) if suspects else {}


def _entries(finished: Sequence[Outcome]) -> list[accounts.LedgerEntry]:
    """One ledger entry per message and kind: recipients of one message often end together."""
    counts: dict[tuple[str, str, bool], list[Outcome]] = {}
    for outcome in finished:
        counts.setdefault((*outcome.key[:2], outcome.status in RELEASED), []).append(outcome)
    return [
        accounts.LedgerEntry(
            id=ended[0].ledger_id,
            account_id=account_id,
            kind=accounts.LedgerKind.RELEASE if returned else accounts.LedgerKind.SETTLE,
            available=len(ended) if returned else 0,
            reserved=-len(ended),
            message_id=message_id,
            created_at=ended[0].at,
        )
        for (account_id, message_id, returned), ended in counts.items()
    ]


async def _finish_messages(tx: store.Transaction, finished: Sequence[Outcome]) -> None:
    """Messages whose last recipient is final. One with a single recipient needs no count."""
    rows = [
        (*outcome.key[:2], *ENDED_ALONE[outcome.status], outcome.at)
        for outcome in finished
        if outcome.recipient_count == 1
    ]
    several = {outcome.key[:2]: outcome.at for outcome in finished if outcome.recipient_count != 1}
    rows += [
        (
            tally.account_id,
            tally.message_id,
            statuses.message_status(recipients=tally.recipients, delivered=tally.delivered),
            statuses.message_billing(recipients=tally.recipients, released=tally.released),
            several[tally.account_id, tally.message_id],
        )
        for tally in (await messages.tallies(tx, sorted(several)) if several else ())
        if tally.reserved == 0
    ]
    await messages.finish(tx, rows)


def guard_increments(ended: Sequence[Outcome]) -> dict[str, bounce_guard.Counts]:
    """The bounce guard's counts. Only an address that does not exist is a bounce: other refusals may have any cause."""
    recipients: collections.Counter[str] = collections.Counter()
    bounces: collections.Counter[str] = collections.Counter()
    for outcome in ended:
        if outcome.attempt:
            recipients[outcome.key[0]] += 1
            if outcome.verdict is disposition.Verdict.BOUNCED and outcome.attempt.fault == disposition.Fault.ADDRESS:
                bounces[outcome.key[0]] += 1
    return {
        account_id: bounce_guard.Counts(recipients=count, bounces=bounces[account_id])
        for account_id, count in recipients.items()
    }


def _count_increments(recorded: Sequence[Outcome]) -> list[mail_counts.CountIncrement]:
    """The increments of the hourly counts, by provider. A decision without a server has none."""
    counts: dict[tuple[str, int, str, str], int] = {}
    for outcome in recorded:
        if outcome.status in COUNTED:
            key = _count_key(outcome)
            counted = (*key, COUNTED[outcome.status])
            counts[counted] = counts.get(counted, 0) + 1
            if outcome.delivery_time:
                total_time = (*key, "delivery_time")
                counts[total_time] = counts.get(total_time, 0) + outcome.delivery_time
    return [
        mail_counts.CountIncrement(account_id=account_id, hour=hour, provider=provider, **{column: count})
        for (account_id, hour, provider, column), count in counts.items()
    ]


def _failure_increments(failed: Sequence[Outcome]) -> list[mail_counts.FailureIncrement]:
    """The same recipients by reason."""
    counts: dict[tuple[str, int, str, str], list[int]] = {}
    for outcome in failed:
        reason = outcome.attempt.reason if outcome.attempt else outcome.cause
        key = (*_count_key(outcome), failure_causes.of_outcome(reason, outcome.status))
        counts.setdefault(key, [0] * len(FAILURES))[FAILURES.index(COUNTED[outcome.status])] += 1
    return [mail_counts.FailureIncrement(*key, *values) for key, values in counts.items()]


def _source_increments(sent: Sequence[attempts.Attempt]) -> list[mail_counts.SourceCount]:
    """Attempts by source address, provider and day."""
    numbers: dict[tuple[str, str, int], dict[str, int]] = {}
    for attempt in sent:
        key = (attempt.source, providers.label_of(attempt.provider_queue), times.day_of(attempt.started_at))
        counts = numbers.setdefault(key, {"delivered": 0, "deferred": 0, "refused": 0, "blocked": 0})
        counts[_ENDED.get(disposition.Verdict(attempt.verdict), "refused")] += 1
        counts["blocked"] += attempt.reason == reasons.IP_BLOCKED
    return [mail_counts.SourceCount(*key, *counts.values()) for key, counts in numbers.items()]


def _count_key(outcome: Outcome) -> tuple[str, int, str]:
    """Account, hour and provider. The hour is that of acceptance, so that counts and lists of messages agree."""
    account_id, message_id, _ = outcome.key
    provider_queue = outcome.attempt.provider_queue if outcome.attempt else ""
    hour = mail_counts.hour_of(identifiers.time_of(message_id, identifiers.MESSAGE))
    return account_id, hour, providers.label_of(provider_queue) if provider_queue else ""


def _suppression(outcome: Outcome) -> suppressions.Suppression:
    account_id, message_id, _ = outcome.key
    return suppressions.Suppression(
        account_id,
        outcome.email_key,
        suppressions.Source.BOUNCE,
        outcome.response,
        outcome.smtp_code,
        message_id,
        outcome.at,
    )


async def _write_events(
    tx: store.Transaction,
    recorded: Sequence[Outcome],
    *,
    suppressed: Collection[suppressions.SuppressionKey],
    locked: Mapping[str, accounts.Account],
    outbox: context.Outbox,
) -> int:
    """Write the events of outcomes, and of addresses that are suppressed since; returns the number of deliveries.

    Deferrals are looked at only for accounts with an endpoint that names their type.
    """
    kind = events.EventType.DEFERRED
    named = [o for o in recorded if o.verdict is not disposition.Verdict.RETRY or locked[o.key[0]].names_event(kind)]
    endpoints = await webhooks.enabled_of(tx, {outcome.key[0] for outcome in named}) if named else {}
    heard = [outcome for outcome in named if outcome.key[0] in endpoints]
    if not heard:
        return 0
    happened = [_event(outcome, events.OF_STATUS.get(outcome.status, kind)) for outcome in heard]
    happened += [
        webhook_outbox.suppressed(_event(outcome, events.EventType.SUPPRESSED), suppressions.Source.BOUNCE)
        for outcome in heard
        if (outcome.key[0], outcome.email_key) in suppressed
    ]
    return await outbox.write(tx, happened, endpoints=endpoints)


def _event(outcome: Outcome, kind: events.EventType) -> events.RecipientEvent:
    attempt = outcome.attempt
    cause = outcome.cause or _CAUSES.get(kind, "") if attempt is None else attempt.reason
    return events.RecipientEvent(
        key=outcome.key,
        kind=kind,
        at=outcome.at,
        smtp_code=outcome.smtp_code,
        response=outcome.response,
        enhanced_code=attempt.enhanced_code if attempt else "",
        cause="" if kind is events.EventType.DELIVERED else cause,
        mx_host=attempt.host if attempt else "",
        next_attempt_at=outcome.next_attempt_at,
    )
