"""Finished messages, without a store: the rules of what comes over SMTP, and what goes on.

Holds: nothing but the errors of `errors.py` is raised; the standard library sees one From, and in it the sender that
was judged; what goes on can be read again, has no bare CR or LF and none of the fields that are dropped; the same
message has the same fingerprint.
"""

import email.headerregistry
from typing import Final

from postroad import errors
from postroad.model import mail
from postroad.protocol import address, message_reading
from postroad.services import raw_compose, raw_rules, raw_templates
from tests.fuzz import target
from tests.fuzz.targets import composing
from tests.protocol import mail_corpus
from tests.services import raw_mails

RECIPIENTS: Final = ("ada@example.org", "bo@example.net")


def check(data: bytes) -> None:
    for is_utf8 in (False, True):
        raw = mail.RawMessage("shop@example.com", RECIPIENTS, data, raw_mails.TRACE, is_utf8=is_utf8)
        try:
            checked = raw_rules.check(raw)
            if checked.template is not None:
                raw_templates.check(checked, checked.template)
                continue
            submission = raw_compose.compose_raw(
                checked, composing.identity(mail.Source.SMTP, recipients=len(checked.recipients))
            )
        except errors.PostroadError as refusal:
            composing.judge_refusal(refusal)
            continue
        _judge(submission.message.mime, checked)
        assert message_reading.fingerprint(checked.message) == message_reading.fingerprint(message_reading.read(data))


def _judge(written: bytes, checked: raw_rules.CheckedRaw) -> None:
    again = message_reading.read(written)
    assert not target.has_bare_line_ends(written)
    assert not {field.key for field in again.fields} & raw_compose.DROPPED
    for name in ("from", "received", "message-id", "date"):
        assert again.all(name), f"{name} is missing"
    parsed = raw_mails.parsed(written)
    assert len(parsed.get_all("From", [])) == 1
    if written.isascii():
        field = parsed["From"]
        assert isinstance(field, email.headerregistry.AddressHeader)
        assert [address.key_of(found.addr_spec) for found in field.addresses] == [checked.sender.key]


TARGET: Final = target.Target(
    name="message",
    open=target.plain(check),
    watches=("services/raw_", "services/rules.py", "protocol/"),
    seeds=(
        *mail_corpus.MAIL.values(),
        raw_mails.plain().content,
        raw_mails.plain(
            "X-Service-Tag: a", "Idempotency-Key: k", "Bcc: b@example.org", "Sender: shop@example.com"
        ).content,
        raw_mails.plain("X-Service-Template: welcome", 'X-Service-Variables: {"name": "Ada"}').content,
        "From: Jürgen <jürgen@example.com>\r\nSubject: Grüße\r\n\r\nHallo\r\n".encode(),
        b"From: =?utf-8?q?a=40b=2Ecd?= <shop@example.com>\r\n\r\n",
        b"From: shop@example.com\r\nFrom: other@example.org\r\n\r\n",
        b"From: a@example.com, b@example.com\r\n\r\n",
        b"From: shop@example.com (comment)\r\nMessage-ID: <a@b>\r\nDate:\r\n\r\n",
    ),
    most_octets=3_000,
    steps=(60_000, 600),
)
