"""`/messages/{id}`: one message, what became of it for each recipient and why, and what is in it."""

from dataclasses import dataclass
from typing import Final

from postroad import errors
from postroad.dashboard import forms, previews, requests, timelines
from postroad.dashboard import site as sites
from postroad.model import mail
from postroad.model.bounces import disposition
from postroad.services import context
from postroad.services.messages import lookup as messages
from postroad.services.queue import inspection
from postroad.services.webhooks import delivery_log
from postroad.storage import async_bounces, attempts, queue_views, recipients
from postroad.web import routing

# A message has at most 50 recipients, each with an event or two; further ones are in the log.
MAX_DELIVERIES: Final = 100
# More than this many recipients are folded, so that the page can be surveyed.
MAX_EXPANDED_RECIPIENTS: Final = 3
BILLING_LABELS: Final = {
    mail.BillingStatus.RESERVED: "reserved until the results are final",
    mail.BillingStatus.SETTLED: "spent",
    mail.BillingStatus.RELEASED: "given back",
}


class Retry(forms.Form, frozen=True, kw_only=True):
    """Which recipient; without one, all that wait."""

    recipient_id: str | None = None


@dataclass(frozen=True, slots=True)
class RecipientView:
    """One recipient: its line in the queue while it has one, what was tried, and what came back later."""

    recipient: recipients.Recipient
    line: inspection.QueueEntry | None
    attempts: list[attempts.Attempt]
    late_bounces: list[async_bounces.LateBounce]

    @property
    def is_waiting(self) -> bool:
        """Whether it could be tried now."""
        return self.line is not None and self.line.waiting.state == queue_views.WAITING

    @property
    def rank(self) -> int:
        """What went wrong comes first, then what is on its way, then what was delivered."""
        if self.late_bounces or self.recipient.status in {mail.RecipientStatus.BOUNCED, mail.RecipientStatus.FAILED}:
            return 0
        return 2 if self.recipient.status in mail.FINAL else 1

    @property
    def explanation(self) -> str:
        """In plain words what the last attempt has come to."""
        return disposition.explain(self.attempts[-1].reason) if self.attempts else ""


async def show(page_request: requests.PageRequest) -> routing.Response:
    """Everything that is known of a message."""
    query: previews.Query = page_request.query
    ctx, account_id, message_id = page_request.ctx, page_request.account_id, page_request.request.path["id"]
    found = await messages.details(ctx, account_id, message_id)
    queue_entries = await inspection.entries_of_message(ctx, account_id, message_id)
    told = await delivery_log.page(ctx, account_id, message_id=message_id, limit=MAX_DELIVERIES)
    courses = [_recipient_view(found, one, queue_entries.get(one.id)) for one in found.recipients]
    courses.sort(key=lambda view: view.rank)
    can_retry = sum(view.is_waiting for view in courses)
    return page_request.page(
        "message.html",
        found=found,
        message=found.message,
        courses=courses,
        can_retry=can_retry,
        are_open=len(courses) <= MAX_EXPANDED_RECIPIENTS,
        are_waiting_open=can_retry <= MAX_EXPANDED_RECIPIENTS,
        timeline=timelines.build(found, [line.waiting for line in queue_entries.values()], told),
        told=told,
        names={one.id: one.email for one in found.recipients},
        # Who watches a message that has ended would ask for all of it again with every other result of the account.
        is_live=bool(queue_entries) or any(entry.status == "pending" for entry in told),
        shown=await _shown(page_request, message_id, query.view),
        came=timelines.SOURCE_LABELS,
        billed=BILLING_LABELS,
        faults=disposition.FAULT_LABELS,
        explain=disposition.explain,
    )


def _recipient_view(
    found: messages.Details, recipient: recipients.Recipient, line: inspection.QueueEntry | None
) -> RecipientView:
    return RecipientView(
        recipient,
        line,
        [one for one in found.attempts if one.recipient_id == recipient.id],
        [one for one in found.late_bounces if one.recipient_id == recipient.id],
    )


async def _shown(
    page_request: requests.PageRequest, message_id: str, view: previews.View | None
) -> previews.PreviewPage | None:
    """What is in the message; None when its body is not kept any more, and for scripts that only look for results."""
    if page_request.request.headers.get(requests.REFRESH_HEADER) is not None:
        return None
    try:
        raw = await messages.raw(page_request.ctx, page_request.account_id, message_id)
    except errors.NotFound:
        return None
    return await previews.preview_page(f"/messages/{message_id}", raw, view)


async def retry(page_request: requests.PageRequest) -> routing.Response:
    """Try what waits now."""
    form: Retry = page_request.form
    message_id = page_request.request.path["id"]
    done = await inspection.retry_of_account(page_request.ctx, page_request.account_id, message_id, form.recipient_id)
    counted = "1 recipient is" if done.changed == 1 else f"{done.changed} recipients are"
    return page_request.redirect(f"/messages/{message_id}", notice=f"{counted} tried now.")


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page, and trying again."""
    return (
        requests.get(site, "/messages/{id}", show, query=previews.Query),
        requests.post(site, "/messages/{id}/retry", retry, form=Retry),
    )
