"""An order whose receipt is sent once, and an endpoint that learns what became of it."""

import logging

from django.core.mail import EmailMultiAlternatives
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST
from postroad_client import Event
from postroad_client.django import webhook

ORDER = {"number": "1042", "name": "Ada", "items": [("Tea", "4.50 EUR")], "total": "4.50 EUR"}
logger = logging.getLogger(__name__)


def order(request: HttpRequest) -> HttpResponse:
    """The form."""
    return render(request, "order.html", {"order": ORDER})


@require_POST
def send_receipt(request: HttpRequest) -> HttpResponse:
    """Send the receipt; a form that is submitted twice sends one."""
    message = EmailMultiAlternatives(
        subject=f"Your receipt for order {ORDER['number']}",
        body=render_to_string("receipt.txt", {"order": ORDER}),
        to=[request.POST["to"]],
        headers={
            "Idempotency-Key": f"order-{ORDER['number']}-receipt",
            "X-Service-Tag": "receipt",
            "X-Service-Metadata-order": ORDER["number"],
        },
    )
    message.attach_alternative(render_to_string("receipt.html", {"order": ORDER}), "text/html")
    message.send()
    return HttpResponse("Accepted", status=202, content_type="text/plain")


@webhook
def mail_event(request: HttpRequest, event: Event) -> HttpResponse:
    """Called only with a valid signature. The same event can arrive twice: remember `event.id`."""
    logger.warning("%s %s %s", event.id, event.type, event.data.to)
    return HttpResponse(status=204)
