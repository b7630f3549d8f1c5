"""What the bounce guard counts: results and reports, in the transaction that records them.

The guard warns the account there, and suspends it. So all processes and hosts count together, a result counts once, and
the next mail of an account over the limit is refused on every interface. It counts recipients that an attempt made
final; a decision without an attempt says nothing about the account's list. Mail already queued is still delivered. A
suspended account stays as it is. Reports from outside count only if they are authenticated
(`report_authentication.py`), once for a mailbox and once for a signature.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from postroad.config import sections
from postroad.model.bounces import bounce_guard
from postroad.model.events import events
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.storage.engine import store
from postroad.storage.mail import domains, mail_counts
from postroad.storage.people import accounts, audit_log
from postroad.telemetry import logs, metrics

# Log messages.
EVENTS: Final = {bounce_guard.Level.WARNED: "account_warned", bounce_guard.Level.SUSPENDED: "account_suspended"}


class Notice(msgspec.Struct, frozen=True):
    """An account that was just warned or suspended, the counts behind it, and the reason of a suspension."""

    account_id: str
    level: bounce_guard.Level
    trigger: bounce_guard.Trigger
    counts: bounce_guard.Counts
    reason: str = ""


def rules_of(settings: sections.BounceGuard, *, notices_from: str = "") -> bounce_guard.Rules | None:
    """The rules of an installation; None without a guard.

    The account that sends the notices, from this address, is never suspended: others choose whom it invites.
    """
    if not settings.enabled:
        return None
    return bounce_guard.Rules(
        settings.days,
        settings.recipients,
        bounces=bounce_guard.Thresholds(_exact(settings.warn_percent), _exact(settings.suspend_percent)),
        complaints=bounce_guard.Thresholds(
            _exact(settings.complaint_warn_percent),
            _exact(settings.complaint_suspend_percent),
            bounce_guard.MIN_COMPLAINTS,
        ),
        cooldown=settings.cooldown_hours * times.HOUR,
        never_suspended=notices_from.rpartition("@")[2],
    )


async def count(
    tx: store.Transaction,
    guard: bounce_guard.Rules | None,
    added: Mapping[str, bounce_guard.Counts],
    *,
    locked: Mapping[str, accounts.Account],
    now: int,
    entropy: Callable[[int], bytes] = os.urandom,
) -> list[Notice]:
    """Count, by account, and evaluate those whose rates may have got worse; all must be locked.

    A warning is logged when its threshold is crossed, and again on each day with more of the same.
    """
    if guard is None or not added:
        return []
    day = times.day_of(now)
    today = await mail_counts.add_guard_days(tx, day, added)
    suspects = [
        account_id
        for account_id, counts in today.items()
        if account_id in locked
        and locked[account_id].status != accounts.SUSPENDED
        and _may_be_worse(counts, added[account_id], guard)
    ]
    sums = await mail_counts.guard_sums(tx, suspects, after_day=day - guard.days) if suspects else {}
    notices = []
    for account_id, counts in sums.items():
        is_first = added[account_id].has_faults and not today[account_id].minus(added[account_id]).has_faults
        before = bounce_guard.HEALTHY if is_first else bounce_guard.assess(counts.minus(added[account_id]), guard)
        assessment = bounce_guard.assess(counts, guard)
        if assessment.level is bounce_guard.Level.SUSPENDED and await _sends_notices(tx, guard, account_id):
            before, assessment = _warned(before), _warned(assessment)
        if assessment.trigger is None or (assessment.level is bounce_guard.Level.WARNED and before == assessment):
            continue
        reason = ""
        if assessment.level is bounce_guard.Level.SUSPENDED:
            reason = bounce_guard.reason(assessment.trigger, counts, until=guard.suspended_until(now))
            await accounts.suspend(tx, account_id, reason=reason, by=accounts.BOUNCE_GUARD, now=now)
            await audit_log.insert(
                tx, _entry(locked[account_id], reason, now=now, entropy=entropy(identifiers.ENTROPY_BYTES))
            )
        notices.append(Notice(account_id, assessment.level, assessment.trigger, counts, reason))
    return notices


async def _sends_notices(tx: store.Transaction, guard: bounce_guard.Rules, account_id: str) -> bool:
    domain = guard.never_suspended
    return bool(domain) and await domains.verified_owner(tx, domain) == account_id


def _warned(assessment: bounce_guard.Assessment) -> bounce_guard.Assessment:
    """At most a warning."""
    if assessment.level is not bounce_guard.Level.SUSPENDED:
        return assessment
    return msgspec.structs.replace(assessment, level=bounce_guard.Level.WARNED)


async def count_report(
    tx: store.Transaction,
    guard: bounce_guard.Rules | None,
    account_id: str,
    counts: bounce_guard.Counts,
    *,
    email_key: str,
    signature: str,
    locked: Mapping[str, accounts.Account],
    now: int,
) -> list[Notice]:
    """Count an authenticated report about an address, once for its mailbox in the guard's window.

    A signature counts once as long as it is accepted, however short the window is: nobody can use a report again.
    """
    if guard is None:
        return []
    day = times.day_of(now)
    for key, days in (
        (f"dkim:{signature}", max(guard.days, bounce_guard.SIGNATURE_DAYS)),
        (bounce_guard.mailbox_of(email_key), guard.days),
    ):
        if not await mail_counts.count_guard_report(tx, account_id, key, day=day, after_day=day - days):
            return []
    return await count(tx, guard, {account_id: counts}, locked=locked, now=now)


def _entry(account: accounts.Account, reason: str, *, now: int, entropy: bytes) -> audit_log.Entry:
    """The audit log entry of a suspension: results are recorded without a context, which would know the actor."""
    return audit_log.Entry(
        account_id=account.id,
        id=identifiers.make(identifiers.AUDIT_ENTRY, now=now, entropy=entropy),
        actor_kind=callers.ActorKind.SERVICE,
        user_id=None,
        actor="postroad",
        action="account.suspended",
        subject=account.name,
        detail=reason,
        request_id="",
        client_address="",
        created_at=now,
    )


def events_of(notices: Sequence[Notice], *, now: int) -> list[events.AccountEvent]:
    """The webhook events of notices, to be written in their transaction."""
    return [_guard_event(notice, now) for notice in notices]


def _guard_event(notice: Notice, now: int) -> events.AccountEvent:
    if notice.level is bounce_guard.Level.SUSPENDED:
        suspended = events.SuspendedAccountData(suspended_by=accounts.BOUNCE_GUARD, reason=notice.reason)
        return events.AccountEvent(notice.account_id, events.EventType.ACCOUNT_SUSPENDED, now, suspended)
    warned = events.WarnedAccountData(cause=notice.trigger, **msgspec.structs.asdict(notice.counts))
    return events.AccountEvent(notice.account_id, events.EventType.ACCOUNT_WARNED, now, warned)


def report_notices(notices: Sequence[Notice], *, log: logs.Logger, counted: metrics.Metrics) -> None:
    """Log the notices, after the commit."""
    for notice in notices:
        counted.guard.add(notice.level, notice.trigger)
        log.warning(
            EVENTS[notice.level],
            account_id=notice.account_id,
            cause=notice.trigger,
            recipients=notice.counts.recipients,
            bounces=notice.counts.bounces,
            complaints=notice.counts.complaints,
        )


def _may_be_worse(today: bounce_guard.Counts, added: bounce_guard.Counts, guard: bounce_guard.Rules) -> bool:
    """Whether the last days have to be evaluated.

    A rate grows with faults, or when a good day leaves the window, or begins to count when there are enough recipients.
    The last two occur while today's count is small. Later, more mail without faults only lowers the rate.
    """
    return today.has_faults or today.recipients - added.recipients < guard.recipients


def _exact(percent: float) -> Fraction:
    """The number as written: 0.3 is three tenths, not the nearest float."""
    return Fraction(str(percent))
