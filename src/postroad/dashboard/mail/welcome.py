"""`/welcome`: the first steps: a test message, its webhook, a connected application.

No progress is stored: each step is derived from the messages, the webhook and its log.
"""

from enum import StrEnum
from typing import Any, Final

import msgspec

from postroad.dashboard.framework import forms, requests, snippets
from postroad.mail import outbox
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.protocol.mime import address
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import dev_inbox, sample_send
from postroad.services.messages import lookup as messages
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage.mail import attempts, webhooks
from postroad.storage.mail import messages as stored_messages
from postroad.web import routing

# Accounts with more domains need no introduction.
MAX_SENDERS: Final = 20
# A test has one recipient and few events.
MAX_DELIVERIES: Final = 5
# The quickest to try; the pages of API keys and SMTP credentials have the others.
OVER_HTTP: Final = ("curl", "Python")
OVER_SMTP: Final = ("Django", "Laravel")
BUILTIN_NOTICE: Final = "The built-in endpoint is now the webhook of this account."


class TestForm(forms.Form, frozen=True, kw_only=True):
    to: str
    sender: str
    use_builtin_endpoint: bool | None = None


class WebhookForm(forms.Form, frozen=True, kw_only=True):
    url: str


class LatestTest(msgspec.Struct, frozen=True):
    message: stored_messages.Message
    recipient: stored_messages.Recipient
    attempt: attempts.Attempt | None

    @property
    def explanation(self) -> str:
        return disposition.explain(self.attempt.reason) if self.attempt else ""


class NotSentReason(StrEnum):
    """Why no webhook was sent for a test, besides the filters of its endpoint."""

    EVENT = "event"


async def show(request: requests.PageRequest) -> routing.Response:
    return request.page("welcome.html", secret=None, **await _values(request))


async def send(request: requests.PageRequest) -> routing.Response:
    """Send a test and show its status.

    The webhook is saved first, because no event is created for an earlier result.
    """
    form: TestForm = request.form
    notice = f"Test sent to {form.to}."
    if form.use_builtin_endpoint and await offers_builtin_endpoint(request):
        await endpoints.save(request.ctx, request.account_id, url=_builtin_endpoint_url(request))
        notice += f" {BUILTIN_NOTICE}"
    await sample_send.send(
        request.ctx,
        request.http.caller,
        sender=form.sender,
        to=form.to,
        request_id=request.http.id,
    )
    return request.redirect("/welcome", notice=notice)


async def save_webhook(request: requests.PageRequest) -> routing.Response:
    """Create the webhook and show its secret once. Only the built-in endpoint replaces one, which is disabled."""
    form: WebhookForm = request.form
    existing = await endpoints.find(request.ctx, request.account_id)
    is_builtin = request.site.mail is not None and form.url == _builtin_endpoint_url(request)
    if existing is not None and not existing.enabled and is_builtin:
        await endpoints.save(request.ctx, request.account_id, url=form.url, enabled=True)
        return request.redirect("/welcome", notice=BUILTIN_NOTICE)
    if existing is not None:
        return request.redirect(_settings_url(existing), notice="A webhook already exists. Change it here.")
    saved = await endpoints.save(request.ctx, request.account_id, url=form.url)
    if saved.secret is None:  # created by a concurrent request
        return request.redirect(_settings_url(saved.webhook), notice="Webhook saved.")
    return request.page("welcome.html", status=201, secret=saved.secret, **await _values(request))


async def offers_builtin_endpoint(request: requests.PageRequest) -> bool:
    """Whether to offer the built-in endpoint: in development, while there is no webhook."""
    may_save = request.site.mail is not None and request.may(callers.Permission.CHANGE)
    return may_save and await endpoints.find(request.ctx, request.account_id) is None


def _settings_url(webhook: webhooks.Webhook) -> str:
    return f"/webhooks/{webhook.id}/settings"


def _builtin_endpoint_url(request: requests.PageRequest) -> str:
    return f"{request.base_url}{dev_inbox.WEBHOOK_PATH}"


async def _values(request: requests.PageRequest) -> dict[str, Any]:
    ctx, account_id = request.ctx, request.account_id
    sent = await _latest(request)
    webhook = await endpoints.find(ctx, account_id)
    snippet_context = await snippets.snippet_context(request)
    known = await sample_send.senders(ctx, account_id, limit=MAX_SENDERS)
    filtered = webhook.sender_domains.split("\n") if webhook and webhook.sender_domains else []
    # The senders of whose mail the webhook gets events; without a filter, all.
    matching = await sample_send.senders(ctx, account_id, filtered, limit=MAX_SENDERS) if filtered else known
    return {
        "unverified": None if known else next(iter(await domains.of_account(ctx, account_id, limit=1)), None),
        "can_send_unverified": not ctx.settings.domains.require_verified,
        "senders": list(dict.fromkeys([*matching, *known])),
        "webhook_sender": next(iter(matching), None),
        "webhook_domains": filtered,
        "not_sent_reason": _not_sent_reason(sent, webhook),
        "sent": sent,
        "webhook": webhook,
        "deliveries": (await delivery_log.page(ctx, account_id, message_id=sent.message.id, limit=MAX_DELIVERIES)).rows
        if sent
        else [],
        "expects_delivery": (
            sent is not None and webhook is not None and (sent.message.created_at >= webhook.created_at)
        ),
        "is_connected": await _is_connected(request),
        "snippets": [
            *(snippet for snippet in snippets.over_http(snippet_context) if snippet.title in OVER_HTTP),
            *(snippet for snippet in snippets.over_smtp(snippet_context) if snippet.title in OVER_SMTP),
        ],
        "builtin_endpoint_url": _builtin_endpoint_url(request) if request.site.mail is not None else None,
        "offers_builtin_endpoint": await offers_builtin_endpoint(request),
    }


async def _latest(request: requests.PageRequest) -> LatestTest | None:
    wanted = messages.Filters(source=statuses.Source.TEST)
    found = await messages.page(request.ctx, request.account_id, wanted, limit=1, cursor=None)
    if not found.messages:
        return None
    details = await messages.details(request.ctx, request.account_id, found.messages[0].id)
    recipient = details.recipients[0]
    attempts = [attempt for attempt in details.attempts if attempt.recipient_id == recipient.id]
    return LatestTest(details.message, recipient, attempts[-1] if attempts else None)


def _not_sent_reason(sent: LatestTest | None, webhook: webhooks.Webhook | None) -> NotSentReason | outbox.Filter | None:
    """Why the webhook is not sent for the final result of the latest test; None if nothing speaks against it."""
    if sent is None or webhook is None:
        return None
    domain = address.parse(sent.message.sender).domain
    is_test = bool(sent.message.is_test)
    excluding = outbox.excluding_filter(webhook, is_test=is_test, sender_domain=domain, tags=())
    if excluding is None and f"email.{sent.recipient.status}" not in webhook.events.split():
        return NotSentReason.EVENT
    return excluding


async def _is_connected(request: requests.PageRequest) -> bool:
    for source in (statuses.Source.API, statuses.Source.SMTP):
        wanted = messages.Filters(source=source)
        if (await messages.page(request.ctx, request.account_id, wanted, limit=1, cursor=None)).messages:
            return True
    return False


ROUTES: Final = (
    requests.get("/welcome", show, is_live=True),
    requests.post("/welcome/test", send, form=TestForm, permission=callers.Permission.SEND),
    requests.post("/welcome/webhook", save_webhook, form=WebhookForm),
)
