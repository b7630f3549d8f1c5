"""The webhook events of recorded outcomes.

They are made only for accounts with an enabled endpoint, and deferrals are looked at only where one names their type:
recording mail of all others costs nothing more.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from postroad.model import events, mail
from postroad.services.webhooks import outbox as webhook_outbox
from postroad.storage import accounts, attempts, queue, store, suppressions, webhooks

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


async def write(
    tx: store.Transaction,
    finished: Sequence[RecordedOutcome],
    *,
    deferred: Sequence[RecordedOutcome],
    suppressed: Collection[suppressions.SuppressionKey],
    locked: Mapping[str, accounts.Account],
    outbox: webhook_outbox.Outbox,
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


def _event(outcome: RecordedOutcome, kind: events.EventType) -> webhook_outbox.RecipientEvent:
    attempt = outcome.attempt
    if attempt is None:
        cause = _CAUSES.get(kind, "")
        return webhook_outbox.RecipientEvent(
            key=outcome.key,
            kind=kind,
            at=outcome.at,
            smtp_code=outcome.smtp_code,
            response=outcome.response,
            cause=cause,
        )
    return webhook_outbox.RecipientEvent(
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
