"""A message over SMTP that asks for a template: what goes over, what is left behind, what is refused."""

import base64

import msgspec
import pytest

from postroad import errors
from postroad.mail.accept import mime_validation, submit_mime, validation
from postroad.model.mail import statuses
from tests.services.mime_messages import FROM, SUBJECT, TO, raw

TEMPLATE = "X-Service-Template: welcome"


def check(message: statuses.RawMessage) -> validation.CheckedSend:
    checked = mime_validation.check(message)
    assert checked.template is not None
    return submit_mime.check_template(checked, checked.template)


def asking(
    *fields: str, body: str = "", to: tuple[str, ...] = ("ada@example.org",), subject: str = SUBJECT
) -> statuses.RawMessage:
    return raw(FROM, TO, subject, TEMPLATE, *fields, body=body, to=to)


def refusal(message: statuses.RawMessage) -> str:
    with pytest.raises(errors.InvalidRequest) as refused:
        check(message)
    return refused.value.message


def test_the_fields_become_those_of_a_send() -> None:
    send = check(
        asking(
            'X-Service-Variables: {"name": "Ada"}',
            "Cc: =?utf-8?q?J=C3=BCrgen?= <cc@example.org>",
            "Bcc: bcc@example.org",
            "Reply-To: Help <help@example.com>, sales@example.com",
            "X-Service-Tag: first",
            "X-Service-Tag: second",
            to=("ada@example.org", "eve@example.org"),
        )
    )
    assert (send.sender.display_name, send.sender.address) == ("Shop", "shop@example.com")
    assert [(mailbox.display_name, mailbox.address) for mailbox in (*send.to, *send.cc)] == [
        ("Ada", "ada@example.org"),
        ("Jürgen", "cc@example.org"),
    ]
    assert [mailbox.address for mailbox in send.bcc] == ["eve@example.org"]
    assert [mailbox.address for mailbox in send.recipients] == ["ada@example.org", "eve@example.org"]
    assert [mailbox.display_name for mailbox in send.reply_to] == ["Help", None]
    assert (send.template, send.variables, send.tags) == ("welcome", {"name": "Ada"}, ("first", "second"))
    assert (send.subject, send.text, send.html, send.attachments) == ("Hello", None, None, ())


def test_custom_fields_are_kept_and_those_of_the_format_left_behind() -> None:
    send = check(
        asking(
            "Date: Fri, 15 Jan 2027 08:00:00 +0000",
            "Message-ID: <1@client.example>",
            "MIME-Version: 1.0",
            "Content-Type: text/plain; charset=utf-8",
            "Content-Transfer-Encoding: 7bit",
            "Content-Language: en",
            "Received: from a by b; Fri, 15 Jan 2027 08:00:00 +0000",
            "Received: from c by a; Fri, 15 Jan 2027 08:00:00 +0000",
            "DKIM-Signature: v=1; b=x",
            "Return-Path: <eve@example.org>",
            "Sender: shop@example.com",
            "Idempotency-Key: order-1",
            "In-Reply-To: <0@client.example>",
            "References: <0@client.example>\r\n <1@client.example>",
            "List-Unsubscribe: <https://example.com/u>",
            "X-Campaign: =?utf-8?q?Fr=C3=BChling?=",
        )
    )
    assert send.headers == {
        "In-Reply-To": "<0@client.example>",
        "References": "<0@client.example> <1@client.example>",
        "List-Unsubscribe": "<https://example.com/u>",
        "X-Campaign": "Frühling",
    }


def test_the_times_of_the_envelope_go_over() -> None:
    send = check(msgspec.structs.replace(asking(), send_at=7_000_000, expires_in=300))
    assert (send.send_at, send.expires_in) == (7_000_000, 300)


def test_without_a_subject_the_template_gives_it() -> None:
    assert check(asking(subject="Subject: ")).subject is None
    assert check(raw(FROM, TEMPLATE, body="")).subject is None


def test_to_is_not_needed() -> None:
    send = check(raw(FROM, TEMPLATE, body=""))
    assert (send.to, [mailbox.address for mailbox in send.bcc]) == ((), ["ada@example.org"])


BASE64 = "Content-Transfer-Encoding: base64"
QUOTED = "Content-Transfer-Encoding: Quoted-Printable"


@pytest.mark.parametrize(
    "fields, body",
    [
        ((), ""),
        ((), " \t\r\n\r\n"),
        (("Content-Type: multipart/mixed; boundary=x",), "\r\n"),
        (("Content-Type: text/html; charset=utf-8",), " \r\n"),
        ((BASE64,), base64.b64encode(b"\r\n \r\n").decode() + "\r\n"),
        ((BASE64, "Content-Type: Text/Plain"), "DQo=\r\n"),
        ((QUOTED,), "=20\r\n=\r\n=0D=0A\r\n"),
    ],
)
def test_a_body_that_says_nothing_is_no_body(fields: tuple[str, ...], body: str) -> None:
    assert check(asking(*fields, body=body)).text is None


@pytest.mark.parametrize(
    "fields, body",
    [
        ((), "Hi\r\n"),
        (("Content-Type: multipart/mixed; boundary=x",), "--x\r\n\r\n\r\n--x--\r\n"),
        (("Content-Type: image/png", BASE64), "DQo=\r\n"),
        ((BASE64,), base64.b64encode(b"Hi").decode()),
        ((BASE64,), "QUI"),
        ((BASE64,), "!!!!"),
        ((QUOTED,), "=48i\r\n"),
    ],
)
def test_a_template_with_a_body_is_refused(fields: tuple[str, ...], body: str) -> None:
    assert "leave the body of the message empty" in refusal(asking(*fields, body=body))


@pytest.mark.parametrize(
    "fields, start",
    [
        ((f"Reply-To: {', '.join(['a@example.com'] * 11)}",), "Reply-To: 11 addresses; at most 10 are allowed"),
        (("Reply-To: nobody",), "Reply-To: "),
        (("Cc: somewhere",), "Cc: "),
        (("To: bob@example.org",), "To: the field occurs 2 times"),
        (("X-Foo: 1", "x-foo: 2"), "X-Foo: the field occurs 2 times"),
        (("Delivered-To: a@example.com",), "headers['Delivered-To']: this name is reserved"),
        (("Resent-Bcc: a@example.com",), "headers['Resent-Bcc']: this name is reserved"),
        (("X-Foo: =?utf-8?q?a=0D=0ABcc:_v?=",), "headers['X-Foo']: line breaks are not allowed"),
        (tuple(f"X-Foo-{number}: x" for number in range(51)), "headers: 51 custom headers; at most 50 are allowed"),
        (("X-Service-Variables: {" + ", ".join(f'"a{n}": 1' for n in range(33)) + "}",), "variables: 33 values"),
    ],
)
def test_what_could_not_go_over_is_refused_by_its_name(fields: tuple[str, ...], start: str) -> None:
    assert refusal(asking(*fields)).startswith(start)
