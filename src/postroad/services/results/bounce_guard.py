"""The bounce guard at work: counts what became of an account's mail, warns it, and stops it from sending.

Whoever writes a result counts it in the same transaction, under the account's lock. So every process and host counts as
one, a result counts once, and an account that is over the limit has its next mail refused, wherever it comes in. What
is queued already is still delivered. An account that is suspended, by whomever, stays as it is.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from postroad.config import sections
from postroad.model import actors, bounce_guard, identifiers, times
from postroad.storage import accounts, audit_log, bounce_guard_days, store
from postroad.telemetry import logs, metrics

# What the log says.
EVENTS: Final = {bounce_guard.Level.WARNED: "account_warned", bounce_guard.Level.SUSPENDED: "account_suspended"}


class AccountCounts(msgspec.Struct, frozen=True):
    """What is to be counted for an account."""

    account_id: str
    counts: bounce_guard.Counts


class Notice(msgspec.Struct, frozen=True):
    """An account that was warned or suspended just now, and the counts of the last days that made it so."""

    account_id: str
    level: bounce_guard.Level
    cause: bounce_guard.Cause
    counts: bounce_guard.Counts


def rules_of(settings: sections.BounceGuard) -> bounce_guard.Rules | None:
    """The rules of an installation; None when it has no guard."""
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
    )


async def count(
    tx: store.Transaction,
    guard: bounce_guard.Rules | None,
    counted: Sequence[AccountCounts],
    *,
    locked: Mapping[str, accounts.Account],
    now: int,
    entropy: Callable[[int], bytes] = os.urandom,
) -> list[Notice]:
    """Count, and judge the accounts that may stand worse than before; all of them must be locked.

    A warning is told when its threshold is crossed, and once more on each day that brings more of it.
    """
    if guard is None or not counted:
        return []
    added = _by_account(counted)
    day = times.day_of(now)
    today = await bounce_guard_days.add(tx, day, added)
    suspects = [
        account_id
        for account_id, counts in today.items()
        if account_id in locked
        and locked[account_id].status != accounts.SUSPENDED
        and _may_be_worse(counts, added[account_id], guard)
    ]
    sums = await bounce_guard_days.sums(tx, suspects, after_day=day - guard.days) if suspects else {}
    notices = []
    for account_id, counts in sums.items():
        is_first = added[account_id].has_faults and not today[account_id].minus(added[account_id]).has_faults
        before = bounce_guard.HEALTHY if is_first else bounce_guard.assess(counts.minus(added[account_id]), guard)
        assessment = bounce_guard.assess(counts, guard)
        if assessment.cause is None or (assessment.level is bounce_guard.Level.WARNED and before == assessment):
            continue
        if assessment.level is bounce_guard.Level.SUSPENDED:
            reason = bounce_guard.reason(assessment.cause, counts)
            await accounts.suspend(tx, account_id, reason=reason, by=accounts.BOUNCE_GUARD, now=now)
            await audit_log.insert(
                tx, _entry(locked[account_id], reason, now=now, entropy=entropy(identifiers.ENTROPY_BYTES))
            )
        notices.append(Notice(account_id, assessment.level, assessment.cause, counts))
    return notices


def _entry(account: accounts.Account, reason: str, *, now: int, entropy: bytes) -> audit_log.Entry:
    """What the journal says of a suspension: results are recorded without a context, which would know who acts."""
    return audit_log.Entry(
        account_id=account.id,
        id=identifiers.make(identifiers.AUDIT_ENTRY, now=now, entropy=entropy),
        actor_kind=actors.Kind.SERVICE,
        user_id=None,
        actor="postroad",
        action="account.suspended",
        subject=account.name,
        detail=reason,
        request_id="",
        client_address="",
        created_at=now,
    )


def report_notices(notices: Sequence[Notice], *, log: logs.Logger, counted: metrics.Metrics) -> None:
    """Tell the operator, after the commit."""
    for notice in notices:
        counted.guard.add(notice.level, notice.cause)
        log.warning(
            EVENTS[notice.level],
            account_id=notice.account_id,
            cause=notice.cause,
            recipients=notice.counts.recipients,
            bounces=notice.counts.bounces,
            complaints=notice.counts.complaints,
        )


def _may_be_worse(today: bounce_guard.Counts, added: bounce_guard.Counts, guard: bounce_guard.Rules) -> bool:
    """Whether the last days have to be looked at.

    A share grows with faults, or when a good day leaves the window, or begins to count when there are enough
    recipients. The last two show while today has few. Later, more mail without faults only makes it smaller.
    """
    return today.has_faults or today.recipients - added.recipients < guard.recipients


def _exact(percent: float) -> Fraction:
    """The number as it was written: 0.3 is three tenths, and not the nearest that a float can hold."""
    return Fraction(str(percent))


def _by_account(counted: Sequence[AccountCounts]) -> dict[str, bounce_guard.Counts]:
    added: dict[str, bounce_guard.Counts] = {}
    for each in counted:
        added[each.account_id] = added.get(each.account_id, bounce_guard.Counts()).plus(each.counts)
    return added
