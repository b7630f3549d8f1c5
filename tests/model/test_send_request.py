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


# The receipt on the wire.


FULL = send_request.Receipt(
    id="em_1",
    source="api",
    request_id="req_1",
    sender="Shop <shop@example.com>",
    to=("a@example.org",),
    cc=("b@example.org",),
    bcc=("c@example.org",),
    reply_to="help@example.com",
    subject="Hello",
    recipient_count=3,
    credits_reserved=3,
    headers={"X-A": "1"},
    tags=("welcome",),
    attachments=(send_request.AttachmentReceipt("a.png", "image/png", 3, "logo"),),
)
BARE = send_request.Receipt(
    id="em_1",
    source="api",
    request_id="req_1",
    sender="shop@example.com",
    to=("a@example.org",),
    cc=(),
    bcc=(),
    subject="Hello",
    recipient_count=1,
    credits_reserved=1,
    headers={},
    tags=(),
    attachments=(send_request.AttachmentReceipt("a.bin", "application/octet-stream", 0),),
)
MEMBERS = (
    "id status source request_id from to cc bcc reply_to subject billing_status recipient_count credits_reserved "
    "headers tags attachments"
).split()


def wire(value: send_request.Receipt) -> dict[str, object]:
    decoded: dict[str, object] = msgspec.json.decode(msgspec.json.encode(value))
    return decoded


def test_it_has_every_member_of_the_send_response() -> None:
    assert list(wire(FULL)) == MEMBERS


def test_it_says_queued_and_reserved() -> None:
    assert (wire(FULL)["status"], wire(FULL)["billing_status"]) == ("queued", "reserved")


def test_lists_are_there_when_empty_and_reply_to_is_not() -> None:
    bare = wire(BARE)
    assert [bare[name] for name in ("cc", "bcc", "tags", "headers")] == [[], [], [], {}]
    assert [*list(bare)[:8], "reply_to", *list(bare)[8:]] == MEMBERS


def test_reply_to_is_a_list_where_several_were_given() -> None:
    several = msgspec.structs.replace(FULL, reply_to=("help@example.com", "Shop <shop@example.com>"))
    assert wire(several)["reply_to"] == ["help@example.com", "Shop <shop@example.com>"]
    for made in (BARE, FULL, several):
        assert msgspec.json.decode(msgspec.json.encode(made), type=send_request.Receipt) == made
    assert [made.reply_to_addresses for made in (BARE, FULL, several)] == [
        (),
        ("help@example.com",),
        ("help@example.com", "Shop <shop@example.com>"),
    ]


def test_an_attachment_has_a_content_id_only_when_it_was_given() -> None:
    assert wire(FULL)["attachments"] == [
        {"filename": "a.png", "content_type": "image/png", "size": 3, "content_id": "logo"}
    ]
    assert wire(BARE)["attachments"] == [{"filename": "a.bin", "content_type": "application/octet-stream", "size": 0}]


# When a message may be sent and when it expires.


SECOND = 1_000_000
DAY = 24 * 60 * 60 * SECOND
NOW = 1_790_000_000 * SECOND


@pytest.mark.parametrize(
    "send_at, expires_in, times",
    [
        (None, None, (None, None)),
        (NOW + DAY, None, (NOW + DAY, None)),
        (NOW + 30 * DAY, None, (NOW + 30 * DAY, None)),
        (None, 60, (None, NOW + 60 * SECOND)),
        (NOW + DAY, 60, (NOW + DAY, NOW + DAY + 60 * SECOND)),
        # A little late: it is sent at once, and has its whole time.
        (NOW - 60 * SECOND, 60, (NOW - 60 * SECOND, NOW + 60 * SECOND)),
    ],
)
def test_times_count_from_acceptance_or_from_the_time_to_send(
    send_at: int | None, expires_in: int | None, times: tuple[int | None, int | None]
) -> None:
    assert send_request.resolve_times(send_at=send_at, expires_in=expires_in, now=NOW) == send_request.SendTimes(*times)


@pytest.mark.parametrize(
    "send_at, message",
    [
        (
            NOW - 60 * SECOND - 1,
            r"send_at: 2026-09-21T14:12:19\.999Z is in the past, it is 2026-09-21T14:13:20\.000Z now; leave it out",
        ),
        (
            NOW + 30 * DAY + 1,
            r"send_at: 2026-10-21T14:13:20\.000Z is more than 30 days ahead; it is 2026-09-21T14:13:20\.000Z now",
        ),
    ],
)
def test_a_time_that_is_over_or_too_far_ahead_is_refused(send_at: int, message: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=message):
        send_request.resolve_times(send_at=send_at, expires_in=None, now=NOW)


@pytest.mark.parametrize("text", ["tomorrow", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z", "", "1"])
def test_a_time_without_its_form_or_zone_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="send_at: "):
        send_request.parse_send_at(text)


@pytest.mark.parametrize("seconds", [59, 0, -60, 432_001])
def test_a_message_lives_for_a_minute_to_five_days(seconds: int) -> None:
    assert [send_request.check_expires_in(one) for one in (60, 432_000)] == [60, 432_000]
    with pytest.raises(errors.InvalidRequest, match=rf"expires_in: {seconds} seconds; it must be 60 to 432000"):
        send_request.check_expires_in(seconds)


def test_the_expiry_moves_with_the_time_to_send() -> None:
    scheduled = send_request.resolve_times(send_at=NOW + DAY, expires_in=90, now=NOW)
    assert send_request.move_times(scheduled, NOW, created_at=NOW) == send_request.SendTimes(NOW, NOW + 90 * SECOND)
    late = send_request.resolve_times(send_at=NOW - SECOND, expires_in=90, now=NOW)
    assert send_request.move_times(late, NOW + DAY, created_at=NOW).expires_at == NOW + DAY + 90 * SECOND
    assert send_request.move_times(send_request.SendTimes(NOW), NOW + 1, created_at=NOW) == send_request.SendTimes(
        NOW + 1
    )
