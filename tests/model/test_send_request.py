"""The published schema of a send, held against the rules: what it describes is accepted, what is reserved is not."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import errors
from postroad.mail.accept import validation
from postroad.model.mail import send_request

GOOD: dict[str, Any] = {"sender": "shop@example.com", "to": ("ada@example.org",), "subject": "Hello", "text": "Hi"}
_, COMPONENTS = msgspec.json.schema_components([send_request.SendRequest], ref_template="{name}")
PROPERTIES: dict[str, Any] = COMPONENTS["SendRequest"]["properties"]


def member(name: str) -> dict[str, Any]:
    """What the schema says of a member that is not null."""
    (described,) = [choice for choice in PROPERTIES[name]["anyOf"] if choice.get("type") != "null"]
    return dict(described)


HEADER_NAME: str = member("headers")["propertyNames"]["pattern"]
HEADER_VALUE: dict[str, Any] = member("headers")["additionalProperties"]
RESERVED = (
    "From Sender To Cc Bcc Subject Reply-To Date Message-ID Return-Path Received MIME-Version DKIM-Signature "
    "Authentication-Results Delivered-To Errors-To Content-Type Content-X ARC-Seal Resent-To X-Service-Tag "
    "Idempotency-Key"
).split()
FINE = [
    "X-Campaign",
    "List-Unsubscribe",
    "In-Reply-To",
    "Fromage",
    "X-From",
    "Received-By",
    "Dates",
    "Subjects",
    "Content",
]


@pytest.mark.parametrize("name", [written for name in RESERVED for written in (name, name.lower(), name.upper())])
def test_reserved_names_are_outside_the_schema(name: str) -> None:
    assert re.search(HEADER_NAME, name) is None


@pytest.mark.parametrize("name", FINE)
def test_names_that_only_look_reserved_are_inside_it(name: str) -> None:
    assert re.search(HEADER_NAME, name)
    validation.check(send_request.SendRequest(**GOOD, headers={name: "<https://example.com/u>"}))


@given(st.text(max_size=90))
def test_a_name_inside_the_schema_is_accepted_and_one_outside_refused(name: str) -> None:
    inside = re.search(HEADER_NAME, name) is not None and not name.endswith("\n")
    try:
        validation.check(send_request.SendRequest(**GOOD, headers={name: "x"}))
    except errors.InvalidRequest:
        assert not inside
    else:
        assert inside


@given(
    st.from_regex(HEADER_VALUE["pattern"], fullmatch=True).filter(lambda text: len(text) <= HEADER_VALUE["maxLength"])
)
def test_a_header_value_inside_the_schema_is_accepted_by_its_octets(value: str) -> None:
    # The schema counts characters, the rule octets: only values beyond ASCII can be longer than they look.
    if len(value.encode()) <= HEADER_VALUE["maxLength"]:
        validation.check(send_request.SendRequest(**GOOD, headers={"X-A": value.removesuffix("\n")}))


TAG: dict[str, Any] = next(choice for choice in PROPERTIES["tags"]["anyOf"] if choice.get("type") == "string")


@given(st.text(min_size=1, max_size=140))
def test_a_tag_inside_the_schema_is_accepted_and_one_outside_refused(tag: str) -> None:
    inside = re.search(TAG["pattern"], tag) is not None and len(tag) <= TAG["maxLength"] and not tag.endswith("\n")
    try:
        validation.check(send_request.SendRequest(**GOOD, tags=(tag,)))
    except errors.InvalidRequest:
        assert not inside
    else:
        assert inside


def test_the_limits_stand_in_the_schema() -> None:
    assert member("subject")["maxLength"] == 500
    assert member("variables")["maxProperties"] == 32
    assert member("headers")["maxProperties"] == 50
    assert member("attachments")["maxItems"] == 20
    assert [choice.get("maxItems") for choice in PROPERTIES["tags"]["anyOf"] if choice.get("type") == "array"] == [20]


def test_what_is_required_is_required() -> None:
    assert set(COMPONENTS["SendRequest"]["required"]) == {"from", "to"}
    assert COMPONENTS["SendRequest"]["additionalProperties"] is False
    assert set(COMPONENTS["Attachment"]["required"]) == {"filename", "content"}
    assert COMPONENTS["Attachment"]["additionalProperties"] is False
