"""The schemas of events: valid, complete, and as strict as events are."""

import json
from typing import Any

import jsonschema_rs
import pytest

from postroad.model.events import events

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
