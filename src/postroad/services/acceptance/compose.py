"""From a validated send request to everything that is stored: MIME, rows and the receipt.

Pure: ids and time are arguments. An address in both `to` and `cc` is in both headers and is one recipient; `bcc` is in
no header.
"""

import msgspec

from postroad import errors
from postroad.model import limits, mail, receipt, send_times, times
from postroad.protocol import address
from postroad.protocol.mime import builder
from postroad.services.acceptance import transaction, validation
from postroad.storage import messages
from postroad.storage import recipients as stored_recipients

TAG_HEADER = "X-Service-Tag"
_encoder = msgspec.json.Encoder()


class MessageIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The account and ids of a message, and when it was accepted."""

    message_id: str
    recipient_ids: tuple[str, ...]
    ledger_id: str
    account_id: str
    credential_id: str
    request_id: str
    source: mail.Source
    key: transaction.Key | None
    now: int
    warmup_domain: str | None = None
    # False where credits are off, or unlimited for the account.
    is_charged: bool = True
    return_path_domain: str = ""
    schedule: send_times.SendTimes = send_times.UNTIMED
    is_test: bool = False
    api_key_id: str | None = None

    @property
    def sent_at(self) -> int:
        """The date of the message: one from before it was sent looks late to readers, and like spam to filters."""
        return self.schedule.begins_at(self.now)


def compose(checked: validation.CheckedSend, identity: MessageIdentity) -> transaction.Submission:
    """Everything that the accepting transaction stores. Raises PayloadTooLarge or InvalidRequest."""
    body = _build(checked, identity)
    if len(body) > limits.MIME_BYTES:
        raise errors.PayloadTooLarge(
            f"the message has {len(body)} bytes including headers and encoding; at most {limits.MIME_BYTES} (10 "
            "MiB) are allowed"
        )
    return build_submission(checked, identity, body=body)


def build_submission(
    checked: validation.CheckedMessage, identity: MessageIdentity, *, body: bytes
) -> transaction.Submission:
    """The rows and the receipt of a message whose bytes are complete."""
    return transaction.Submission(
        message=messages.NewMessage(
            id=identity.message_id,
            account_id=identity.account_id,
            credential_id=identity.credential_id,
            source=identity.source,
            sender=checked.sender.written,
            sender_key=checked.sender.key,
            subject=checked.subject or "",
            recipient_count=len(checked.recipients),
            credits_reserved=_price(checked, identity),
            size=len(body),
            request_id=identity.request_id,
            response=_encoder.encode(_receipt(checked, identity)),
            created_at=identity.now,
            mime=body,
            tags=checked.tags,
            return_path_domain=identity.return_path_domain,
            send_at=identity.schedule.send_at,
            expires_at=identity.schedule.expires_at,
            metadata=_encoder.encode(checked.metadata).decode() if checked.metadata else None,
            is_test=int(identity.is_test),
        ),
        recipients=[
            _recipient(mailbox, recipient_id, identity)
            for mailbox, recipient_id in zip(checked.recipients, identity.recipient_ids, strict=True)
        ],
        ledger_id=identity.ledger_id,
        key=identity.key,
        warmup_domain=identity.warmup_domain,
        simulation=checked.simulation if identity.is_test else None,
        api_key_id=identity.api_key_id,
    )


def _build(checked: validation.CheckedSend, identity: MessageIdentity) -> bytes:
    try:
        return builder.build(
            builder.Message(
                from_=checked.sender,
                to=checked.to,
                cc=checked.cc,
                reply_to=checked.reply_to,
                subject=checked.subject or "",
                text=checked.text,
                html=checked.html,
                headers=(*checked.headers.items(), *((TAG_HEADER, tag) for tag in checked.tags)),
                attachments=checked.attachments,
                message_id=f"{identity.message_id}@{checked.sender.domain}",
                date=identity.sent_at,
            )
        )
    except builder.MimeError as problem:
        raise errors.InvalidRequest(str(problem)) from None


def _recipient(
    mailbox: address.Mailbox, recipient_id: str, identity: MessageIdentity
) -> stored_recipients.NewRecipient:
    return stored_recipients.NewRecipient(
        message_id=identity.message_id,
        id=recipient_id,
        account_id=identity.account_id,
        email=mailbox.written_address,
        email_key=mailbox.key,
        domain=mailbox.domain,
    )


def _receipt(checked: validation.CheckedMessage, identity: MessageIdentity) -> receipt.Receipt:
    made = receipt.Receipt(
        id=identity.message_id,
        source=identity.source.value,
        request_id=identity.request_id,
        sender=checked.sender.written,
        to=_written(checked.to),
        cc=_written(checked.cc),
        bcc=_written(checked.bcc),
        reply_to=_one_or_several(checked.reply_to) if checked.reply_to else msgspec.UNSET,
        subject=checked.subject or "",
        recipient_count=len(checked.recipients),
        credits_reserved=_price(checked, identity),
        headers=dict(checked.headers),
        tags=checked.tags,
        attachments=tuple(
            receipt.AttachmentReceipt(a.filename, a.content_type, len(a.content), a.content_id or msgspec.UNSET)
            for a in checked.attachments
        )
        if checked.attachments
        else (),
    )
    if not (checked.has_options or identity.is_test):
        return made
    return msgspec.structs.replace(
        made,
        send_at=times.given_to_wire(identity.schedule.send_at),
        expires_at=times.given_to_wire(identity.schedule.expires_at),
        metadata=dict(checked.metadata) or msgspec.UNSET,
        test=True if identity.is_test else msgspec.UNSET,
    )


def _written(mailboxes: tuple[address.Mailbox, ...]) -> tuple[str, ...]:
    return tuple([mailbox.written for mailbox in mailboxes]) if mailboxes else ()


def _one_or_several(mailboxes: tuple[address.Mailbox, ...]) -> str | tuple[str, ...]:
    return mailboxes[0].written if len(mailboxes) == 1 else _written(mailboxes)


def _price(checked: validation.CheckedMessage, identity: MessageIdentity) -> int:
    """The credits that a message costs."""
    return len(checked.recipients) if identity.is_charged else 0
