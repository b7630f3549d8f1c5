"""The entry point for MIME messages: the same checks in the same order as in submit.py.

In addition, the envelope sender must be of a domain of the account, and the idempotency key is a field of the message.
Two messages are the same if their recipients are the same and a client that renders one message twice could have
produced both.
"""

import hashlib
from typing import Final

from postroad import errors
from postroad.model import caller, mail
from postroad.protocol.mime import message_parser
from postroad.services import context
from postroad.services.acceptance import (
    compose,
    mime_compose,
    mime_templates,
    mime_validation,
    submit,
    transaction,
    validation,
)
from postroad.services.domains import registry

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
    ctx: context.Context, who: caller.Caller, raw: mail.RawMessage, *, request_id: str
) -> transaction.Accepted:
    """Accept a MIME message. When this returns, it is on disk.

    Raises a PostroadError if nothing was stored.
    """
    scope = submit.sending_identity(who)
    slow = _is_slow(raw.content)
    with submit.RefusalCounter(ctx, mail.Source.SMTP):
        checked, send, key = await submit.run(
            ctx, who.account_id, lambda: _check(raw, credential_id=scope), threaded=slow
        )
        info = submit.SubmissionInfo(request_id=request_id, source=mail.Source.SMTP, key=key)
        return await submit.submit_checked(
            ctx, who, checked, info, lambda identity: _compose(ctx, checked, send, identity, is_slow=slow)
        )


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
    raw: mail.RawMessage, *, credential_id: str
) -> tuple[mime_validation.CheckedMime, validation.CheckedSend | None, transaction.Key | None]:
    """The message, the send request that it becomes if it requests a template, and its idempotency key."""
    checked = mime_validation.check(raw)
    send = None if checked.template is None else mime_templates.check(checked, checked.template)
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
    """The message as it is sent, or rendered from its template."""
    await _check_envelope_domain(ctx, checked, identity.account_id)
    if send is not None:
        return await submit.compose_fields(ctx, send, identity, is_large=is_slow)
    return await submit.run(
        ctx, identity.account_id, lambda: mime_compose.compose_mime(checked, identity), threaded=is_slow
    )


async def _check_envelope_domain(ctx: context.Context, checked: mime_validation.CheckedMime, account_id: str) -> None:
    domain = checked.envelope_domain
    if domain is None or domain == checked.sender.domain:
        return
    try:
        await registry.sending_domain(ctx, account_id, domain)
    except errors.Forbidden:
        raise errors.Forbidden(
            f"MAIL FROM: this account cannot send from {domain}; set the envelope sender to an address at "
            f"{checked.sender.domain}"
        ) from None


def _body_hash(checked: mime_validation.CheckedMime) -> bytes:
    recipients = sorted(mailbox.key for mailbox in checked.recipients)
    return hashlib.sha256(message_parser.fingerprint(checked.message) + "\n".join(recipients).encode()).digest()
