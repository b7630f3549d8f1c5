"""An order whose receipt is sent once, and an endpoint that learns what became of it."""

import logging
import smtplib

from django.core.mail import EmailMultiAlternatives
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST
from postroad_client import Event
from postroad_client.django import webhook

ORDER = {"number": "1042", "name": "Ada", "items": [("Tea", "4.50 EUR")], "total": "4.50 EUR"}
logger = logging.getLogger(__name__)


def show_order(request: HttpRequest) -> HttpResponse:
    """The form."""
    return render(request, "order.html", {"order": ORDER})


@require_POST
def send_receipt(request: HttpRequest) -> HttpResponse:
    """Send the receipt; a form that is submitted twice sends one."""
    order = ORDER | {"number": request.POST["number"]}
    message = EmailMultiAlternatives(
        subject=f"Your receipt for order {order['number']}",
        body=render_to_string("receipt.txt", {"order": order}),
        to=[request.POST["to"]],
        headers={
            "Idempotency-Key": f"order-{order['number']}-receipt",
            "X-Service-Tag": "receipt",
            "X-Service-Metadata-order": order["number"],
        },
    )
    message.attach_alternative(render_to_string("receipt.html", {"order": order}), "text/html")
    try:
        message.send()
    except smtplib.SMTPException:
        # The log says why, such as that the receipt of this order went to another address.
        logger.exception("The receipt of order %s could not be sent", order["number"])
        return HttpResponse("The receipt could not be sent.", status=502, content_type="text/plain")
    return HttpResponse("Accepted", status=202, content_type="text/plain")


@webhook
def mail_event(request: HttpRequest, event: Event) -> HttpResponse:
    """Called only with a valid signature. The same event can arrive twice: remember `event.id`."""
    logger.warning("%s %s %s", event.id, event.type, event.data.to)
    return HttpResponse(status=204)
