"""Sending a message again: a new message with the content of an old one, through the same checks as any other.

The content is the stored one with a new Message-ID and Date: receivers may drop a message whose id they have seen. To
and Cc stay as they were, whoever of them gets it this time; only the recipients of the new message decide. A recipient
that is not final yet is never sent a second copy, and one on the suppression list is left out. Mail of a test key stays
test mail, whoever sends it again. What expires, expires after the same time.
"""

import dataclasses
import functools
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad import context, errors
from postroad.mail import return_path
from postroad.mail.accept import compose, submit, transaction, validation
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import times
from postroad.protocol.mime import address, builder, message_parser
from postroad.services import audit_log
from postroad.services.messages import lookup
from postroad.storage.mail import messages, suppressions

FAILED: Final = (*statuses.FAILURES, statuses.RecipientStatus.CANCELED)
# How many addresses an error names.
MAX_NAMED: Final = 3
_RENEWED: Final = frozenset({"message-id", "date"})
_RECEIPT: Final = msgspec.json.Decoder(send_request.Receipt)
_encoder: Final = msgspec.json.Encoder()


class Recipients(StrEnum):
    """Who gets a message again: those that it did not reach, or all."""

    FAILED = "failed"
    ALL = "all"


class NobodyFailed(errors.Conflict):
    """No recipient of the message has failed."""


class Suppressed(errors.Conflict):
    """Every recipient that would get the message is on the suppression list."""


class NotRetained(errors.Conflict):
    """The content of the message was deleted."""


class CheckedResend(validation.CheckedMessage, frozen=True, kw_only=True):
    """What the checks of a submission look at."""

    content: bytes

    @property
    def size(self) -> int:
        """About how many bytes the message will have."""
        return len(self.content)


class Original(msgspec.Struct, frozen=True):
    message: messages.Message
    receipt: send_request.Receipt
    chosen: tuple[address.Mailbox, ...]
    content: bytes


async def resend(
    ctx: context.Context,
    who: callers.Caller,
    message_id: str,
    *,
    to: Recipients,
    recipient_id: str | None = None,
    request_id: str,
    key: str,
) -> transaction.Accepted:
    """Accept a message of the account again, for some of its recipients or for one. Raises as `submit` does.

    Conflict when its content is no longer retained, or when nobody is left who can get it.
    """
    try:
        accepted = await _resend(ctx, who, message_id, to=to, recipient_id=recipient_id, request_id=request_id, key=key)
    except errors.PostroadError as refusal:
        submit.note_refusal(ctx, who, statuses.Source.API, refusal)
        raise
    # Mail is in the message log: only what a user does is in the audit log too.
    if ctx.actor.user_id is not None and not accepted.replayed:
        async with ctx.store.transaction() as tx:
            await audit_log.write(ctx, tx, who.account_id, "message.resent", message_id)
    return accepted


async def _resend(
    ctx: context.Context,
    who: callers.Caller,
    message_id: str,
    *,
    to: Recipients,
    recipient_id: str | None,
    request_id: str,
    key: str,
) -> transaction.Accepted:
    message, _ = await lookup.find(ctx, who.account_id, message_id)
    who = dataclasses.replace(who, is_test=bool(message.is_test))
    hashed = compose.digest(_encoder.encode(["resend", message_id, to, recipient_id]))
    used = transaction.Key(submit.sending_identity(who), key, hashed)
    info = submit.SubmissionInfo(request_id=request_id, source=statuses.Source.API, key=used)
    # A whole message is in memory, as for a page with its content.
    async with ctx.previews.hold(who.account_id):
        try:
            original = await _original(ctx, message, to=to, recipient_id=recipient_id)
            _refuse_unapproved(who, len(original.chosen))
        except errors.PostroadError:
            replayed = await submit.find_replay(ctx, who, used)
            if replayed is None:
                raise
            return replayed
        checked = _checked(original)
        large = len(original.content) > submit.INLINE_CHARACTERS

        async def make(identity: compose.MessageIdentity) -> transaction.Submission:
            work = functools.partial(_compose, original, checked, identity)
            return await ctx.threads.run(who.account_id, work) if large else work()

        return await submit.accept(ctx, who, checked, info, make)


async def _original(
    ctx: context.Context, message: messages.Message, *, to: Recipients, recipient_id: str | None
) -> Original:
    async with ctx.store.scanning(message.account_id) as tx:
        known = _wanted(await messages.recipients(tx, message.account_id, message.id), to, recipient_id)
        mailboxes = {
            (message.account_id, mailbox.key): mailbox
            for mailbox in (address.parse(recipient.email) for recipient in known)
        }
        suppressed = await suppressions.find(tx, sorted(mailboxes))
        stored = await messages.response(tx, message.account_id, message.id)
        content = next(iter(await messages.outgoing(tx, [(message.account_id, message.id)])), None)
    chosen = tuple(mailbox for place, mailbox in mailboxes.items() if place not in suppressed)
    if not chosen:
        raise _all_suppressed(sorted(place[1] for place in suppressed))
    if content is None or stored is None:
        raise NotRetained("the content of this message is no longer retained; send a new message instead")
    if not content.sender_key:
        # It would be signed, and a stranger has written it (services/inbound/forward.py).
        raise errors.Conflict("a route forwarded this message, and it cannot be sent again")
    return Original(message, _RECEIPT.decode(stored[0]), chosen, content.mime)


def _wanted(known: Sequence[messages.Recipient], to: Recipients, recipient_id: str | None) -> list[messages.Recipient]:
    if recipient_id is not None:
        known = [recipient for recipient in known if recipient.id == recipient_id]
        if not known:
            raise errors.NotFound("recipient_id: no such recipient in this message")
    elif to is Recipients.FAILED:
        failed = [recipient for recipient in known if recipient.status in FAILED]
        if not failed:
            raise NobodyFailed(
                'no recipient of this message has failed; to send it to all of them again, set recipients to "all"'
            )
        return failed
    waiting = sum(recipient.status not in statuses.FINAL for recipient in known)
    if waiting:
        raise errors.Conflict(
            f"{waiting} of the recipients {'is' if waiting == 1 else 'are'} still being delivered; retry or cancel "
            "the message instead, or wait for the result"
        )
    return list(known)


def _all_suppressed(emails: Sequence[str]) -> Suppressed:
    left = len(emails) - MAX_NAMED
    named = ", ".join(emails[:MAX_NAMED]) + (f" and {left} more" if left > 0 else "")
    return Suppressed(
        f"{named}: on the suppression list, so nobody would get the message; remove the address from the list first"
    )


def _refuse_unapproved(who: callers.Caller, count: int) -> None:
    """What waits for approval is a request with its content, which this is not."""
    limit = None if who.key is None else who.key.limits.approval_above
    if limit is not None and count > limit:
        raise errors.Forbidden("this API key needs approval for this many recipients; resend it in the dashboard")


def _checked(original: Original) -> CheckedResend:
    """The original without what only its receipt needs to have."""
    message, accepted = original.message, original.receipt
    begun = max(message.created_at, message.send_at or 0)
    lifetime = None if message.expires_at is None else (message.expires_at - begun) // times.SECOND
    return CheckedResend(
        sender=address.parse(accepted.sender),
        to=(),
        cc=(),
        bcc=(),
        reply_to=(),
        recipients=original.chosen,
        subject=accepted.subject,
        tags=accepted.tags,
        metadata={} if accepted.metadata is msgspec.UNSET else accepted.metadata,
        expires_in=lifetime,
        list_name="" if accepted.unsubscribe is msgspec.UNSET else accepted.unsubscribe.list_name,
        content=original.content,
    )


def _compose(
    original: Original, checked: validation.CheckedMessage, identity: compose.MessageIdentity
) -> transaction.Submission:
    added = [
        ("Message-ID", f"<{identity.message_id}@{checked.sender.domain}>"),
        ("Date", builder.format_date(identity.sent_at // times.SECOND)),
    ]
    parsed, drop = message_parser.read(original.content, has_only_crlf=True), _RENEWED
    name = compose.COMPLAINT_ADDRESS.lower()
    if any(field.key == name and field.value.startswith(return_path.LOCAL_PREFIX) for field in parsed.fields):
        # It names a recipient of the original.
        drop |= {name}
        added += compose.complaint_header(checked, identity)
    if identity.unsubscribe:
        drop |= validation.OWN_UNSUBSCRIBE
        added += identity.unsubscribe
    body = message_parser.rewrite(parsed, drop=drop, add=added)
    submission = compose.build_submission(checked, identity, body=body)
    old, new = original.receipt, _RECEIPT.decode(submission.message.response)
    answer = msgspec.structs.replace(
        new,
        to=old.to,
        cc=old.cc,
        bcc=old.bcc,
        reply_to=old.reply_to,
        headers=old.headers,
        attachments=old.attachments,
        resend_of=old.id,
    )
    return msgspec.structs.replace(
        submission,
        message=msgspec.structs.replace(submission.message, response=_encoder.encode(answer)),
        resend_of=old.id,
    )
