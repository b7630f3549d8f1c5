"""`/messages/{id}`: one message with its timeline, recipients, attempts, content and webhook deliveries."""

import contextlib
import functools
from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import message_rows, previews, requests, timelines, typed_times, urls
from postroad.model import mail, search_query
from postroad.model.bounces import disposition
from postroad.services.acceptance import resend
from postroad.services.messages import content_checks, hidden_content, neighbours
from postroad.services.messages import lookup as messages
from postroad.services.queue import inspection, wait_reasons
from postroad.services.suppressions import registry as suppressions
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage import async_bounces as stored_async_bounces
from postroad.storage import attempts as stored_attempts
from postroad.storage import queue_views, recipients
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


class RecipientView(msgspec.Struct, frozen=True):
    """One recipient: its queue entry while it has one, its attempts, and its asynchronous bounces."""

    recipient: recipients.Recipient
    queue_entry: inspection.QueueEntry | None
    attempts: list[stored_attempts.Attempt]
    async_bounces: list[stored_async_bounces.AsyncBounce]
    is_suppressed: bool

    @property
    def is_final(self) -> bool:
        """Whether it has its result, and can be sent the message again."""
        return self.recipient.status in mail.FINAL

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
        if self.async_bounces or self.recipient.status in mail.FAILURES:
            return 0
        return 2 if self.recipient.status in mail.FINAL else 1

    @property
    def explanation(self) -> str:
        """What the result of the last attempt means."""
        return disposition.explain(self.attempts[-1].reason) if self.attempts else ""


class Resend(msgspec.Struct, frozen=True):
    """Which buttons there are: for how many recipients that did not get the message, and for all of them."""

    failed: int
    can_all: bool


class Query(previews.Query, frozen=True, forbid_unknown_fields=True):
    """How the content is shown, and the search whose results the message is one of."""

    search: str | None = None


async def show(request: requests.PageRequest) -> routing.Response:
    """The page."""
    query: Query = request.query
    ctx, account_id, message_id = request.ctx, request.account_id, request.path["id"]
    found = await messages.details(ctx, account_id, message_id)
    if request.hides(message_id):
        found = hidden_content.details(found)
    queue_entries = await inspection.entries_of_message(ctx, account_id, message_id)
    deliveries = await delivery_log.of_message(ctx, account_id, message_id, limit=MAX_DELIVERIES)
    first_webhook = await endpoints.find(ctx, account_id)
    suppressed = await suppressions.listed(ctx, account_id, [one.email for one in found.recipients])
    recipient_views = [
        _recipient_view(found, one, queue_entries.get(one.id), is_suppressed=one.email in suppressed)
        for one in found.recipients
    ]
    recipient_views.sort(key=lambda view: view.rank)
    shown = await _shown(request, message_id, query)
    has_content = shown is not None or (_is_refresh(request) and not request.hides(message_id))
    can_retry = sum(view.is_waiting for view in recipient_views)
    can_cancel = sum(view.is_untried for view in recipient_views)
    is_movable = found.message.send_at is not None and can_cancel == len(recipient_views)
    return request.page(
        "message.html",
        first_webhook_id=first_webhook.id if first_webhook else None,
        found=found,
        message=found.message,
        beside=await _neighbours(request, message_id, query),
        recipient_views=recipient_views,
        can_retry=can_retry,
        can_cancel=can_cancel,
        # As the field of the form takes it.
        send_at=typed_times.written(found.message.send_at or 0, request.zone),
        is_movable=is_movable,
        # As in the list.
        shown_status=(await message_rows.read(ctx, account_id, [found.message]))[0].badge,
        are_expanded=len(recipient_views) <= MAX_EXPANDED_RECIPIENTS,
        are_waiting_expanded=can_retry <= MAX_EXPANDED_RECIPIENTS,
        timeline=timelines.build(found, [entry.waiting for entry in queue_entries.values()], deliveries),
        deliveries=deliveries,
        received=request.site.mail.of_message(ctx.keys, message_id) if request.site.mail and request.has_inbox else [],
        names={one.id: one.email for one in found.recipients},
        # A page of a final message would otherwise reload with every other result of the account. By the recipients as
        # they are shown: a result may have come in since they were read, and the queue is empty then.
        is_live=any(one.status not in mail.FINAL for one in found.recipients)
        or any(entry.status == "pending" for entry in deliveries),
        shown=shown,
        # The same for whoever presses a button of this page twice.
        form_key=request.http.id,
        has_content=has_content,
        resend=_resend(recipient_views, has_content=has_content),
        source=timelines.source_label(found),
        billing_labels=BILLING_LABELS,
        faults=disposition.FAULT_LABELS,
        explain=disposition.explain,
        ahead_in_words=wait_reasons.ahead_in_words,
    )


def _recipient_view(
    found: messages.Details,
    recipient: recipients.Recipient,
    queue_entry: inspection.QueueEntry | None,
    *,
    is_suppressed: bool,
) -> RecipientView:
    return RecipientView(
        recipient,
        queue_entry,
        [one for one in found.attempts if one.recipient_id == recipient.id],
        [one for one in found.async_bounces if one.recipient_id == recipient.id],
        is_suppressed,
    )


def _is_refresh(request: requests.PageRequest) -> bool:
    return request.is_refresh


def _resend(recipient_views: list[RecipientView], *, has_content: bool) -> Resend | None:
    """What can be sent again; None without the content, and while there is nobody to send it to."""
    open_to = [view for view in recipient_views if not view.is_suppressed]
    failed = sum(view.recipient.status in resend.FAILED for view in open_to)
    can_all = bool(open_to) and all(view.is_final for view in recipient_views)
    return Resend(failed, can_all) if has_content and (failed or can_all) else None


async def _neighbours(request: requests.PageRequest, message_id: str, query: Query) -> dict[str, str]:
    """The URLs of the list and of the messages beside this one in it, for parts/neighbours.html."""
    text = (query.search or "").strip()
    beside = {"list_url": urls.messages(text), "newer_url": "", "older_url": ""}
    # What a script refreshes does not contain them; a search that is not valid has no results.
    with contextlib.suppress(search_query.QueryError):
        if not _is_refresh(request):
            filters = messages.filters_of(request.ctx, search_query.parse(request.searched(text)), zone=request.zone)
            found = await neighbours.find(request.ctx, request.account_id, filters, message_id)
            beside["newer_url"] = urls.message(found.newer, text) if found.newer else ""
            beside["older_url"] = urls.message(found.older, text) if found.older else ""
    return beside


async def _shown(request: requests.PageRequest, message_id: str, query: Query) -> previews.PreviewPage | None:
    """The content; None if it was deleted or is hidden, and for scripts that only refresh results."""
    if _is_refresh(request) or request.hides(message_id):
        return None
    async with request.ctx.previews.hold(request.account_id):
        try:
            raw = await messages.raw(request.ctx, request.account_id, message_id)
        except errors.NotFound:
            return None
        origin = functools.partial(content_checks.origin_of, request.ctx, request.account_id, message_id)
        page = await previews.preview_page(request, f"/messages/{message_id}", raw, query, origin=origin)
    return msgspec.structs.replace(page, search=query.search or "")


ROUTES: Final = (requests.get("/messages/{id}", show, query=Query),)
