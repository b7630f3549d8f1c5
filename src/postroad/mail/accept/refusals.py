"""The errors of the accepting transaction."""

import math

from postroad import errors
from postroad.model.domains import warmup
from postroad.model.units import times
from postroad.storage.mail import messages


def over_cap(domain: str, view: warmup.View, message: messages.NewMessage) -> errors.WarmupLimited:
    """The error for a message that the warm-up of its domain has no room for."""
    msg = (
        f"from: {domain} is new and warms up: {view.used} of today's {view.cap} recipients are used, and this message "
        f"has {message.recipient_count}; from 00:00 UTC "
        f"{'there is no limit' if view.tomorrow is None else f'the limit is {view.tomorrow}'}; the operator can "
        "mark the domain as warm"
    )
    seconds = math.ceil((view.next_at - message.created_at) / times.SECOND)
    return errors.WarmupLimited(msg, retry_after=max(1, seconds))


def in_progress() -> errors.IdempotencyInProgress:
    """The error for a key whose first request is still running."""
    return errors.IdempotencyInProgress("Idempotency-Key: the first request with this key is still running; retry")


def different_body() -> errors.IdempotencyConflict:
    """The error for a key that was used with another body."""
    return errors.IdempotencyConflict(
        "Idempotency-Key: this key was used with a different body in the last 24 hours; use a new key"
    )


def credits_text(count: int) -> str:
    """A number of credits."""
    return f"{count} credit{'' if count == 1 else 's'}"


def insufficient_credits(needed: int, left: int) -> errors.InsufficientCredits:
    """The error for a message that costs more than is left."""
    return errors.InsufficientCredits(
        f"the message needs {credits_text(needed)}, one for each unique recipient, but only {left} "
        f"{'is' if left == 1 else 'are'} available"
    )


def suspended(reason: str | None) -> errors.AccountSuspended:
    """The error for a suspended account."""
    return errors.AccountSuspended(f"the account is suspended: {reason or 'contact the operator'}")
