"""`/welcome`: the way of a new owner to the first delivered mail, its webhook, and a connected application.

Nothing is remembered of how far somebody is: each step looks at the mail, the webhook and its log.
"""

from dataclasses import dataclass
from typing import Any, Final

from postroad.dashboard import forms, requests, snippets
from postroad.dashboard import site as sites
from postroad.model import caller, mail
from postroad.model.bounces import disposition
from postroad.services import context
from postroad.services.acceptance import test_message
from postroad.services.messages import dev_inbox
from postroad.services.messages import lookup as messages
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage import attempts
from postroad.storage import messages as stored_messages
from postroad.storage import recipients as stored_recipients
from postroad.storage import webhooks as stored_webhooks
from postroad.web import routing

# Whoever has more domains than this has found their way.
MAX_SENDERS: Final = 20
# A test has one recipient, and so a few events.
MAX_DELIVERIES: Final = 5
# The quickest to try, and where one setting connects a whole application; the others are on the pages of keys and
# credentials.
OVER_HTTP: Final = ("curl", "Python")
OVER_SMTP: Final = ("Django", "Laravel")


class TestForm(forms.Form, frozen=True, kw_only=True):
    """To whom and from where, and whether the built-in receiver is to hear of it."""

    to: str
    sender: str
    receiver: bool | None = None


class WebhookForm(forms.Form, frozen=True, kw_only=True):
    """Where to tell what became of mail."""

    url: str


@dataclass(frozen=True, slots=True)
class LatestTest:
    """The latest test: how its one recipient stands, and what was last tried for it."""

    message: stored_messages.Message
    recipient: stored_recipients.Recipient
    attempt: attempts.Attempt | None

    @property
    def explanation(self) -> str:
        """In plain words what the last attempt has come to."""
        return disposition.explain(self.attempt.reason) if self.attempt else ""


async def show(page_request: requests.PageRequest) -> routing.Response:
    """The steps, and how far they are."""
    return page_request.page("welcome.html", secret=None, **await _values(page_request))


async def send(page_request: requests.PageRequest) -> routing.Response:
    """Send a test; the page then shows what becomes of it.

    The webhook comes first, because a result that is there before it is not told.
    """
    form: TestForm = page_request.form
    notice = f"A test is on its way to {form.to}."
    if form.receiver and await offers_receiver(page_request):
        await endpoints.save(page_request.ctx, page_request.account_id, url=_builtin_endpoint_url(page_request))
        notice += " The built-in receiver is the webhook of this account now."
    await test_message.send_test(
        page_request.ctx,
        page_request.request.caller,
        sender=form.sender,
        to=form.to,
        request_id=page_request.request.id,
    )
    return page_request.redirect("/welcome", notice=notice)


async def save_webhook(page_request: requests.PageRequest) -> routing.Response:
    """Make the webhook, and show its secret once. One that is there already is not touched from here."""
    form: WebhookForm = page_request.form
    if await endpoints.find(page_request.ctx, page_request.account_id) is not None:
        return page_request.redirect("/webhook", notice="There is a webhook already. Change it here.")
    saved = await endpoints.save(page_request.ctx, page_request.account_id, url=form.url)
    if saved.secret is None:  # somebody else was as quick
        return page_request.redirect("/webhook", notice="The webhook is saved.")
    return page_request.page("welcome.html", status=201, secret=saved.secret, **await _values(page_request))


async def offers_receiver(page_request: requests.PageRequest) -> bool:
    """Whether a test can be told to the built-in receiver: in development, while there is no webhook."""
    may_save = page_request.site.mail is not None and page_request.may(caller.Permission.CHANGE)
    return may_save and await endpoints.find(page_request.ctx, page_request.account_id) is None


def _builtin_endpoint_url(page_request: requests.PageRequest) -> str:
    return f"{page_request.base_url}{dev_inbox.WEBHOOK_PATH}"


async def _values(page_request: requests.PageRequest) -> dict[str, Any]:
    ctx, account_id = page_request.ctx, page_request.account_id
    sent = await _latest(page_request)
    webhook = await endpoints.find(ctx, account_id)
    place = await snippets.place(page_request)
    return {
        "senders": await test_message.senders(ctx, account_id, limit=MAX_SENDERS),
        "sent": sent,
        "webhook": webhook,
        "told": await delivery_log.page(ctx, account_id, message_id=sent.message.id, limit=MAX_DELIVERIES)
        if sent
        else [],
        "is_told": _expects_delivery(sent, webhook),
        "is_connected": await _is_connected(page_request),
        "snippets": [
            *(one for one in snippets.over_http(place) if one.title in OVER_HTTP),
            *(one for one in snippets.over_smtp(place) if one.title in OVER_SMTP),
        ],
        "built_in": _builtin_endpoint_url(page_request) if page_request.site.mail is not None else None,
        "offers_receiver": await offers_receiver(page_request),
    }


async def _latest(page_request: requests.PageRequest) -> LatestTest | None:
    wanted = messages.Filters(source=mail.Source.TEST)
    found = await messages.page(page_request.ctx, page_request.account_id, wanted, limit=1, cursor=None)
    if not found.messages:
        return None
    details = await messages.details(page_request.ctx, page_request.account_id, found.messages[0].id)
    return LatestTest(details.message, details.recipients[0], details.attempts[-1] if details.attempts else None)


def _expects_delivery(sent: LatestTest | None, webhook: stored_webhooks.Webhook | None) -> bool:
    """Whether the latest test is one whose result the webhook hears."""
    return sent is not None and webhook is not None and sent.message.created_at >= webhook.created_at


async def _is_connected(page_request: requests.PageRequest) -> bool:
    """Whether an application has sent something."""
    for source in (mail.Source.API, mail.Source.SMTP):
        wanted = messages.Filters(source=source)
        if (await messages.page(page_request.ctx, page_request.account_id, wanted, limit=1, cursor=None)).messages:
            return True
    return False


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and its two forms."""
    return (
        requests.get(site, "/welcome", show),
        requests.post(site, "/welcome/test", send, form=TestForm, permission=caller.Permission.SEND),
        requests.post(site, "/welcome/webhook", save_webhook, form=WebhookForm),
    )
