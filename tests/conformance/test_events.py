"""The interface, "Events" and "Recipient results": what endpoints receive, when, with which content and signature."""

import datetime as dt
import hashlib
import hmac
import re

import httpx
import pytest
import stripe

from tests import webhook_server
from tests.conformance import live_service, webhook_service

WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SIGNATURE = re.compile(r"t=(\d{10}),v1=([0-9a-f]{64})")
TYPES = {
    "delivered": "email.delivered",
    "bounced": "email.bounced",
    "failed": "email.failed",
}


def test_events_are_posted_as_json_to_the_accounts_single_url(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Events, first sentence; and "Request headers": their names and the shapes of their values."""
    customer.subscribe(listener.url)
    customer.send("ada@example.org")
    (told,) = listener.wait_for_events()
    headers = told.request.headers
    assert (told.request.method, told.request.path) == ("POST", "/hook")
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"] == "Service-Webhook/1.0"
    assert SIGNATURE.fullmatch(headers["service-signature"])
    assert headers["host"] == listener.url.split("/")[2]


@pytest.mark.parametrize(
    "local_part, status, code",
    [("ada", "delivered", 250), ("bounce", "bounced", 550), ("blocked", "bounced", 550), ("fail", "failed", 451)],
)
def test_each_result_has_its_type_and_polling_agrees_with_it(
    customer: webhook_service.Customer,
    listener: webhook_service.WebhookListener,
    local_part: str,
    status: str,
    code: int,
) -> None:
    """Recipient results, its three rows; the tables "Envelope", "data" and "Types"."""
    customer.subscribe(listener.url)
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    accepted = customer.send(f"{local_part}@example.org", subject="Grüße ☃")
    (told,) = listener.wait_for_events()
    (recipient,) = customer.recipients(accepted["id"])
    event = told.event
    assert event.keys() == {"id", "type", "created_at", "data"}
    assert event["id"].startswith("evt_")
    assert event["type"] == TYPES[status] == f"email.{recipient['status']}"
    assert WIRE_TIME.fullmatch(event["created_at"])
    assert before <= dt.datetime.fromisoformat(event["created_at"]) <= dt.datetime.now(dt.UTC)
    assert event["created_at"] in {recipient["delivered_at"], recipient["bounced_at"]} or status == "failed"
    assert told.data == {
        "email_id": accepted["id"],
        "recipient_id": recipient["id"],
        "to": recipient["email"],
        "from": told.data["from"],
        "subject": "Grüße ☃",
        "smtp_code": code,
        "smtp_response": recipient["last_smtp_response"],
    }
    assert recipient["last_smtp_code"] == code


@pytest.mark.parametrize(
    "local_parts, status",
    [
        (["ada", "defer"], "delivered"),
        (["ada", "bounce"], "partial"),
        (["ada", "fail"], "partial"),
        (["bounce", "fail"], "failed"),
        (["bounce", "blocked"], "failed"),
    ],
)
def test_a_message_ends_with_its_last_recipient(
    customer: webhook_service.Customer, local_parts: list[str], status: str
) -> None:
    """Message status, the rows from `queued` on: unchanged until all are final, and then by what they came to."""
    message_id = customer.send(*(f"{name}@example.org" for name in local_parts))["id"]

    def final() -> str | None:
        message = customer.service.read(message_id)
        if all(one["status"] in webhook_service.FINAL for one in message["recipients"]):
            return str(message["status"])
        assert message["status"] == "queued"
        return None

    assert webhook_service.until(final) == status


def test_a_permanent_bounce_returns_the_recipients_credit_and_a_failure_does_not(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Types: `email.bounced`: the recipient's credit is returned. Nothing is said of that for the others."""
    customer.subscribe(listener.url)
    customer.send("bounce@example.org", "blocked@example.org", "fail@example.org", "ada@example.org")
    listener.wait_for_events(4)
    assert customer.service.balance() == (webhook_service.CREDITS - 2, 0)


def test_one_post_is_sent_per_recipient_with_the_same_email_id(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Events, second paragraph: one POST per recipient, all with one `email_id`; `recipient_id` distinguishes them."""
    customer.subscribe(listener.url)
    accepted = customer.send("ada@example.org", "bounce@example.org", cc=["eve@example.org"], bcc="bob@bücher.example")
    told = listener.wait_for_events(4)
    recipients = customer.recipients(accepted["id"])
    assert {one.data["email_id"] for one in told} == {accepted["id"]}
    assert len({one.event["id"] for one in told}) == 4
    assert {one.data["to"]: one.data["recipient_id"] for one in told} == {one["email"]: one["id"] for one in recipients}


def test_an_event_comes_after_the_result_is_final(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Events: "after that recipient's result is final": a GET after the event returns the same result."""
    # By recipient: on a slow machine an event may come twice.
    seen: dict[str, str] = {}

    async def look(request: webhook_server.ReceivedRequest) -> bytes:
        data = webhook_service.ReceivedEvent(request).data
        async with httpx.AsyncClient(base_url=customer.service.base_url) as client:
            fields = {"Authorization": customer.account.basic}
            message = (await client.get(f"/emails/{data['email_id']}", headers=fields)).json()
        seen.update({one["id"]: one["status"] for one in message["recipients"] if one["id"] == data["recipient_id"]})
        return webhook_server.OK

    listener.answer(look)
    customer.subscribe(listener.url)
    customer.send("ada@example.org", "bounce@example.org", "fail@example.org")
    listener.wait_for_events(3)
    customer.ended(3)
    assert sorted(seen.values()) == ["bounced", "delivered", "failed"]


def test_a_deferral_fires_no_webhook_and_the_202_none_either(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Recipient results, below the table; and Events: "never at the moment of the 202"."""
    customer.subscribe(listener.url)
    accepted = customer.send("defer@example.org")

    def deferred() -> bool | None:
        (recipient,) = customer.service.read(accepted["id"])["recipients"]
        return recipient["status"] == "deferred" or None

    assert webhook_service.until(deferred)
    assert listener.events() == []
    assert customer.deliveries() == []
    (told,) = listener.wait_for_events()
    (recipient,) = customer.recipients(accepted["id"])
    assert (told.event["type"], recipient["attempt_count"]) == ("email.delivered", 3)


def test_from_is_the_envelope_sender(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """data, row `from`: MAIL FROM, which need not equal the From header; each recipient of a message has its own."""
    customer.subscribe(listener.url)
    customer.send("ada@example.org", "bounce@example.org")
    senders = {one.data["from"] for one in listener.wait_for_events(2)}
    assert len(senders) == 2
    for sender in senders:
        assert re.fullmatch(rf"bounces\+[0-9a-f]+@{re.escape(customer.account.domain)}", sender)


def test_a_long_subject_is_truncated(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """data, row `subject`: truncated when long, to 200 characters."""
    customer.subscribe(listener.url)
    subject = "Grüße 😀 " * 50
    customer.send("ada@example.org", subject=subject)
    (told,) = listener.wait_for_events()
    assert told.data["subject"] == subject[:200]


def test_smtp_code_is_omitted_when_there_is_none(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """data, row `smtp_code`; Envelope, row `data`: empty fields are omitted. The second send meets the suppression."""
    customer.subscribe(listener.url)
    customer.send("bounce@example.org")
    listener.wait_for_events(1)
    customer.send("bounce@example.org")
    _, told = listener.wait_for_events(2)
    assert told.event["type"] == "email.bounced"
    assert "smtp_code" not in told.data
    assert "suppression list" in told.data["smtp_response"]


def test_only_subscribed_events_are_sent(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """PUT /v1/webhook saves the events: those are sent and no others."""
    customer.subscribe(listener.url, events=["email.bounced"])
    accepted = customer.send("ada@example.org", "bounce@example.org", "fail@example.org")
    customer.recipients(accepted["id"])
    (told,) = listener.wait_for_events()
    assert told.event["type"] == "email.bounced"
    assert len(customer.ended()) == 1


def test_a_disabled_endpoint_gets_no_events(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """PUT /v1/webhook saves the enabled flag: while it is false, results make no events."""
    customer.subscribe(listener.url, enabled=False)
    customer.recipients(customer.send("ada@example.org")["id"])
    customer.get("PUT", json={"url": listener.url, "enabled": True})
    customer.send("bob@example.org")
    (told,) = listener.wait_for_events()
    assert told.data["to"] == "bob@example.org"


def test_stripes_verifier_accepts_the_signature(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Signature: hex HMAC-SHA256 with the secret over `<t>.<raw_body>`; checked with a verifier that is not ours."""
    secret = customer.subscribe(listener.url)
    customer.send("ada@example.org", subject='"quoted" \\ é☃ 😀')
    (told,) = listener.wait_for_events()
    body = told.request.body
    assert stripe.WebhookSignature.verify_header(body, told.signature, secret, 300)
    match = SIGNATURE.fullmatch(told.signature)
    assert match
    assert match[2] == hmac.new(secret.encode(), match[1].encode() + b"." + body, hashlib.sha256).hexdigest()
    now = dt.datetime.now(dt.UTC).timestamp()
    assert abs(now - told.signed_at) < live_service.TIMEOUT_SECONDS


@pytest.mark.parametrize("what", ["body", "t", "secret"])
def test_whatever_is_changed_spoils_the_signature(
    sqlite_customer: webhook_service.Customer, sqlite_listener: webhook_service.WebhookListener, what: str
) -> None:
    """Signature: the raw bytes, the time and the secret are all in it."""
    secret = sqlite_customer.subscribe(sqlite_listener.url)
    sqlite_customer.send("ada@example.org")
    (told,) = sqlite_listener.wait_for_events()
    body, header = told.request.body, told.signature
    if what == "body":
        body = body.replace(b":", b": ", 1)
    elif what == "t":
        header = header.replace(f"t={told.signed_at}", f"t={told.signed_at + 1}")
    else:
        secret = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(body, header, secret, 300)


def test_retries_reuse_id_bytes_and_created_at_and_are_signed_anew(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Envelope, rows `id` and `created_at`: retries reuse both; `t` is the time of the attempt; success ends it."""
    secret = customer.subscribe(listener.url)
    listener.answer(lambda _: webhook_server.ok(500 if len(listener.events()) < 3 else 200))
    customer.send("ada@example.org")
    webhook_service.until(lambda: len(listener.events()) >= 3 or None)
    (delivery,) = customer.ended()
    told = listener.wait_for_events(3)
    assert len({one.request.body for one in told}) == 1
    assert told[0].signed_at < told[2].signed_at
    assert all(stripe.WebhookSignature.verify_header(one.request.body, one.signature, secret) for one in told)
    assert (delivery["status"], delivery["attempt_count"]) == ("succeeded", 3)
    assert [attempt["status_code"] for attempt in delivery["attempts"]] == [500, 500, 200]


def test_there_are_up_to_seven_attempts(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Delivery to the receiver, first row; the delays themselves are proven where the clock can be moved."""
    customer.subscribe(listener.url)
    listener.answer(webhook_server.ok(503))
    customer.send("ada@example.org")
    (delivery,) = customer.ended()
    assert (delivery["status"], delivery["attempt_count"], delivery["next_attempt_at"]) == ("failed", 7, None)
    assert len({one.event["id"] for one in listener.wait_for_events(7)}) == 1


@pytest.mark.parametrize("status", [200, 201, 202, 204, 226, 299])
def test_any_2xx_is_success(
    sqlite_customer: webhook_service.Customer, sqlite_listener: webhook_service.WebhookListener, status: int
) -> None:
    """Delivery to the receiver, second row: any HTTP 2xx is success."""
    sqlite_customer.subscribe(sqlite_listener.url)
    sqlite_listener.answer(webhook_server.ok(status))
    sqlite_customer.send("ada@example.org")
    (delivery,) = sqlite_customer.ended()
    assert (delivery["status"], delivery["attempt_count"]) == ("succeeded", 1)
    assert [attempt["status_code"] for attempt in delivery["attempts"]] == [status]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(
    sqlite_customer: webhook_service.Customer,
    sqlite_listener: webhook_service.WebhookListener,
    webhook_sqlite: webhook_service.Installation,
    status: int,
) -> None:
    """Delivery to the receiver, second row: redirects are not followed, and are no success."""
    with webhook_sqlite.listener() as elsewhere:
        sqlite_customer.subscribe(sqlite_listener.url)
        sqlite_listener.answer(webhook_server.ok(status, b"", f"Location: {elsewhere.url}"))
        delivery = sqlite_customer.get("POST", "/ping")["delivery"]
        assert elsewhere.receiver.connections == 0
    assert delivery["status"] == "failed"
    assert delivery["attempts"][0]["status_code"] == status


@pytest.mark.parametrize("status", [300, 304, 400, 401, 404, 410, 429, 500])
def test_everything_else_is_a_failure(
    sqlite_customer: webhook_service.Customer, sqlite_listener: webhook_service.WebhookListener, status: int
) -> None:
    """Delivery to the receiver, second row, the other way round."""
    sqlite_customer.subscribe(sqlite_listener.url)
    sqlite_listener.answer(webhook_server.ok(status, b"no", "Retry-After: 999999"))
    delivery = sqlite_customer.get("POST", "/ping")["delivery"]
    assert (delivery["status"], delivery["attempts"][0]["status_code"]) == ("failed", status)


def test_the_timeout_of_an_attempt_is_five_seconds(
    sqlite_customer: webhook_service.Customer, sqlite_listener: webhook_service.WebhookListener
) -> None:
    """Delivery to the receiver, second row: an endpoint that never answers has failed after 5 seconds."""
    sqlite_customer.subscribe(sqlite_listener.url)
    sqlite_listener.answer(None)
    (attempt,) = sqlite_customer.get("POST", "/ping")["delivery"]["attempts"]
    assert attempt["status_code"] is None
    assert attempt["error"].startswith("timeout: ")
    assert attempt["duration_ms"] >= 4_900


def test_a_certificate_that_nobody_vouches_for_is_refused(
    sqlite_customer: webhook_service.Customer, webhook_sqlite: webhook_service.Installation
) -> None:
    """Delivery to the receiver, second row: HTTPS is required, and what it proves is checked."""
    with webhook_sqlite.background.entering(webhook_server.running()) as stranger:
        sqlite_customer.subscribe(stranger.literal_url)
        (attempt,) = sqlite_customer.get("POST", "/ping")["delivery"]["attempts"]
        assert stranger.requests == []
    assert attempt["status_code"] is None
    assert attempt["error"].startswith("tls_failure: ")


def test_bodies_in_the_log_are_truncated_to_2_kb(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Delivery to the receiver, third row: request and response logs; bodies are truncated to 2 KB."""
    customer.subscribe(listener.url)
    listener.answer(webhook_server.ok(200, "é".encode() * 5_000))
    customer.send("ada@example.org")
    (told,) = listener.wait_for_events()
    (delivery,) = customer.ended()
    (attempt,) = delivery["attempts"]
    assert delivery["request_body"] == told.request.body.decode()
    assert attempt["response_body"] == "é" * 1_024
    assert attempt["status_code"] == 200


def test_a_slow_endpoint_of_one_account_holds_up_nobody_else(
    installation: webhook_service.Installation,
    customer: webhook_service.Customer,
    listener: webhook_service.WebhookListener,
) -> None:
    """Decision on "Delivery to the receiver": each account has its own share of the sender."""
    other = installation.customer()
    with installation.listener(answer=None) as slow:
        other.subscribe(slow.url)
        other.send(*(f"{number}@example.org" for number in range(30)))
        webhook_service.until(lambda: slow.receiver.connections or None)
        customer.subscribe(listener.url)
        customer.send("ada@example.org")
        listener.wait_for_events()
        assert {one["status"] for one in other.deliveries(limit=100)} == {"pending"}
        assert other.ask("DELETE").status_code == 204


def test_without_a_webhook_url_everything_else_works(customer: webhook_service.Customer) -> None:
    """What the service does, fifth row: sending returns 202, logs are kept, and polling works as usual."""
    accepted = customer.send("ada@example.org", "bounce@example.org")
    statuses = {one["email"]: one["status"] for one in customer.recipients(accepted["id"])}
    assert statuses == {"ada@example.org": "delivered", "bounce@example.org": "bounced"}
    listed = customer.service.get("/v1/messages", authorization=customer.account.owner).json()["messages"]
    assert [message["id"] for message in listed] == [accepted["id"]]
    assert customer.deliveries() == []


def test_events_of_one_account_go_to_no_other(
    installation: webhook_service.Installation,
    customer: webhook_service.Customer,
    listener: webhook_service.WebhookListener,
) -> None:
    """Webhook endpoint: one per account; it receives events of this account alone."""
    other = installation.customer()
    with installation.listener() as theirs:
        customer.subscribe(listener.url)
        other.subscribe(theirs.url)
        mine, foreign = customer.send("ada@example.org"), other.send("ada@example.org")
        assert [one.data["email_id"] for one in listener.wait_for_events()] == [mine["id"]]
        assert [one.data["email_id"] for one in theirs.wait_for_events()] == [foreign["id"]]
        assert [one["message_id"] for one in customer.ended()] == [mine["id"]]
        assert [one["message_id"] for one in other.ended()] == [foreign["id"]]
