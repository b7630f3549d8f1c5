"""For Django: an email backend, and a decorator for the view of a webhook.

    EMAIL_BACKEND = "postroad_client.django.EmailBackend"
    POSTROAD = {"base_url": "https://mail.example.com", "token": os.environ["POSTROAD_API_KEY"]}

`POSTROAD` has the arguments of `Client`, and `webhook_secret` for the decorator. A message may have the attributes
`tags`, `metadata`, `send_at`, `template_id` and `merge_global_data`, as of django-anymail, and `idempotency_key`. After
it is sent, its `receipt` is that of `Client.send`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from email.message import Message as MimePart
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from postroad_client import answers, errors, webhooks
from postroad_client.client import Client
from postroad_client.emails import Attachment, Email

# Attributes that messages of django-anymail have, and what they are here.
ATTRIBUTES = {
    "tags": "tags",
    "metadata": "metadata",
    "send_at": "send_at",
    "template_id": "template",
    "merge_global_data": "variables",
}


class EmailBackend(BaseEmailBackend):  # type: ignore[misc]
    """Sends mail of Django through Postroad."""

    def __init__(self, fail_silently: bool = False, **options: Any) -> None:  # noqa: FBT001, FBT002 - as Django calls it
        super().__init__(fail_silently=fail_silently)
        given = {**getattr(settings, "POSTROAD", {}), **options}
        names = ("base_url", "token", "username", "password", "timeout", "max_elapsed")
        self._options = {name: given[name] for name in names if given.get(name) is not None}
        self._client: Client | None = None

    def open(self) -> bool:
        """Make the client, which keeps its connection. Whether it was made now."""
        if self._client is not None:
            return False
        self._client = Client(**self._options)
        return True

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def send_messages(self, email_messages: Iterable[EmailMessage]) -> int:
        """Send messages; how many were accepted. Without `fail_silently`, the first error ends it."""
        is_new = self.open()
        try:
            return sum(self._send(message) for message in email_messages or ())
        finally:
            if is_new:
                self.close()

    def _send(self, message: EmailMessage) -> bool:
        if not message.recipients() or self._client is None:
            return False
        try:
            key = getattr(message, "idempotency_key", None)
            message.receipt = self._client.send(to_email(message), idempotency_key=key)
        except (errors.PostroadError, ValueError):
            if not self.fail_silently:
                raise
            return False
        return True


def to_email(message: EmailMessage) -> Email:
    """The email of a message. What Postroad cannot send is a ValueError."""
    headers = dict(message.extra_headers)
    sender = headers.pop("From", message.from_email)
    more = {ours: getattr(message, theirs, None) or None for theirs, ours in ATTRIBUTES.items()}
    return Email(
        sender=sender,
        to=list(message.to),
        cc=list(message.cc) or None,
        bcc=list(message.bcc) or None,
        reply_to=list(message.reply_to) if len(message.reply_to) > 1 else next(iter(message.reply_to), None),
        subject=message.subject or None,
        headers={name: str(value) for name, value in headers.items()} or None,
        attachments=[_attachment(each) for each in message.attachments] or None,
        **_bodies(message),
        **more,
    )


def _bodies(message: EmailMessage) -> dict[str, Any]:
    found = {"html" if message.content_subtype == "html" else "text": message.body}
    for content, kind in getattr(message, "alternatives", None) or ():
        if kind != "text/html" or found.get("html"):
            raise ValueError(f"Postroad sends one alternative, of the type text/html; this is {kind}")
        found["html"] = content
    return {name: body for name, body in found.items() if body}


def _attachment(given: Any) -> Attachment:  # noqa: ANN401 - a part, or a tuple of three
    if isinstance(given, MimePart):
        content = given.get_payload(decode=True)
        content_id = given.get("Content-ID", "").strip().strip("<>")
        return Attachment(
            filename=given.get_filename() or content_id or "attachment",
            content=content if isinstance(content, bytes) else given.as_bytes(),
            content_type=given.get_content_type(),
            content_id=content_id or None,
        )
    filename, content, kind = given
    if isinstance(content, (EmailMessage, MimePart)):
        content = (content.message() if isinstance(content, EmailMessage) else content).as_bytes()
    return Attachment(
        filename=filename or "attachment",
        content=content.encode() if isinstance(content, str) else content,
        content_type=kind or None,
    )


def webhook(
    handle: Callable[[HttpRequest, answers.Event], HttpResponse | None],
) -> Callable[[HttpRequest], HttpResponse]:
    """A view that verifies a webhook and gives the event to the function; a bad signature is answered with 400."""

    @csrf_exempt  # type: ignore[untyped-decorator]
    @require_POST  # type: ignore[untyped-decorator]
    @functools.wraps(handle)
    def view(request: HttpRequest) -> HttpResponse:
        try:
            secret = settings.POSTROAD["webhook_secret"]
            event = webhooks.parse_event(request.body, request.headers.get("Service-Signature"), secret)
        except (errors.SignatureVerificationError, ValueError):
            return HttpResponseBadRequest("the webhook could not be verified")
        return handle(request, event) or HttpResponse(status=204)

    return view  # type: ignore[no-any-return]
