"""From a finished message to what is stored. The standard library's parser checks the bytes; the receipt is read."""

from typing import Any

import msgspec
import pytest

from postroad import errors
from postroad.mail.accept import compose, mime_validation, submit_mime, transaction
from postroad.model.mail import statuses
from tests.services.mime_messages import FROM, SUBJECT, TO, TRACE, parsed, plain, raw

NOW = 1_800_000_000_000_000
DATE = "Fri, 15 Jan 2027 08:00:00 +0000"


def composed(message: statuses.RawMessage) -> transaction.Submission:
    checked = mime_validation.check(message)
    identity = compose.MessageIdentity(
        message_id="em_1",
        recipient_ids=tuple(f"rcp_{number}" for number in range(len(checked.recipients))),
        ledger_id="led_1",
        account_id="acc_1",
        credential_id="cred_1",
        request_id="req_1",
        source=statuses.Source.SMTP,
        key=None,
        now=NOW,
        warmup_domain="dom_1",
    )
    return submit_mime.compose_mime(checked, identity)


def sent(message: statuses.RawMessage) -> bytes:
    return composed(message).message.mime


def receipt(message: statuses.RawMessage) -> dict[str, Any]:
    reported: dict[str, Any] = msgspec.json.decode(composed(message).message.response)
    return reported


def test_the_message_goes_on_byte_for_byte_behind_what_is_added() -> None:
    message = plain(f"Date: {DATE}", "Message-ID: <1@client.example>", body=".\r\n..\r\nline \r\n\r\n\r\n")
    trace = sent(message).removesuffix(message.content)
    assert trace.replace(b"\r\n ", b" ") == f"Received: {TRACE}\r\n".encode()


def test_message_id_and_date_are_added_when_they_are_missing() -> None:
    message = parsed(sent(plain()))
    assert message["Message-ID"] == "<em_1@example.com>"
    assert message["Date"] == DATE
    assert next(iter(message)) == "Received"


@pytest.mark.parametrize("fields", [("message-id:", "DATE:"), ("Message-ID: \t", "Date:  ")])
def test_an_empty_message_id_or_date_is_a_missing_one(fields: tuple[str, ...]) -> None:
    message = parsed(sent(plain(*fields)))
    assert message.get_all("Message-ID") == ["<em_1@example.com>"]
    assert message.get_all("Date") == [DATE]


@pytest.mark.parametrize(
    "field",
    [
        "Date: Fri, 15 Jan 2027 08:00:03 +0000",
        "Date: 5 Jan 27 8:00 GMT",
        "date: fri, 15 JAN 2027\r\n 08:00:60 -0930 (CET)",
        "Message-ID: <1@client.example>",
        "message-id:\r\n <1$x=y/z..@mail.client.example>",
        "Message-ID: <1@[192.0.2.1]>",
    ],
)
def test_a_date_and_a_global_message_id_are_left_alone(field: str) -> None:
    name = field.partition(":")[0]
    body = sent(plain(field))
    assert f"\r\n{field}\r\n".encode() in body
    assert body.lower().count(f"\r\n{name}:".lower().encode()) == 1
    assert b"X-Original-" not in body


@pytest.mark.parametrize(
    "value",
    [" yesterday", " 2027-01-15T08:00:03Z", " Fri, 15 Jan 2027 08:00:03", " Fri, 32 Jan 2027 08:00:03 +0000", "\r\n 0"],
)
def test_a_malformed_date_is_replaced_and_kept(value: str) -> None:
    body = sent(plain(f"Date:{value}"))
    assert body.count(f"\r\nDate: {DATE}\r\n".encode()) == 1
    assert body.count(f"\r\nX-Original-Date:{value}\r\n".encode()) == 1
    assert body.lower().count(b"date:") == 2


@pytest.mark.parametrize(
    "value",
    [
        " <1@localhost>",
        " <1@LOCALHOST>",
        " <1@web1>",
        " <1@web1.>",
        " <@client.example>",
        " <1@a@client.example>",
        " <1 2@client.example>",
        " 1@client.example",
        " none",
        "\r\n <1@web1> (folded)",
        " =?utf-8?q?=3C1=40x=2Ey=3E?=",
    ],
)
def test_a_message_id_that_is_local_or_malformed_is_replaced_and_kept(value: str) -> None:
    body = sent(plain(f"Message-Id:{value}"))
    assert body.count(b"\r\nMessage-ID: <em_1@example.com>\r\n") == 1
    assert body.count(f"\r\nX-Original-Message-ID:{value}\r\n".encode()) == 1
    assert body.lower().count(b"message-id:") == 2


def test_a_message_id_that_leaves_no_room_for_another_name_is_not_kept() -> None:
    for octets, is_kept in ((850, True), (900, False)):
        body = sent(plain(f"Message-ID: <{'x' * octets}@web1>"))
        assert (b"X-Original-Message-ID: " in body) is is_kept
        assert max(map(len, body.split(b"\r\n"))) <= 998
        assert body.count(b"\r\nMessage-ID: <em_1@example.com>\r\n") == 1


def test_what_names_blind_copies_or_is_for_us_alone_is_taken_out() -> None:
    dropped = (
        "Bcc: eve@example.org,\r\n zoe@example.org",
        "bcc: more@example.org",
        "Resent-Bcc: eve@example.org",
        "Return-Path: <eve@example.org>",
        "Authentication-Results: mx.example.net; dkim=pass header.d=eve.example",
        "Delivered-To: eve@example.org",
        "Errors-To: eve@example.org",
        "Resent-From: eve@example.org",
        "Resent-Sender: eve@example.org",
        "Resent-Reply-To: eve@example.org",
        "Resent-To: eve@example.org",
        "Resent-Cc: eve@example.org",
        "Resent-Date: today, eve",
        "Resent-Message-ID: <eve@example.org>",
        "Idempotency-Key: order-1",
    )
    body = sent(plain(*dropped, "X-Keep: this"))
    assert sorted(set(parsed(body))) == ["Date", "From", "Message-ID", "Received", "Subject", "To", "X-Keep"]
    for secret in (b"eve", b"zoe", b"more", b"order-1"):
        assert secret not in body


def test_an_8_bit_body_is_encoded_and_described() -> None:
    body = sent(plain(body="Grüße, plain and simple\r\n"))
    assert body.endswith(
        b"\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe, plain and simple\r\n"
    )
    typed = ("MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit")
    assert parsed(sent(plain(*typed, body="Привет\r\n"))).get_content() == "Привет\r\n"


def test_tags_stay_in_the_message() -> None:
    submission = composed(plain("X-Service-Tag: welcome", "X-Service-Tag: büro", "X-Service-Tag: welcome"))
    assert submission.message.tags == ("welcome", "büro")
    assert parsed(submission.message.mime).get_all("X-Service-Tag") == ["welcome", "büro", "welcome"]


def test_a_header_in_other_scripts_is_written_in_ascii() -> None:
    body = sent(raw("From: Büro <shop@example.com>", "To: Jürgen <ada@example.org>", "Subject: Grüße", body="süß\r\n"))
    assert body.isascii()
    assert parsed(body)["Subject"] == "Grüße"
    assert parsed(body)["From"] == "Büro <shop@example.com>"


UNENCODABLE = "Message-ID: <ü@example.com>"


def test_a_field_that_no_host_without_smtputf8_could_take_is_refused_by_its_name() -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^Message-ID: is not ASCII where it cannot be encoded") as refused:
        composed(plain(UNENCODABLE))
    assert refused.value.smtp_reply == "550 5.6.0"


@pytest.mark.parametrize(
    "message",
    [
        msgspec.structs.replace(plain(UNENCODABLE), is_utf8=True),
        plain(UNENCODABLE, to=("ü@example.org",)),
        plain(UNENCODABLE, "Cc: ü@example.org"),
        plain(UNENCODABLE, "Reply-To: Bo <ü@example.org>"),
        raw("From: ü@example.com", UNENCODABLE),
    ],
    ids=["announced", "recipient", "cc", "reply-to", "from"],
)
def test_a_message_for_hosts_with_smtputf8_keeps_its_utf_8(message: statuses.RawMessage) -> None:
    assert f"\r\n{UNENCODABLE}\r\n".encode() in sent(message)


@pytest.mark.parametrize("field", ["From: (ceo@bank.example) shop@example.com", "From: shop@example.com,"])
def test_readers_see_the_sender_that_was_checked_and_no_other(field: str) -> None:
    body = sent(raw(field, "Sender: Shop (ceo@bank.example) <shop@example.com>", SUBJECT))
    assert parsed(body).get_all("From") == ["shop@example.com"]
    assert parsed(body).get_all("Sender") == ["Shop <shop@example.com>"]
    assert b"bank" not in body


def test_an_encoded_line_break_makes_no_line() -> None:
    body = sent(raw(FROM, TO, "Subject: ü =?utf-8?q?=0D=0ABcc:_eve=40example.net?="))
    assert b"\r\nBcc" not in body
    assert "Bcc" not in parsed(body)


def test_the_rows_are_those_of_the_envelope() -> None:
    submission = composed(plain(to=("Eve@Bücher.example", "ada@example.org")))
    assert [(row.id, row.email, row.email_key, row.domain) for row in submission.recipients] == [
        ("rcp_0", "Eve@Bücher.example", "eve@xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("rcp_1", "ada@example.org", "ada@example.org", "example.org"),
    ]
    message = submission.message
    assert (message.source, message.sender, message.sender_key) == (
        "smtp",
        "Shop <shop@example.com>",
        "shop@example.com",
    )
    assert (message.subject, message.recipient_count, message.size) == ("Hello", 2, len(message.mime))
    assert (message.request_id, message.created_at) == ("req_1", NOW)
    assert (submission.ledger_id, submission.key, submission.warmup_domain) == ("led_1", None, "dom_1")


def test_the_receipt_has_what_the_fields_show_and_who_is_hidden() -> None:
    reported = receipt(
        raw(
            FROM,
            'To: "Ada, C." <ada@example.org>, bob@example.org',
            "Cc: =?utf-8?q?J=C3=BCrgen?= <j@example.org>",
            "Reply-To: help@example.com, Shop <shop@example.com>",
            "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
            "X-Service-Tag: welcome",
            to=("ada@example.org", "eve@example.org"),
        )
    )
    assert reported == {
        "id": "em_1",
        "status": "queued",
        "source": "smtp",
        "request_id": "req_1",
        "from": "Shop <shop@example.com>",
        "to": reported["to"],
        "cc": ["Jürgen <j@example.org>"],
        "bcc": ["eve@example.org"],
        "reply_to": ["help@example.com", "Shop <shop@example.com>"],
        "subject": "Grüße",
        "billing_status": "reserved",
        "recipient_count": 2,
        "credits_reserved": 2,
        "headers": {},
        "tags": ["welcome"],
        "attachments": [],
    }
    assert [text.rpartition("<")[2].rstrip(">") for text in reported["to"]] == ["ada@example.org", "bob@example.org"]


def test_a_message_without_subject_or_to_is_accepted() -> None:
    reported = receipt(raw(FROM))
    assert (reported["subject"], reported["to"], reported["bcc"]) == ("", [], ["ada@example.org"])
    assert "reply_to" not in reported


def test_what_is_added_does_not_count_as_size() -> None:
    """The listener refuses what is larger than 10 MiB when it arrives."""
    largest = raw(FROM, SUBJECT, body=("x" * 62 + "\r\n") * (10 * 1024 * 1024 // 64 - 8))
    largest = msgspec.structs.replace(largest, content=largest.content.ljust(10_485_760, b"x"))
    assert composed(largest).message.size > 10_485_760
