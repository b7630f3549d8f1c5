"""The way in for finished messages: the same checks in the same order as for any other (submit.py).

What is theirs is the envelope sender, which has to be of a domain of the account too, and the idempotency key, which
stands in the message. Two messages are the same if a client that renders one mail twice could have made both, and
their recipients are the same.
"""

import asyncio
import hashlib
from typing import Final

import msgspec

from postroad import errors
from postroad.model import caller, mail
from postroad.protocol import address, message_reading
from postroad.services import accepting, compose, context, raw_compose, raw_rules, raw_templates, submit

# Addresses in other scripts, and words to be encoded, take up to fifty microseconds each: so many octets hold enough of
# them for some milliseconds.
INLINE_UTF8_HEADER_OCTETS: Final = 1024
# In ASCII, encoded words are what takes longest to read: two milliseconds for so many octets.
INLINE_HEADER_OCTETS: Final = 16 * 1024


class RawDraft(msgspec.Struct, frozen=True):
    """A finished message; `fields` is what becomes of one that asks for a template."""

    checked: raw_rules.CheckedRaw
    fields: submit.FieldsDraft | None
    takes_long: bool

    @property
    def sender(self) -> address.Mailbox:
        """The field From."""
        return self.checked.sender

    @property
    def recipient_count(self) -> int:
        """Those of the envelope."""
        return len(self.checked.recipients)

    async def compose(self, ctx: context.Context, identity: compose.Identity) -> accepting.Submission:
        """The message as it goes on, or filled in from its template."""
        domain = self.checked.envelope_domain
        if domain not in (None, self.sender.domain):
            await self._check_envelope_domain(ctx, identity.account_id, domain)
        if self.fields is not None:
            return await self.fields.compose(ctx, identity)
        if self.takes_long:
            return await asyncio.to_thread(raw_compose.compose_raw, self.checked, identity)
        return raw_compose.compose_raw(self.checked, identity)

    async def _check_envelope_domain(self, ctx: context.Context, account_id: str, domain: str) -> None:
        try:
            await submit.own_domain(ctx, account_id, domain)
        except errors.Forbidden:
            raise errors.Forbidden(
                f"MAIL FROM: this account may not send from {domain}; set the envelope sender to an address of "
                f"{self.sender.domain}"
            ) from None


async def submit_raw(
    ctx: context.Context, who: caller.Caller, raw: mail.RawMessage, *, request_id: str
) -> accepting.Accepted:
    """Accept a finished message: when this returns, it is on disk.

    Raises a PostroadError, and then nothing is stored.
    """
    scope = submit.key_scope(who)

    async def make() -> tuple[submit.Draft, submit.Envelope]:
        if _takes_long(raw.content):
            draft, key = await asyncio.to_thread(_draft, raw, scope=scope, takes_long=True)
        else:
            draft, key = _draft(raw, scope=scope, takes_long=False)
        return draft, submit.Envelope(request_id=request_id, source=mail.Source.SMTP, key=key)

    return await submit.submit_draft(ctx, who, make, source=mail.Source.SMTP)


def _takes_long(content: bytes) -> bool:
    """Whether others should not wait for it: it is large, or its header may be full of what has to be converted."""
    if len(content) > submit.INLINE_CHARACTERS:
        return True
    head = content[: content.find(b"\r\n\r\n")]
    if len(head) <= INLINE_UTF8_HEADER_OCTETS:
        return False
    return len(head) > INLINE_HEADER_OCTETS or not head.isascii() or b"xn--" in head.lower()


def _draft(raw: mail.RawMessage, *, scope: str, takes_long: bool) -> tuple[RawDraft, accepting.Key | None]:
    checked = raw_rules.check(raw)
    fields = None
    if checked.template is not None:
        fields = submit.FieldsDraft(raw_templates.check(checked, checked.template), is_large=takes_long)
    key = None if checked.key is None else accepting.Key(scope, checked.key, _body_hash(checked))
    return RawDraft(checked, fields, takes_long), key


def _body_hash(checked: raw_rules.CheckedRaw) -> bytes:
    recipients = sorted(mailbox.key for mailbox in checked.recipients)
    return hashlib.sha256(message_reading.fingerprint(checked.message) + "\n".join(recipients).encode()).digest()
