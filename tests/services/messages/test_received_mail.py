"""A mail that came in is taken apart for programs; whatever is in it, nothing fails and every bound holds."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.units import times
from postroad.protocol.mime import preview_parser
from postroad.services.messages import previews, received_mail
from tests.protocol.mime import mail_corpus

REPLY = b"""\
From: =?utf-8?q?J=C3=BCrgen?= <juergen@example.org>
To: "Support, Team" <support@in.example.com>, b@example.net
Cc: group: c@example.net, d@example.net;
Reply-To: answers@example.org
Subject: =?utf-8?q?Re:_Gr=C3=BC=C3=9Fe?=
Date: Fri, 15 Jan 2027 09:00:00 +0100
Message-ID: <2@example.org>
In-Reply-To: <em_1@example.com>
References: <0@example.org>
 <em_1@example.com>
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: multipart/alternative; boundary=c

--c
Content-Type: text/plain; charset=iso-8859-1

Gr\xfc\xdfe
--c
Content-Type: text/html

<p>Hello</p>
--c--
--b
Content-Type: image/png
Content-ID: <logo@x>
Content-Disposition: inline; filename=logo.png
Content-Transfer-Encoding: base64

iVBORw==
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="../invoice.pdf"

%PDF
--b--
""".replace(b"\n", b"\r\n")
Address = received_mail.Address


def read(content: bytes) -> received_mail.ReceivedMail:
    return received_mail.read(content, sender="bounce@example.org", recipients=("support@in.example.com",))


def test_a_reply_is_read() -> None:
    found = read(REPLY)
    assert (found.envelope_sender, found.envelope_recipients) == ("bounce@example.org", ("support@in.example.com",))
    assert found.sender == (Address("juergen@example.org", "Jürgen"),)
    assert found.to == (Address("support@in.example.com", "Support, Team"), Address("b@example.net", ""))
    assert found.cc == (Address("c@example.net", ""), Address("d@example.net", ""))
    assert found.reply_to == (Address("answers@example.org", ""),)
    assert (found.subject, times.optional_to_wire(found.date)) == ("Re: Grüße", "2027-01-15T08:00:00.000Z")
    assert (found.message_id, found.in_reply_to) == ("<2@example.org>", ("<em_1@example.com>",))
    assert found.references == ("<0@example.org>", "<em_1@example.com>")
    assert (found.text, found.html) == ("Grüße", "<p>Hello</p>")
    assert found.headers[0] == ("From", "Jürgen <juergen@example.org>")
    assert len(found.headers) == 10
    image, invoice = found.attachments
    assert (image.filename, image.content_id, image.disposition, image.size) == ("logo.png", "logo@x", "inline", 4)
    assert (invoice.filename, invoice.content_type, invoice.disposition) == (
        "invoice.pdf",
        "application/pdf",
        "attachment",
    )
    assert invoice.sha256 == hashlib.sha256(b"%PDF").hexdigest()
    assert previews.attachment_of(REPLY, invoice.index).body == b"%PDF"
    assert (found.size, found.truncated) == (len(REPLY), False)


@pytest.mark.parametrize(
    "field, addresses",
    [
        ("", []),
        ("ada@example.com", [("ada@example.com", "")]),
        ("ada@bücher.example", [("ada@xn--bcher-kva.example", "")]),
        ("ada@example.com <ada@example.com>", [("ada@example.com", "ada@example.com")]),
        ('"Doe, (John)" <j@example.com>, @', [("j@example.com", "(John)")]),
        ("eve@example.com (, ada@example.com", [("ada@example.com", "")]),
        ("undisclosed-recipients:;", []),
        ("nobody at all", [("", "nobody at all")]),
        ("=?utf-8?q?ada=40example=2Ecom?=", [("", "ada@example.com")]),
        ("=?utf-8?q?Ada_=3Cada=40example=2Ecom=3E?= <eve@example.net>", [("eve@example.net", "Ada <ada@example.com>")]),
        ("\x00\u202e@", [("", "\ufffd\ufffd@")]),
    ],
)
def test_addresses_are_read_as_far_as_they_make_sense(field: str, addresses: list[tuple[str, str]]) -> None:
    found = read(f"From: {field}\r\n\r\n".encode())
    assert [(each.address, each.name) for each in found.sender] == addresses


@pytest.mark.parametrize(
    "content, truncated",
    [
        (b"", False),
        (b"To: " + b",".join(b"a%d@example.com" % number for number in range(100)) + b"\r\n\r\n", False),
        (b"To: " + b",".join(b"a%d@example.com" % number for number in range(101)) + b"\r\n\r\n", True),
        (b"To: " + b"a@example.com," * 20_000 + b"\r\n\r\n", True),
        (b"To: a@example.com\r\n" * 4 + b"\r\n", True),
        (b"X: y\r\n" * 300 + b"\r\n", False),
        (b"X: y\r\n" * 301 + b"\r\n", True),
        (b"X: " + b"y" * 70_000 + b"\r\n\r\n", True),
        (b"From: " + b"(" * 15_000 + b"\r\n\r\n", False),
        (b"From: " + b"<" * 15_000 + b"\r\n\r\n", False),
        (b"From: " + b'"' * 15_001 + b"\r\n\r\n", False),
        (b"References: " + b"<a@b> " * 2_000 + b"\r\n\r\n", False),
        (b"References: " + b"<" * 15_000 + b"\r\n\r\n", False),
        (b"Subject: " + b"=?utf-8?q?x?= " * 3_000 + b"\r\n\r\n", False),
        (b"Date: " + b"1 " * 10_000 + b"\r\n\r\n", True),
        (b"Content-Type: text/html\r\n\r\n" + b"x" * 600_000, True),
    ],
)
def test_every_bound_holds(content: bytes, *, truncated: bool) -> None:
    found = read(content)
    check(found, content)
    assert found.truncated == truncated


UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def check(found: received_mail.ReceivedMail, content: bytes) -> None:
    for addresses in (found.sender, found.to, found.cc, found.reply_to):
        assert len(addresses) <= 100
        for each in addresses:
            assert each.address or each.name
            assert not UNSEEN.search(each.address + each.name)
    assert len(found.subject) <= 4_000
    assert len(found.headers) <= 300
    assert sum(len(name) + len(value) for name, value in found.headers) <= 65_536
    ids = (found.message_id or "<>", *found.in_reply_to, *found.references)
    assert len(found.references) <= 100
    assert not any(UNSEEN.search(each) or len(each) > 997 for each in ids)
    if found.date is not None:
        assert times.parse(times.to_wire(found.date)) // 1_000 == found.date // 1_000
    shown = [text for text in (found.text, found.html) if text is not None]
    assert all(len(text) <= previews.TEXT_CHARACTERS for text in shown)
    # Every part is the text, the HTML or a file, so nothing is lost.
    assert len(shown) + len(found.attachments) == len(preview_parser.read(content).parts)
    for file in found.attachments:
        body = previews.attachment_of(content, file.index).body
        assert (len(body), hashlib.sha256(body).hexdigest()) == (file.size, file.sha256)


FIELDS = st.sampled_from(
    ["From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-ID", "References", "In-Reply-To", "Content-Type", "X"]
)
PIECES = st.sampled_from(
    ["a@b.example", "<", ">", '"', ",", ";", ":", "(", ")", "\\", "=?utf-8?q?=00=E2=80=AE?=", "\r\n ", "\n", "\0", "ü"]
) | st.text(max_size=5)
VALUES = st.lists(PIECES, max_size=12).map("".join)
MAILS = st.lists(st.tuples(FIELDS, VALUES), max_size=8).map(
    lambda fields: "".join(f"{name}: {value}\r\n" for name, value in fields).encode("utf-8", "replace")
)


@given(MAILS, st.binary(max_size=100))
def test_hostile_mail_is_read_within_the_bounds(header: bytes, body: bytes) -> None:
    for content in (header + b"\r\n" + body, body + header):
        check(read(content), content)


@pytest.mark.parametrize("name", mail_corpus.MAIL)
def test_known_odd_mail_is_read(name: str) -> None:
    check(read(mail_corpus.MAIL[name]), mail_corpus.MAIL[name])
