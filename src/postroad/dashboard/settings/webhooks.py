"""`/webhook` and `/webhooks`: endpoints, their secrets, the delivery log, and each delivery with its attempts."""

import zoneinfo
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard.framework import forms, requests, snippets
from postroad.model.events import event_formats, events
from postroad.model.units import times
from postroad.network.http import guarded_client
from postroad.protocol.signatures import webhook_signature
from postroad.services.messages import dev_inbox
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints, signed_requests
from postroad.storage.mail import webhooks
from postroad.web import routing

# `/webhook/deliveries/{id}`, for any endpoint too: one delivery with its request and every attempt, and its replay.
#
# The response of an endpoint is untrusted: it is shown as text, truncated by the log to 2 KB.

FailureCode = guarded_client.FailureCode
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
    def last(self) -> webhooks.Attempt | None:
        return self.entry.attempts[-1] if self.entry.attempts else None

    @property
    def body(self) -> str:
        return msgspec.json.format(self.entry.delivery.body, indent=2).decode()


def delivery_view(entry: delivery_log.Entry) -> DeliveryView:
    return DeliveryView(entry, _recipient(entry.delivery.body))


def _recipient(body: bytes) -> str:
    """The recipient in a body of any format: ours has `data.to`, Resend's a list there, Postmark's no `data`."""
    event = msgspec.json.decode(body, type=dict[str, Any])
    data = event.get("data", event)
    found = next((data[name] for name in ("to", "email", "Recipient", "Email") if data.get(name)), "")
    return ", ".join(map(str, found)) if isinstance(found, list) else str(found)


def explain(attempt: webhooks.Attempt) -> str:
    if attempt.error is not None:
        code, _, sentence = attempt.error.partition(": ")
        return ERROR_EXPLANATIONS.get(code, sentence or attempt.error)
    status = attempt.status_code or 0
    if status in _SUCCESS:
        return "Accepted by your endpoint."
    if status in _SERVER_ERROR:
        return "Your endpoint returned a server error. Check its log."
    return _STATUS_EXPLANATIONS.get(status, "Only a 2xx response counts as accepted.")


async def show_delivery(request: requests.PageRequest) -> routing.Response:
    webhook_id = request.path.get("webhook")
    entry = await delivery_log.find(request.ctx, request.account_id, request.path["id"], webhook_id=webhook_id)
    headers = (
        ("Content-Type", "application/json"),
        ("User-Agent", signed_requests.USER_AGENT),
        (webhook_signature.HEADER, "t=<seconds since 1970>,v1=<64 hex digits>"),
    )
    return request.page(
        "webhook_delivery.html",
        delivery_view=delivery_view(entry),
        base=_path(request),
        headers=headers,
        explain=explain,
    )


async def replay_delivery(request: requests.PageRequest) -> routing.Response:
    """Send the event again as a new delivery."""
    webhook_id = request.path.get("webhook")
    again = await delivery_log.replay(request.ctx, request.account_id, request.path["id"], webhook_id=webhook_id)
    return request.redirect(
        f"{_path(request)}/deliveries/{again.delivery.id}",
        notice="Replaying the event. This is the new delivery.",
    )


DELIVERY_ROUTES: Final = (
    requests.get("/webhook/deliveries/{id}", show_delivery, is_live=True),
    requests.post("/webhook/deliveries/{id}/replay", replay_delivery),
    requests.get("/webhooks/{webhook}/deliveries/{id}", show_delivery, is_live=True),
    requests.post("/webhooks/{webhook}/deliveries/{id}/replay", replay_delivery),
)


PATH: Final = "/webhook"
LIST_PATH: Final = "/webhooks"
ENDPOINT_PATH: Final = f"{LIST_PATH}/{{webhook}}"
ROWS: Final = 50
# What each event means, as in docs/webhooks.md.
EVENTS: Final = {
    events.EventType.DELIVERED: "The receiving server accepted the message.",
    events.EventType.BOUNCED: "The receiving server permanently refused it.",
    events.EventType.FAILED: "All attempts failed.",
    events.EventType.ACCEPTED: "Postroad accepted the message.",
    events.EventType.DEFERRED: "An attempt failed, and there will be another; at most once an hour.",
    events.EventType.COMPLAINED: "The recipient complained: the provider reported the message as spam or fraud.",
    events.EventType.BOUNCED_LATER: "A bounce was reported after the receiving server had accepted the message.",
    events.EventType.SUPPRESSED: "The address was added to the suppression list because of this message.",
    events.EventType.EXPIRED: "It was not delivered before it expired.",
    events.EventType.CANCELED: "The sender canceled it before an attempt.",
    events.EventType.DOMAIN_VERIFIED: "A sender domain was verified.",
    events.EventType.DOMAIN_FAILING: "The DKIM record of a verified domain is no longer in DNS.",
    events.EventType.ACCOUNT_WARNED: "The bounce guard warns of many bounces or complaints.",
    events.EventType.ACCOUNT_SUSPENDED: "The account was suspended and can no longer send.",
    events.EventType.CREDITS_LOW: "Fewer credits are left than were used in the last three days.",
}
PERIODS: Final = {"24h": times.DAY, "7d": delivery_log.LOG_SECONDS * times.SECOND}
_EXAMPLE: Final = events.body(
    "evt_06604ca5a09e5ac3bf30764dc163",
    events.EventType.BOUNCED,
    created_at=1_769_860_803_811_000,
    data=events.Data(
        email_id="em_06604ca58ccca61dc35061804060",
        recipient_id="rcp_06604ca58ccca63c75c8211311be",
        to="ada@example.net",
        sender="bounces+06604ca58ccca61dc35061804060@example.com",
        subject="Hello",
        smtp_code=550,
        smtp_response="5.1.1 <ada@example.net>: user unknown",
    ),
)
EXAMPLE: Final = msgspec.json.format(_EXAMPLE, indent=2).decode()


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the log. The search form also sends empty fields."""

    status: Literal["", "failed", "pending", "succeeded"] | None = None
    message: str | None = None
    before: str | None = None


class Endpoint(forms.Form, frozen=True, kw_only=True):
    """The endpoint. Browsers do not send unchecked boxes; `has_options` says that the rest of the form was sent."""

    url: str
    events: tuple[str, ...] | None = None
    enabled: bool | None = None
    has_options: bool | None = None
    description: str | None = None
    tags: str | None = None
    sender_domains: str | None = None
    version: endpoint_settings.Version | None = None
    mode: endpoint_settings.Mode | None = None
    standard_signature: bool | None = None

    def changes(self) -> endpoint_settings.Changes:
        """What the form says. Raises InvalidRequest."""
        if not self.events:
            raise errors.InvalidRequest("events: select at least one; to receive none, disable the webhook")
        given = endpoint_settings.Changes(url=self.url, events=self.events, enabled=self.enabled is True)
        if not self.has_options:
            return given
        return msgspec.structs.replace(
            given,
            description=self.description or "",
            tags=_lines(self.tags),
            sender_domains=_lines(self.sender_domains),
            version=self.version,
            mode=self.mode,
            standard_signature=self.standard_signature is True,
        )


class Rotation(forms.Form, frozen=True, kw_only=True):
    """How long the old secret stays valid beside the new one."""

    overlap_hours: int | None = None


class Replay(forms.Form, frozen=True, kw_only=True):
    """The period whose failed events are replayed; days are whole days of the user, both included."""

    period: Literal["24h", "7d", "days"]
    from_day: str | None = None
    to_day: str | None = None

    def bounds(self, now: int, zone: zoneinfo.ZoneInfo) -> tuple[int, int]:
        """The start (inclusive) and the end (exclusive)."""
        if self.period in PERIODS:
            if self.from_day or self.to_day:
                raise errors.InvalidRequest("period: choose 'The days below', or leave the days empty")
            return max(0, now - PERIODS[self.period]), now
        return (
            forms.start_of_day("from_day", self.from_day, zone),
            forms.end_of_day("to_day", self.to_day, zone),
        )


async def show(request: requests.PageRequest) -> routing.Response:
    """The endpoint and a page of the log; without an endpoint, how to add one."""
    webhook = await _find(request)
    return request.page("webhook.html", **await _values(request, webhook), **await _log(request, request.query))


async def index(request: requests.PageRequest) -> routing.Response:
    found = await endpoints.of_account(request.ctx, request.account_id)
    return request.page("webhooks.html", webhooks=found, chosen=events.DEFAULT, kinds=_kinds(request))


async def save(request: requests.PageRequest) -> routing.Response:
    """Create the endpoint and show its secret once, or update it."""
    form: Endpoint = request.form
    ctx, account_id, webhook = request.ctx, request.account_id, await _find(request)
    changes = form.changes()
    if webhook is None:
        saved = await endpoints.save(ctx, account_id, url=form.url, wanted=changes.events, enabled=changes.enabled)
        if saved.secret is not None:
            return await _with_secret(request, saved.webhook, saved.secret, "Webhook saved")
    else:
        if webhook.format != event_formats.OWN:  # these are that service's own
            changes = msgspec.structs.replace(changes, events=None, version=None, standard_signature=None)
        await endpoints.change(ctx, account_id, webhook.id, changes)
    notice = "Webhook saved." if changes.enabled else "Webhook saved and disabled."
    return request.redirect(_path(request), notice=notice)


async def create(request: requests.PageRequest) -> routing.Response:
    """Create one more endpoint and show its secret once."""
    form: Endpoint = request.form
    saved = await endpoints.create(request.ctx, request.account_id, form.changes())
    return await _with_secret(request, saved.webhook, saved.secret or "", "Webhook created")


async def rotate(request: requests.PageRequest) -> routing.Response:
    """Create a new secret and show it once."""
    form: Rotation = request.form
    webhook_id = request.path.get("webhook")
    secret = await endpoints.rotate(request.ctx, request.account_id, webhook_id, overlap_hours=form.overlap_hours)
    return await _with_secret(request, await _find(request), secret, "New secret created")


async def ping(request: requests.PageRequest) -> routing.Response:
    """Send one test event now and show its delivery."""
    sent = await delivery_log.ping(request.ctx, request.account_id, request.path.get("webhook"))
    is_accepted = sent.status == "succeeded"
    notice = "Test event accepted." if is_accepted else "Test event not accepted. See the attempt below."
    return request.redirect(
        f"{_path(request)}/deliveries/{sent.delivery.id}", notice=notice, kind="good" if is_accepted else "bad"
    )


async def remove(request: requests.PageRequest) -> routing.Response:
    await endpoints.remove(request.ctx, request.account_id, request.path.get("webhook"))
    return request.redirect(PATH, notice="Webhook removed, with its secret and log.")


async def replay_failed(request: requests.PageRequest) -> routing.Response:
    """Replay the failed events of a period."""
    form: Replay = request.form
    after, before = form.bounds(request.ctx.clock(), request.zone)
    webhook_id = request.path.get("webhook")
    done = await delivery_log.replay_failed(request.ctx, request.account_id, webhook_id, after=after, before=before)
    counted = "Replaying 1 event." if done.count == 1 else f"Replaying {done.count:,} events."
    if not done.count:
        counted = "No events to replay: those that failed have been sent since, or are being sent."
    return request.redirect(
        _path(request), notice=f"{counted} There are more: replay again to continue." if done.has_more else counted
    )


async def _with_secret(
    request: requests.PageRequest, webhook: webhooks.Webhook | None, secret: str, title: str
) -> routing.Response:
    values = {**await _values(request, webhook), "secret": secret, "secret_title": title}
    return request.page("webhook.html", status=201, **values, **await _log(request, Query()))


async def _find(request: requests.PageRequest) -> webhooks.Webhook | None:
    """The endpoint that the path names, or the first one, if there is one."""
    if (webhook_id := request.path.get("webhook")) is not None:
        return await endpoints.get(request.ctx, request.account_id, webhook_id)
    return await endpoints.find(request.ctx, request.account_id)


def _path(request: requests.PageRequest) -> str:
    webhook_id = request.path.get("webhook")
    return PATH if webhook_id is None else f"{LIST_PATH}/{webhook_id}"


def _lines(text: str | None) -> list[str]:
    return [line for entry in (text or "").splitlines() if (line := entry.strip())]


def _kinds(request: requests.PageRequest) -> dict[events.EventType, str]:
    """The events that can happen here, and what they mean."""
    has_credits = request.site.has_credits
    return {kind: meaning for kind, meaning in EVENTS.items() if has_credits or kind != events.EventType.CREDITS_LOW}


async def _values(request: requests.PageRequest, webhook: webhooks.Webhook | None) -> dict[str, Any]:
    # What was just created has a page of its own, whatever page created it.
    base = PATH if webhook is None or webhook.is_first else f"{LIST_PATH}/{webhook.id}"
    return {
        "webhook": webhook,
        "base": base,
        "count": len(await endpoints.of_account(request.ctx, request.account_id)),
        "chosen": webhook.events.split() if webhook else list(events.DEFAULT),
        "kinds": _kinds(request),
        "secret": None,
        "secret_title": "",
        "example": EXAMPLE,
        "verification_snippets": snippets.sources().verification,
        "retries": request.ctx.settings.webhooks.retry_seconds,
        "max_overlap_hours": endpoints.MAX_OVERLAP_HOURS,
        "builtin_endpoint_url": f"{request.base_url}{dev_inbox.WEBHOOK_PATH}"
        if request.site.mail is not None
        else None,
    }


async def _log(request: requests.PageRequest, query: Query) -> dict[str, Any]:
    message, status = (query.message or "").strip(), query.status or None
    part = await delivery_log.page(
        request.ctx,
        request.account_id,
        request.path.get("webhook"),
        message_id=message or None,
        status=status,
        before=query.before,
        limit=ROWS,
    )
    return {
        "rows": [delivery_view(entry) for entry in part.rows],
        "next_cursor": part.next_cursor,
        "wanted": status or "",
        "message": message,
        "is_first": not (message or status or query.before),
    }


ROUTES: Final = (
    requests.get(PATH, show, query=Query, is_live=True),
    requests.post(PATH, save, form=Endpoint),
    requests.post(f"{PATH}/rotate", rotate, form=Rotation),
    requests.post(f"{PATH}/ping", ping),
    requests.post(f"{PATH}/remove", remove),
    requests.post(f"{PATH}/replay", replay_failed, form=Replay),
    requests.get(LIST_PATH, index),
    requests.post(LIST_PATH, create, form=Endpoint),
    requests.get(ENDPOINT_PATH, show, query=Query, is_live=True),
    requests.post(ENDPOINT_PATH, save, form=Endpoint),
    requests.post(f"{ENDPOINT_PATH}/rotate", rotate, form=Rotation),
    requests.post(f"{ENDPOINT_PATH}/ping", ping),
    requests.post(f"{ENDPOINT_PATH}/remove", remove),
    requests.post(f"{ENDPOINT_PATH}/replay", replay_failed, form=Replay),
)
