"""The only way to record a result: recipient, queue, attempt log, credits, message and event change together.

It works on a batch (storage/engine/group_commit.py). The accounts are locked first, as when mail is accepted: the holder sees
every earlier result, so the last recipient of a message finishes it, on one host or on many.

A final status never changes, and only the holder of the lease can defer. A result after a final one, or a retry from a
worker that lost its lease, is kept in the attempt log and changes nothing else. So a batch can be recorded twice when
it is unknown whether the first time succeeded. The bounce guard counts recipients that an attempt made final; a
decision without an attempt says nothing about the account's list. Results of test messages count nowhere: they are
kept with the message, and endpoints in test mode hear of them.
"""

import collections
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from postroad import context
from postroad.mail import outbox as webhook_outbox
from postroad.mail.results import bounce_guard as account_guard
from postroad.model.bounces import bounce_guard, disposition, failure_causes, reasons
from postroad.model.delivery import providers
from postroad.model.events import events
from postroad.model.mail import statuses
from postroad.model.units import cursors, identifiers, times
from postroad.storage.engine import store
from postroad.storage.mail import attempts, mail_counts, messages, queue, suppressions
from postroad.storage.people import accounts
from postroad.storage.webhook import webhooks

# The webhook events of recorded outcomes.
#
# They are made only for accounts with an enabled endpoint, and deferrals are looked at only where one names their type:
# recording mail of all others costs nothing more.

# Of what is decided without an attempt. Only an address on the suppression list bounces so.
_CAUSES: Final = {
    events.EventType.BOUNCED: events.SUPPRESSED_CAUSE,
    events.EventType.EXPIRED: events.EXPIRED_CAUSE,
}


class RecordedOutcome(Protocol):
    """What an event contains of an outcome."""

    @property
    def key(self) -> queue.Key:
        """Account, message and recipient."""

    @property
    def email_key(self) -> str:
        """The recipient's address as a key."""

    @property
    def status(self) -> statuses.RecipientStatus:
        """The recipient's new status."""

    @property
    def smtp_code(self) -> int | None:
        """The server's SMTP code."""

    @property
    def response(self) -> str:
        """The server's reply."""

    @property
    def at(self) -> int:
        """When it was recorded."""

    @property
    def next_attempt_at(self) -> int | None:
        """The time of the next attempt."""

    @property
    def attempt(self) -> attempts.Attempt | None:
        """The attempt; None if there was none."""


async def _write_events(
    tx: store.Transaction,
    finished: Sequence[RecordedOutcome],
    *,
    deferred: Sequence[RecordedOutcome],
    suppressed: Collection[suppressions.SuppressionKey],
    locked: Mapping[str, accounts.Account],
    outbox: context.Outbox,
) -> int:
    """Write the events of outcomes that are final, of those that are not, and of addresses that are suppressed since.

    Returns the number of their deliveries.
    """
    told = _subscribed(deferred, events.EventType.DEFERRED, locked)
    if not finished and not told:
        return 0
    endpoints = await webhooks.enabled_of(tx, {outcome.key[0] for outcome in (*finished, *told)})
    if not endpoints:
        return 0
    ended = [outcome for outcome in finished if outcome.key[0] in endpoints]
    happened = [_event(outcome, events.OF_STATUS[outcome.status]) for outcome in ended]
    happened += [_event(outcome, events.EventType.DEFERRED) for outcome in told]
    happened += [
        webhook_outbox.suppressed(_event(outcome, events.EventType.SUPPRESSED), suppressions.Source.BOUNCE)
        for outcome in ended
        if (outcome.key[0], outcome.email_key) in suppressed
    ]
    return await outbox.write(tx, happened, endpoints=endpoints)


def _subscribed(
    outcomes: Sequence[RecordedOutcome], kind: events.EventType, locked: Mapping[str, accounts.Account]
) -> Sequence[RecordedOutcome]:
    """The outcomes of accounts with an endpoint that names a type."""
    naming = {account_id for account_id, account in locked.items() if account.names_event(kind)} if outcomes else ()
    return [outcome for outcome in outcomes if outcome.key[0] in naming] if naming else ()


def _event(outcome: RecordedOutcome, kind: events.EventType) -> events.RecipientEvent:
    attempt = outcome.attempt
    if attempt is None:
        cause = _CAUSES.get(kind, "")
        return events.RecipientEvent(
            key=outcome.key,
            kind=kind,
            at=outcome.at,
            smtp_code=outcome.smtp_code,
            response=outcome.response,
            cause=cause,
        )
    return events.RecipientEvent(
        key=outcome.key,
        kind=kind,
        at=outcome.at,
        smtp_code=outcome.smtp_code,
        response=outcome.response,
        enhanced_code=attempt.enhanced_code,
        cause="" if kind is events.EventType.DELIVERED else attempt.reason,
        mx_host=attempt.host,
        next_attempt_at=outcome.next_attempt_at,
    )


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
# The counts of recipients that failed finally.
FAILURES: Final = ("bounced", "failed")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one recipient. `attempt` is None when it was decided without one.

    `recipient_count` is the message's, or 0 when unknown. `ended_as` tells what a verdict cannot: that a recipient was
    canceled, or that the time that its sender gave it is over; the verdict is FAILED then.
    """

    key: queue.Key
    email_key: str
    recipient_count: int
    verdict: disposition.Verdict
    smtp_code: int | None
    response: str
    at: int
    ledger_id: str
    worker: str
    next_attempt_at: int | None = None
    keeps_schedule: bool = False  # the attempt does not count as a step of the retry schedule
    suppress: bool = False
    attempt: attempts.Attempt | None = None
    conversation: str = ""  # what was said in an attempt that did not succeed
    delivery_time: int = 0  # microseconds since it was queued, once it is delivered
    ended_as: statuses.RecipientStatus | None = None

    @property
    def status(self) -> statuses.RecipientStatus:
        """The recipient's new status."""
        return self.ended_as or STATUS[self.verdict]

    @property
    def is_released(self) -> bool:
        """Whether the credit is returned."""
        return statuses.BILLING[self.status] is statuses.BillingStatus.RELEASED


class RecordResult(msgspec.Struct, frozen=True):
    """Side effects of recording: how many webhook events were written, and the bounce guard's actions."""

    events: int
    notices: tuple[account_guard.Notice, ...] = ()


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
    changed = await messages.record_results(tx, [_recipient_update(outcome) for outcome in (*final, *deferred)])
    await queue.remove(tx, [outcome.key for outcome in final])
    await attempts.insert(tx, [outcome.attempt for outcome in outcomes.values() if outcome.attempt])
    await attempts.insert_conversations(
        tx, [(one.attempt, one.conversation) for one in outcomes.values() if one.attempt and one.conversation]
    )
    finished = [outcome for outcome in final if outcome.key in changed]
    recorded = [*finished, *(outcome for outcome in deferred if outcome.key in changed)]
    uncharged = await _uncharged(tx, recorded, locked)
    await accounts.record_entries(tx, _entries([outcome for outcome in finished if outcome.key[:2] not in uncharged]))
    await _finish_messages(tx, finished)
    # Test messages are never charged.
    live = [outcome for outcome in finished if not uncharged.get(outcome.key[:2])]
    suppressed = await suppressions.add(tx, [_suppression(outcome) for outcome in live if outcome.suppress])
    counted = [_counted(outcome) for outcome in live if outcome.attempt]
    now = max((outcome.at for outcome in live), default=0)
    notices = await account_guard.count(tx, guard, counted, locked=locked, now=now)
    counted_outcomes = [outcome for outcome in recorded if not uncharged.get(outcome.key[:2])]
    await mail_counts.add_hourly(tx, _count_increments(counted_outcomes))
    failed = [outcome for outcome in counted_outcomes if COUNTED.get(outcome.status) in FAILURES]
    if failed:
        await mail_counts.add_failures(tx, _failure_increments(failed))
    if sent := [outcome.attempt for outcome in recorded if outcome.attempt and outcome.attempt.source]:
        await mail_counts.add_sources(tx, _source_increments(sent))
    written = await _write_events(
        tx,
        finished,
        deferred=recorded[len(finished) :],
        suppressed=set(suppressed),
        locked=locked,
        outbox=outbox,
    )
    written += await outbox.write_account(tx, account_guard.events_of(notices, now=now))
    return [RecordResult(written, tuple(notices) if place == 0 else ()) for place in range(len(batches))]


def _recipient_update(outcome: Outcome) -> messages.RecipientUpdate:
    status = outcome.status
    return messages.RecipientUpdate(
        *outcome.key,
        status=status,
        billing_status=statuses.BILLING[status],
        attempts=1 if outcome.attempt else 0,
        last_smtp_code=outcome.smtp_code,
        last_smtp_response=outcome.response[:RESPONSE_CHARACTERS],
        delivered_at=outcome.at if status is statuses.RecipientStatus.DELIVERED else None,
        bounced_at=outcome.at if status is statuses.RecipientStatus.BOUNCED else None,
    )


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
    suspects = {key[:2] for key in (outcome.key for outcome in recorded) if _has_uncharged(locked.get(key[0]))}
    return await messages.uncharged(tx, suspects) if suspects else {}


def _has_uncharged(account: accounts.Account | None) -> bool:
    return account is not None and bool(account.has_uncharged)


def _entries(finished: Sequence[Outcome]) -> list[accounts.LedgerEntry]:
    """One ledger entry per message and kind: recipients of one message often end together."""
    counts: dict[tuple[str, str, bool], list[Outcome]] = {}
    for outcome in finished:
        counts.setdefault((*outcome.key[:2], outcome.is_released), []).append(outcome)
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
    lone = [_tally(outcome) for outcome in finished if outcome.recipient_count == 1]
    several = {outcome.key[:2] for outcome in finished if outcome.recipient_count != 1}
    counted = await messages.tallies(tx, sorted(several)) if several else []
    ended = {outcome.key[:2]: outcome.at for outcome in finished}
    rows = [
        (
            tally.account_id,
            tally.message_id,
            statuses.message_status(recipients=tally.recipients, delivered=tally.delivered),
            statuses.message_billing(recipients=tally.recipients, released=tally.released),
            ended[tally.account_id, tally.message_id],
        )
        for tally in (*lone, *counted)
        if tally.reserved == 0
    ]
    await messages.finish(tx, rows)


def _tally(outcome: Outcome) -> messages.Tally:
    delivered = int(outcome.verdict is disposition.Verdict.DELIVERED)
    return messages.Tally(
        *outcome.key[:2], recipients=1, delivered=delivered, reserved=0, released=int(outcome.is_released)
    )


def _counted(outcome: Outcome) -> account_guard.AccountCounts:
    """The bounce guard's counts. Only an address that does not exist is a bounce: other refusals may have any cause."""
    fault = outcome.attempt.fault if outcome.attempt else None
    is_gone = outcome.verdict is disposition.Verdict.BOUNCED and fault == disposition.Fault.ADDRESS
    return account_guard.AccountCounts(outcome.key[0], bounce_guard.Counts(recipients=1, bounces=int(is_gone)))


def _count_increments(recorded: Sequence[Outcome]) -> list[mail_counts.CountIncrement]:
    """The increments of the hourly counts, by provider. A decision without a server has none."""
    counts: collections.Counter[tuple[str, int, str, str]] = collections.Counter()
    for outcome in recorded:
        if outcome.status in COUNTED:
            key = _count_key(outcome)
            counts[*key, COUNTED[outcome.status]] += 1
            if outcome.delivery_time:
                counts[*key, "delivery_time"] += outcome.delivery_time
    return [
        mail_counts.CountIncrement(account_id=account_id, hour=hour, provider=provider, **{column: count})
        for (account_id, hour, provider, column), count in counts.items()
    ]


def _failure_increments(failed: Sequence[Outcome]) -> list[mail_counts.FailureIncrement]:
    """The same recipients by reason."""
    counts: dict[tuple[str, int, str, str], list[int]] = {}
    for outcome in failed:
        reason = outcome.attempt.reason if outcome.attempt else None
        key = (*_count_key(outcome), failure_causes.of_outcome(reason, outcome.status))
        counts.setdefault(key, [0] * len(FAILURES))[FAILURES.index(COUNTED[outcome.status])] += 1
    return [mail_counts.FailureIncrement(*key, *values) for key, values in counts.items()]


def _source_increments(sent: Sequence[attempts.Attempt]) -> list[mail_counts.SourceCount]:
    """Attempts by source address, provider and day."""
    numbers: dict[tuple[str, str, int], dict[str, int]] = {}
    for one in sent:
        key = (one.source, providers.label_of(one.provider_queue), times.day_of(one.started_at))
        counts = numbers.setdefault(key, {"delivered": 0, "deferred": 0, "refused": 0, "blocked": 0})
        counts[_ENDED.get(disposition.Verdict(one.verdict), "refused")] += 1
        counts["blocked"] += one.reason == reasons.IP_BLOCKED
    return [mail_counts.SourceCount(*key, *counts.values()) for key, counts in numbers.items()]


def _count_key(outcome: Outcome) -> tuple[str, int, str]:
    """Account, hour and provider. The hour is that of acceptance, so that counts and lists of messages agree."""
    account_id, message_id, _ = outcome.key
    provider_queue = outcome.attempt.provider_queue if outcome.attempt else ""
    hour = mail_counts.hour_of(cursors.time_of(message_id, identifiers.MESSAGE))
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
