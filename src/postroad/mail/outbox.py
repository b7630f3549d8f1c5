"""The outbox: webhook events, written in the transaction in which the thing happens.

So there is an event exactly when it has happened, whatever crashes in between, and a delivery of it for each endpoint
of the account that is enabled and wants it at that moment. The engine in `webhooks/` delivers it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

from postroad.mail import message_ids, notice_outbox, return_path
from postroad.model.events import event_formats, events
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.storage.engine import store
from postroad.storage.mail import messages, queue, suppressions, webhooks

# How often an endpoint hears that a recipient is deferred.
DEFERRED_INTERVAL: Final = times.HOUR

Endpoints = Mapping[str, Sequence[webhooks.Webhook]]  # by account


class _ForeignFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only the formats of other services contain; see `events.EmailEvent`."""

    is_scheduled: bool
    is_suppressed: bool
    message_id: str | None


def suppressed(event: events.RecipientEvent, source: str) -> events.RecipientEvent:
    """The event of an address that was put on the suppression list with another event."""
    return msgspec.structs.replace(event, kind=events.EventType.SUPPRESSED, source=source)


@dataclass(frozen=True, slots=True)
class Outbox:
    """Writes events."""

    return_path_key: bytes = field(repr=False)
    return_path_domain: str
    entropy: Callable[[int], bytes]
    formats: event_formats.Formats = field(default_factory=dict)

    async def write(
        self, tx: store.Transaction, happened: Sequence[events.RecipientEvent], *, endpoints: Endpoints | None = None
    ) -> int:
        """Write events about recipients and return the number of their deliveries. The accounts must be locked.

        `endpoints` are the enabled ones of the accounts, if they have been read before.
        """
        if endpoints is None:
            endpoints = await webhooks.enabled_of(tx, {event.key[0] for event in happened}) if happened else {}
        subscribed = [(event, _subscribed(endpoints.get(event.key[0], ()), event.kind)) for event in happened]
        wanted = [(event, found) for event, found in subscribed if found]
        if not wanted:
            return 0
        about = await messages.event_details(tx, list(dict.fromkeys(event.key for event, _ in wanted)))
        detailed = {
            event.key for event, found in wanted if any(_is_detailed(event.kind, endpoint) for endpoint in found)
        }
        more = await messages.event_context(tx, sorted(detailed)) if detailed else {}
        foreign = [event.key for event, found in wanted if any(map(_is_translated, found))]
        facts = await _foreign_facts(tx, foreign, about, more) if foreign else {}
        tagged = {
            event.key[:2] for event, found in wanted if event.key in more or any(endpoint.tags for endpoint in found)
        }
        tags = await messages.tags(tx, tagged) if tagged else {}
        heard = await _heard(tx, [event for event, _ in wanted if event.kind is events.EventType.DEFERRED])
        deliveries = []
        for event, found in wanted:
            details, has_tags = about[event.key], tags.get(event.key[:2], ())
            members = self._members(event, details, more.get(event.key), has_tags)
            event_id = self._new_id(identifiers.EVENT, event.at)
            deliveries += [
                self._delivery(
                    event.key[0],
                    event.kind,
                    event.at,
                    endpoint,
                    event_id=event_id,
                    body=body,
                    recipient=event.key[1:],
                )
                for endpoint in found
                if is_wanted(endpoint, details, has_tags)
                and (event.kind, endpoint.id, *event.key[1:]) not in heard
                and (body := self._body(endpoint, event, members, event_id=event_id, facts=facts.get(event.key)))
                is not None
            ]
        if deliveries:
            await webhooks.insert_deliveries(tx, deliveries)
        return len(deliveries)

    async def write_account(self, tx: store.Transaction, happened: Sequence[events.AccountEvent]) -> int:
        """The same for events about accounts and domains, which filters by message do not concern.

        What owners and operators are told of them is written with them.
        """
        endpoints = await webhooks.enabled_of(tx, {event.account_id for event in happened}) if happened else {}
        deliveries = []
        for event in happened:
            told = notice_outbox.of_event(event.account_id, event.kind, event.data)
            await notice_outbox.write(tx, told, now=event.at, entropy=self.entropy)
            event_id = self._new_id(identifiers.EVENT, event.at)
            body = events.body(event_id, event.kind, created_at=event.at, data=event.data)
            for endpoint in _subscribed(endpoints.get(event.account_id, ()), event.kind):
                wanted: bytes | None = body
                if _is_translated(endpoint) and isinstance(event.data, events.ReceivedData):
                    received = events.ReceivedEvent(at=event.at, data=event.data, files=event.files)
                    wanted = self._translated(endpoint, received)
                if endpoint.mode == webhooks.LIVE and wanted is not None:
                    deliveries.append(
                        self._delivery(event.account_id, event.kind, event.at, endpoint, event_id=event_id, body=wanted)
                    )
        if deliveries:
            await webhooks.insert_deliveries(tx, deliveries)
        return len(deliveries)

    def _members(
        self,
        event: events.RecipientEvent,
        about: messages.EventDetails,
        more: messages.EventContext | None,
        tags: Collection[str],
    ) -> dict[str, Any]:
        """Everything that is known; each form of an event has some of it."""
        members = msgspec.structs.asdict(event)
        members |= {
            "email_id": event.key[1],
            "recipient_id": event.key[2],
            "to": about.email,
            "sender": self._envelope_sender(event.key, about),
            "subject": about.subject,
            "next_attempt_at": times.optional_to_wire(event.next_attempt_at),
            "test": bool(about.is_test),
        }
        if more is not None:
            members |= {
                "tags": tuple(sorted(tags)),
                "metadata": msgspec.json.decode(more.metadata) if more.metadata else {},
                "header_from": more.sender,
                "attempt": more.attempt_count,
            }
        del members["key"], members["kind"], members["at"]
        return members

    def _delivery(
        self,
        account_id: str,
        kind: events.EventType,
        at: int,
        endpoint: webhooks.Webhook,
        *,
        event_id: str,
        body: bytes,
        recipient: tuple[str | None, str | None] = (None, None),
    ) -> webhooks.Delivery:
        return webhooks.Delivery(
            account_id=account_id,
            webhook_id=endpoint.id,
            id=self._new_id(identifiers.WEBHOOK_DELIVERY, at),
            event_id=event_id,
            event_type=kind,
            message_id=recipient[0],
            recipient_id=recipient[1],
            url=endpoint.url,
            body=body,
            due_at=at,
            created_at=at,
        )

    def _body(
        self,
        endpoint: webhooks.Webhook,
        event: events.RecipientEvent,
        members: Mapping[str, Any],
        *,
        event_id: str,
        facts: _ForeignFacts | None,
    ) -> bytes | None:
        """The bytes of an event as an endpoint wants them; None when its format has none, or it is not wanted."""
        version = events.V2 if _is_translated(endpoint) else endpoint.version
        data = events.recipient(kind=event.kind, version=version, **members)
        if isinstance(data, events.DataV2) and facts is not None and _is_translated(endpoint):
            known = msgspec.structs.asdict(facts)
            return self._translated(endpoint, events.EmailEvent(kind=event.kind, at=event.at, data=data, **known))
        return events.body(event_id, event.kind, created_at=event.at, data=data)

    def _translated(self, endpoint: webhooks.Webhook, event: event_formats.Event) -> bytes | None:
        of_format = self.formats.get(endpoint.format)
        if of_format is None:  # an extension that is not installed: the event waits for it
            return event_formats.untranslated(event)
        return of_format.body(event, wanted=endpoint.format_events.split())

    def _envelope_sender(self, key: queue.Key, about: messages.EventDetails) -> str:
        domain = return_path.domain_for(
            about.sender_key, chosen=about.return_path_domain, configured=self.return_path_domain
        )
        return return_path.address(self.return_path_key, message_id=key[1], recipient_id=key[2], domain=domain)

    def _new_id(self, prefix: str, now: int) -> str:
        return identifiers.make(prefix, now=now, entropy=self.entropy(identifiers.ENTROPY_BYTES))


class Filter(StrEnum):
    """What of an endpoint decides which messages it gets events of."""

    MODE = "mode"
    TAGS = "tags"
    SENDER_DOMAINS = "sender_domains"


def excluding_filter(
    endpoint: webhooks.Webhook, *, is_test: bool, sender_domain: str, tags: Collection[str]
) -> Filter | None:
    """Why an endpoint gets no events of a message; None if it gets them."""
    if (endpoint.mode == webhooks.TEST) != is_test:
        return Filter.MODE
    if endpoint.tags and set(endpoint.tags.split("\n")).isdisjoint(tags):
        return Filter.TAGS
    if endpoint.sender_domains and sender_domain not in endpoint.sender_domains.split("\n"):
        return Filter.SENDER_DOMAINS
    return None


def is_wanted(endpoint: webhooks.Webhook, about: messages.EventDetails, tags: Collection[str]) -> bool:
    """Whether an endpoint gets events of a message: of its mode, with one of its tags, from one of its domains."""
    domain = about.sender_key.rpartition("@")[2]
    return excluding_filter(endpoint, is_test=bool(about.is_test), sender_domain=domain, tags=tags) is None


async def _heard(tx: store.Transaction, deferred: Sequence[events.RecipientEvent]) -> Collection[webhooks.Heard]:
    """Which endpoints have been sent which of these deferred recipients within the interval."""
    if not deferred:
        return ()
    since = {
        event.key[1]: identifiers.at(identifiers.WEBHOOK_DELIVERY, event.at - DEFERRED_INTERVAL + 1)
        for event in deferred
    }
    return await webhooks.deferrals_since(tx, list(since.items()))


async def _foreign_facts(
    tx: store.Transaction,
    keys: Sequence[queue.Key],
    about: Mapping[queue.Key, messages.EventDetails],
    more: Mapping[queue.Key, messages.EventContext],
) -> dict[queue.Key, _ForeignFacts]:
    sent = [message_ids.Sent(*key[:2], more[key].source, about[key].sender_key.rpartition("@")[2]) for key in keys]
    fields = await message_ids.find(tx, sent)
    places = {key: (key[0], address.parse(about[key].email).key) for key in keys}
    suppressed = await suppressions.find(tx, sorted(set(places.values())))
    return {
        key: _ForeignFacts(
            is_scheduled=more[key].send_at is not None,
            is_suppressed=places[key] in suppressed,
            message_id=fields[key[1]],
        )
        for key in keys
    }


def _subscribed(endpoints: Sequence[webhooks.Webhook], kind: events.EventType) -> list[webhooks.Webhook]:
    return [endpoint for endpoint in endpoints if kind in endpoint.events.split()]


def _is_detailed(kind: events.EventType, endpoint: webhooks.Webhook) -> bool:
    return _is_translated(endpoint) or events.data_type(kind, endpoint.version) is not events.Data


def _is_translated(endpoint: webhooks.Webhook) -> bool:
    return endpoint.format != event_formats.OWN
