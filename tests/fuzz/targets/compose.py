"""Sends by their fields, without a store: rules, then MIME. The fields stand between octets that no text has (0xff).

Holds: nothing but the errors of `errors.py` is raised; what was written the standard library reads as the same fields,
addresses, bodies and files, and no others; no line is longer than 998 octets, none has a bare CR or LF, and nobody
who gets a blind copy is named.
"""

import base64
import email.headerregistry
import email.message
import json
from collections.abc import Sequence
from typing import Final

from postroad import errors
from postroad.mail.accept import compose, transaction, validation
from postroad.model.mail import send_request, statuses
from postroad.protocol.mime import address
from tests.fuzz import target
from tests.protocol import stdlib_parser

SEPARATOR: Final = b"\xff"
FIELDS: Final = "from to cc bcc reply_to subject text html header value tag filename content content_type id".split()
LISTED: Final = "\x1f"


def check(data: bytes) -> None:
    texts = [piece.decode("utf-8", "replace") for piece in data.split(SEPARATOR)]
    given = dict(zip(FIELDS, texts, strict=False))
    try:
        checked = validation.check(_request(given))
        submission = compose.compose(checked, identity(statuses.Source.API, recipients=len(checked.recipients)))
    except errors.PostroadError as refusal:
        check_refusal(refusal)
        return
    check_message(submission.message.mime, checked)
    # What a caller is told is JSON, and says the same.
    reported = json.loads(submission.message.response)
    assert reported["from"] == checked.sender.written
    assert reported["recipient_count"] == len(checked.recipients) == len(submission.recipients)


def check_refusal(refusal: errors.PostroadError) -> None:
    """It is the caller's fault, and says so in a few words."""
    assert refusal.status in {400, 403, 413}
    assert target.is_sayable(refusal.message)


def identity(source: statuses.Source, *, recipients: int) -> compose.MessageIdentity:
    """Ids for a message that will never be stored."""
    return compose.MessageIdentity(
        message_id="em_" + "0" * 28,
        recipient_ids=tuple(f"rcp_{index:028x}" for index in range(recipients)),
        ledger_id="led_" + "0" * 28,
        account_id="acc_" + "0" * 28,
        credential_id="cred_" + "0" * 28,
        request_id="req_" + "0" * 28,
        source=source,
        key=transaction.Key("cred_" + "0" * 28, "key", b""),
        now=1_800_000_000_000_000,
    )


def check_message(written: bytes, checked: validation.CheckedSend) -> None:
    """The message as the standard library reads it has the fields of the send, and no others."""
    parsed = stdlib_parser.parse(written)
    # Blanks at its ends belong to the field, not to the text.
    assert parsed["Subject"] == (checked.subject or "").strip(" \t")
    fields = {"From": (checked.sender,), "To": checked.to, "Cc": checked.cc, "Reply-To": checked.reply_to}
    for name, mailboxes in fields.items():
        assert _addresses(parsed, name) == [mailbox.address for mailbox in mailboxes]
    assert "Bcc" not in parsed
    assert parsed.get_all(compose.TAG_HEADER, []) == [tag.strip(" \t") for tag in checked.tags]
    for name, value in checked.headers.items():
        assert parsed[name] is not None
        assert "".join(str(parsed[name]).split()) == "".join(value.split())
    bodies = [part for part in parsed.walk() if not part.is_multipart()]
    texts = [text for text in (checked.text, checked.html) if text is not None]
    assert len(bodies) == len(texts) + len(checked.attachments)
    # The order of the parts depends on which of them are inline.
    files = sorted(attachment.content for attachment in checked.attachments)
    found = [_octets(part) for part in bodies if part.get_content_disposition() is not None]
    assert sorted(found) == files
    shown = [_octets(part).decode() for part in bodies if part.get_content_disposition() is None]
    assert [_lines(text) for text in shown] == [_lines(text) for text in texts]


def _request(given: dict[str, str]) -> send_request.SendRequest:
    files: tuple[send_request.Attachment, ...] = ()
    if "filename" in given:
        content = base64.b64encode(given.get("content", "").encode()).decode()
        kind = given.get("content_type") or None
        files = (send_request.Attachment(given["filename"], content, kind, given.get("id") or None),)
    return send_request.SendRequest(
        sender=given.get("from", ""),
        to=_listed(given, "to"),
        cc=_listed(given, "cc"),
        bcc=_listed(given, "bcc"),
        reply_to=_listed(given, "reply_to") or None,
        subject=given.get("subject"),
        text=given.get("text") or None,
        html=given.get("html") or None,
        headers={given["header"]: given.get("value", "")} if given.get("header") else {},
        tags=_listed(given, "tag"),
        attachments=files,
    )


def _listed(given: dict[str, str], name: str) -> tuple[str, ...]:
    return tuple(given[name].split(LISTED)) if given.get(name) else ()


def _addresses(parsed: email.message.EmailMessage, name: str) -> list[str]:
    field = parsed[name]
    if field is None:
        return []
    assert isinstance(field, email.headerregistry.AddressHeader)
    return [_in_a_labels(found.addr_spec) for found in field.addresses]


def _in_a_labels(text: str) -> str:
    mailbox = address.parse(text)
    return mailbox.address


def _octets(part: email.message.Message) -> bytes:
    payload = part.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload


def _lines(text: str) -> Sequence[str]:
    """The lines of a body; its last one may get an end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")


def _seed(**fields: str) -> bytes:
    return SEPARATOR.join([fields.get(name, "").encode() for name in ["sender", *FIELDS[1:]]])


TARGET: Final = target.Target(
    name="compose",
    open=target.plain(check),
    watches=(
        "mail/accept/validation.py",
        "mail/accept/compose.py",
        "mail/accept/validation.py",
        "protocol/",
    ),
    seeds=(
        _seed(sender="shop@example.com", to="ada@example.net", subject="Hi", text="Hello\r\n.\r\nworld"),
        _seed(
            sender="Jürgen <jürgen@bücher.example>",
            to='Ada L <a@example.net>\x1f"B, C" <b@example.net>',
            cc="c@example.net",
            bcc="d@example.net\x1fa@example.net",
            reply_to="r@example.com\x1fS <s@example.com>",
            subject="Ä" * 200,
            text="x" * 1200,
            html="<p>é</p>\r\r\n",
            header="X-Test",
            value="some value " * 30,
            tag="one\x1ftwo",
            filename="Rechnung für März.pdf",
            content="%PDF\n",
            content_type="application/pdf",
            id="logo@x",
        ),
        _seed(
            sender="a@example.com",
            to="b@example.com",
            subject="=?utf-8?q?x?=",
            html="<img src=cid:i>",
            filename="i.png",
            content="\x89",
            id="i",
        ),
        _seed(sender="a@example.com", to="b@example.com", subject=" s\t", text="From here\n" + "é" * 400 + "\n=3D \n"),
    ),
    max_octets=4_000,
    steps=(30_000, 300),
)
