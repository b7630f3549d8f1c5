"""Validation of a MIME message received over SMTP (docs/smtp.md).

`check` turns a message and its envelope into trusted values, or raises an error that names the field and what to do.
Only the envelope decides who gets the message: To and Cc are shown as written and decide nothing. From identifies the
sender, so there is exactly one From with one address, and a Sender must be the same (RFC 5322 section 3.6.2). Rules
that depend on the account (domain, template, credits) are checked later, in submit.py.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import errors
from postroad.mail.accept import validation
from postroad.model.mail import limits, statuses
from postroad.protocol.mime import address, address_lists, header_fields, message_parser
from postroad.protocol.text import strict_json

# RFC 5321 section 6.3: no legitimate route has this many hops.
MAX_RECEIVED: Final = 100
TAG: Final = "x-service-tag"
TEMPLATE: Final = "x-service-template"
VARIABLES: Final = "x-service-variables"
UNSUBSCRIBE: Final = "x-service-unsubscribe"
METADATA_PREFIX: Final = "x-service-metadata-"
# Mail readers that find two of these choose differently (RFC 5322 section 3.6, RFC 2045 section 3).
ONCE: Final = tuple(
    "to cc reply-to message-id date subject mime-version content-type content-transfer-encoding".split()
)
# The fields that can name a file.
_NAMING: Final = ("content-type", "content-disposition")
_OURS: Final = "x-service-"
_KNOWN: Final = (TAG, TEMPLATE, VARIABLES, UNSUBSCRIBE)
# A subject may contain them in encoded words; they must reach neither the database nor a reader.
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

Fields = Mapping[str, Sequence[message_parser.Field]]


class Template(msgspec.Struct, frozen=True):
    alias: str
    variables: Mapping[str, statuses.TemplateValue]


class CheckedMime(validation.CheckedMessage, frozen=True, kw_only=True):
    """A validated MIME message. `recipients` has each envelope address once; no field shows those in `bcc`.

    `envelope_domain` is the domain of the envelope sender, None for the null sender. `to`, `cc` and `reply_to` are the
    fields as far as they can be parsed. `fields` are by lower-case name. `is_utf8`: only hosts with SMTPUTF8 may be
    able to accept the message.
    """

    message: message_parser.Message
    fields: Fields
    trace: str
    envelope_domain: str | None
    key: str | None
    template: Template | None
    is_utf8: bool

    @property
    def size(self) -> int:
        return len(self.message.body)


def check(raw: statuses.RawMessage) -> CheckedMime:
    """The message as trusted values; raises for the first rule that it breaks."""
    recipients = _recipients(raw.recipients)
    envelope_domain = validation.parse_mailbox("MAIL FROM", raw.sender).domain if raw.sender else None
    try:
        message = message_parser.read(raw.content, has_only_crlf=raw.has_only_crlf)
    except message_parser.MessageError as problem:
        raise errors.InvalidRequest(f"message: {problem}") from None
    fields = _by_name(message)
    _refuse_loop(fields)
    has_ours = _has_ours(fields)
    _refuse_repeated(fields)
    _check_custom(message, fields)
    if _may_exceed_file_limits(raw.content, message, fields):
        validation.check_attachment_parts(raw.content)
    sender = _sender(fields)
    to, cc, reply_to = _shown(fields, "to"), _shown(fields, "cc"), _shown(fields, "reply-to")
    shown = {mailbox.key for mailbox in (*to, *cc)}
    return CheckedMime(
        message=message,
        fields=fields,
        trace=raw.trace,
        sender=sender,
        envelope_domain=envelope_domain,
        recipients=recipients,
        to=to,
        cc=cc,
        bcc=tuple([mailbox for mailbox in recipients if mailbox.key not in shown]),
        reply_to=reply_to,
        subject=_subject(fields),
        tags=validation.check_tags("X-Service-Tag", tuple(map(text_of, fields.get(TAG, ())))) if has_ours else (),
        metadata=_metadata(fields) if has_ours else {},
        key=_key(fields),
        template=_template(fields) if has_ours else None,
        list_name=_list_name(fields, recipients) if has_ours else "",
        send_at=raw.send_at,
        expires_in=raw.expires_in,
        is_utf8=raw.is_utf8
        or not "".join([mailbox.local for mailbox in (sender, *recipients, *to, *cc, *reply_to)]).isascii(),
    )


def text_of(field: message_parser.Field) -> str:
    """The text of a field with its encoded words decoded: mail libraries encode any value that they find too long."""
    return header_fields.decode_words(field.value).strip(" \t")


def _by_name(message: message_parser.Message) -> Fields:
    fields: dict[str, list[message_parser.Field]] = {}
    for field in message.fields:
        fields.setdefault(field.key, []).append(field)
    return fields


def _recipients(texts: tuple[str, ...]) -> tuple[address.Mailbox, ...]:
    recipients = validation.deduplicate([validation.parse_mailbox("RCPT TO", text) for text in texts])
    if not 1 <= len(recipients) <= limits.UNIQUE_RECIPIENTS:
        raise errors.InvalidRequest(
            f"RCPT TO: {len(recipients)} unique addresses; a message must have 1 to {limits.UNIQUE_RECIPIENTS}"
        )
    return recipients


def _refuse_loop(fields: Fields) -> None:
    count = len(fields.get("received", ()))
    if count >= MAX_RECEIVED:
        raise errors.MailLoop(
            f"Received: {count} fields; the message is in a mail loop; find the host that forwards it to itself"
        )


def _has_ours(fields: Fields) -> bool:
    """Whether any field is for Postroad itself; refuses those that it does not know."""
    ours = [name for name in fields if name.startswith(_OURS)]
    for name in ours:
        if name not in _KNOWN and not name.startswith(METADATA_PREFIX):
            written = fields[name][0].name[: header_fields.MAX_NAME_CHARACTERS]
            raise errors.InvalidRequest(
                f"{written}: unknown field; the fields that begin with X-Service- are X-Service-Tag, "
                "X-Service-Template, X-Service-Variables, X-Service-Unsubscribe and X-Service-Metadata-<Key>"
            )
    return bool(ours)


def _refuse_repeated(fields: Fields) -> None:
    for name in ONCE:
        if len(written := fields.get(name, ())) > 1:
            _refuse_several(written)


def _check_custom(message: message_parser.Message, fields: Fields) -> None:
    """Hold the fields that would be `headers` of a send request to the same limits."""
    longest = max(fields, key=len, default="")
    if len(longest) > limits.HEADER_NAME_CHARACTERS:
        raise errors.InvalidRequest(
            f"{fields[longest][0].name[: limits.HEADER_NAME_CHARACTERS]}…: a field name has at most "
            f"{limits.HEADER_NAME_CHARACTERS} characters"
        )
    if len(message.fields) > limits.CUSTOM_HEADERS:
        validation.check_header_count(sum(not validation.is_reserved(field.key) for field in message.fields))


def _may_exceed_file_limits(content: bytes, message: message_parser.Message, fields: Fields) -> bool:
    """Whether the parts must be walked over, which takes longer than all other checks. Most messages need no walk.

    A name that is too long is in a field or in the header of a part that is longer still, and each part begins with a
    line that looks like a delimiter.
    """
    for name in _NAMING:
        for field in fields.get(name, ()):
            if len(field.raw) > limits.FILENAME_CHARACTERS:
                return True
    at = len(content) - len(message.body) - 1
    for _ in range(limits.ATTACHMENTS + 1):
        at = content.find(b"\n--", at)
        if at < 0:
            return False
        end = content.find(b"\r\n\r\n", at)
        if (end if end >= 0 else len(content)) - at > limits.FILENAME_CHARACTERS:
            return True
        at += 1
    return True


def _refuse_several(written: Sequence[message_parser.Field]) -> None:
    if len(written) > 1:
        raise errors.InvalidRequest(f"{written[0].name}: the field occurs {len(written)} times; send it once")


def _sender(fields: Fields) -> address.Mailbox:
    written = fields.get("from")
    if written is None:
        raise errors.InvalidRequest("From: the field is missing; add the sender's address")
    if len(written) > 1:
        raise errors.Forbidden(f"From: the field occurs {len(written)} times; send it once")
    mailboxes = listed(written[0], groups=False)
    if len(mailboxes) != 1:
        raise errors.Forbidden(f"From: {len(mailboxes)} addresses; a message must have exactly one")
    (sender,) = mailboxes
    for field in fields.get("sender", ()):
        if [mailbox.key for mailbox in listed(field, groups=False)] != [sender.key]:
            raise errors.Forbidden("Sender: differs from the address in From; leave the field out")
    return sender


def listed(field: message_parser.Field, *, groups: bool = True) -> tuple[address.Mailbox, ...]:
    """The addresses of a field that must be parsed. Raises InvalidRequest."""
    try:
        return address_lists.parse_list(field.value, groups=groups)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{field.name}: {problem}") from None


def _shown(fields: Fields, name: str) -> tuple[address.Mailbox, ...]:
    """The addresses of an informational field; one that cannot be parsed is sent unchanged and not shown."""
    try:
        return address_lists.parse_list(fields[name][0].value) if name in fields else ()
    except address.AddressError:
        return ()


def _only(fields: Fields, name: str) -> message_parser.Field | None:
    written = fields.get(name)
    if written is None:
        return None
    _refuse_several(written)
    return written[0]


def _subject(fields: Fields) -> str:
    """The subject. Programs send mail without one, which is allowed here."""
    field = _only(fields, "subject")
    subject = "" if field is None else _CONTROLS.sub(" ", text_of(field))
    if len(subject) > limits.SUBJECT_CHARACTERS:
        raise errors.InvalidRequest(f"subject: has {len(subject)} characters; {validation.SUBJECT_RULE}")
    return subject


def _key(fields: Fields) -> str | None:
    field = _only(fields, "idempotency-key")
    if field is None:
        return None
    key = text_of(field)
    if not 1 <= len(key) <= limits.IDEMPOTENCY_KEY_CHARACTERS:
        raise errors.InvalidRequest(f"Idempotency-Key: must have 1 to {limits.IDEMPOTENCY_KEY_CHARACTERS} characters")
    validation.check_line("Idempotency-Key", key)
    return key


def _metadata(fields: Fields) -> Mapping[str, str]:
    """The caller's own data, with keys as written. Names that differ only in case are one field, which occurs once."""
    metadata: dict[str, str] = {}
    for name, written in fields.items():
        if name.startswith(METADATA_PREFIX):
            _refuse_several(written)
            metadata[written[0].name[len(METADATA_PREFIX) :]] = text_of(written[0])
    return validation.check_metadata("X-Service-Metadata-", metadata) if metadata else {}


def _list_name(fields: Fields, recipients: Sequence[address.Mailbox]) -> str:
    field = _only(fields, UNSUBSCRIBE)
    if field is None:
        return ""
    return validation.check_list("X-Service-Unsubscribe", text_of(field), recipients, fields)


def _template(fields: Fields) -> Template | None:
    template, variables = _only(fields, TEMPLATE), _only(fields, VARIABLES)
    if template is None:
        if variables is not None:
            raise errors.InvalidRequest("X-Service-Variables: only allowed with X-Service-Template")
        return None
    alias = text_of(template)
    validation.check_alias("X-Service-Template", alias)
    return Template(alias, {} if variables is None else _variables(variables))


def _variables(field: message_parser.Field) -> Mapping[str, statuses.TemplateValue]:
    try:
        members = _json(field)
    except strict_json.JsonError as problem:
        raise errors.InvalidRequest(f"X-Service-Variables: {problem}") from None
    if not isinstance(members, dict):
        raise errors.InvalidRequest('X-Service-Variables: expected a JSON object, such as {"name": "Ada"}')
    for name, value in members.items():
        if value is None:
            raise errors.InvalidRequest(
                f"X-Service-Variables: the value of {name[:40]!r} must not be null; leave it out, or use false"
            )
    return members


def _json(field: message_parser.Field) -> object:
    """The JSON text. Valid JSON is not decoded: an encoded word in a value could turn into other members."""
    value = field.value
    text = text_of(field)
    if text != value:
        with contextlib.suppress(strict_json.JsonError):
            return strict_json.read(value.encode())
    # A lone surrogate cannot be encoded; left as it is, it is refused as invalid UTF-8.
    return strict_json.read(text.encode(errors="surrogatepass"))
