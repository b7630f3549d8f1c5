"""`/webhook/deliveries/{id}`, for any endpoint too: one delivery with its request and every attempt, and its replay.

The response of an endpoint is untrusted: it is shown as text, truncated by the log to 2 KB.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from postroad.dashboard import requests
from postroad.protocol import webhook_signature
from postroad.services.webhooks import attempt as webhook_attempt
from postroad.services.webhooks import client as webhook_client
from postroad.services.webhooks import delivery_log
from postroad.storage import webhook_attempts
from postroad.web import routing

FailureCode = webhook_client.FailureCode
# Why an attempt failed, and what to do; as in docs/webhooks.md.
ERROR_EXPLANATIONS: Final[Mapping[str, str]] = {
    FailureCode.BLOCKED_DESTINATION: "The URL resolves to an address that is not allowed. Use a public address.",
    FailureCode.DNS_FAILURE: "The host name could not be resolved. Check the name and its DNS.",
    FailureCode.CONNECTION_FAILED: "The connection was refused or lost. Check that your endpoint is running "
    "and that no firewall blocks it.",
    FailureCode.TLS_FAILURE: "The certificate is not trusted, has expired, or is for another host. Renew it, and serve "
    "the full chain.",
    FailureCode.TIMEOUT: "No complete response within 5 seconds. Respond first, then process the event.",
    FailureCode.INVALID_RESPONSE: "The response is not HTTP, or its header is too large. Check the port.",
    FailureCode.REDIRECT_NOT_FOLLOWED: "The response is a redirect, which is not followed. Use the target URL instead.",
    FailureCode.INTERRUPTED: "Postroad stopped during the attempt. The event may have reached your endpoint.",
}
_SUCCESS: Final = range(200, 300)
_SERVER_ERROR: Final = range(500, 600)
_STATUS_EXPLANATIONS: Final[Mapping[int, str]] = {
    401: "Your endpoint requires authentication. Allow this path, and verify the signature instead.",
    403: "Your endpoint rejected the request. Check that it verifies the raw body with the current secret.",
    404: "Your endpoint has nothing at this path. Check the URL.",
    405: "Your endpoint does not accept POST at this path. Check the URL.",
    413: "Your endpoint rejected the event as too large. Allow bodies of up to 64 KB.",
    429: "Your endpoint is rate limiting. The next attempt follows the retry schedule.",
}


class DeliveryView(msgspec.Struct, frozen=True):
    """A log entry, and whose result its event is."""

    entry: delivery_log.Entry
    recipient: str

    @property
    def last(self) -> webhook_attempts.Attempt | None:
        """The latest attempt."""
        return self.entry.attempts[-1] if self.entry.attempts else None

    @property
    def body(self) -> str:
        """The request body, indented."""
        return msgspec.json.format(self.entry.delivery.body, indent=2).decode()


def delivery_view(entry: delivery_log.Entry) -> DeliveryView:
    """A log entry for a page."""
    return DeliveryView(entry, _recipient(entry.delivery.body))


def _recipient(body: bytes) -> str:
    """The recipient in a body of any format: ours has `data.to`, Resend's a list there, Postmark's no `data`."""
    event = msgspec.json.decode(body, type=dict[str, Any])
    data = event.get("data", event)
    found = next((data[name] for name in ("to", "email", "Recipient", "Email") if data.get(name)), "")
    return ", ".join(map(str, found)) if isinstance(found, list) else str(found)


def explain(attempt: webhook_attempts.Attempt) -> str:
    """What the result of an attempt means."""
    if attempt.error is not None:
        code, _, sentence = attempt.error.partition(": ")
        return ERROR_EXPLANATIONS.get(code, sentence or attempt.error)
    status = attempt.status_code or 0
    if status in _SUCCESS:
        return "Accepted by your endpoint."
    if status in _SERVER_ERROR:
        return "Your endpoint returned a server error. Check its log."
    return _STATUS_EXPLANATIONS.get(status, "Only a 2xx response counts as accepted.")


async def show(request: requests.PageRequest) -> routing.Response:
    """The request and every attempt."""
    webhook_id = request.path.get("webhook")
    entry = await delivery_log.find(request.ctx, request.account_id, request.path["id"], webhook_id=webhook_id)
    headers = (
        ("Content-Type", "application/json"),
        ("User-Agent", webhook_attempt.USER_AGENT),
        (webhook_signature.HEADER, "t=<seconds since 1970>,v1=<64 hex digits>"),
    )
    return request.page(
        "webhook_delivery.html",
        delivery_view=delivery_view(entry),
        base=_base(request),
        headers=headers,
        explain=explain,
    )


async def replay(request: requests.PageRequest) -> routing.Response:
    """Send the event again as a new delivery."""
    webhook_id = request.path.get("webhook")
    again = await delivery_log.replay(request.ctx, request.account_id, request.path["id"], webhook_id=webhook_id)
    return request.redirect(
        f"{_base(request)}/deliveries/{again.delivery.id}", notice="Replaying the event. This is the new delivery."
    )


def _base(request: requests.PageRequest) -> str:
    """The page of the endpoint."""
    webhook_id = request.path.get("webhook")
    return "/webhook" if webhook_id is None else f"/webhooks/{webhook_id}"


ROUTES: Final = (
    requests.get("/webhook/deliveries/{id}", show),
    requests.post("/webhook/deliveries/{id}/replay", replay),
    requests.get("/webhooks/{webhook}/deliveries/{id}", show),
    requests.post("/webhooks/{webhook}/deliveries/{id}/replay", replay),
)
