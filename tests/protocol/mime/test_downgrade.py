"""A message with internationalised recipients for hosts without SMTPUTF8: its header is ASCII that parsers accept."""

import email
import email.policy
from typing import Any

import pytest

from postroad.protocol.mime import seven_bit

STRICT = email.policy.default.clone(raise_on_defect=True)
BODY = "süß\r\n\r\nTo: grüße@example.net\r\n".encode()


def message(*fields: str) -> bytes:
    return "".join(f"{field}\r\n" for field in ("From: shop@example.com", *fields)).encode() + b"\r\n" + BODY


def downgraded(*fields: str) -> bytes:
    content = seven_bit.ascii_header(message(*fields))
    assert content is not None
    head, _, body = content.partition(b"\r\n\r\n")
    assert head.isascii()
    assert body == BODY
    return head


def groups(head: bytes, name: str) -> list[tuple[str | None, list[str]]]:
    """The groups of a field as Python's strict parser reads them; an address outside of any has no group's name."""
    field: Any = email.message_from_bytes(head + b"\r\n\r\n", policy=STRICT)[name]
    assert field.defects == ()
    return [(group.display_name, [one.addr_spec for one in group.addresses]) for group in field.groups]


def test_an_internationalised_recipient_becomes_the_name_of_an_empty_group() -> None:
    head = downgraded("To: ada@example.net, grüße@example.net", "Subject: x")
    assert head == (
        b"From: shop@example.com\r\nTo: ada@example.net, =?utf-8?b?Z3LDvMOfZUBleGFtcGxlLm5ldA==?= :;\r\nSubject: x"
    )
    assert groups(head, "To") == [(None, ["ada@example.net"]), ("grüße@example.net", [])]


def test_names_stay_with_their_addresses() -> None:
    head = downgraded('Cc: "Grüße, Jörg" <grüße@example.net>, Ada <ada@example.net>, "Süß" <b@example.net>')
    assert groups(head, "Cc") == [
        ("Grüße, Jörg grüße@example.net", []),
        (None, ["ada@example.net"]),
        (None, ["b@example.net"]),
    ]


def test_one_that_is_alone_leaves_a_field_without_an_address() -> None:
    assert groups(downgraded("To: grüße@bücher.example"), "To") == [("grüße@xn--bcher-kva.example", [])]


def test_every_field_of_recipients_is_downgraded_and_no_other_is_touched() -> None:
    kept = ("X-Kept:  as\t it\r\n  is", "Subject: =?utf-8?q?=C3=BC?=", "Reply-To: a@example.com,\r\n b@example.com")
    head = downgraded("TO: ä@example.net", *kept, "cc: ö@example.net").decode()
    assert head.split("\r\n", 2)[2].startswith("\r\n".join(kept))
    assert [line[:4] for line in head.split("\r\n") if "?= :;" in line] == ["TO: ", "cc: "]


def test_long_lists_are_folded() -> None:
    many = [f"Näme Number {number} <näme{number}@example.net>" for number in range(50)]
    head = downgraded(f"To: {', '.join(many[:8])},\r\n {', '.join(many[8:16])}")
    assert max(map(len, head.split(b"\r\n"))) <= 78
    assert groups(head, "To") == [(f"Näme Number {number} näme{number}@example.net", []) for number in range(16)]


@pytest.mark.parametrize(
    "field",
    [
        "Reply-To: grüße@example.net",
        "Sender: grüße@example.net",
        "Subject: süß",
        "Message-ID: <süß@example.net>",
        "To: grüße@example.net, <",
        "To: grüße",
        "Cc: jörg@",
    ],
)
def test_what_is_no_recipients_address_has_no_such_form(field: str) -> None:
    assert seven_bit.ascii_header(message("To: ä@example.net", field)) is None


@pytest.mark.parametrize("content", ["ä\r\n\r\n", "To: ä@example.net", "To: ä@example.net\r\n x" + "x" * 1000])
def test_what_is_no_header_has_no_such_form(content: str) -> None:
    assert seven_bit.ascii_header(content.encode()) is None


def test_a_message_without_a_header_stays_as_it_is() -> None:
    assert seven_bit.ascii_header(b"\r\n" + BODY) == b"\r\n" + BODY
