"""The interface, "Dashboard webhook endpoints" and "Webhook endpoint": each row, each rule, and who may call."""

import re

import pytest
import stripe

from tests import webhook_server
from tests.conformance import live_service, webhook_service

WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
EVERY_EVENT = ["email.delivered", "email.bounced", "email.failed"]
URL = "https://hooks.example.com/postroad"
DELIVERY = "whd_" + "0" * 28
ROWS = [
    ("GET", ""),
    ("PUT", ""),
    ("DELETE", ""),
    ("POST", "/rotate-secret"),
    ("POST", "/ping"),
    ("GET", "/deliveries"),
    ("POST", f"/deliveries/{DELIVERY}/replay"),
]
MEMBERS = {"url", "events", "enabled", "created_at", "updated_at", "secret_hint"}
ENTRY = {
    "id",
    "event_id",
    "event_type",
    "message_id",
    "recipient_id",
    "url",
    "status",
    "attempt_count",
    "next_attempt_at",
    "created_at",
    "request_body",
    "attempts",
}


def test_the_webhook_member_is_null_when_none_exists(customer: webhook_service.Customer) -> None:
    """Row GET /v1/webhook."""
    assert customer.get("GET")["webhook"] is None


def test_put_saves_the_url_the_events_and_the_enabled_flag(customer: webhook_service.Customer) -> None:
    """Row PUT /v1/webhook, first sentence; what was saved is what GET returns."""
    saved = customer.get("PUT", json={"url": URL, "events": ["email.failed", "email.bounced"], "enabled": False})
    webhook = saved["webhook"]
    assert webhook.keys() == MEMBERS
    assert (webhook["url"], set(webhook["events"]), webhook["enabled"]) == (
        URL,
        {"email.failed", "email.bounced"},
        False,
    )
    assert WIRE_TIME.fullmatch(webhook["created_at"])
    assert customer.get("GET")["webhook"] == webhook
    changed = customer.get("PUT", json={"url": f"{URL}/2"})["webhook"]
    assert (changed["url"], changed["events"], changed["enabled"]) == (f"{URL}/2", webhook["events"], False)
    assert changed["created_at"] == webhook["created_at"]
    assert customer.get("GET")["webhook"] == changed


@pytest.mark.parametrize("fields", [{}, {"events": []}], ids=["absent", "empty"])
def test_without_events_all_are_subscribed(customer: webhook_service.Customer, fields: dict[str, object]) -> None:
    """Events: default when none are given, decided as all three; `enabled` is true unless told otherwise."""
    webhook = customer.get("PUT", json={"url": URL, **fields})["webhook"]
    assert (webhook["events"], webhook["enabled"]) == (EVERY_EVENT, True)


def test_the_secret_is_returned_once_when_the_endpoint_is_first_created(customer: webhook_service.Customer) -> None:
    """Row PUT /v1/webhook, second sentence; Signature: the secret begins `whsec_` and is shown once."""
    created = customer.get("PUT", json={"url": URL})
    assert created["secret"].startswith("whsec_")
    later = [customer.get("PUT", json={"url": URL}), customer.get("GET"), customer.get("GET", "/deliveries")]
    assert all("secret" not in answer for answer in later)
    assert all(created["secret"] not in str(answer) for answer in later)
    hint = created["webhook"]["secret_hint"]
    assert 0 < len(hint.removeprefix("whsec_")) < 10


def test_rotating_issues_a_new_secret_returned_once_and_the_old_one_stops(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Row POST /v1/webhook/rotate-secret."""
    old = customer.subscribe(listener.url)
    new = customer.get("POST", "/rotate-secret")["secret"]
    assert new.startswith("whsec_")
    assert new != old
    assert new not in str(customer.get("GET"))
    customer.send("ada@example.org")
    (told,) = listener.wait_for_events()
    assert stripe.WebhookSignature.verify_header(told.request.body, told.signature, new)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(told.request.body, told.signature, old)


def test_with_an_overlap_both_secrets_sign(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Decision on rotate-secret: `overlap_hours` keeps the old secret good beside the new one."""
    old = customer.subscribe(listener.url)
    new = customer.get("POST", "/rotate-secret", json={"overlap_hours": 1})["secret"]
    customer.send("ada@example.org")
    (told,) = listener.wait_for_events()
    assert re.fullmatch(r"t=\d{10},v1=[0-9a-f]{64},v1=[0-9a-f]{64}", told.signature)
    assert all(stripe.WebhookSignature.verify_header(told.request.body, told.signature, one) for one in (old, new))


@pytest.mark.parametrize("hours", [0, 169, -1, 1.5, "1"])
def test_an_overlap_is_1_to_168_hours(sqlite_customer: webhook_service.Customer, hours: object) -> None:
    """Decision on rotate-secret: what is no such number is refused, and the secret stays."""
    sqlite_customer.subscribe(URL)
    before = sqlite_customer.get("GET")
    live_service.check_refusal(
        sqlite_customer.ask("POST", "/rotate-secret", json={"overlap_hours": hours}), 400, "invalid_request"
    )
    assert sqlite_customer.get("GET")["webhook"] == before["webhook"]


def test_ping_sends_a_webhook_test_event(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Row POST /v1/webhook/ping; Types, row `webhook.test`; data, rows `test` and `email_id`; no credits."""
    secret = customer.subscribe(listener.url)
    before = customer.service.balance()
    delivery = customer.get("POST", "/ping")["delivery"]
    (told,) = listener.wait_for_events()
    assert told.event["type"] == "webhook.test"
    assert told.data == {"test": True, "subject": "Postroad webhook test"}
    assert stripe.WebhookSignature.verify_header(told.request.body, told.signature, secret, 300)
    assert told.request.headers["user-agent"] == "Service-Webhook/1.0"
    assert delivery.keys() >= ENTRY
    assert (delivery["event_id"], delivery["event_type"], delivery["status"]) == (
        told.event["id"],
        "webhook.test",
        "succeeded",
    )
    assert customer.deliveries() == [delivery]
    assert customer.service.balance() == before


def test_a_ping_that_fails_is_reported_and_not_repeated(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Decision on ping: 200 whatever the endpoint said; one attempt."""
    customer.subscribe(listener.url)
    listener.answer(webhook_server.ok(500, b"<script>"))
    delivery = customer.get("POST", "/ping")["delivery"]
    assert (delivery["status"], delivery["attempt_count"], delivery["next_attempt_at"]) == ("failed", 1, None)
    assert delivery["attempts"][0]["response_body"] == "<script>"


def test_between_pings_is_a_cooldown(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Row POST /v1/webhook/ping: cooldown 15 seconds; the second is refused and sends nothing."""
    customer.subscribe(listener.url)
    customer.get("POST", "/ping")
    refused = customer.ask("POST", "/ping")
    live_service.check_refusal(refused, 429, "rate_limited")
    assert 1 <= int(refused.headers["retry-after"]) <= 15
    assert len(listener.wait_for_events()) == 1


def test_a_new_endpoint_does_not_end_the_cooldown(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Row POST /v1/webhook/ping: the cooldown is the account's."""
    customer.subscribe(listener.url)
    customer.get("POST", "/ping")
    assert customer.ask("DELETE").status_code == 204
    customer.subscribe(listener.url)
    live_service.check_refusal(customer.ask("POST", "/ping"), 429, "rate_limited")


def test_a_disabled_endpoint_can_be_pinged(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Decision on ping."""
    customer.subscribe(listener.url, enabled=False)
    assert customer.get("POST", "/ping")["delivery"]["status"] == "succeeded"


def test_delete_deletes_the_url_and_its_delivery_log(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Row DELETE /v1/webhook: afterwards there is neither, nor in an endpoint that is made anew."""
    old = customer.subscribe(listener.url)
    customer.send("ada@example.org")
    (delivery,) = customer.ended()
    answer = customer.ask("DELETE")
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["x-request-id"]
    assert customer.get("GET")["webhook"] is None
    assert customer.deliveries() == []
    new = customer.subscribe(listener.url)
    assert new != old
    assert customer.deliveries() == []
    live_service.check_refusal(customer.ask("POST", f"/deliveries/{delivery['id']}/replay"), 404, "not_found")


def test_delete_stops_what_is_still_to_be_sent(
    customer: webhook_service.Customer,
    listener: webhook_service.WebhookListener,
    installation: webhook_service.Installation,
) -> None:
    """The same row: what waits for its next attempt goes with it, and reaches neither the old URL nor a new one."""
    customer.subscribe(listener.url)
    listener.answer(webhook_server.ok(500))
    customer.send("ada@example.org")
    webhook_service.until(lambda: [one for one in customer.deliveries() if one["attempts"]] or None)
    assert customer.ask("DELETE").status_code == 204
    tried = len(listener.events())
    with installation.listener() as elsewhere:
        customer.subscribe(elsewhere.url)
        customer.send("bob@example.org")
        assert [one.data["to"] for one in elsewhere.wait_for_events()] == ["bob@example.org"]
    # An attempt that was under way may have ended since.
    assert len(listener.events()) <= tried + 1


@pytest.mark.parametrize("method, path", [row for row in ROWS if row[0] != "GET" and row[0] != "PUT"])
def test_without_an_endpoint_there_is_nothing_to_change(
    customer: webhook_service.Customer, method: str, path: str
) -> None:
    """All rows that need an endpoint: 404 without one."""
    live_service.check_refusal(customer.ask(method, path), 404, "not_found")


def test_the_history_has_every_attempt_newest_first(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """Row GET /v1/webhook/deliveries: what a record has is decided; the newest comes first."""
    customer.subscribe(listener.url)
    accepted = customer.send("ada@example.org")
    customer.ended(1)
    customer.send("bounce@example.org")
    newer, older = customer.ended(2)
    first, _ = listener.wait_for_events(2)
    assert older.keys() >= ENTRY
    assert newer["id"] > older["id"]
    assert [one["event_type"] for one in (newer, older)] == ["email.bounced", "email.delivered"]
    (recipient,) = customer.recipients(accepted["id"])
    assert (older["message_id"], older["recipient_id"], older["event_id"], older["url"]) == (
        accepted["id"],
        recipient["id"],
        first.event["id"],
        listener.url,
    )
    (attempt,) = older["attempts"]
    assert attempt.keys() >= {"at", "status_code", "duration_ms", "response_body", "error"}
    assert (attempt["status_code"], attempt["response_body"], attempt["error"]) == (200, "ok", None)
    assert WIRE_TIME.fullmatch(attempt["at"])


def test_the_history_can_be_asked_for_one_message(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """The same row: query parameter `message_id`."""
    customer.subscribe(listener.url)
    chosen = customer.send("ada@example.org", "bob@example.org")["id"]
    customer.send("eve@example.org")
    customer.ended(3)
    assert {one["message_id"] for one in customer.ended(2, message_id=chosen)} == {chosen}
    assert customer.deliveries(message_id="em_" + "0" * 28) == []


def test_the_history_is_given_in_parts(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener
) -> None:
    """The same row: query parameter `limit`, 1 to 100; more with `before`."""
    customer.subscribe(listener.url)
    customer.send(*(f"{number}@example.org" for number in range(5)))
    every = [one["id"] for one in customer.ended(5)]
    part = [one["id"] for one in customer.deliveries(limit=2)]
    rest = [one["id"] for one in customer.deliveries(limit=100, before=part[-1])]
    assert part + rest == every == sorted(every, reverse=True)


@pytest.mark.parametrize("limit", ["0", "101", "-1", "x", "1.5", ""])
def test_a_limit_out_of_bounds_is_refused(newcomer: webhook_service.Customer, limit: str) -> None:
    """The same row: bounds of `limit`, decided as 1 to 100."""
    live_service.check_refusal(newcomer.ask("GET", "/deliveries", params={"limit": limit}), 400, "invalid_request")


@pytest.mark.parametrize("status", [200, 500], ids=["of a success", "of a failure"])
def test_replay_sends_the_same_body_again(
    customer: webhook_service.Customer, listener: webhook_service.WebhookListener, status: int
) -> None:
    """Row POST …/replay; Envelope, row `id`: replays reuse it; the signature is new, and no credit is taken."""
    secret = customer.subscribe(listener.url)
    listener.answer(webhook_server.ok(status))
    customer.send("ada@example.org")
    (old,) = customer.ended()
    attempts = 1 if status == 200 else 7
    first = listener.wait_for_events(attempts)[0]
    before = customer.service.balance()
    listener.answer(webhook_server.OK)
    again = customer.get("POST", f"/deliveries/{old['id']}/replay", status=202)["delivery"]
    assert again["id"] != old["id"]
    assert (again["event_id"], again["request_body"]) == (old["event_id"], old["request_body"])
    told = listener.wait_for_events(attempts + 1)[-1]
    assert told.request.body == first.request.body
    assert told.signed_at >= first.signed_at
    assert stripe.WebhookSignature.verify_header(told.request.body, told.signature, secret, 300)
    newest, oldest = customer.ended(2)
    assert (newest["id"], newest["status"], oldest) == (again["id"], "succeeded", old)
    assert customer.service.balance() == before


def test_a_delivery_of_another_account_is_not_found(
    installation: webhook_service.Installation,
    customer: webhook_service.Customer,
    listener: webhook_service.WebhookListener,
) -> None:
    """All rows: another account sees and changes nothing of mine; a delivery of mine looks like an unknown one."""
    customer.subscribe(listener.url)
    message_id = customer.send("ada@example.org")["id"]
    (delivery,) = customer.ended()
    other = installation.customer()
    assert other.get("GET")["webhook"] is None
    other.subscribe(URL)
    assert other.deliveries() == other.deliveries(message_id=message_id) == []
    foreign = other.ask("POST", f"/deliveries/{delivery['id']}/replay")
    unknown = other.ask("POST", f"/deliveries/{DELIVERY}/replay")
    sentences = [live_service.check_refusal(answer, 404, "not_found") for answer in (foreign, unknown)]
    assert sentences[0] == sentences[1]
    assert other.ask("DELETE").status_code == 204
    assert customer.get("GET")["webhook"]["url"] == listener.url
    assert len(listener.wait_for_events()) == 1


@pytest.mark.parametrize("method, path", ROWS)
@pytest.mark.parametrize("who", ["basic", "api_key", "reading_key", "nobody"])
def test_a_customer_jwt_is_required(
    webhook_sqlite: webhook_service.Installation, method: str, path: str, who: str
) -> None:
    """Above the table: the SMTP password is not accepted, nor is an API key; 401 for each row."""
    service = webhook_sqlite.service
    fields = {} if who == "nobody" else {"Authorization": str(getattr(service.mine, who))}
    body = {"url": URL} if method == "PUT" else None
    answer = service.client.request(method, f"/v1/webhook{path}", headers=fields, json=body)
    live_service.check_refusal(answer, 401, "unauthorized")


@pytest.mark.parametrize("method, path", ROWS)
def test_who_may_only_read_changes_nothing(
    webhook_sqlite: webhook_service.Installation, method: str, path: str
) -> None:
    """Authentication: what a user may do follows the role; a reader reads."""
    service = webhook_sqlite.service
    body = {"url": URL} if method == "PUT" else None
    fields = {"Authorization": service.mine.reader}
    answer = service.client.request(method, f"/v1/webhook{path}", headers=fields, json=body)
    if method == "GET":
        assert answer.status_code == 200
    else:
        live_service.check_refusal(answer, 403, "forbidden")


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/",
        "ftp://hooks.example.com/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://db/",
        "https://printer.local/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://172.16.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::ffff:127.0.0.1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        f"https://{webhook_service.OWN_NAME}/",
        f"https://{webhook_service.OWN_NAME.upper()}:8443/hook",
        "https://user:password@hooks.example.com/",
        "https://",
        "hooks.example.com",
        "",
        " https://hooks.example.com/",
        "https://hooks.example.com/\r\nX-Evil: 1",
        "https://hooks.example.com:0/",
        "https://hooks.example.com/" + "x" * 10_000,
    ],
)
def test_the_url_rules(newcomer: webhook_service.Customer, url: str) -> None:
    """URL rules: https, a public host; localhost, private addresses and the service's own domains are rejected."""
    sentence = live_service.check_refusal(newcomer.ask("PUT", json={"url": url}), 400, "invalid_request")
    assert sentence.startswith("url")
    assert newcomer.get("GET")["webhook"] is None


def test_a_url_that_is_refused_leaves_the_saved_one(customer: webhook_service.Customer) -> None:
    """URL rules: they hold for an update as for the first save, and a refused one changes nothing."""
    customer.subscribe(URL)
    before = customer.get("GET")["webhook"]
    live_service.check_refusal(customer.ask("PUT", json={"url": "https://10.0.0.1/"}), 400, "invalid_request")
    assert customer.get("GET")["webhook"] == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": 5},
        {"url": URL, "events": "email.bounced"},
        {"url": URL, "events": ["webhook.test"]},
        {"url": URL, "events": ["email.opened"]},
        {"url": URL, "enabled": "yes"},
        {"url": URL, "secret": "whsec_mine"},
        [],
    ],
)
def test_a_body_of_another_shape_is_refused(newcomer: webhook_service.Customer, body: object) -> None:
    """Row PUT /v1/webhook: `url` is required; events are those of version 1; what is unknown is refused."""
    live_service.check_refusal(newcomer.ask("PUT", json=body), 400, "invalid_request")
    assert newcomer.get("GET")["webhook"] is None


def test_events_go_to_the_url_as_it_is_now(
    customer: webhook_service.Customer,
    listener: webhook_service.WebhookListener,
    installation: webhook_service.Installation,
) -> None:
    """Limits: webhook URLs per account 1; after a change, what waits goes to the new one with the same bytes."""
    customer.subscribe(listener.url)
    listener.answer(webhook_server.ok(500))
    customer.send("ada@example.org")
    webhook_service.until(lambda: listener.events() or None)
    with installation.listener() as elsewhere:
        customer.get("PUT", json={"url": elsewhere.url})
        (told,) = elsewhere.wait_for_events()
        assert told.request.body == listener.events()[0].request.body
        (delivery,) = customer.ended()
    assert (delivery["status"], delivery["url"]) == ("succeeded", elsewhere.url)
