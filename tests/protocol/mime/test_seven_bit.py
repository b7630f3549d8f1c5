"""8-bit messages as 7-bit ones: read by the standard library, they say the same; whatever cannot be encoded stays."""

import email
import email.policy
import time
from email.message import EmailMessage
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import seven_bit
from tests.protocol.mime import mail_corpus

HEAD = "From: shop@example.com\r\nSubject: x\r\n"
GREETING = "Grüße\r\n"


def encoded(message: str) -> str:
    """The message in 7 bits."""
    return seven_bit.encode(message.encode()).decode("ascii")


def parsed(content: bytes) -> EmailMessage:
    return email.message_from_bytes(content, policy=email.policy.SMTP)


def same(message: str | bytes) -> bool:
    """Whether a message stays as it is."""
    octets = message.encode() if isinstance(message, str) else message
    return seven_bit.encode(octets) == octets


def test_a_text_is_quoted_printable_and_says_so_in_place_of_what_it_said() -> None:
    fields = HEAD + "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
    expected = fields + "Content-Transfer-Encoding: quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe, plain and simple\r\n"
    body = "\r\nGrüße, plain and simple\r\n"
    assert encoded(fields + body) == expected
    for given in ("8bit", "8BIT", "binary", "7bit", "\r\n 8bit"):
        assert encoded(fields + f"content-transfer-encoding: {given}\r\n" + body) == expected


def test_a_text_that_is_mostly_not_ascii_is_base64() -> None:
    fields = HEAD + "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
    done = encoded(fields + "\r\nПривет\r\n")
    assert done == fields + "Content-Transfer-Encoding: base64\r\n\r\n0J/RgNC40LLQtdGCDQo=\r\n"


@pytest.mark.parametrize(
    "body, charset, written",
    [
        ("Grüße, plain and simple\r\n".encode(), "utf-8", b"Gr=C3=BC=C3=9Fe, plain and simple\r\n"),
        ("Grüße, plain and simple\r\n".encode("latin-1"), "iso-8859-1", b"Gr=FC=DFe, plain and simple\r\n"),
        (b"plain, simple and \xff\xfe", "iso-8859-1", b"plain, simple and =FF=FE"),
    ],
)
def test_a_message_without_mime_fields_gets_them(body: bytes, charset: str, written: bytes) -> None:
    added = (
        f"MIME-Version: 1.0\r\nContent-Type: text/plain; charset={charset}\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n"
    )
    assert seven_bit.encode(HEAD.encode() + b"\r\n" + body) == (HEAD + added + "\r\n").encode() + written


def test_only_the_mime_fields_that_are_missing_are_added() -> None:
    typed = HEAD + "Content-Type: text/html; charset=utf-8\r\n"
    encoding = "Content-Transfer-Encoding: quoted-printable\r\n\r\nplain and simple =C3=BC\r\n"
    assert encoded(typed + "\r\nplain and simple ü\r\n") == typed + "MIME-Version: 1.0\r\n" + encoding
    versioned = HEAD + "MIME-Version: 1.0\r\n"
    charset = "Content-Type: text/plain; charset=utf-8\r\n"
    assert encoded(versioned + "\r\nplain and simple ü\r\n") == versioned + charset + encoding


PARTS = (
    HEAD + "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=out\r\nContent-Transfer-Encoding: 8bit\r\n"
    "\r\npreamble\r\n"
    "--out\r\nContent-Type: multipart/alternative; boundary=in\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
    "--in\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nfür alle hier\r\n"
    "--in\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>für alle hier</p>\r\n\r\n--in--\r\n"
    "--out\r\n\r\nin ASCII \r\n"
    "--out\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\n\r\nß \r\n\r\n"
    "--out\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n\r\nin ASCII\r\n--out--\r\nepilogue\r\n"
)
PARTS_IN_7_BITS = (
    HEAD + "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=out\r\nContent-Transfer-Encoding: 7bit\r\n"
    "\r\npreamble\r\n"
    "--out\r\nContent-Type: multipart/alternative; boundary=in\r\nContent-Transfer-Encoding: 7bit\r\n\r\n"
    "--in\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    "f=C3=BCr alle hier\r\n"
    "--in\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    "<p>f=C3=BCr alle hier</p>\r\n\r\n--in--\r\n"
    "--out\r\n\r\nin ASCII \r\n"
    "--out\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\nw58gDQo=\r\n\r\n"
    "--out\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n\r\nin ASCII\r\n--out--\r\nepilogue\r\n"
)


def test_of_a_multipart_the_8_bit_parts_are_encoded_and_the_rest_stays() -> None:
    assert encoded(PARTS) == PARTS_IN_7_BITS


def test_nested_messages_are_entered() -> None:
    outer = HEAD + "MIME-Version: 1.0\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: %s\r\n\r\n"
    assert encoded(outer % "8bit" + PARTS) == outer % "7bit" + PARTS_IN_7_BITS
    without = HEAD + "Content-Type: multipart/digest; boundary=d\r\n\r\n--d\r\n\r\n"
    added = "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: "
    assert encoded(without + HEAD + "\r\nfür alle hier\r\n--d--\r\n") == (
        without + HEAD + added + "quoted-printable\r\n\r\nf=C3=BCr alle hier\r\n--d--\r\n"
    )


def test_utf8_in_the_header_of_a_part_is_encoded_and_that_of_the_message_is_not_touched() -> None:
    head = "From: jörg@example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    part = "--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n"
    named = 'Content-Disposition: attachment; filename="%s"\r\n\r\nJVBERg==\r\n--b--\r\n'
    done = seven_bit.encode((head + part + named % "Ü.pdf").encode())
    assert done == (head + part + named % "=?utf-8?b?w5wucGRm?=").encode()


@pytest.mark.parametrize(
    "message",
    [
        HEAD + "\r\nplain ASCII\r\n",
        HEAD + "Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\nGrüße\r\n--b\r\n\r\nx\r\n--b--\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: multipart/signed; boundary=b\r\n"
        "\r\n--b\r\n\r\nGrüße\r\n--b\r\n\r\nx\r\n--b--\r\n--a\r\n\r\nGrüße\r\n--a--\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\nfür\r\n--b\r\n\r\nfür\r\n--b--\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nfür\r\n--b--\r\nfür\r\n",
        HEAD + "Content-Type: multipart/mixed\r\n\r\n--b\r\n\r\nfür\r\n--b--\r\n",
        HEAD + "Content-Type: multipart/mi xed; boundary=b\r\n\r\n--b\r\n\r\nfür\r\n--b--\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        "--b\r\n\r\nfür\r\n--b--\r\n",
        HEAD + "Content-Type:\r\n\r\nfür\r\n",
        HEAD + "Content-Type: message/delivery-status\r\n\r\nfür\r\n",
        HEAD + "Content-Transfer-Encoding: quoted-printable\r\n\r\nfür=\r\n",
        HEAD + "Content-Transfer-Encoding: x-uuencode\r\n\r\nfür\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Transfer-Encoding: 8bit\r\n"
        "Content-Transfer-Encoding: base64\r\n\r\nfür\r\n--b--\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n"
        "Content-Type: text/html\r\n\r\nfür\r\n--b--\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-ID: <für@x>\r\n\r\nx\r\n--b--\r\n",
    ],
)
def test_what_is_7_bit_signed_or_malformed_stays_as_it_is(message: str) -> None:
    assert same(message)


def test_a_signed_part_in_7_bits_stays_beside_one_that_is_encoded() -> None:
    signed = (
        "Content-Type: multipart/signed; boundary=b\r\nContent-Transfer-Encoding: 8bit\r\n\r\n--b\r\n"
        "Content-Transfer-Encoding: 8bit\r\n\r\nSigned  \r\n--b\r\n\r\nx\r\n--b--\r\n"
    )
    head = HEAD + "Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n"
    done = encoded(f"{head}{signed}--a\r\nContent-Type: text/plain\r\n\r\nfür alle hier\r\n--a--\r\n")
    assert done.startswith(head + signed)
    assert "f=C3=BCr alle hier" in done


def test_no_line_that_encoding_cuts_becomes_a_delimiter() -> None:
    head = HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n"
    for length in range(60, 80):
        line = "ü" + "x" * length + "--b"
        message = parsed(seven_bit.encode((head + line + "\r\n" + "x\r\n" * 99 + "--b--\r\n").encode()))
        (part,) = message.iter_parts()
        body = part.get_payload(decode=True)
        assert isinstance(body, bytes)
        assert body.startswith(line.encode() + b"\r\n")


def test_a_boundary_of_pythons_library_is_no_obstacle() -> None:
    head = (
        HEAD
        + 'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="===============7330845974216740156=="\r\n\r\n'
    )
    part = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße\r\n"
    boundary = "===============7330845974216740156=="
    message = f"{head}--{boundary}\r\n{part}--{boundary}--\r\n".encode()
    assert seven_bit.encode(message).isascii()


@pytest.mark.parametrize(
    "boundary, line", [("=C3=BC", "--ü"), ("b=20", "--b "), ("x" * 73 + "=", "--" + "x" * 80), ("x=3Dx", "--x=x")]
)
def test_no_line_that_encoding_changes_becomes_a_delimiter(boundary: str, line: str) -> None:
    head = f'{HEAD}Content-Type: multipart/mixed; boundary="{boundary}"\r\n\r\n'
    assert same(f"{head}--{boundary}\r\n\r\nfür\r\n{line}\r\nContent-Type: text/html\r\n\r\nx\r\n--{boundary}--\r\n")


@pytest.mark.parametrize(
    "message",
    [
        *(HEAD + "Content-Type: message/rfc822\r\n\r\n" * count + "\r\nfür" for count in (50, 100_000)),
        HEAD
        + "\r\n".join(f"Content-Type: multipart/mixed; boundary={n}\r\n\r\n--{n}" for n in range(50))
        + "\r\n\r\nfür",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + "--b\r\n\r\nü\r\n" * 501 + "--b--\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n" + "--\r\n" * 1_000_000 + "ü\r\n--b--\r\n",
        HEAD + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + ("--b\r\nX: " + "ü" * 7_000 + "\r\n\r\n") * 400,
    ],
    ids=["nested", "very_nested", "deep", "parts", "lines", "headers"],
)
def test_a_message_over_a_bound_stays_as_it_is_and_costs_little(message: str) -> None:
    began = time.process_time()
    assert same(message)
    assert time.process_time() - began < 2


def test_ten_mebibytes_are_encoded_in_linear_time() -> None:
    for body in ("ü" * 400 + "\r\n", "für \r\n", "\r\n", "x" * 996 + "\r\n"):
        message = HEAD + "\r\n" + body * (10 * 1024 * 1024 // len(body.encode())) + "ü"
        began = time.process_time()
        done = seven_bit.encode(message.encode())
        assert time.process_time() - began < 5
        assert done.isascii()
        assert len(done) < 1.4 * 10 * 1024 * 1024


@pytest.mark.parametrize("content", mail_corpus.MAIL.values(), ids=mail_corpus.MAIL)
def test_real_mail_says_the_same_afterwards(content: bytes) -> None:
    done = seven_bit.encode(content)
    assert [_leaf(part) for part in parsed(done).walk()] == [_leaf(part) for part in parsed(content).walk()]


def _leaf(part: EmailMessage) -> tuple[str, object]:
    return part.get_content_type(), part.get_payload(decode=True)


@hypothesis.given(
    st.lists(
        st.sampled_from(
            [
                *(b"\r\n", b"--b", b"--", b"\xc3\xbc", b"\xff", b"Content-Type: ", b"multipart/mixed", b"; boundary=b"),
                *(b"message/rfc822", b"text/plain", b"Content-Transfer-Encoding: 8bit", b"x", b" "),
            ]
        ),
        max_size=30,
    ).map(b"".join)
)
def test_any_message_becomes_7_bit_or_stays_as_it_is(content: bytes) -> None:
    done = seven_bit.encode(content)
    assert done == content or done.partition(b"\r\n\r\n")[2].isascii()
    assert seven_bit.encode(done) == done


# A message with internationalised recipients for hosts without SMTPUTF8.


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
