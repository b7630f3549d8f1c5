"""Finished messages, without a store: the rules of what comes over SMTP, and what goes on.

Holds: nothing but the errors of `errors.py` is raised; the standard library sees one From, and in it the sender that
was checked; what goes on can be read again, has no bare CR or LF and none of the fields that are dropped; the same
message has the same fingerprint.
"""

import email.headerregistry
from typing import Final

from postroad import errors
from postroad.mail.accept import mime_validation, submit_mime
from postroad.model.mail import statuses
from postroad.protocol.mime import address, message_parser
from tests.fuzz import target
from tests.fuzz.targets import compose
from tests.protocol.mime import mail_corpus
from tests.services import mime_messages

RECIPIENTS: Final = ("ada@example.org", "bo@example.net")


def check(data: bytes) -> None:
    for is_utf8 in (False, True):
        raw = statuses.RawMessage("shop@example.com", RECIPIENTS, data, mime_messages.TRACE, is_utf8=is_utf8)
        try:
            checked = mime_validation.check(raw)
            if checked.template is not None:
                submit_mime.check_template(checked, checked.template)
                continue
            submission = submit_mime.compose_mime(
                checked, compose.identity(statuses.Source.SMTP, recipients=len(checked.recipients))
            )
        except errors.PostroadError as refusal:
            compose.check_refusal(refusal)
            continue
        _check_result(submission.message.mime, checked)
        assert message_parser.fingerprint(checked.message) == message_parser.fingerprint(message_parser.read(data))


def _check_result(written: bytes, checked: mime_validation.CheckedMime) -> None:
    again = message_parser.read(written)
    assert not target.has_bare_line_ends(written)
    assert not {field.key for field in again.fields} & submit_mime.DROPPED
    assert again.body.isascii() or again.body == checked.message.body
    for name in ("from", "received", "message-id", "date"):
        assert again.all(name), f"{name} is missing"
    parsed = mime_messages.parsed(written)
    assert len(parsed.get_all("From", [])) == 1
    if written.isascii():
        field = parsed["From"]
        assert isinstance(field, email.headerregistry.AddressHeader)
        assert [address.key_of(found.addr_spec) for found in field.addresses] == [checked.sender.key]


TARGET: Final = target.Target(
    name="message",
    open=target.plain(check),
    watches=("mail/accept/submit_mime.py", "mail/accept/mime_validation.py", "mail/accept/validation.py", "protocol/"),
    seeds=(
        *mail_corpus.MAIL.values(),
        mime_messages.plain().content,
        mime_messages.plain(
            "X-Service-Tag: a", "Idempotency-Key: k", "Bcc: b@example.org", "Sender: shop@example.com"
        ).content,
        mime_messages.plain("X-Service-Template: welcome", 'X-Service-Variables: {"name": "Ada"}').content,
        "From: Jürgen <jürgen@example.com>\r\nSubject: Grüße\r\n\r\nHallo\r\n".encode(),
        b"From: =?utf-8?q?a=40b=2Ecd?= <shop@example.com>\r\n\r\n",
        b"From: shop@example.com\r\nFrom: other@example.org\r\n\r\n",
        b"From: a@example.com, b@example.com\r\n\r\n",
        b"From: shop@example.com (comment)\r\nMessage-ID: <a@b>\r\nDate:\r\n\r\n",
    ),
    max_octets=3_000,
    steps=(60_000, 600),
)
