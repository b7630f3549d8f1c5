"""The entry point for MIME messages: the same checks in the same order as in submit.py.

In addition, the envelope sender must be of a domain of the account, and the idempotency key is a field of the message.
Two messages are the same if their recipients are the same and a client that renders one message twice could have
produced both.
"""

import asyncio
import hashlib
from typing import Final

import msgspec

from postroad import errors
from postroad.model import caller, mail
from postroad.protocol import address
from postroad.protocol.mime import message_parser
from postroad.services import context
from postroad.services.acceptance import compose, mime_compose, mime_templates, mime_validation, submit, transaction
from postroad.services.domains import registry

# Addresses in other scripts and encoded words take up to fifty microseconds each: this many octets hold enough of them
# for some milliseconds.
INLINE_UTF8_HEADER_OCTETS: Final = 1024
# In ASCII, encoded words are slowest to decode: two milliseconds for this many octets.
INLINE_HEADER_OCTETS: Final = 16 * 1024


class MimeDraft(msgspec.Struct, frozen=True):
    """A MIME message. `fields` is the send request that it becomes if it requests a template."""

    checked: mime_validation.CheckedMime
    fields: submit.FieldsDraft | None
    is_slow: bool

    @property
    def sender(self) -> address.Mailbox:
        """The address in From."""
        return self.checked.sender

    @property
    def recipient_count(self) -> int:
        """The number of envelope recipients."""
        return len(self.checked.recipients)

    async def compose(self, ctx: context.Context, identity: compose.MessageIdentity) -> transaction.Submission:
        """The message as it is sent, or rendered from its template."""
        domain = self.checked.envelope_domain
        if domain not in (None, self.sender.domain):
            await self._check_envelope_domain(ctx, identity.account_id, domain)
        if self.fields is not None:
            return await self.fields.compose(ctx, identity)
        if self.is_slow:
            return await asyncio.to_thread(mime_compose.compose_mime, self.checked, identity)
        return mime_compose.compose_mime(self.checked, identity)

    async def _check_envelope_domain(self, ctx: context.Context, account_id: str, domain: str) -> None:
        try:
            await registry.sending_domain(ctx, account_id, domain)
        except errors.Forbidden:
            raise errors.Forbidden(
                f"MAIL FROM: this account cannot send from {domain}; set the envelope sender to an address at "
                f"{self.sender.domain}"
            ) from None


async def submit_mime(
    ctx: context.Context, who: caller.Caller, raw: mail.RawMessage, *, request_id: str
) -> transaction.Accepted:
    """Accept a MIME message. When this returns, it is on disk.

    Raises a PostroadError if nothing was stored.
    """
    scope = submit.sending_identity(who)
    with submit.count_refusals(ctx, mail.Source.SMTP):
        if _is_slow(raw.content):
            draft, key = await asyncio.to_thread(_draft, raw, credential_id=scope, is_slow=True)
        else:
            draft, key = _draft(raw, credential_id=scope, is_slow=False)
        info = submit.SubmissionInfo(request_id=request_id, source=mail.Source.SMTP, key=key)
        return await submit.submit_draft(ctx, who, draft, info)


def _is_slow(content: bytes) -> bool:
    """Whether the message is processed in a thread: it is large, or its header may need much decoding."""
    if len(content) > submit.INLINE_CHARACTERS:
        return True
    head = content[: content.find(b"\r\n\r\n")]
    if len(head) <= INLINE_UTF8_HEADER_OCTETS:
        return False
    return len(head) > INLINE_HEADER_OCTETS or not head.isascii() or b"xn--" in head.lower()


def _draft(raw: mail.RawMessage, *, credential_id: str, is_slow: bool) -> tuple[MimeDraft, transaction.Key | None]:
    checked = mime_validation.check(raw)
    fields = None
    if checked.template is not None:
        fields = submit.FieldsDraft(mime_templates.check(checked, checked.template), is_large=is_slow)
    key = None if checked.key is None else transaction.Key(credential_id, checked.key, _body_hash(checked))
    return MimeDraft(checked, fields, is_slow), key


def _body_hash(checked: mime_validation.CheckedMime) -> bytes:
    recipients = sorted(mailbox.key for mailbox in checked.recipients)
    return hashlib.sha256(message_parser.fingerprint(checked.message) + "\n".join(recipients).encode()).digest()
