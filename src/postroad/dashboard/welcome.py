"""`/welcome`: the way of a new owner to the first delivered mail, its webhook, and a connected application.

Nothing is remembered of how far somebody is: each step looks at the mail, the webhook and its log.
"""

from dataclasses import dataclass
from typing import Any, Final

from postroad.dashboard import forms, snippets, visits
from postroad.dashboard import site as sites
from postroad.model import caller, judging, mail
from postroad.services import context, inbox, messages, trying_out, webhook_log, webhooks
from postroad.storage import attempts
from postroad.storage import messages as stored_messages
from postroad.storage import recipients as stored_recipients
from postroad.storage import webhooks as stored_webhooks
from postroad.web import routing

# Whoever has more domains than this has found their way.
MOST_SENDERS: Final = 20
# A test has one recipient, and so a few events.
TOLD: Final = 5
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
class Sent:
    """The latest test: how its one recipient stands, and what was last tried for it."""

    message: stored_messages.Message
    recipient: stored_recipients.Recipient
    attempt: attempts.Attempt | None

    @property
    def explanation(self) -> str:
        """In plain words what the last attempt has come to."""
        return judging.explain(self.attempt.reason) if self.attempt else ""


async def show(visit: visits.Visit) -> routing.Answer:
    """The steps, and how far they are."""
    return visit.page("welcome.html", secret=None, **await _values(visit))


async def send(visit: visits.Visit) -> routing.Answer:
    """Send a test; the page then shows what becomes of it.

    The webhook comes first, because a result that is there before it is not told.
    """
    form: TestForm = visit.form
    notice = f"A test is on its way to {form.to}."
    if form.receiver and await offers_receiver(visit):
        await webhooks.save(visit.ctx, visit.account_id, url=_built_in(visit))
        notice += " The built-in receiver is the webhook of this account now."
    await trying_out.send_test(
        visit.ctx, visit.request.caller, sender=form.sender, to=form.to, request_id=visit.request.id
    )
    return visit.go("/welcome", notice=notice)


async def save_webhook(visit: visits.Visit) -> routing.Answer:
    """Make the webhook, and show its secret once. One that is there already is not touched from here."""
    form: WebhookForm = visit.form
    if await webhooks.find(visit.ctx, visit.account_id) is not None:
        return visit.go("/webhook", notice="There is a webhook already. Change it here.")
    saved = await webhooks.save(visit.ctx, visit.account_id, url=form.url)
    if saved.secret is None:  # somebody else was as quick
        return visit.go("/webhook", notice="The webhook is saved.")
    return visit.page("welcome.html", status=201, secret=saved.secret, **await _values(visit))


async def offers_receiver(visit: visits.Visit) -> bool:
    """Whether a test can be told to the built-in receiver: in development, while there is no webhook."""
    may_save = visit.site.mail is not None and visit.may(caller.Permission.CHANGE)
    return may_save and await webhooks.find(visit.ctx, visit.account_id) is None


def _built_in(visit: visits.Visit) -> str:
    return f"{visit.base_url}{inbox.WEBHOOK_PATH}"


async def _values(visit: visits.Visit) -> dict[str, Any]:
    ctx, account_id = visit.ctx, visit.account_id
    sent = await _latest(visit)
    webhook = await webhooks.find(ctx, account_id)
    place = await snippets.place(visit)
    return {
        "senders": await trying_out.senders(ctx, account_id, most=MOST_SENDERS),
        "sent": sent,
        "webhook": webhook,
        "told": await webhook_log.page(ctx, account_id, message_id=sent.message.id, limit=TOLD) if sent else [],
        "is_told": _is_told(sent, webhook),
        "is_connected": await _is_connected(visit),
        "snippets": [
            *(one for one in snippets.over_http(place) if one.title in OVER_HTTP),
            *(one for one in snippets.over_smtp(place) if one.title in OVER_SMTP),
        ],
        "built_in": _built_in(visit) if visit.site.mail is not None else None,
        "offers_receiver": await offers_receiver(visit),
    }


async def _latest(visit: visits.Visit) -> Sent | None:
    wanted = messages.Filters(source=mail.Source.TEST)
    found = await messages.page(visit.ctx, visit.account_id, wanted, limit=1, cursor=None)
    if not found.messages:
        return None
    details = await messages.details(visit.ctx, visit.account_id, found.messages[0].id)
    return Sent(details.message, details.recipients[0], details.attempts[-1] if details.attempts else None)


def _is_told(sent: Sent | None, webhook: stored_webhooks.Webhook | None) -> bool:
    """Whether the latest test is one whose result the webhook hears."""
    return sent is not None and webhook is not None and sent.message.created_at >= webhook.created_at


async def _is_connected(visit: visits.Visit) -> bool:
    """Whether an application has sent something."""
    for source in (mail.Source.API, mail.Source.SMTP):
        wanted = messages.Filters(source=source)
        if (await messages.page(visit.ctx, visit.account_id, wanted, limit=1, cursor=None)).messages:
            return True
    return False


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and its two forms."""
    return (
        visits.look(site, "/welcome", show),
        visits.change(site, "/welcome/test", send, form=TestForm, permission=caller.Permission.SEND),
        visits.change(site, "/welcome/webhook", save_webhook, form=WebhookForm),
    )
