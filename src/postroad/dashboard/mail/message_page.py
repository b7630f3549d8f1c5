"""`/messages/{id}`: a message with its timeline and content, actions on it, and the code that sends such a one."""

import base64
import contextlib
import functools
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.dashboard.framework import forms, literals, navigation, requests, site, snippets
from postroad.dashboard.mail import message_list, previews, recipient_views, timelines
from postroad.mail import outbox
from postroad.model.bounces import disposition
from postroad.model.events import events
from postroad.model.mail import send_request, statuses
from postroad.model.search import search_query
from postroad.model.units import identifiers
from postroad.protocol.mime import address
from postroad.services.accounts import view_as
from postroad.services.inbound import received
from postroad.services.messages import content_checks, lookup, queue_changes, queue_inspection
from postroad.services.messages import previews as messages_previews
from postroad.services.messages import resend as messages_resend
from postroad.services.queue import wait_reasons
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage.mail import webhooks as stored_webhooks
from postroad.web import routing

# A message has at most 50 recipients with one or two events each; the webhook log has the rest.
MAX_DELIVERIES: Final = 100
# With more recipients than this, they are collapsed.
MAX_EXPANDED_RECIPIENTS: Final = 3
BILLING_LABELS: Final = {
    statuses.BillingStatus.RESERVED: "reserved until delivered",
    statuses.BillingStatus.SETTLED: "spent",
    statuses.BillingStatus.RELEASED: "refunded",
}


class Resend(msgspec.Struct, frozen=True):
    """Which buttons there are: for how many recipients that did not get the message, and for all of them."""

    failed: int
    can_all: bool


class Query(previews.Query, frozen=True, forbid_unknown_fields=True):
    """How the content is shown, and the search whose results the message is one of."""

    search: str | None = None


async def show(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    ctx, account_id, message_id = request.ctx, request.account_id, request.path["id"]
    found = await lookup.details(ctx, account_id, message_id)
    if request.hides(message_id):
        found = lookup.details_without_content(found)
    views = await recipient_views.read(ctx, account_id, found)
    deliveries = await delivery_log.of_message(ctx, account_id, message_id, limit=MAX_DELIVERIES)
    webhooks = await endpoints.of_account(ctx, account_id)
    shown = await _shown(request, message_id, query)
    has_content = shown is not None or (request.is_refresh and not request.hides(message_id))
    can_retry = sum(view.is_waiting for view in views)
    can_cancel = sum(view.is_untried for view in views)
    is_movable = found.message.send_at is not None and can_cancel == len(views)
    return request.page(
        "message.html",
        found=found,
        message=found.message,
        beside=await _neighbours(request, message_id, query),
        recipient_views=views,
        outcomes=recipient_views.outcomes(views),
        can_retry=can_retry,
        can_cancel=can_cancel,
        # As the field of the form takes it.
        send_at=forms.date_field(found.message.send_at or 0, request.zone),
        is_movable=is_movable,
        # As in the list.
        shown_status=(await message_list.read_rows(ctx, account_id, [found.message]))[0].badge,
        are_expanded=len(views) <= MAX_EXPANDED_RECIPIENTS,
        are_waiting_expanded=can_retry <= MAX_EXPANDED_RECIPIENTS,
        timeline=timelines.build(found, [view.queue_entry.waiting for view in views if view.queue_entry], deliveries),
        deliveries=deliveries,
        no_deliveries_reason="" if deliveries else _no_deliveries_reason(found, webhooks, now=ctx.clock()),
        replies=[] if request.hides(message_id) else await received.answers(ctx, account_id, message_id),
        received=request.site.mail.of_message(ctx.keys, message_id) if request.site.mail and request.has_inbox else [],
        names={recipient.id: recipient.email for recipient in found.recipients},
        # A page of a final message would otherwise reload with every other result of the account. By the recipients as
        # they are shown: a result may have come in since they were read, and the queue is empty then.
        is_live=any(recipient.status not in statuses.FINAL for recipient in found.recipients)
        or any(entry.status == "pending" for entry in deliveries),
        shown=shown,
        # The same for whoever presses a button of this page twice.
        form_key=request.http.id,
        has_content=has_content,
        resend=_resend(views, has_content=has_content),
        source=timelines.source_label(found),
        billing_labels=BILLING_LABELS,
        faults=disposition.FAULT_LABELS,
        explain=disposition.explain,
        ahead_in_words=wait_reasons.ahead_in_words,
    )


def _no_deliveries_reason(found: lookup.Details, webhooks: Sequence[stored_webhooks.Webhook], *, now: int) -> str:
    """Why no webhook delivery is listed: of several webhooks, by the one that came closest to one."""
    ended_at = found.message.ended_at
    if ended_at is not None and ended_at < delivery_log.log_start(now):
        return "Webhook deliveries are kept for 7 days, and this message is older."
    return max((_why_none(webhook, found) for webhook in webhooks), default=(0, "You have no webhook yet."))[1]


def _why_none(webhook: stored_webhooks.Webhook, found: lookup.Details) -> tuple[int, str]:
    """Why a webhook got no event of a message, and how far the message came with it."""
    name = f"Your webhook at {endpoints.host(webhook.url)}"
    if not webhook.enabled:
        return 1, f"{name} is disabled."
    domain = address.parse(found.message.sender).domain
    is_test = bool(found.message.is_test)
    match outbox.excluding_filter(webhook, is_test=is_test, sender_domain=domain, tags=found.receipt.tags):
        case outbox.Filter.MODE:
            return 2, f"{name} only gets events for {'live' if is_test else 'test'} mail."
        case outbox.Filter.TAGS:
            return 3, f"{name} only gets events for mail tagged {' or '.join(webhook.tags.splitlines())}."
        case outbox.Filter.SENDER_DOMAINS:
            return 4, f"{name} only gets events for mail from {' or '.join(webhook.sender_domains.splitlines())}."
    ends = {recipient.status for recipient in found.recipients} & set(statuses.FINAL)
    kinds = sorted(events.OF_STATUS[statuses.RecipientStatus(status)] for status in ends)
    if not kinds:
        return 7, f"{name} gets an event as soon as there is a result."
    if set(kinds).isdisjoint(webhook.events.split()):
        return 5, f"{name} does not subscribe to {' or '.join(kinds)}."
    return 6, f"{name} was created or changed after this message."


def _resend(views: list[recipient_views.RecipientView], *, has_content: bool) -> Resend | None:
    """What can be sent again; None without the content, and while there is nobody to send it to."""
    open_to = [view for view in views if not view.is_suppressed]
    failed = sum(view.recipient.status in messages_resend.FAILED for view in open_to)
    can_all = bool(open_to) and all(view.is_final for view in views)
    return Resend(failed, can_all) if has_content and (failed or can_all) else None


async def _neighbours(request: requests.PageRequest, message_id: str, query: Query) -> dict[str, str]:
    """The URLs of the list and of the messages beside this one in it, for parts/neighbours.html."""
    text = (query.search or "").strip()
    beside = {"list_url": navigation.messages_url(text), "newer_url": "", "older_url": ""}
    # What a script refreshes does not contain them; a search that is not valid has no results.
    with contextlib.suppress(search_query.QueryError):
        if not request.is_refresh:
            filters = lookup.filters_of(request.ctx, search_query.parse(request.searched(text)), zone=request.zone)
            found = await lookup.find_neighbours(request.ctx, request.account_id, filters, message_id)
            beside["newer_url"] = navigation.message_url(found.newer, text) if found.newer else ""
            beside["older_url"] = navigation.message_url(found.older, text) if found.older else ""
    return beside


async def _shown(request: requests.PageRequest, message_id: str, query: Query) -> previews.PreviewPage | None:
    """The content; None if it was deleted or is hidden, and for scripts that only refresh results."""
    if request.is_refresh or request.hides(message_id):
        return None
    async with request.ctx.previews.hold(request.account_id):
        try:
            raw = await lookup.raw(request.ctx, request.account_id, message_id)
        except errors.NotFound:
            return None
        origin = functools.partial(content_checks.origin_of, request.ctx, request.account_id, message_id)
        page = await previews.preview_page(request, f"/messages/{message_id}", raw, query, origin=origin)
    return msgspec.structs.replace(page, search=query.search or "")


ROUTES: Final = (requests.get("/messages/{id}", show, query=Query, is_live=True),)


# What can be done with a message on its page: retry, cancel, reschedule and resend it, and suppress a recipient.
#
# An operator who views the account can only ask for its content.


class Retry(forms.Form, frozen=True, kw_only=True):
    """Which recipient; without one, all that wait."""

    recipient_id: str | None = None


class Schedule(forms.Form, frozen=True, kw_only=True):
    """When to send, in the time zone of the user as a date field gives it; empty for now."""

    send_at: str | None = None


class ResendForm(forms.Form, frozen=True, kw_only=True):
    """Who gets the message again. `key` is the request id of the page: a second click on it sends nothing."""

    key: str
    recipients: messages_resend.Recipients | None = None
    recipient_id: str | None = None


class Recipient(forms.Form, frozen=True, kw_only=True):
    recipient_id: str


async def retry(request: requests.PageRequest) -> routing.Response:
    form: Retry = request.form
    message_id = request.path["id"]
    done = await queue_inspection.retry_of_account(request.ctx, request.account_id, message_id, form.recipient_id)
    counted = "1 recipient" if done.changed == 1 else f"{done.changed} recipients"
    return request.redirect(f"/messages/{message_id}", notice=f"Retrying {counted} now.")


async def cancel(request: requests.PageRequest) -> routing.Response:
    """Cancel the recipients for which no attempt has begun."""
    message_id = request.path["id"]
    after = await queue_changes.cancel_message(request.ctx, request.account_id, message_id)
    canceled = sum(recipient.status == statuses.RecipientStatus.CANCELED for recipient in after)
    notice = "Canceled." if canceled == len(after) else f"Canceled: {canceled} of {len(after)} recipients."
    if not canceled:
        notice = "Not canceled: attempts have begun for all recipients."
    return request.redirect(f"/messages/{message_id}", notice=notice, kind="good" if canceled else "bad")


async def reschedule(request: requests.PageRequest) -> routing.Response:
    form: Schedule = request.form
    message_id = request.path["id"]
    send_at = forms.moment("send_at", form.send_at, request.zone) if form.send_at else None
    await queue_changes.reschedule(request.ctx, request.account_id, message_id, send_at)
    notice = "Sending now."
    if send_at is not None:
        notice = f"Scheduled for {forms.date_field(send_at, request.zone).replace('T', ' ')} {request.zone.key}."
    return request.redirect(f"/messages/{message_id}", notice=notice)


async def resend(request: requests.PageRequest) -> routing.Response:
    form: ResendForm = request.form
    accepted = await messages_resend.resend(
        request.ctx,
        request.http.caller,
        request.path["id"],
        to=form.recipients or messages_resend.Recipients.FAILED,
        recipient_id=form.recipient_id,
        request_id=request.http.id,
        key=form.key if identifiers.is_identifier(form.key, identifiers.REQUEST) else request.http.id,
    )
    return request.redirect(f"/messages/{accepted.message_id}", notice="Resent. This is the new message.")


async def suppress(request: requests.PageRequest) -> routing.Response:
    form: Recipient = request.form
    message_id = request.path["id"]
    _, known = await lookup.find(request.ctx, request.account_id, message_id)
    email = next((recipient.email for recipient in known if recipient.id == form.recipient_id), None)
    if email is None:
        raise errors.NotFound("recipient_id: no such recipient in this message")
    row, _ = await suppressions.add(request.ctx, request.account_id, email)
    return request.redirect(f"/messages/{message_id}", notice=f"{row.email_key} is suppressed.")


async def show_content(request: requests.PageRequest) -> routing.Response:
    """Show the content to an operator who views the account, from now on."""
    if request.view is None:
        raise errors.NotFound("you are not viewing an account")
    message_id = request.path["id"]
    view = await view_as.show_content(context.as_operator(request.ctx), request.view, message_id)
    cookie = requests.view_as_cookie(request, view)
    return requests.redirect(request.http.headers, f"/messages/{message_id}", headers=(cookie,))


ACTION_ROUTES: Final = (
    requests.post("/messages/{id}/retry", retry, form=Retry),
    requests.post("/messages/{id}/cancel", cancel),
    requests.post("/messages/{id}/schedule", reschedule, form=Schedule),
    requests.post("/messages/{id}/resend", resend, form=ResendForm),
    requests.post("/messages/{id}/suppress", suppress, form=Recipient),
    requests.post("/messages/{id}/view-as", show_content, permission=requests.VIEW, viewing=requests.Viewing.SHOWN),
)


# More does not help anybody who copies it, and every language repeats it.
MAX_TEXT_CHARACTERS: Final = 16 * 1024
MAX_FILE_OCTETS: Final = 4 * 1024


async def show_code(request: requests.PageRequest) -> routing.Response:
    """The page; NotFound when the content is no longer retained."""
    ctx, account_id, message_id = request.ctx, request.account_id, request.path["id"]
    request.refuse_hidden(message_id)
    found = await lookup.details(ctx, account_id, message_id)
    async with ctx.previews.hold(account_id):
        preview = await messages_previews.of_message(ctx, account_id, message_id)
    files = [_file(preview, attachment) for attachment in preview.attachments]
    return request.page(
        "message_code.html",
        message=found.message,
        snippets=snippets.of_email(request.base_url.rstrip("/"), _members(found.receipt, preview), files=files),
        attachments=preview.attachments,
        is_cut=any(len(text or "") > MAX_TEXT_CHARACTERS for text in (preview.text, preview.html)),
    )


def _members(accepted: send_request.Receipt, preview: messages_previews.Preview) -> literals.Members:
    given: dict[str, str | tuple[str, ...] | dict[str, str] | None] = {
        "from": accepted.sender,
        "to": accepted.to,
        "cc": accepted.cc,
        "bcc": accepted.bcc,
        "reply_to": accepted.reply_to or None,
        "subject": accepted.subject,
        "text": _text("TEXT", preview.text),
        "html": _text("HTML", preview.html),
        "headers": accepted.headers,
        "tags": accepted.tags,
        "metadata": accepted.metadata or None,
    }
    return {name: _seen(value) for name, value in given.items() if value}


def _seen(value: str | tuple[str, ...] | dict[str, str]) -> str | tuple[str, ...] | dict[str, str]:
    """The same without characters that a reader of the code would not see, and would run."""
    if isinstance(value, dict):
        return {site.plain(key): site.plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(site.plain, value))
    return site.plain(value.replace("\r\n", "\n"))


def _text(name: str, text: str | None) -> str | None:
    """The text, or a word in its place if it is too long."""
    return f"YOUR_{name}" if text is not None and len(text) > MAX_TEXT_CHARACTERS else text


def _file(preview: messages_previews.Preview, attachment: messages_previews.Attachment) -> dict[str, str]:
    content = f"BASE64_OF_{site.plain(attachment.filename)}"
    if attachment.size <= MAX_FILE_OCTETS:
        content = base64.b64encode(preview.reading.body(preview.reading.parts[attachment.index])).decode()
    named = {
        "filename": site.plain(attachment.filename),
        "content": content,
        "content_type": site.plain(attachment.content_type),
    }
    return {**named, "content_id": site.plain(attachment.content_id)} if attachment.content_id else named


CODE_ROUTES: Final = (requests.get("/messages/{id}/code", show_code, permission=requests.CONTENT),)
