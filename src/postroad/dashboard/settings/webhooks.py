"""`/webhooks`: endpoints, the delivery log of each, their settings and secrets, and each delivery with its attempts."""

import zoneinfo
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from postroad import errors
from postroad.dashboard.framework import forms, requests, snippets
from postroad.model.events import event_formats, events
from postroad.model.units import times
from postroad.network.http import guarded_client
from postroad.protocol.signatures import webhook_signature
from postroad.services.domains import domain_registry
from postroad.services.messages import dev_inbox
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints, signed_requests
from postroad.storage.mail import webhooks
from postroad.web import routing

# One delivery, with its request and every attempt, and its replay.
#
# The response of an endpoint is untrusted: it is shown as text, truncated by the log to 2 KB.

PATH: Final = "/webhooks"
ENDPOINT_PATH: Final = f"{PATH}/{{webhook}}"
DELIVERY_PATH: Final = f"{ENDPOINT_PATH}/deliveries/{{id}}"

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
    webhook_id = request.path["webhook"]
    entry = await delivery_log.find(request.ctx, request.account_id, request.path["id"], webhook_id=webhook_id)
    headers = (
        ("Content-Type", "application/json"),
        ("User-Agent", signed_requests.USER_AGENT),
        (webhook_signature.HEADER, "t=<seconds since 1970>,v1=<64 hex digits>"),
    )
    return request.page(
        "webhook_delivery.html",
        delivery_view=delivery_view(entry),
        headers=headers,
        explain=explain,
    )


async def replay_delivery(request: requests.PageRequest) -> routing.Response:
    """Send the event again as a new delivery."""
    webhook_id = request.path["webhook"]
    again = await delivery_log.replay(request.ctx, request.account_id, request.path["id"], webhook_id=webhook_id)
    return request.redirect(_delivery_url(again.delivery), notice="Replaying the event. This is the new delivery.")


ROWS: Final = 50
# More domains of an account are not offered as filters.
MAX_DOMAINS: Final = 100
# What each event means, as in docs/webhooks.md.
EVENTS: Final = {
    events.EventType.DELIVERED: "The receiving server accepted the message.",
    events.EventType.BOUNCED: "The receiving server permanently refused it.",
    events.EventType.FAILED: "All attempts failed.",
    events.EventType.ACCEPTED: "Postroad accepted the message.",
    events.EventType.DEFERRED: "An attempt failed, and there will be another; at most once an hour.",
    events.EventType.COMPLAINED: "The recipient reported the message as spam or fraud.",
    events.EventType.BOUNCED_LATER: "A bounce came back after the receiving server had accepted the message.",
    events.EventType.SUPPRESSED: "The message put the address on your suppression list.",
    events.EventType.UNSUBSCRIBED: "The recipient left a list, or stopped all mail, by an unsubscribe link.",
    events.EventType.EXPIRED: "Gave up: not delivered before its deadline.",
    events.EventType.CANCELED: "You canceled it before sending.",
    events.EventType.RECEIVED: "A message arrived at a route.",
    events.EventType.DOMAIN_VERIFIED: "A sender domain was verified.",
    events.EventType.DOMAIN_FAILING: "The DKIM record of a verified domain is no longer in DNS.",
    events.EventType.ACCOUNT_WARNED: "The bounce guard warns of many bounces or complaints.",
    events.EventType.ACCOUNT_SUSPENDED: "The account was suspended and can no longer send.",
    events.EventType.CREDITS_LOW: "Fewer credits are left than were used in the last three days.",
}
# What most endpoints get; any other choice is ticked event by event.
Preset = Literal["results", "all", "custom"]
PRESETS: Final[Mapping[Preset, tuple[str, tuple[events.EventType, ...]]]] = {
    "results": ("Deliveries and failures", events.DEFAULT),
    "all": ("All events", events.SUBSCRIBABLE),
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


class NewEndpoint(forms.Form, frozen=True, kw_only=True):
    """An endpoint to create. Without a preset, which those in the format of another service lack, its events stay."""

    url: str
    preset: Preset | None = None
    events: tuple[str, ...] | None = None
    sender_domains: tuple[str, ...] | None = None

    def changes(self) -> endpoint_settings.Changes:
        """What the form says. Raises InvalidRequest."""
        return endpoint_settings.Changes(url=self.url, events=self._events(), sender_domains=self.sender_domains or ())

    def _events(self) -> Sequence[str] | None:
        if self.preset != "custom":
            return PRESETS[self.preset][1] if self.preset else None
        if not self.events:
            raise errors.InvalidRequest("events: select at least one; to receive none, disable the webhook")
        return self.events


class Endpoint(NewEndpoint, frozen=True, kw_only=True):
    """All settings of an endpoint. Browsers do not send unchecked boxes."""

    enabled: bool | None = None
    description: str | None = None
    tags: str | None = None
    version: endpoint_settings.Version | None = None
    mode: endpoint_settings.Mode | None = None
    standard_signature: bool | None = None

    def changes(self) -> endpoint_settings.Changes:
        return msgspec.structs.replace(
            super().changes(),
            enabled=bool(self.enabled),
            description=self.description or "",
            tags=[line for entry in (self.tags or "").splitlines() if (line := entry.strip())],
            version=self.version,
            mode=self.mode,
            standard_signature=bool(self.standard_signature),
        )


class Rotation(forms.Form, frozen=True, kw_only=True):
    """How long the old secret stays valid beside the new one; 0 revokes it at once."""

    overlap_hours: int


class Replay(forms.Form, frozen=True, kw_only=True):
    """The period whose failed events are replayed; days are whole days of the user, both included."""

    period: Literal["24h", "7d", "days"]
    from_day: str | None = None
    to_day: str | None = None

    def bounds(self, now: int, zone: zoneinfo.ZoneInfo) -> tuple[int, int]:
        """The start (inclusive) and the end (exclusive)."""
        if self.period in PERIODS:
            if self.from_day or self.to_day:
                raise errors.InvalidRequest("period: choose 'Custom range', or leave the days blank")
            return max(0, now - PERIODS[self.period]), now
        return (
            forms.start_of_day("from_day", self.from_day, zone),
            forms.end_of_day("to_day", self.to_day, zone),
        )


async def index(request: requests.PageRequest) -> routing.Response:
    found = await endpoints.of_account(request.ctx, request.account_id)
    is_used = any(webhook.url == _builtin_endpoint_url(request) for webhook in found)
    return request.page(
        "webhooks.html",
        webhooks=found,
        summaries=await delivery_log.summaries(request.ctx, found),
        most_summarized=delivery_log.MAX_SUMMARIZED_ROWS,
        subscription=_subscription,
        presets=PRESETS,
        suggested_url="" if is_used else _builtin_endpoint_url(request),
        **await _choices(request),
        **_guide(request),
    )


async def create(request: requests.PageRequest) -> routing.Response:
    """Create an endpoint and show its secret once."""
    form: NewEndpoint = request.form
    saved = await endpoints.create(request.ctx, request.account_id, form.changes())
    return _secret_page(request, saved.webhook, secret=saved.secret or "", title="Webhook created")


async def show(request: requests.PageRequest) -> routing.Response:
    """An endpoint with a page of its log."""
    webhook, query = await _find(request), request.query
    message, status = (query.message or "").strip(), query.status or None
    part = await delivery_log.page(
        request.ctx,
        request.account_id,
        webhook.id,
        message_id=message or None,
        status=status,
        before=query.before,
        limit=ROWS,
    )
    return request.page(
        "webhook.html",
        webhook=webhook,
        rows=[delivery_view(entry) for entry in part.rows],
        next_cursor=part.next_cursor,
        wanted=status or "",
        message=message,
        is_first=not (message or status or query.before),
    )


async def show_settings(request: requests.PageRequest) -> routing.Response:
    webhook = await _find(request)
    return request.page(
        "webhook_settings.html",
        webhook=webhook,
        chosen=webhook.events.split(),
        preset=_preset(webhook),
        presets=PRESETS,
        subscription=_subscription,
        builtin_endpoint_url=_builtin_endpoint_url(request),
        **await _choices(request, webhook),
    )


async def save(request: requests.PageRequest) -> routing.Response:
    form: Endpoint = request.form
    webhook, changes = await _find(request), form.changes()
    if webhook.format != event_formats.OWN:  # these are that service's own
        changes = msgspec.structs.replace(changes, events=None, version=None, standard_signature=None)
    await endpoints.change(request.ctx, request.account_id, webhook.id, changes)
    notice = "Webhook saved." if form.enabled else "Webhook saved and disabled."
    return request.redirect(f"{url_of(webhook.id)}/settings", notice=notice)


async def show_secret(request: requests.PageRequest) -> routing.Response:
    return _secret_page(request, await _find(request))


async def rotate(request: requests.PageRequest) -> routing.Response:
    """Create a new secret and show it once."""
    form: Rotation = request.form
    webhook_id = request.path["webhook"]
    secret = await endpoints.rotate(
        request.ctx, request.account_id, webhook_id, overlap_hours=form.overlap_hours or None
    )
    return _secret_page(request, await _find(request), secret=secret, title="New secret created")


async def ping(request: requests.PageRequest) -> routing.Response:
    """Send one test event now and show its delivery."""
    sent = await delivery_log.ping(request.ctx, request.account_id, request.path["webhook"])
    is_accepted = sent.status == "succeeded"
    notice = "Test event accepted." if is_accepted else "Test event not accepted. See the attempt below."
    return request.redirect(_delivery_url(sent.delivery), notice=notice, kind="good" if is_accepted else "bad")


async def remove(request: requests.PageRequest) -> routing.Response:
    await endpoints.remove(request.ctx, request.account_id, request.path["webhook"])
    return request.redirect(PATH, notice="Webhook removed, with its secret and log.")


async def replay_failed(request: requests.PageRequest) -> routing.Response:
    """Replay the failed events of a period."""
    form: Replay = request.form
    after, before = form.bounds(request.ctx.clock(), request.zone)
    webhook_id = request.path["webhook"]
    done = await delivery_log.replay_failed(request.ctx, request.account_id, webhook_id, after=after, before=before)
    counted = "Replaying 1 event." if done.count == 1 else f"Replaying {done.count:,} events."
    if not done.count:
        counted = "No events to replay: those that failed have been sent since, or are being sent."
    return request.redirect(
        url_of(webhook_id), notice=f"{counted} There are more: replay again to continue." if done.has_more else counted
    )


async def _find(request: requests.PageRequest) -> webhooks.Webhook:
    """The endpoint that the path names."""
    return await endpoints.get(request.ctx, request.account_id, request.path["webhook"])


def url_of(webhook_id: str) -> str:
    return f"{PATH}/{webhook_id}"


def _delivery_url(delivery: webhooks.Delivery) -> str:
    return f"{url_of(delivery.webhook_id)}/deliveries/{delivery.id}"


def _builtin_endpoint_url(request: requests.PageRequest) -> str:
    """The endpoint that accepts everything, in `postroad dev` only; else empty."""
    return f"{request.base_url}{dev_inbox.WEBHOOK_PATH}" if request.site.mail is not None else ""


def _preset(webhook: webhooks.Webhook) -> Preset:
    chosen = set(webhook.events.split())
    return next((preset for preset, (_, listed) in PRESETS.items() if chosen == set(listed)), "custom")


def _subscription(webhook: webhooks.Webhook) -> str:
    """What an endpoint gets, in words."""
    if webhook.format != event_formats.OWN:
        return ", ".join(webhook.format_events.split())
    preset = _preset(webhook)
    return ", ".join(webhook.events.split()) if preset == "custom" else PRESETS[preset][0]


async def _choices(request: requests.PageRequest, webhook: webhooks.Webhook | None = None) -> dict[str, Any]:
    """The events that can happen here and what they mean, and the sender domains to choose from."""
    has_credits = request.site.has_credits
    kinds = {kind: meaning for kind, meaning in EVENTS.items() if has_credits or kind != events.EventType.CREDITS_LOW}
    known = await domain_registry.of_account(request.ctx, request.account_id, limit=MAX_DOMAINS)
    chosen = endpoint_settings.lines("" if webhook is None else webhook.sender_domains)
    # A filter may name a domain that is none of the account's, or no longer.
    names = [*(domain.name for domain in known), *chosen]
    return {"kinds": kinds, "domains": list(dict.fromkeys(names)), "chosen_domains": chosen}


def _guide(request: requests.PageRequest) -> dict[str, Any]:
    """How an application gets events, and verifies them."""
    return {
        "example": EXAMPLE,
        "verification_snippets": snippets.sources().verification,
        "retries": request.ctx.settings.webhooks.retry_seconds,
    }


def _secret_page(
    request: requests.PageRequest, webhook: webhooks.Webhook, *, secret: str = "", title: str = ""
) -> routing.Response:
    return request.page(
        "webhook_secret.html",
        status=201 if secret else 200,
        webhook=webhook,
        secret=secret,
        secret_title=title,
        max_overlap_hours=endpoints.MAX_OVERLAP_HOURS,
        **_guide(request),
    )


ROUTES: Final = (
    requests.get(PATH, index, is_live=True),
    requests.post(PATH, create, form=NewEndpoint),
    requests.get(ENDPOINT_PATH, show, query=Query, is_live=True),
    requests.get(f"{ENDPOINT_PATH}/settings", show_settings),
    requests.post(f"{ENDPOINT_PATH}/settings", save, form=Endpoint),
    requests.get(f"{ENDPOINT_PATH}/secret", show_secret),
    requests.post(f"{ENDPOINT_PATH}/secret", rotate, form=Rotation),
    requests.post(f"{ENDPOINT_PATH}/ping", ping),
    requests.post(f"{ENDPOINT_PATH}/remove", remove),
    requests.post(f"{ENDPOINT_PATH}/replay", replay_failed, form=Replay),
    requests.get(DELIVERY_PATH, show_delivery, is_live=True),
    requests.post(f"{DELIVERY_PATH}/replay", replay_delivery),
)
