"""`/messages/{id}`: one message with its timeline, recipients, attempts, content and webhook deliveries."""

from dataclasses import dataclass
from typing import Final

from postroad import errors
from postroad.dashboard import forms, previews, requests, timelines
from postroad.model import mail, send_times, times
from postroad.model.bounces import disposition
from postroad.services.messages import lookup as messages
from postroad.services.queue import cancellation, inspection, schedule, wait_reasons
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage import async_bounces as stored_async_bounces
from postroad.storage import attempts, queue_views, recipients
from postroad.web import routing

# A message has at most 50 recipients with one or two events each; the webhook log has the rest.
MAX_DELIVERIES: Final = 100
# With more recipients than this, they are collapsed.
MAX_EXPANDED_RECIPIENTS: Final = 3
BILLING_LABELS: Final = {
    mail.BillingStatus.RESERVED: "reserved until the results are final",
    mail.BillingStatus.SETTLED: "spent",
    mail.BillingStatus.RELEASED: "refunded",
}


# The length of a time without seconds.
_TO_MINUTES: Final = 16
# Shown first.
FAILURES: Final = {mail.RecipientStatus.BOUNCED, mail.RecipientStatus.FAILED, mail.RecipientStatus.EXPIRED}


class Retry(forms.Form, frozen=True, kw_only=True):
    """Which recipient; without one, all that wait."""

    recipient_id: str | None = None


class Schedule(forms.Form, frozen=True, kw_only=True):
    """When to send, in UTC as a date field gives it; empty for now."""

    send_at: str | None = None

    def time(self) -> int | None:
        """The time in microseconds."""
        if not self.send_at:
            return None
        # Browsers leave out seconds that are zero.
        seconds = ":00" if len(self.send_at) == _TO_MINUTES else ""
        return send_times.parse_send_at(f"{self.send_at}{seconds}Z")


@dataclass(frozen=True, slots=True)
class RecipientView:
    """One recipient: its queue entry while it has one, its attempts, and its asynchronous bounces."""

    recipient: recipients.Recipient
    queue_entry: inspection.QueueEntry | None
    attempts: list[attempts.Attempt]
    async_bounces: list[stored_async_bounces.AsyncBounce]

    @property
    def is_waiting(self) -> bool:
        """Whether it can be retried now."""
        return self.queue_entry is not None and self.queue_entry.waiting.state == queue_views.WAITING

    @property
    def is_untried(self) -> bool:
        """Whether it can be canceled: no attempt has begun."""
        waiting = self.queue_entry.waiting if self.queue_entry else None
        return waiting is not None and waiting.worker is None and not waiting.attempt_count and not waiting.lost_leases

    @property
    def rank(self) -> int:
        """Sort order: failures first, then queued, then delivered."""
        if self.async_bounces or self.recipient.status in FAILURES:
            return 0
        return 2 if self.recipient.status in mail.FINAL else 1

    @property
    def explanation(self) -> str:
        """What the result of the last attempt means."""
        return disposition.explain(self.attempts[-1].reason) if self.attempts else ""


async def show(request: requests.PageRequest) -> routing.Response:
    """The page."""
    query: previews.Query = request.query
    ctx, account_id, message_id = request.ctx, request.account_id, request.path["id"]
    found = await messages.details(ctx, account_id, message_id)
    queue_entries = await inspection.entries_of_message(ctx, account_id, message_id)
    deliveries = await delivery_log.of_message(ctx, account_id, message_id, limit=MAX_DELIVERIES)
    first_webhook = await endpoints.find(ctx, account_id)
    recipient_views = [_recipient_view(found, one, queue_entries.get(one.id)) for one in found.recipients]
    recipient_views.sort(key=lambda view: view.rank)
    can_retry = sum(view.is_waiting for view in recipient_views)
    can_cancel = sum(view.is_untried for view in recipient_views)
    return request.page(
        "message.html",
        first_webhook_id=first_webhook.id if first_webhook else None,
        found=found,
        message=found.message,
        recipient_views=recipient_views,
        can_retry=can_retry,
        can_cancel=can_cancel,
        # As the field of the form takes it.
        send_at=times.to_wire(found.message.send_at or 0)[:_TO_MINUTES],
        is_movable=found.message.send_at is not None and can_cancel == len(recipient_views),
        are_expanded=len(recipient_views) <= MAX_EXPANDED_RECIPIENTS,
        are_waiting_expanded=can_retry <= MAX_EXPANDED_RECIPIENTS,
        timeline=timelines.build(found, [entry.waiting for entry in queue_entries.values()], deliveries),
        deliveries=deliveries,
        names={one.id: one.email for one in found.recipients},
        # A page of a final message would otherwise reload with every other result of the account.
        is_live=bool(queue_entries) or any(entry.status == "pending" for entry in deliveries),
        shown=await _shown(request, message_id, query.view),
        source_labels=timelines.SOURCE_LABELS,
        billing_labels=BILLING_LABELS,
        faults=disposition.FAULT_LABELS,
        explain=disposition.explain,
        ahead_in_words=wait_reasons.ahead_in_words,
    )


def _recipient_view(
    found: messages.Details, recipient: recipients.Recipient, queue_entry: inspection.QueueEntry | None
) -> RecipientView:
    return RecipientView(
        recipient,
        queue_entry,
        [one for one in found.attempts if one.recipient_id == recipient.id],
        [one for one in found.async_bounces if one.recipient_id == recipient.id],
    )


async def _shown(
    request: requests.PageRequest, message_id: str, view: previews.View | None
) -> previews.PreviewPage | None:
    """The content; None if it was deleted, and for scripts that only refresh results."""
    if request.http.headers.get(requests.REFRESH_HEADER) is not None:
        return None
    async with request.ctx.previews.hold(request.account_id):
        try:
            raw = await messages.raw(request.ctx, request.account_id, message_id)
        except errors.NotFound:
            return None
        return await previews.preview_page(request, f"/messages/{message_id}", raw, wanted=view)


async def retry(request: requests.PageRequest) -> routing.Response:
    """Retry now."""
    form: Retry = request.form
    message_id = request.path["id"]
    done = await inspection.retry_of_account(request.ctx, request.account_id, message_id, form.recipient_id)
    counted = "1 recipient" if done.changed == 1 else f"{done.changed} recipients"
    return request.redirect(f"/messages/{message_id}", notice=f"Retrying {counted} now.")


async def cancel(request: requests.PageRequest) -> routing.Response:
    """Cancel the recipients for which no attempt has begun."""
    message_id = request.path["id"]
    after = await cancellation.cancel_message(request.ctx, request.account_id, message_id)
    canceled = sum(one.status == mail.RecipientStatus.CANCELED for one in after)
    notice = "Canceled." if canceled == len(after) else f"Canceled: {canceled} of {len(after)} recipients."
    if not canceled:
        notice = "Not canceled: attempts have begun for all recipients."
    return request.redirect(f"/messages/{message_id}", notice=notice, kind="good" if canceled else "bad")


async def reschedule(request: requests.PageRequest) -> routing.Response:
    """Send a scheduled message at another time."""
    form: Schedule = request.form
    message_id = request.path["id"]
    send_at = form.time()
    await schedule.reschedule(request.ctx, request.account_id, message_id, send_at)
    # A notice is text, so its time stays in UTC, like the field of the form.
    notice = (
        "Sending now." if send_at is None else f"Scheduled for {times.to_wire(send_at)[:16].replace('T', ' ')} UTC."
    )
    return request.redirect(f"/messages/{message_id}", notice=notice)


ROUTES: Final = (
    requests.get("/messages/{id}", show, query=previews.Query),
    requests.post("/messages/{id}/retry", retry, form=Retry),
    requests.post("/messages/{id}/cancel", cancel),
    requests.post("/messages/{id}/schedule", reschedule, form=Schedule),
)
