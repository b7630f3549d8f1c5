"""Accepts a finished MIME message, from SMTP: kept as it is, re-encoded to 7 bits, or rendered from its template."""

import binascii
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail.accept import compose, mime_validation, send_limits, submit, transaction, validation
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import times
from postroad.protocol.mime import builder, message_parser, seven_bit

# From a validated MIME message to everything that is stored.
#
# Pure: ids and time are arguments. The message is sent unchanged except for a few fields: a trace field is prepended
# (RFC 5321 section 4.4), a missing Message-ID or Date is added (RFC 6409 sections 8.2 and 8.3), and fields that are
# only for Postroad, that name blind copy recipients, or that only receiving hosts may write are removed. A Message-ID
# that is not unique beyond the client's host and a malformed Date are replaced and kept under another name. A body that
# is not 7-bit is encoded.

# The second line is written by receiving hosts. The third would show a sender that was not validated.
DROPPED: Final = frozenset(
    f"bcc idempotency-key {mime_validation.TEMPLATE} {mime_validation.VARIABLES} {mime_validation.UNSUBSCRIBE} "
    "return-path authentication-results delivered-to errors-to "
    "resent-from resent-sender resent-reply-to resent-to resent-cc resent-bcc resent-date resent-message-id".split()
)
# The names under which replaced fields are kept.
ORIGINALS: Final = {"message-id": "X-Original-Message-ID", "date": "X-Original-Date"}
# RFC 5322 section 3.6.4, with more characters, which are in use. The domain has a dot, or is an address.
_MESSAGE_ID: Final = re.compile(r"<[^\s<>@]+@(?:[^\s<>@.\[\]]+(?:\.[^\s<>@.\[\]]+)+|\[[^\s<>@\[\]]+\])>")
# RFC 5322 sections 3.3 and 4.3, with one comment at the end.
_DATE: Final = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)\s*,\s*)?(?:0?[1-9]|[12]\d|3[01])\s+"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\s+\d{2,4}\s+"
    r"(?:[01]?\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60))?\s+(?:[+-]\d{4}|[a-z]{1,5})(?:\s*\([^()]*\))?",
    re.ASCII | re.IGNORECASE,
)
MAX_KEPT_OCTETS: Final = 900


def compose_mime(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> transaction.Submission:
    return compose.build_submission(checked, identity, body=_kept_body(checked, identity))


def _kept_body(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> bytes:
    message, added, drop = checked.message, [("Received", checked.trace), *identity.unsubscribe], DROPPED
    if checked.metadata:
        drop |= {name for name in checked.fields if name.startswith(mime_validation.METADATA_PREFIX)}
    replaced: set[str] = set()
    if not _is_valid(checked, "message-id", _MESSAGE_ID):
        added.append(("Message-ID", f"<{identity.message_id}@{checked.sender.domain}>"))
        replaced.add("message-id")
    if not _is_valid(checked, "date", _DATE):
        added.append(("Date", builder.format_date(identity.sent_at // times.SECOND)))
        replaced.add("date")
    if replaced:
        fields = tuple([_renamed(field) if field.key in replaced else field for field in message.fields])
        message = msgspec.structs.replace(message, fields=fields)
        drop |= replaced
    try:
        body = message_parser.rewrite(message, drop=drop, add=added, allow_utf8=checked.is_utf8)
    except message_parser.MessageError as problem:
        raise errors.InvalidRequest(str(problem)) from None
    return body if message.body.isascii() else seven_bit.encode(body)


def _renamed(field: message_parser.Field) -> message_parser.Field:
    """A field under another name, if it has a value and leaves room for the name on its line."""
    if not field.value or len(field.raw) > MAX_KEPT_OCTETS:
        return field
    name = ORIGINALS[field.key]
    return message_parser.Field(name, name.lower(), name.encode() + field.raw[len(field.name) :])


def _is_valid(checked: mime_validation.CheckedMime, name: str, syntax: re.Pattern[str]) -> bool:
    # It occurs once at most.
    written = checked.fields.get(name)
    return written is not None and syntax.fullmatch(written[0].value) is not None


# A MIME message over SMTP that requests a template: its fields become those of a send request; its body is empty.
#
# Postroad composes such a message itself, as it does for `POST /emails` with a template. Date, Message-ID and MIME
# fields are dropped and created anew; From, To, Cc, Reply-To and custom fields are taken over under the rules of a send
# request. The envelope names the recipients.

# Written anew, or not for readers. Other reserved fields are refused by validation.py.
_LEFT_BEHIND: Final = frozenset(
    "from sender to cc bcc reply-to subject date message-id return-path received mime-version dkim-signature "
    "idempotency-key".split()
)
_LEFT_BEHIND_PREFIXES: Final = ("content-", "x-service-")


def check_template(raw: mime_validation.CheckedMime, template: mime_validation.Template) -> validation.CheckedSend:
    if not _is_blank(raw):
        raise errors.InvalidRequest(
            "X-Service-Template: cannot be combined with a body; leave the body of the message empty"
        )
    # These are written anew: what cannot be parsed would be lost.
    to, cc, reply_to = (
        mime_validation.listed(_only(raw.fields[name])) if name in raw.fields else ()
        for name in ("to", "cc", "reply-to")
    )
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
        list_name=raw.list_name,
    )


def _custom(fields: mime_validation.Fields) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, written in fields.items():
        if name in _LEFT_BEHIND or name.startswith(_LEFT_BEHIND_PREFIXES):
            continue
        field = _only(written)
        headers[field.name] = mime_validation.text_of(field)
    return headers


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
    (*_, field) = fields.get(name, (None,))
    return default if field is None else field.value.partition(";")[0].strip().lower()


# Addresses in other scripts and encoded words take up to fifty microseconds each: this many octets hold enough of them
# for some milliseconds.
INLINE_UTF8_HEADER_OCTETS: Final = 1024
# In ASCII, encoded words are slowest to decode: two milliseconds for this many octets.
INLINE_HEADER_OCTETS: Final = 16 * 1024
# Lines that begin like the delimiter of a multipart: each is looked at several times, and may begin a part.
INLINE_DELIMITER_LINES: Final = 64
# 8-bit content is encoded, a text fast, but the header of a part like that of a message.
INLINE_8BIT_OCTETS: Final = 8 * 1024


async def submit_mime(
    ctx: context.Context, who: callers.Caller, raw: statuses.RawMessage, *, request_id: str
) -> transaction.Accepted:
    """Accept a MIME message. When this returns, it is on disk.

    Raises a PostroadError if nothing was stored.
    """
    scope = submit.sending_identity(who)
    slow = _is_slow(raw.content)
    try:
        work = functools.partial(_check, raw, credential_id=scope)
        checked, send, key = await ctx.threads.run(who.account_id, work) if slow else work()
        info = submit.SubmissionInfo(request_id=request_id, source=statuses.Source.SMTP, key=key)
        make: submit.Make = functools.partial(compose_mime, checked)
        if slow or send is not None or checked.envelope_domain not in (None, checked.sender.domain):
            make = functools.partial(_compose, ctx, checked, send, is_slow=slow)
        return await submit.accept(ctx, who, checked, info, make)
    except errors.PostroadError as refusal:
        submit.note_refusal(ctx, who, statuses.Source.SMTP, refusal)
        raise


def _is_slow(content: bytes) -> bool:
    """Whether the message is processed in a thread: it is large, or may need much decoding, encoding or parsing."""
    if len(content) > submit.INLINE_CHARACTERS:
        return True
    if content.count(b"\n--") > INLINE_DELIMITER_LINES:
        return True
    if len(content) > INLINE_8BIT_OCTETS and not content.isascii():
        return True
    head = content[: content.find(b"\r\n\r\n")]
    if len(head) <= INLINE_UTF8_HEADER_OCTETS:
        return False
    return len(head) > INLINE_HEADER_OCTETS or not head.isascii() or b"xn--" in head.lower()


def _check(
    raw: statuses.RawMessage, *, credential_id: str
) -> tuple[mime_validation.CheckedMime, validation.CheckedSend | None, transaction.Key | None]:
    checked = mime_validation.check(raw)
    send = None if checked.template is None else check_template(checked, checked.template)
    key = None if checked.key is None else transaction.Key(credential_id, checked.key, _body_hash(checked))
    return checked, send, key


async def _compose(
    ctx: context.Context,
    checked: mime_validation.CheckedMime,
    send: validation.CheckedSend | None,
    identity: compose.MessageIdentity,
    *,
    is_slow: bool,
) -> transaction.Submission:
    await _check_envelope_domain(ctx, checked, identity.account_id)
    if send is not None:
        return await submit.compose_fields(ctx, send, identity, is_large=is_slow)
    if is_slow:
        return await ctx.threads.run(identity.account_id, functools.partial(compose_mime, checked, identity))
    return compose_mime(checked, identity)


async def _check_envelope_domain(ctx: context.Context, checked: mime_validation.CheckedMime, account_id: str) -> None:
    domain = checked.envelope_domain
    if domain is None or domain == checked.sender.domain:
        return
    try:
        await send_limits.sending_domain(ctx, account_id, domain)
    except errors.Forbidden:
        raise errors.Forbidden(
            f"MAIL FROM: this account cannot send from {domain}; set the envelope sender to an address at "
            f"{checked.sender.domain}"
        ) from None


def _body_hash(checked: mime_validation.CheckedMime) -> bytes:
    recipients = sorted(mailbox.key for mailbox in checked.recipients)
    return hashlib.sha256(message_parser.fingerprint(checked.message) + "\n".join(recipients).encode()).digest()
