"""Forwards mail to `postmaster` and `abuse` of the inbound listener (RFC 5321 section 4.5.1, RFC 2142) to the operator.

The original is attached to a message of our own, from `operator.from` to `operator.email`, which is accepted, signed,
queued and charged like any other. So it does not fail the sender's SPF or DMARC, its bounces come back to a return
path, and nothing that a stranger writes decides where mail goes. Size and numbers are bounded, because strangers may
send as much as they like, and what is forwarded carries a mark that ends a loop.
"""

import base64
import collections
import re
from enum import StrEnum
from typing import Final

from postroad import context, errors
from postroad.mail.accept import submit
from postroad.model.domains import domain_records
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers, login_rules
from postroad.model.units import identifiers, times
from postroad.protocol.smtp import values
from postroad.services.domains import domain_registry as domains

LOCAL_PARTS: Final = frozenset({"postmaster", "abuse"})
# People write to these addresses, and reports about abuse contain one message.
MAX_OCTETS: Final = 1024 * 1024
# Per UTC day: somebody who reports abuse may report a few cases.
MAX_PER_NETWORK: Final = 20
# What an operator can read in a day; the rest waits at its senders for the next one. And half of what the warm-up of a
# new domain allows on its first day: strangers must not use up what the domain's owner wants to send.
MAX_PER_DAY: Final = 100
# RFC 5321 section 6.3 requires at least 100.
MAX_HOPS: Final = 100
MARK: Final = "X-Loop"
_RECEIVED: Final = re.compile(rb"^received:", re.IGNORECASE | re.MULTILINE)
_MARKED: Final = re.compile(rb"^x-loop:[ \t]*postroad[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_TEXT: Final = """\
The attached message was sent to {recipient}.

Envelope sender: {sender}
Client address: {client_address}
"""


class ForwardResult(StrEnum):
    FORWARDED = "forwarded"
    TOO_LARGE = "too_large"
    LOOP = "loop"
    LIMITED = "limited"


class OperatorMail:
    """Forwards mail to the operator, and counts it. `host` is the name of the listener."""

    def __init__(self, ctx: context.Context, *, host: str) -> None:
        self._ctx = ctx
        delivery = ctx.settings.delivery
        self._names = frozenset(name.lower().rstrip(".") for name in (host, delivery.return_path_domain) if name)
        self._prefix = f"{domain_records.RETURN_PATH_LABEL}."
        self._day = 0
        # Of the day, by network; it has no more entries than messages were forwarded.
        self._counts: collections.Counter[str] = collections.Counter()

    def is_for_operator(self, address: str) -> bool:
        """Whether this is `postmaster`, alone or like `abuse` at this host or a return-path domain, in any case."""
        local, at, domain = address.lower().rpartition("@")
        if not at:
            return domain == "postmaster"
        is_ours = domain in self._names or domain.startswith(self._prefix)
        return is_ours and local in LOCAL_PARTS

    async def forward(self, transaction: values.MailTransaction, *, client_address: str) -> ForwardResult:
        """Queue a message for the operator. Raises a PostroadError if it cannot be accepted now."""
        content = b"".join(transaction.content)
        header = content[: content.find(b"\r\n\r\n")]
        if len(content) > MAX_OCTETS:
            return ForwardResult.TOO_LARGE
        if _MARKED.search(header) or len(_RECEIVED.findall(header)) > MAX_HOPS:
            return ForwardResult.LOOP
        if not self._take(login_rules.network_of(client_address)):
            return ForwardResult.LIMITED
        await self._submit(transaction, content, client_address=client_address)
        return ForwardResult.FORWARDED

    def _take(self, network: str) -> bool:
        today = times.day_of(self._ctx.clock())
        if today != self._day:
            self._day = today
            self._counts.clear()
        if self._counts[network] >= MAX_PER_NETWORK or self._counts.total() >= MAX_PER_DAY:
            return False
        self._counts[network] += 1
        return True

    async def _submit(self, transaction: values.MailTransaction, content: bytes, *, client_address: str) -> None:
        operator = self._ctx.settings.operator  # read for each message, because it can change while this runs
        owner = await domains.verified_owner(self._ctx, operator.sender.rpartition("@")[2])
        if owner is None:
            raise errors.Forbidden("operator.from: its domain is not verified by an account of this installation")
        recipient = transaction.recipients[0]
        request = send_request.SendRequest(
            sender=operator.sender,
            to=operator.email,
            subject=f"Mail to {recipient}",
            text=_TEXT.format(
                recipient=recipient, sender=transaction.sender or "none", client_address=client_address or "unknown"
            ),
            headers={MARK: "postroad", "Auto-Submitted": "auto-forwarded"},
            # Its extension is enough; as message/rfc822 it could not be encoded (RFC 2046 section 5.2.1).
            attachments=(
                send_request.Attachment(
                    "message.eml", base64.b64encode(content).decode(), content_type="application/octet-stream"
                ),
            ),
        )
        who = callers.Caller(owner, None, callers.Scheme.TOKEN, frozenset({callers.Permission.SEND}))
        request_id = self._ctx.new_id(identifiers.REQUEST, now=self._ctx.clock())
        await submit.submit(self._ctx, who, request, request_id=request_id, source=statuses.Source.API, key=None)
