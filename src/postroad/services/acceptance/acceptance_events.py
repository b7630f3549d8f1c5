"""The webhook events of accepted mail: `email.accepted`, and `credits.low` when it makes credits scarce.

Only for accounts with an endpoint that names the type, which the locked account says: mail of all others costs nothing
more.
"""

from collections.abc import Mapping, Sequence

from postroad.model import events
from postroad.services.webhooks import outbox
from postroad.storage import accounts, hourly_counts, messages, recipients, store


async def write(
    tx: store.Transaction,
    accepted: Sequence[tuple[messages.NewMessage, Sequence[recipients.NewRecipient]]],
    *,
    locked: Mapping[str, accounts.Account],
    credits_left: Mapping[str, int],
    events_outbox: outbox.Outbox,
) -> None:
    """Write the events of a batch, after its messages. `locked` is how the accounts were before it."""
    naming = _naming(locked, events.EventType.ACCEPTED)
    happened = [
        outbox.RecipientEvent(
            key=(message.account_id, message.id, recipient.id),
            kind=events.EventType.ACCEPTED,
            at=message.created_at,
        )
        for message, addressees in accepted
        if message.account_id in naming
        for recipient in addressees
    ]
    await events_outbox.write(tx, happened)
    for account_id, account in _naming(locked, events.EventType.CREDITS_LOW).items():
        # Test messages count nowhere.
        sent = [message for message, _ in accepted if message.account_id == account_id and not message.is_test]
        if any(message.credits_reserved for message in sent):
            await _write_low_credits(tx, account, sent, left=credits_left[account_id], events_outbox=events_outbox)


def _naming(locked: Mapping[str, accounts.Account], kind: events.EventType) -> dict[str, accounts.Account]:
    """The accounts with an endpoint that names a type."""
    return {account_id: account for account_id, account in locked.items() if account.names_event(kind)}


async def _write_low_credits(
    tx: store.Transaction,
    account: accounts.Account,
    sent: Sequence[messages.NewMessage],
    *,
    left: int,
    events_outbox: outbox.Outbox,
) -> None:
    """Write the event if credits were not low before this mail and are now."""
    now = max(message.created_at for message in sent)
    since = await hourly_counts.since(tx, account.id, from_hour=hourly_counts.hour_of(now) - accounts.LOW_CREDIT_HOURS)
    used = since[1] or 0
    used_before = used - sum(message.recipient_count for message in sent)
    if left < used and account.available >= used_before:
        data = events.CreditsData(available=left, used=used)
        event = outbox.AccountEvent(account.id, events.EventType.CREDITS_LOW, now, data)
        await events_outbox.write_account(tx, [event])
