"""One webhook delivery attempt: signed now, sent through the SSRF guard, timed.

The body is sent and signed as the stored bytes. The signature's time comes from the context's clock; the duration is
measured on a monotonic clock.
"""

import time
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.model import times, webhook_formats
from postroad.protocol import standard_webhooks, webhook_signature
from postroad.services import context
from postroad.services.webhooks import client as webhook_client
from postroad.services.webhooks import request_headers
from postroad.storage import webhook_attempts, webhook_deliveries, webhooks

USER_AGENT: Final = "Service-Webhook/1.0"


class AttemptResult(msgspec.Struct, frozen=True):
    """The result of an attempt, its start on the context's clock, and its duration in microseconds."""

    started_at: int
    duration: int
    response: webhook_client.WebhookResponse


async def attempt(
    ctx: context.Context, webhook: webhooks.Webhook, *, event_id: str, secrets: Sequence[str], body: bytes
) -> AttemptResult:
    """Sign with these secrets, newest first, and send to the URL of an endpoint."""
    started_at, began = ctx.clock(), time.monotonic_ns()
    timestamp = started_at // times.SECOND
    headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", USER_AGENT),
        (webhook_signature.HEADER, webhook_signature.header(secrets, body, timestamp=timestamp)),
    ]
    if webhook.format == webhook_formats.Format.RESEND:
        headers += standard_webhooks.svix_headers(secrets, body, event_id=event_id, timestamp=timestamp)
    elif webhook.standard_signature:
        headers += standard_webhooks.headers(secrets, body, event_id=event_id, timestamp=timestamp)
    headers += request_headers.decrypt(ctx, webhook)
    response = await ctx.webhook_client.post(webhook.url, body, headers)
    return AttemptResult(started_at, (time.monotonic_ns() - began) // 1_000, response)


def attempt_row(key: webhook_deliveries.Key, number: int, attempted: AttemptResult) -> webhook_attempts.Attempt:
    """The attempt as the delivery log stores it."""
    account_id, webhook_id, delivery_id = key
    response = attempted.response
    return webhook_attempts.Attempt(
        account_id=account_id,
        webhook_id=webhook_id,
        delivery_id=delivery_id,
        number=number,
        started_at=attempted.started_at,
        duration=attempted.duration,
        status_code=response.status_code,
        response_body=response.body,
        error=response.error,
    )
