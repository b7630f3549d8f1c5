"""The receipt on the wire: the members of the send response, in its order, and nothing that was not given."""

import msgspec

from postroad.model.mail import send_request

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
