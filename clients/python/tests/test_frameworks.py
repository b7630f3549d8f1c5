"""The helpers for Django, Flask and FastAPI, each in a small application."""

import hashlib
import hmac
import json
import time
from email.mime.image import MIMEImage
from typing import Any

import fastapi
import fastapi.testclient
import flask
import pytest
from django.conf import settings
from django.core import mail
from django.core.mail.backends.base import BaseEmailBackend
from django.http import HttpResponse
from django.test import RequestFactory, override_settings

from clients.python.tests.scripted import Seen, Serve, answer
from postroad_client import Event, InvalidRequestError, NotFoundError
from postroad_client import fastapi as for_fastapi
from postroad_client import flask as for_flask

SECRET = "whsec_x"
EVENT = b'{"id": "evt_1", "type": "email.delivered", "data": {"to": "ada@example.net"}}'
RECEIPT = {"id": "em_1", "status": "queued"}
REFUSED = answer(400, {"error": "no", "code": "invalid_request", "request_id": "req_1"})
PIXEL = b"\x89PNG\r\n"

if not settings.configured:
    settings.configure()


def signed(secret: str = SECRET) -> dict[str, str]:
    """The header fields of the event."""
    now = int(time.time())
    signature = hmac.new(secret.encode(), f"{now}.".encode() + EVENT, hashlib.sha256).hexdigest()
    return {"Service-Signature": f"t={now},v1={signature}", "Content-Type": "application/json"}


def backend(url: str, **options: Any) -> BaseEmailBackend:
    from postroad_client import django as for_django  # noqa: PLC0415 - Django has to be configured

    with override_settings(POSTROAD={"base_url": url, "token": "pr_live_x", "max_elapsed": 0}):
        return for_django.EmailBackend(**options)


def message(**members: Any) -> mail.EmailMultiAlternatives:
    given: dict[str, Any] = {"subject": "Hello", "body": "Hi", "from_email": "a@example.com", "to": ["b@example.net"]}
    return mail.EmailMultiAlternatives(**{**given, **members})


def test_django_sends_a_message_with_everything(serve: Serve, seen: Seen) -> None:
    given = message(
        cc=["c@example.net"], bcc=["d@example.net"], reply_to=["help@example.com"], headers={"X-Order": "1042"}
    )
    given.attach_alternative("<p>Hi <img src='cid:logo'>", "text/html")
    given.attach("total.txt", "42.00", "text/plain")
    logo = MIMEImage(PIXEL, "png")
    logo.add_header("Content-ID", "<logo>")
    given.attach(logo)
    given.tags, given.metadata, given.idempotency_key = ["receipt"], {"order": "1042"}, "order-1042"
    assert backend(serve(answer(202, RECEIPT))).send_messages([given]) == 1
    assert given.receipt.id == "em_1"
    assert seen[0]["headers"]["Idempotency-Key"] == "order-1042"
    assert json.loads(seen[0]["body"]) == {
        "from": "a@example.com", "to": ["b@example.net"], "cc": ["c@example.net"], "bcc": ["d@example.net"],
        "reply_to": "help@example.com", "subject": "Hello", "text": "Hi", "html": "<p>Hi <img src='cid:logo'>",
        "headers": {"X-Order": "1042"}, "tags": ["receipt"], "metadata": {"order": "1042"},
        "attachments": [
            {"filename": "total.txt", "content": "NDIuMDA=", "content_type": "text/plain"},
            {"filename": "logo", "content": "iVBORw0K", "content_type": "image/png", "content_id": "logo"},
        ],
    }  # fmt: skip


def test_django_sends_a_template_and_html_alone(serve: Serve, seen: Seen) -> None:
    templated, html = message(subject="", body=""), message(body="<p>Hi")
    templated.template_id, templated.merge_global_data = "welcome", {"name": "Ada"}
    html.content_subtype = "html"
    assert backend(serve(answer(202, RECEIPT), answer(202, RECEIPT))).send_messages([templated, html]) == 2
    bodies = [json.loads(request["body"]) for request in seen]
    common = {"from": "a@example.com", "to": ["b@example.net"]}
    assert bodies[0] == {**common, "template": "welcome", "variables": {"name": "Ada"}}
    assert bodies[1] == {**common, "subject": "Hello", "html": "<p>Hi"}


def test_django_raises_errors_unless_it_fails_silently(serve: Serve) -> None:
    with pytest.raises(InvalidRequestError):
        backend(serve(REFUSED)).send_messages([message()])
    quiet = backend(serve(REFUSED, answer(202, RECEIPT)), fail_silently=True)
    assert quiet.send_messages([message(), message(), message(to=[])]) == 1


def test_django_takes_several_addresses_for_replies() -> None:
    from postroad_client import django as for_django  # noqa: PLC0415 - Django has to be configured

    twice = for_django.to_email(message(reply_to=["a@example.com", "b@example.com"]))
    assert twice.reply_to == ["a@example.com", "b@example.com"]


@pytest.mark.parametrize("secret, status", [(SECRET, 204), ("whsec_y", 400)])
def test_a_webhook_of_django(secret: str, status: int) -> None:
    from postroad_client import django as for_django  # noqa: PLC0415 - Django has to be configured

    handled: list[str] = []

    @for_django.webhook
    def view(_request: object, event: Event) -> HttpResponse | None:
        handled.append(event.id)
        return None

    with override_settings(POSTROAD={"webhook_secret": SECRET}, ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__):
        request = RequestFactory().post("/", EVENT, content_type="application/json", headers=signed(secret))
        assert view(request).status_code == status
    assert handled == (["evt_1"] if status == 204 else [])


@pytest.mark.parametrize("secret, status", [(SECRET, 204), ("whsec_y", 400)])
def test_a_webhook_of_flask_and_its_client(secret: str, status: int, serve: Serve) -> None:
    app = flask.Flask(__name__)
    missing = answer(404, {"error": "no", "code": "not_found", "request_id": "req_1"})
    app.config["POSTROAD"] = {"base_url": serve(missing), "token": "pr_live_x", "webhook_secret": SECRET}

    @app.post("/hooks")
    def hook() -> tuple[str, int]:
        assert for_flask.webhook_event().id == "evt_1"
        return "", 204

    assert app.test_client().post("/hooks", data=EVENT, headers=signed(secret)).status_code == status
    with app.app_context(), for_flask.client() as client, pytest.raises(NotFoundError):
        client.get("em_1")


@pytest.mark.parametrize("secret, status", [(SECRET, 204), ("whsec_y", 400)])
def test_a_webhook_of_fastapi(secret: str, status: int) -> None:
    app = fastapi.FastAPI()
    handled: list[str] = []

    async def hook(event: Event = fastapi.Depends(for_fastapi.WebhookEvent(SECRET))) -> None:  # noqa: B008 - its way
        handled.append(event.id)

    app.post("/hooks", status_code=204)(hook)
    with fastapi.testclient.TestClient(app) as client:
        assert client.post("/hooks", content=EVENT, headers=signed(secret)).status_code == status
    assert handled == (["evt_1"] if status == 204 else [])
