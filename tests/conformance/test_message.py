"""The interface, "Message" and "Recipient", and the first row of "Message status": what `GET /emails/{id}` returns."""

import datetime as dt
import re

import pytest

from tests import raw_http
from tests.conformance import live_service

WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
MESSAGE = {
    "id": str,
    "status": str,
    "source": str,
    "from": str,
    "subject": str,
    "billing_status": str,
    "recipient_count": int,
    "credits_reserved": int,
    "created_at": str,
    "recipients": list,
    "request_id": str,
}
RECIPIENT = {
    "id": str,
    "email": str,
    "status": str,
    "billing_status": str,
    "attempt_count": int,
    "last_smtp_code": type(None),
    "last_smtp_response": type(None),
    "delivered_at": type(None),
    "bounced_at": type(None),
}


def test_a_message_has_these_members(service: live_service.Service) -> None:
    """The table "Message" as a whole: these members, of these types, and no others."""
    stored = service.read(service.accept()["id"])
    assert {name: type(value) for name, value in stored.items()} == MESSAGE


def test_a_recipient_has_these_members(service: live_service.Service) -> None:
    """The table "Recipient" as a whole: these members; what may be null is there and null before any attempt."""
    (recipient,) = service.read(service.accept()["id"])["recipients"]
    assert {name: type(value) for name, value in recipient.items()} == RECIPIENT


def test_a_new_message_is_queued_and_its_credits_are_reserved(service: live_service.Service) -> None:
    """Message status, row (new) → queued: credits reserved, 1 per unique recipient."""
    before = service.balance()
    accepted = service.accept(to=["ada@example.org", "bob@example.org"], cc="ADA@example.org")
    stored = service.read(accepted["id"])
    assert (stored["status"], stored["billing_status"]) == ("queued", "reserved")
    assert (stored["recipient_count"], stored["credits_reserved"]) == (2, 2)
    assert [(one["status"], one["billing_status"], one["attempt_count"]) for one in stored["recipients"]] == [
        ("queued", "reserved", 0),
        ("queued", "reserved", 0),
    ]
    assert service.balance() == (before[0] - 2, before[1] + 2)


def test_a_message_shows_what_was_sent(service: live_service.Service) -> None:
    """Rows `id`, `source`, `from`, `subject`: those of the send."""
    accepted = service.accept(from_="Lädle <shop@example.com>", subject="Grüße ☃")
    stored = service.read(accepted["id"])
    assert [stored[name] for name in ("id", "source", "from", "subject")] == [
        accepted["id"],
        "api",
        "Lädle <shop@example.com>",
        "Grüße ☃",
    ]


def test_created_at_is_the_time_of_the_send(service: live_service.Service) -> None:
    """Row `created_at`: date-time; UTC, RFC 3339 with milliseconds."""
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    created_at = service.read(service.accept()["id"])["created_at"]
    assert WIRE_TIME.fullmatch(created_at)
    assert before <= dt.datetime.fromisoformat(created_at) <= dt.datetime.now(dt.UTC)


def test_recipients_have_ids_of_their_own_and_stand_in_the_order_of_the_send(service: live_service.Service) -> None:
    """Rows `recipients`, `id` and `email`: one for each unique address, as it was first written."""
    accepted = service.accept(to=["Zoe@Example.org", "ada@example.org"], cc=["Bob <bob@bücher.example>"])
    recipients = service.read(accepted["id"])["recipients"]
    assert [one["email"] for one in recipients] == ["Zoe@Example.org", "ada@example.org", "bob@bücher.example"]
    ids = [one["id"] for one in recipients]
    assert all(one.startswith("rcp_") for one in ids)
    assert len(set(ids)) == 3


def test_request_id_is_that_of_the_reading(service: live_service.Service) -> None:
    """Row `request_id`: equal to the header of this response, not that of the send."""
    accepted = service.accept()
    response = service.get(f"/emails/{accepted['id']}")
    assert response.json()["request_id"] == response.headers["x-request-id"] != accepted["request_id"]


def test_reading_changes_nothing(service: live_service.Service) -> None:
    """`GET /emails/{id}`: the same message as often as one asks; `Idempotency-Key` is not used."""
    accepted = service.accept()
    path, headers = f"/emails/{accepted['id']}", {"Authorization": service.mine.basic, "Idempotency-Key": "x" * 300}
    first, second = (service.client.get(path, headers=headers).json() for _ in range(2))
    assert first | {"request_id": ""} == second | {"request_id": ""}


def test_a_message_of_another_account_is_not_found(service: live_service.Service) -> None:
    """Below the table: a message of another account looks like one that does not exist."""
    accepted = service.accept()
    unknown = accepted["id"][:-1] + ("0" if accepted["id"][-1] != "0" else "1")
    foreign = service.get(f"/emails/{accepted['id']}", authorization=service.theirs.basic)
    missing = service.get(f"/emails/{unknown}")
    sentences = [live_service.check_refusal(response, 404, "not_found") for response in (foreign, missing)]
    assert sentences[0] == sentences[1]


@pytest.mark.parametrize(
    "text",
    ["em_", "1", "EM_0", "em_" + "g" * 28, "em_" + "0" * 27, "%00", "em_%0a", "..%2f..%2fetc", "em_" + "0" * 2000, "'"],
)
def test_what_is_no_id_is_not_found(service: live_service.Service, text: str) -> None:
    """`GET /emails/{id}`: the only refusals are 401 and 404."""
    live_service.check_refusal(service.get(f"/emails/{text}"), 404, "not_found")


ODD_IDS = {
    "20,000 characters": "x" * 20_000,
    "20,000 characters, percent-encoded": "%C3%A9" * 10_000,
    "an id and more": "em_" + "0" * 60_000,
    "white space": "%20%09",
    "control characters": "%00%01%0D%0A%7F%C2%85",
    "not ASCII": "gr%C3%BC%C3%9Fe",
    "not UTF-8": "%ff%fe",
    "escapes that are none": "%",
    "an encoded slash": "em_%2Fem_",
    "a dot": ".",
    "two dots": "..",
    "an encoded question mark": "%3Fid=em_",
    "characters that no URL should have": '"<>\\^`{|}',
}


@pytest.mark.parametrize("kind", ODD_IDS)
async def test_what_is_no_id_is_not_found_whatever_its_length_or_shape(
    sqlite_service: live_service.Service, kind: str
) -> None:
    """`GET /emails/{id}`: 404 to whatever is no id of the account's, and 401 before that."""
    path = f"/emails/{ODD_IDS[kind]}"
    credential = f"Authorization: {sqlite_service.mine.basic}"
    for fields, status, code in (((credential,), 404, "not_found"), ((), 401, "unauthorized")):
        response = await raw_http.exchange(sqlite_service.address, raw_http.get(path, *fields))
        body = response.json()
        assert (response.status, body["code"]) == (status, code)
        assert set(body) == live_service.ERROR_MEMBERS
        assert body["request_id"] == response.headers["x-request-id"]


@pytest.mark.parametrize("path", ["/emails/", "/emails/em_/em_", "/emails/" + "x" * 100_000, "/emails" + "/" * 1000])
async def test_a_path_that_cannot_hold_an_id_is_not_found(sqlite_service: live_service.Service, path: str) -> None:
    """An empty id, one with slashes, and one beyond the length of any URL: no such path, so 404 to everybody."""
    for fields in ([f"Authorization: {sqlite_service.mine.basic}"], []):
        response = await raw_http.exchange(sqlite_service.address, raw_http.get(path, *fields))
        body = response.json()
        assert (response.status, body["code"]) == (404, "not_found")
        assert body["request_id"] == response.headers["x-request-id"]


def test_an_accepted_message_is_there_at_once_for_every_scheme(service: live_service.Service) -> None:
    """Under "What the service does": polling works without a webhook, from the moment of the 202."""
    accepted = service.accept()
    for authorization in (service.mine.basic, service.mine.owner, service.mine.reader, service.mine.reading_key):
        assert service.get(f"/emails/{accepted['id']}", authorization=authorization).status_code == 200
