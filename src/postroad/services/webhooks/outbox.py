"""The outbox: an event for each final recipient, written in the transaction that makes it final.

So there is an event exactly when there is a result, whatever crashes in between, and a delivery of it for each endpoint
of the account that is enabled and wants it at that moment. The engine in `webhooks/` delivers it.
"""

from collections.abc import Callable, Collection, Sequence
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
        """Write events and return the number of their deliveries. The accounts must be locked."""
        endpoints = await webhooks.enabled_of(tx, {outcome.key[0] for outcome in ended}) if ended else {}
        wanted = [
            (outcome, subscribed)
            for outcome in ended
            if (subscribed := _subscribed(endpoints.get(outcome.key[0], ()), events.OF_STATUS.get(outcome.status)))
        ]
        if not wanted:
            return 0
        about = await messages.event_details(tx, [outcome.key for outcome, _ in wanted])
        filtered = {outcome.key[:2] for outcome, found in wanted if any(endpoint.tags for endpoint in found)}
        tags = await messages.tags(tx, filtered) if filtered else {}
        deliveries = []
        for outcome, found in wanted:
            details, event_id = about[outcome.key], self._new_id(identifiers.EVENT, outcome.at)
            deliveries += [
                self._delivery(outcome, endpoint, details, event_id=event_id)
                for endpoint in found
                if is_wanted(endpoint, details, tags.get(outcome.key[:2], ()))
            ]
        if deliveries:
            await webhook_deliveries.insert(tx, deliveries)
        return len(deliveries)

    def _delivery(
        self, outcome: FinalOutcome, endpoint: webhooks.Webhook, about: messages.EventDetails, *, event_id: str
    ) -> webhook_deliveries.Delivery:
        account_id, message_id, recipient_id = outcome.key
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


def _subscribed(endpoints: Sequence[webhooks.Webhook], kind: events.EventType | None) -> list[webhooks.Webhook]:
    return [endpoint for endpoint in endpoints if kind in endpoint.events.split()]


def is_wanted(endpoint: webhooks.Webhook, about: messages.EventDetails, tags: Collection[str]) -> bool:
    """Whether an endpoint gets events of a message: of its mode, with one of its tags, from one of its domains."""
    return (
        (endpoint.mode == webhooks.TEST) == bool(about.is_test)
        and (not endpoint.tags or not set(endpoint.tags.split("\n")).isdisjoint(tags))
        and (not endpoint.sender_domains or about.sender_key.rpartition("@")[2] in endpoint.sender_domains.split("\n"))
    )
