"""The webhook events of recorded outcomes.

Deferrals and suppressions are looked at only for accounts with an endpoint that names their type: recording mail of
all others costs nothing more.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from postroad.model import events, mail
from postroad.services.webhooks import outbox
from postroad.storage import accounts, attempts, queue, suppressions

# The cause of a bounce without an attempt; those with one have a reason of `bounces/reasons.py`.
SUPPRESSED: Final = "suppressed"


class RecordedOutcome(Protocol):
    """What an event contains of an outcome."""

    @property
    def key(self) -> queue.Key:
        """Account, message and recipient."""

    @property
    def email_key(self) -> str:
        """The recipient's address as a key."""

    @property
    def status(self) -> mail.RecipientStatus:
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


def of(
    finished: Sequence[RecordedOutcome],
    *,
    deferred: Sequence[RecordedOutcome],
    suppressed: Collection[suppressions.SuppressionKey],
    locked: Mapping[str, accounts.Account],
) -> list[outbox.RecipientEvent]:
    """The events of outcomes that are final, of those that are not, and of addresses that are suppressed since."""
    written = [_event(outcome, events.OF_STATUS[outcome.status]) for outcome in finished]
    written += [
        _event(outcome, events.EventType.DEFERRED)
        for outcome in _subscribed(deferred, events.EventType.DEFERRED, locked)
    ]
    if suppressed:
        written += [
            outbox.suppressed(_event(outcome, events.EventType.SUPPRESSED), suppressions.Source.BOUNCE)
            for outcome in _subscribed(finished, events.EventType.SUPPRESSED, locked)
            if (outcome.key[0], outcome.email_key) in suppressed
        ]
    return written


def _subscribed(
    outcomes: Sequence[RecordedOutcome], kind: events.EventType, locked: Mapping[str, accounts.Account]
) -> Iterable[RecordedOutcome]:
    """The outcomes of accounts with an endpoint that names a type."""
    naming = {account_id for account_id, account in locked.items() if account.names_event(kind)}
    return [outcome for outcome in outcomes if outcome.key[0] in naming] if naming else ()


def _event(outcome: RecordedOutcome, kind: events.EventType) -> outbox.RecipientEvent:
    attempt = outcome.attempt
    event = outbox.RecipientEvent(
        key=outcome.key, kind=kind, at=outcome.at, smtp_code=outcome.smtp_code, response=outcome.response
    )
    if attempt is None:
        # Of what is decided without an attempt, only an address on the suppression list bounces.
        return msgspec.structs.replace(event, cause=SUPPRESSED) if kind is events.EventType.BOUNCED else event
    return msgspec.structs.replace(
        event,
        enhanced_code=attempt.enhanced_code,
        cause="" if kind is events.EventType.DELIVERED else attempt.reason,
        mx_host=attempt.host,
        next_attempt_at=outcome.next_attempt_at,
    )
