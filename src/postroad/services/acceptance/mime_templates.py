"""A MIME message over SMTP that requests a template: its fields become those of a send request; its body is empty.

Postroad composes such a message itself, as it does for `POST /emails` with a template. Date, Message-ID and MIME fields
are dropped and created anew; From, To, Cc, Reply-To and custom fields are taken over under the rules of a send request.
The envelope names the recipients.
"""

import binascii
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import errors
from postroad.model import send_request
from postroad.protocol import address
from postroad.protocol.mime import message_parser
from postroad.services.acceptance import mime_validation, validation

# Written anew, or not for readers. Other reserved fields are refused by validation.py.
_LEFT_BEHIND: Final = frozenset(
    "from sender to cc bcc reply-to subject date message-id return-path received mime-version dkim-signature "
    "idempotency-key".split()
)
_LEFT_BEHIND_PREFIXES: Final = ("content-", "x-service-")


def check(raw: mime_validation.CheckedMime, template: mime_validation.Template) -> validation.CheckedSend:
    """The message as a send request with that template. Raises InvalidRequest."""
    if not _is_blank(raw):
        raise errors.InvalidRequest(
            "X-Service-Template: cannot be combined with a body; leave the body of the message empty"
        )
    to, cc, reply_to = (_addresses(raw.fields, name) for name in ("to", "cc", "reply-to"))
    validation.check_reply_to_count("Reply-To", len(reply_to))
    checked = validation.check(
        send_request.SendRequest(
            sender=raw.sender.address,
            to=tuple(mailbox.address for mailbox in raw.recipients),
            subject=raw.subject or None,
            template=template.alias,
            variables=template.variables,
            headers=_custom(raw.fields),
            tags=raw.tags,
            metadata=raw.metadata,
        )
    )
    return msgspec.structs.replace(
        checked,
        sender=raw.sender,
        to=to,
        cc=cc,
        bcc=raw.bcc,
        reply_to=reply_to,
        recipients=raw.recipients,
        send_at=raw.send_at,
        expires_in=raw.expires_in,
    )


def _custom(fields: mime_validation.Fields) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, written in fields.items():
        if name in _LEFT_BEHIND or name.startswith(_LEFT_BEHIND_PREFIXES):
            continue
        field = _only(written)
        headers[field.name] = mime_validation.text_of(field)
    return headers


def _addresses(fields: mime_validation.Fields, name: str) -> tuple[address.Mailbox, ...]:
    """The addresses of a field that Postroad writes anew: what cannot be parsed would be lost."""
    return mime_validation.listed(_only(fields[name])) if name in fields else ()


def _only(written: Sequence[message_parser.Field]) -> message_parser.Field:
    if len(written) > 1:
        raise errors.InvalidRequest(
            f"{written[0].name}: the field occurs {len(written)} times; with a template it may occur once"
        )
    return written[0]


def _is_blank(raw: mime_validation.CheckedMime) -> bool:
    """Whether the body is empty: white space only, possibly encoded as one text part."""
    body = raw.message.body
    if not body.strip():
        return True
    if not _word(raw.fields, "content-type", default="text/plain").startswith("text/"):
        return False
    encoding = _word(raw.fields, "content-transfer-encoding", default="7bit")
    try:
        if encoding == "base64":
            body = binascii.a2b_base64(b"".join(body.split()), strict_mode=True)
        elif encoding == "quoted-printable":
            body = binascii.a2b_qp(body)
    except binascii.Error:
        return False
    return not body.strip()


def _word(fields: mime_validation.Fields, name: str, *, default: str) -> str:
    """The first word of a MIME field, in lower case."""
    (*_, field) = fields.get(name, (None,))
    return default if field is None else field.value.partition(";")[0].strip().lower()
