"""Events as bytes: the envelope, the members that are left out, the cuts, and text from elsewhere."""

import json
from typing import Any

import jsonschema_rs
import pytest

from postroad.model.events import events
from postroad.model.mail import statuses

AT = 1_800_000_000_123_999
RECIPIENT: dict[str, Any] = {
    "email_id": "em_1",
    "recipient_id": "rcp_1",
    "to": "ada@example.net",
    "sender": "bounces+1@example.com",
    "subject": "Your order",
    "smtp_code": 250,
    "response": "2.0.0 taken",
}
# What has ended headers, strings, lines of JavaScript and lines of C elsewhere.
NASTY = 'a\r\nX-Evil: 1\r\n\r\n"quoted" \\ \u2028\u2029 \x00\x1b[31m </script> é☃ 😀 \u202e'


def event_body(**changes: Any) -> bytes:
    data = events.recipient(**(RECIPIENT | changes))
    return events.body("evt_1", events.EventType.BOUNCED, created_at=AT, data=data)


def test_an_event_is_compact_json_in_a_fixed_order() -> None:
    assert event_body() == (
        b'{"id":"evt_1","type":"email.bounced","created_at":"2027-01-15T08:00:00.123Z","data":{"email_id":"em_1",'
        b'"recipient_id":"rcp_1","to":"ada@example.net","from":"bounces+1@example.com","subject":"Your order",'
        b'"smtp_code":250,"smtp_response":"2.0.0 taken"}}'
    )


def test_the_same_event_is_always_the_same_bytes() -> None:
    assert event_body(subject=NASTY) == event_body(subject=NASTY)


@pytest.mark.parametrize(
    "member, changes",
    [("smtp_code", {"smtp_code": None}), ("smtp_response", {"response": ""}), ("subject", {"subject": ""})],
)
def test_an_empty_member_is_left_out(member: str, changes: dict[str, Any]) -> None:
    whole, data = json.loads(event_body())["data"], json.loads(event_body(**changes))["data"]
    assert data.keys() == whole.keys() - {member}


def test_only_a_ping_says_that_it_is_a_test() -> None:
    assert b'"test"' not in event_body()
    assert events.ping("evt_2", created_at=AT) == (
        b'{"id":"evt_2","type":"webhook.test","created_at":"2027-01-15T08:00:00.123Z",'
        b'"data":{"subject":"Postroad webhook test","test":true}}'
    )


@pytest.mark.parametrize("given, member, most", [("subject", "subject", 200), ("response", "smtp_response", 500)])
@pytest.mark.parametrize("letter", ["x", "é", "☃", "😀"])
def test_long_text_is_cut_between_characters(given: str, member: str, most: int, letter: str) -> None:
    for length in (most - 1, most, most + 1, 10 * most):
        data = json.loads(event_body(**{given: letter * length}))["data"]
        assert data[member] == letter * min(length, most)


@pytest.mark.parametrize("given, member", [("subject", "subject"), ("response", "smtp_response"), ("to", "to")])
def test_text_from_elsewhere_is_one_line_of_utf_8_and_comes_back_as_it_was(given: str, member: str) -> None:
    body = event_body(**{given: NASTY})
    assert not any(octet < 0x20 for octet in body)
    assert json.loads(body.decode("utf-8"))["data"][member] == NASTY
    assert set(json.loads(body)["data"]) == set(json.loads(event_body())["data"])


def test_every_final_status_has_its_event_and_no_other_has_one() -> None:
    assert {status.value: kind.value for status, kind in events.OF_STATUS.items()} == {
        "delivered": "email.delivered",
        "bounced": "email.bounced",
        "failed": "email.failed",
        "expired": "email.expired",
        "canceled": "email.canceled",
    }
    assert set(statuses.RecipientStatus) - set(events.OF_STATUS) == {
        statuses.RecipientStatus.QUEUED,
        statuses.RecipientStatus.DEFERRED,
    }


def test_a_test_is_nothing_that_one_subscribes_to() -> None:
    assert set(events.EventType) - set(events.SUBSCRIBABLE) == {events.EventType.TEST}


# The schemas of events: valid, complete, and as strict as events are.

DATA: dict[str, Any] = {"email_id": "em_1", "recipient_id": "rcp_1", "to": "ada@example.net", "from": "b@example.com"}


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"id": "evt_" + "1" * 28, "type": kind, "created_at": "2027-01-15T08:00:00.123Z", "data": data}


def is_valid(described: events.EventSchema, document: dict[str, Any]) -> bool:
    return jsonschema_rs.Draft202012Validator(described.schema, validate_formats=True).is_valid(document)


@pytest.mark.parametrize("kind", events.EventType)
def test_every_type_has_a_valid_schema_for_each_version(kind: events.EventType) -> None:
    described = events.schema_of_type(kind)
    assert sorted(version for each in described for version in each.versions) == [1, 2]
    for each in described:
        jsonschema_rs.meta.validate(each.schema)
        assert each.schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert each.schema["properties"]["type"] == {"const": kind.value}


def test_only_the_contract_s_types_differ_by_version() -> None:
    differing = [kind for kind in events.EventType if len(events.schema_of_type(kind)) == 2]
    assert differing == list(events.DEFAULT)


def test_a_schema_allows_members_that_are_added_later_and_refuses_what_is_no_event() -> None:
    first, second = events.schema_of_type(events.EventType.BOUNCED)
    good = event("email.bounced", **DATA)
    for described in (first, second):
        assert is_valid(described, good)
        assert is_valid(described, good | {"more": 1})
        assert is_valid(described, event("email.bounced", **DATA, more=1))
        assert not is_valid(described, event("email.failed", **DATA))
        assert not is_valid(described, good | {"id": "1"})
        assert not is_valid(described, good | {"created_at": "yesterday"})
        assert not is_valid(described, event("email.bounced", **DATA | {"to": None}))
        assert not is_valid(described, event("email.bounced", **DATA, smtp_code="550"))
        for member in DATA:
            assert not is_valid(described, event("email.bounced", **{k: v for k, v in DATA.items() if k != member}))
    assert not is_valid(second, event("email.bounced", **DATA, metadata={"order": 1042}))
    assert is_valid(first, event("email.bounced", **DATA, metadata={"order": 1042}))


def test_a_ping_is_as_its_schema_says() -> None:
    (described,) = events.schema_of_type(events.EventType.TEST)
    assert is_valid(described, json.loads(events.ping("evt_" + "1" * 28, created_at=1_800_000_000_000_000)))
