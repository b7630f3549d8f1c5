"""The outbox: an event for each final recipient, written in the transaction that makes it final.

So there is an event exactly when there is a result, whatever crashes in between, and only for an account whose endpoint
is enabled and subscribed at that moment. The engine in `webhooks/` delivers it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from postroad.model import events, identifiers, mail
from postroad.services import return_path
from postroad.storage import messages, queue, store, webhook_deliveries, webhooks


class FinalOutcome(Protocol):
    """What an event contains of an outcome."""

    @property
    def key(self) -> queue.Key:
        """Account, message and recipient."""

    @property
    def status(self) -> mail.RecipientStatus:
        """The final status."""

    @property
    def smtp_code(self) -> int | None:
        """The server's SMTP code."""

    @property
    def response(self) -> str:
        """The server's reply."""

    @property
    def at(self) -> int:
        """When it became final."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """Writes events."""

    return_path_key: bytes = field(repr=False)
    return_path_domain: str
    entropy: Callable[[int], bytes]

    async def write(self, tx: store.Transaction, ended: Sequence[FinalOutcome]) -> int:
        """Write events and return their number. The accounts must be locked."""
        endpoints = await webhooks.enabled_of(tx, {outcome.key[0] for outcome in ended}) if ended else {}
        wanted = [
            (outcome, endpoint)
            for outcome in ended
            if (endpoint := endpoints.get(outcome.key[0])) is not None
            and events.OF_STATUS.get(outcome.status) in endpoint.events.split()
        ]
        if not wanted:
            return 0
        about = await messages.event_details(tx, [outcome.key for outcome, _ in wanted])
        deliveries = [self._delivery(outcome, endpoint, about[outcome.key]) for outcome, endpoint in wanted]
        await webhook_deliveries.insert(tx, deliveries)
        return len(deliveries)

    def _delivery(
        self, outcome: FinalOutcome, endpoint: webhooks.Webhook, about: messages.EventDetails
    ) -> webhook_deliveries.Delivery:
        account_id, message_id, recipient_id = outcome.key
        event_id = self._new_id(identifiers.EVENT, outcome.at)
        kind = events.OF_STATUS[outcome.status]
        data = events.recipient(
            email_id=message_id,
            recipient_id=recipient_id,
            to=about.email,
            sender=self._envelope_sender(outcome.key, about),
            subject=about.subject,
            smtp_code=outcome.smtp_code,
            response=outcome.response,
        )
        return webhook_deliveries.Delivery(
            account_id=account_id,
            webhook_id=endpoint.id,
            id=self._new_id(identifiers.WEBHOOK_DELIVERY, outcome.at),
            event_id=event_id,
            event_type=kind,
            message_id=message_id,
            recipient_id=recipient_id,
            url=endpoint.url,
            body=events.body(event_id, kind, created_at=outcome.at, data=data),
            due_at=outcome.at,
            created_at=outcome.at,
        )

    def _envelope_sender(self, key: queue.Key, about: messages.EventDetails) -> str:
        domain = return_path.domain_for(
            about.sender_key, chosen=about.return_path_domain, configured=self.return_path_domain
        )
        return return_path.address(self.return_path_key, message_id=key[1], recipient_id=key[2], domain=domain)

    def _new_id(self, prefix: str, now: int) -> str:
        return identifiers.make(prefix, now=now, entropy=self.entropy(identifiers.ENTROPY_BYTES))
