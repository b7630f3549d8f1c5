"""What can be done with a message on its page: retry, cancel, reschedule and resend it, and suppress a recipient.

An operator who looks at the account can only ask for its content.
"""

from typing import Final

from postroad import errors
from postroad.dashboard import forms, requests, typed_times
from postroad.model import identifiers, mail
from postroad.services import context
from postroad.services.acceptance import resend as resend_service
from postroad.services.accounts import looks
from postroad.services.messages import lookup
from postroad.services.queue import cancellation, inspection, schedule
from postroad.services.suppressions import registry
from postroad.web import routing


class Retry(forms.Form, frozen=True, kw_only=True):
    """Which recipient; without one, all that wait."""

    recipient_id: str | None = None


class Schedule(forms.Form, frozen=True, kw_only=True):
    """When to send, in the time zone of the user as a date field gives it; empty for now."""

    send_at: str | None = None


class Resend(forms.Form, frozen=True, kw_only=True):
    """Who gets the message again. `key` is the request id of the page: a second click on it sends nothing."""

    key: str
    recipients: resend_service.Recipients | None = None
    recipient_id: str | None = None


class Recipient(forms.Form, frozen=True, kw_only=True):
    """Which recipient."""

    recipient_id: str


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
    send_at = typed_times.moment("send_at", form.send_at, request.zone) if form.send_at else None
    await schedule.reschedule(request.ctx, request.account_id, message_id, send_at)
    notice = "Sending now."
    if send_at is not None:
        notice = f"Scheduled for {typed_times.written(send_at, request.zone).replace('T', ' ')} {request.zone.key}."
    return request.redirect(f"/messages/{message_id}", notice=notice)


async def resend(request: requests.PageRequest) -> routing.Response:
    """Send it again, and show the new message."""
    form: Resend = request.form
    accepted = await resend_service.resend(
        request.ctx,
        request.http.caller,
        request.path["id"],
        to=form.recipients or resend_service.Recipients.FAILED,
        recipient_id=form.recipient_id,
        request_id=request.http.id,
        key=form.key if identifiers.is_identifier(form.key, identifiers.REQUEST) else request.http.id,
    )
    return request.redirect(f"/messages/{accepted.message_id}", notice="Resent. This is the new message.")


async def suppress(request: requests.PageRequest) -> routing.Response:
    """Put a recipient on the suppression list."""
    form: Recipient = request.form
    message_id = request.path["id"]
    _, known = await lookup.find(request.ctx, request.account_id, message_id)
    email = next((one.email for one in known if one.id == form.recipient_id), None)
    if email is None:
        raise errors.NotFound("recipient_id: no such recipient in this message")
    row, _ = await registry.add(request.ctx, request.account_id, email)
    return request.redirect(f"/messages/{message_id}", notice=f"{row.email_key} is suppressed.")


async def show_content(request: requests.PageRequest) -> routing.Response:
    """Show the content to an operator who looks at the account, from now on."""
    if request.look is None:
        raise errors.NotFound("you are not looking at an account")
    message_id = request.path["id"]
    look = await looks.show_content(context.as_operator(request.ctx), request.look, message_id)
    cookie = requests.look_cookie(request, look)
    return requests.redirect(request.http.headers, f"/messages/{message_id}", headers=(cookie,))


ROUTES: Final = (
    requests.post("/messages/{id}/retry", retry, form=Retry),
    requests.post("/messages/{id}/cancel", cancel),
    requests.post("/messages/{id}/schedule", reschedule, form=Schedule),
    requests.post("/messages/{id}/resend", resend, form=Resend),
    requests.post("/messages/{id}/suppress", suppress, form=Recipient),
    requests.post("/messages/{id}/look", show_content, permission=requests.VIEW, looking=requests.Looking.SHOWN),
)
