"""`/webhook/deliveries/{id}`: one event as a receiver was told it, every attempt with its answer, and its replay.

The answer of a receiver is a stranger's text: it is shown as text, cut by the log to 2 KB.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad.dashboard import requests
from postroad.dashboard import site as sites
from postroad.model import events
from postroad.protocol import webhook_signature
from postroad.services import context
from postroad.services.webhooks import attempt as webhook_attempt
from postroad.services.webhooks import client as webhook_client
from postroad.services.webhooks import delivery_log
from postroad.storage import webhook_attempts
from postroad.web import routing

FailureCode = webhook_client.FailureCode
# Why there was no answer that counts, and what to do about it; as in docs/webhooks.md.
ERROR_EXPLANATIONS: Final[Mapping[str, str]] = {
    FailureCode.BLOCKED_DESTINATION: "The URL leads to an address that webhooks may not go to. Use a public address.",
    FailureCode.DNS_FAILURE: "The host's name could not be looked up. Check the name, and that its DNS answers.",
    FailureCode.CONNECTION_FAILED: "Nobody accepted the connection, or it broke. Is your receiver running, and does a "
    "firewall let us in?",
    FailureCode.TLS_FAILURE: "The certificate is not trusted, has expired, or is for another host. Renew it, and serve "
    "the whole chain.",
    FailureCode.TIMEOUT: "There was no complete answer within 5 seconds. Answer first, then work.",
    FailureCode.INVALID_RESPONSE: "What came back is not HTTP, or its head is too large. Is the port the right one?",
    FailureCode.REDIRECT_NOT_FOLLOWED: "The answer was a redirect, which is not followed. "
    "Save the URL that it leads to.",
    FailureCode.INTERRUPTED: "Postroad was stopped during the attempt. It counts, and the event may have reached you.",
}
_SUCCESS: Final = range(200, 300)
_SERVER_ERROR: Final = range(500, 600)
_STATUS_EXPLANATIONS: Final[Mapping[int, str]] = {
    401: "Your receiver wants a log-in. Leave this path open, and check the signature instead.",
    403: "Your receiver refused us. Does it check the signature with the current secret, over the bytes as they came?",
    404: "There is nothing at this path of your receiver. Check the URL.",
    405: "Your receiver takes no POST at this path. Check the URL.",
    413: "Your receiver finds the event too large. Let it take 64 KB.",
    429: "Your receiver has had enough for now. The next attempt follows on the schedule.",
}


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """An entry of the log with what its event says."""

    entry: delivery_log.Entry
    event: events.Event

    @property
    def last(self) -> webhook_attempts.Attempt | None:
        """The newest attempt."""
        return self.entry.attempts[-1] if self.entry.attempts else None

    @property
    def body(self) -> str:
        """The bytes that are sent, with line breaks for people."""
        return msgspec.json.format(self.entry.delivery.body, indent=2).decode()


def told(entry: delivery_log.Entry) -> DeliveryView:
    """An entry for a page."""
    return DeliveryView(entry, msgspec.json.decode(entry.delivery.body, type=events.Event))


def explain(attempt: webhook_attempts.Attempt) -> str:
    """In plain words what came of an attempt."""
    if attempt.error is not None:
        code, _, sentence = attempt.error.partition(": ")
        return ERROR_EXPLANATIONS.get(code, sentence or attempt.error)
    status = attempt.status_code or 0
    if status in _SUCCESS:
        return "Your receiver has taken it."
    if status in _SERVER_ERROR:
        return "Your receiver broke over it, or something in front of it is down. Its own log says more."
    return _STATUS_EXPLANATIONS.get(status, "Only an answer from 200 to 299 counts as taken.")


async def show(page_request: requests.PageRequest) -> routing.Response:
    """The request, and every attempt."""
    entry = await delivery_log.find(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    headers = (
        ("Content-Type", "application/json"),
        ("User-Agent", webhook_attempt.USER_AGENT),
        (webhook_signature.HEADER, "t=<seconds since 1970>,v1=<64 hex digits>"),
    )
    return page_request.page("delivery.html", told=told(entry), headers=headers, explain=explain)


async def replay(page_request: requests.PageRequest) -> routing.Response:
    """Tell the event again, as a delivery of its own."""
    again = await delivery_log.replay(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    return page_request.redirect(
        f"/webhook/deliveries/{again.delivery.id}", notice="The event is told again: this is the new delivery."
    )


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """A delivery, and its replay."""
    one = "/webhook/deliveries/{id}"
    return requests.get(site, one, show), requests.post(site, f"{one}/replay", replay)
