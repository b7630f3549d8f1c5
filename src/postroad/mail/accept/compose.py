"""Makes of a validated send what is stored: the MIME message, its rows, the response, and the hash of its request."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from postroad import errors
from postroad.mail import return_path
from postroad.mail.accept import transaction, validation
from postroad.model.mail import limits, send_request, statuses
from postroad.model.units import times
from postroad.protocol.mime import address, builder
from postroad.storage.mail import messages

TAG_HEADER = "X-Service-Tag"
# By what Gmail counts complaints (Postmaster Tools, "Feedback loop"): up to three groups of mail, and a constant of 5
# to 15 characters for whoever sends.
FEEDBACK_ID: Final = "Feedback-ID"
_FEEDBACK_SENDER: Final = "postroad"
_NO_LIST: Final = "transactional"
_FEEDBACK_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
# What a list is called is for its recipients, such as "Product news".
_FEEDBACK_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")
# Where receivers send complaints about a message (RFC 9477).
COMPLAINT_ADDRESS: Final = "CFBL-Address"
# In Python 3.11 the value of a member is two calls.
_SOURCES: Final[Mapping[statuses.Source, Literal["api", "smtp", "test"]]] = {
    statuses.Source.API: "api",
    statuses.Source.SMTP: "smtp",
    statuses.Source.TEST: "test",
}
_encoder = msgspec.json.Encoder()


class MessageIdentity(msgspec.Struct, frozen=True, kw_only=True):
    message_id: str
    recipient_ids: Sequence[str]
    ledger_id: str
    account_id: str
    credential_id: str
    request_id: str
    source: statuses.Source
    key: transaction.Key | None
    now: int
    warmup_domain: str | None = None
    # False where credits are off, or unlimited for the account.
    is_charged: bool = True
    return_path_domain: str = ""
    schedule: send_request.SendTimes = send_request.UNTIMED
    is_test: bool = False
    api_key_id: str | None = None
    # Where complaints arrive, and the key that signs their addresses; empty where none are received.
    complaint_domain: str = ""
    return_path_key: bytes = b""
    # The header fields of a message with a list.
    unsubscribe: tuple[tuple[str, str], ...] = ()

    @property
    def sent_at(self) -> int:
        """The date of the message: one from before it was sent looks late to readers, and like spam to filters."""
        return self.now if self.schedule is send_request.UNTIMED else self.schedule.begins_at(self.now)


def compose(checked: validation.CheckedSend, identity: MessageIdentity) -> transaction.Submission:
    headers = [*checked.headers.items(), *[(TAG_HEADER, tag) for tag in checked.tags], *identity.unsubscribe]
    given = {name.lower() for name in checked.headers}
    if FEEDBACK_ID.lower() not in given:
        tag = checked.tags[0] if checked.tags else ""
        group = _FEEDBACK_UNFIT.sub("-", checked.list_name)[:64] if checked.list_name else _NO_LIST
        groups = group, identity.account_id, tag, _FEEDBACK_SENDER
        headers.append((FEEDBACK_ID, ":".join([name if _FEEDBACK_NAME.fullmatch(name) else "" for name in groups])))
    if identity.complaint_domain and COMPLAINT_ADDRESS.lower() not in given:
        headers += complaint_header(checked, identity)
    try:
        body = builder.build(
            builder.Message(
                from_=checked.sender,
                to=checked.to,
                cc=checked.cc,
                reply_to=checked.reply_to,
                subject=checked.subject or "",
                text=checked.text,
                html=checked.html,
                headers=headers,
                attachments=checked.attachments,
                message_id=f"{identity.message_id}@{checked.sender.domain}",
                date=identity.sent_at,
            )
        )
    except builder.MimeError as problem:
        raise errors.InvalidRequest(str(problem)) from None
    if len(body) > limits.MIME_BYTES:
        raise errors.PayloadTooLarge(
            f"the message has {len(body)} bytes including headers and encoding; at most {limits.MIME_BYTES} (10 "
            "MiB) are allowed"
        )
    return build_submission(checked, identity, body=body)


def build_submission(
    checked: validation.CheckedMessage, identity: MessageIdentity, *, body: bytes
) -> transaction.Submission:
    count = len(checked.recipients)
    price = count if identity.is_charged else 0
    recipients = []
    for mailbox, recipient_id in zip(checked.recipients, identity.recipient_ids, strict=True):
        recipients.append(
            messages.NewRecipient(
                message_id=identity.message_id,
                id=recipient_id,
                account_id=identity.account_id,
                email=mailbox.address if mailbox.written == mailbox.address else mailbox.written_address,
                email_key=mailbox.key,
                domain=mailbox.domain,
            )
        )
    return transaction.Submission(
        message=messages.NewMessage(
            id=identity.message_id,
            account_id=identity.account_id,
            credential_id=identity.credential_id,
            source=identity.source,
            sender=checked.sender.written,
            sender_key=checked.sender.key,
            subject=checked.subject or "",
            recipient_count=count,
            credits_reserved=price,
            size=len(body),
            request_id=identity.request_id,
            response=_encoder.encode(_receipt(checked, identity, price)),
            created_at=identity.now,
            mime=body,
            tags=checked.tags,
            return_path_domain=identity.return_path_domain,
            send_at=identity.schedule.send_at,
            expires_at=identity.schedule.expires_at,
            metadata=_encoder.encode(checked.metadata).decode() if checked.metadata else None,
            is_test=int(identity.is_test),
        ),
        recipients=recipients,
        ledger_id=identity.ledger_id,
        key=identity.key,
        warmup_domain=identity.warmup_domain,
        simulation=checked.simulation if identity.is_test else None,
        api_key_id=identity.api_key_id,
        list_name=checked.list_name or None,
    )


def complaint_header(checked: validation.CheckedMessage, identity: MessageIdentity) -> list[tuple[str, str]]:
    """The return path of the recipient as the address for complaints: a receiver may leave out all else.

    There is none for several recipients, each of which would know the token of another. Nor beyond the domain of
    `From`, where another domain would have to sign too (RFC 9477 section 3.1.3).
    """
    domain = identity.complaint_domain
    if len(checked.recipients) != 1 or not f".{domain}".endswith(f".{checked.sender.domain}"):
        return []
    where = return_path.address(
        identity.return_path_key,
        message_id=identity.message_id,
        recipient_id=identity.recipient_ids[0],
        domain=domain,
    )
    return [(COMPLAINT_ADDRESS, f"{where}; report=arf")]


def _receipt(checked: validation.CheckedMessage, identity: MessageIdentity, price: int) -> send_request.Receipt:
    made = send_request.Receipt(
        id=identity.message_id,
        source=_SOURCES[identity.source],
        request_id=identity.request_id,
        sender=checked.sender.written,
        to=_written(checked.to),
        cc=_written(checked.cc) if checked.cc else (),
        bcc=_written(checked.bcc) if checked.bcc else (),
        reply_to=_one_or_several(checked.reply_to) if checked.reply_to else msgspec.UNSET,
        subject=checked.subject or "",
        recipient_count=len(checked.recipients),
        credits_reserved=price,
        headers=dict(checked.headers),
        tags=checked.tags,
        attachments=tuple(
            send_request.AttachmentReceipt(a.filename, a.content_type, len(a.content), a.content_id or msgspec.UNSET)
            for a in checked.attachments
        )
        if checked.attachments
        else (),
    )
    if identity.schedule is send_request.UNTIMED and not (checked.metadata or identity.is_test or checked.list_name):
        return made
    return msgspec.structs.replace(
        made,
        send_at=times.given_to_wire(identity.schedule.send_at),
        expires_at=times.given_to_wire(identity.schedule.expires_at),
        metadata=dict(checked.metadata) or msgspec.UNSET,
        unsubscribe=send_request.Unsubscribe(checked.list_name) if checked.list_name else msgspec.UNSET,
        test=True if identity.is_test else msgspec.UNSET,
    )


def _written(mailboxes: tuple[address.Mailbox, ...]) -> tuple[str, ...]:
    return (mailboxes[0].written,) if len(mailboxes) == 1 else tuple([mailbox.written for mailbox in mailboxes])


def _one_or_several(mailboxes: tuple[address.Mailbox, ...]) -> str | tuple[str, ...]:
    return mailboxes[0].written if len(mailboxes) == 1 else _written(mailboxes)


# Unlike JSON it needs no escapes, and it tells texts, numbers and truth values apart.
_hash_encoder: Final = msgspec.msgpack.Encoder()
_INTEGERS: Final = range(-(2**63), 2**64)


def digest(data: bytes) -> bytes:
    """Takes half the time of SHA-256 on a processor without SHA instructions."""
    return hashlib.blake2b(data, digest_size=32).digest()


def body_hash(checked: validation.CheckedSend) -> bytes:
    """What "the same body" means for an idempotency key (docs/api.md, "Retrying"): requests are compared by meaning.

    The hash is taken over the validated request in one normal form. A member that is null, empty or absent is the same,
    and so are a lone string and a list of one. Addresses count as parsed, the names of headers in lower case, files by
    their content. Headers, variables and metadata are in the order of their names, and `1.0` is `1`; any other order
    counts.

    Options that few requests have are part of it only where they are given.
    """
    sender = checked.sender
    normal_form: tuple[object, ...] = (
        (sender.display_name, sender.local, sender.domain),
        _addresses(checked.to) if checked.to else (),
        _addresses(checked.cc) if checked.cc else (),
        _addresses(checked.bcc) if checked.bcc else (),
        _addresses(checked.reply_to) if checked.reply_to else None,
        checked.subject,
        checked.text,
        checked.html,
        checked.template,
        [(name, _number(value)) for name, value in sorted(checked.variables.items())] if checked.variables else (),
        sorted([(name.lower(), value) for name, value in checked.headers.items()]) if checked.headers else (),
        checked.tags,
        [(file.filename, file.content_type, file.content_id, digest(file.content)) for file in checked.attachments]
        if checked.attachments
        else (),
    )
    options = checked.metadata or checked.simulation or checked.list_name
    if options or checked.send_at is not None or checked.expires_in is not None:
        normal_form += (_options(checked),)
    return digest(_hash_encoder.encode(normal_form))


def _options(checked: validation.CheckedSend) -> dict[str, object]:
    known = {
        "send_at": checked.send_at,
        "expires_in": checked.expires_in,
        "metadata": sorted(checked.metadata.items()) or None,
        "simulate": checked.simulation or None,
        "unsubscribe": checked.list_name or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _addresses(mailboxes: tuple[address.Mailbox, ...]) -> object:
    first = mailboxes[0]
    if len(mailboxes) == 1:
        return ((first.display_name, first.local, first.domain),)
    return [(mailbox.display_name, mailbox.local, mailbox.domain) for mailbox in mailboxes]


def _number(value: statuses.TemplateValue) -> statuses.TemplateValue:
    if isinstance(value, float) and value.is_integer() and int(value) in _INTEGERS:
        return int(value)
    if isinstance(value, list):
        return [_number(item) for item in value]
    if isinstance(value, dict):
        return {name: _number(item) for name, item in sorted(value.items())}
    return value
