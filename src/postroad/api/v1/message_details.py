"""The details of a message in `/v1/messages/{id}`: its attempts, reports that came later, and messages linked to it."""

from typing import Annotated

import msgspec

from postroad.api import email_schemas
from postroad.api.v1 import schemas
from postroad.model import receipt, times, wire_fields
from postroad.model.bounces import disposition as bounces_disposition
from postroad.services.messages import lookup as messages
from postroad.storage import attempts as stored_attempts


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery attempt for one recipient: the host, its reply, the cause and an explanation."""

    recipient_id: str
    started_at: times.WireTime
    duration_ms: float
    host: str
    address: str
    tls: str
    source: Annotated[
        str, msgspec.Meta(description="The name of the source address; empty where the system chose the address.")
    ]
    verdict: bounces_disposition.Verdict
    smtp_code: int | None
    smtp_response: str
    fault: bounces_disposition.Fault | None
    reason: str
    explanation: str
    in_doubt: bool
    conversation: (
        Annotated[
            str,
            msgspec.Meta(
                description="The SMTP commands (`C:`) and replies (`S:`), at most 4 KiB, without authentication and "
                "content. Only for the latest 50 attempts of the message that did not succeed."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class AsyncBounce(msgspec.Struct, frozen=True, kw_only=True):
    """An asynchronous bounce or complaint: a report that arrived after the recipient was final."""

    recipient_id: str
    received_at: times.WireTime
    action: str
    status: str
    fault: str
    response: str


class MessageDetails(email_schemas.Message, frozen=True, kw_only=True):
    """A message with its details; `accepted_request_id` is the request that sent it."""

    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    reply_to: Annotated[str | tuple[str, ...] | None, msgspec.Meta(description="A list if there are several.")]
    headers: dict[str, str]
    tags: tuple[str, ...]
    attachments: tuple[receipt.AttachmentReceipt, ...]
    size: int
    accepted_request_id: str
    attempts: tuple[Attempt, ...]
    async_bounces: tuple[AsyncBounce, ...]
    # Where it sends another message again, or was sent again itself.
    resend_of: str | msgspec.UnsetType = msgspec.UNSET
    resent_as: (
        Annotated[
            tuple[str, ...],
            msgspec.Meta(description="The messages that sent this one again, newest first, at most 20."),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


def of(found: messages.Details, queue_entries: email_schemas.QueueEntries, *, request_id: str) -> MessageDetails:
    """The response about one message."""
    seen = email_schemas.message(found.message, found.recipients, request_id=request_id, queue_entries=queue_entries)
    accepted = found.receipt
    names = ("to", "cc", "bcc", "headers", "tags", "attachments")
    return MessageDetails(
        **msgspec.structs.asdict(seen),
        **wire_fields.of(accepted, names),
        reply_to=None if accepted.reply_to is msgspec.UNSET else accepted.reply_to,
        size=found.message.size,
        accepted_request_id=found.message.request_id,
        attempts=tuple(
            _attempt(one, found.conversations.get((one.recipient_id, one.started_at))) for one in found.attempts
        ),
        async_bounces=tuple(schemas.from_record(AsyncBounce, row) for row in found.async_bounces),
        resend_of=accepted.resend_of,
        resent_as=tuple(found.resent_as) or msgspec.UNSET,
    )


def _attempt(row: stored_attempts.Attempt, conversation: str | None) -> Attempt:
    return schemas.from_record(
        Attempt,
        row,
        duration_ms=row.duration / 1_000,
        smtp_response=row.response,
        fault=row.fault or None,
        explanation=bounces_disposition.explain(row.reason),
        in_doubt=bool(row.in_doubt),
        conversation=conversation or msgspec.UNSET,
    )
