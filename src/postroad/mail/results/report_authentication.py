"""Authentication of reports: whether a report comes from a mailbox provider's feedback loop, and not from anybody.

Whoever gets a message has its token and can write a report about it. So a report counts for the bounce guard only if it
is from an address of `inbound.complaint_reporters` and that address is proven: a DKIM signature holds, and its domain
is the address's or a parent of it. Nothing is asked of DNS for any other report. If DNS fails, the reporter has to come
again: otherwise a complaint would never count.

A signed report can be sent again by whoever has it. So the signature must be recent and cover the Content-Type, which
decides what of the body is the report, and the caller takes the token from what is signed and counts a signature once.
"""

import asyncio
import functools
import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.bounces import bounce_guard
from postroad.model.units import times
from postroad.protocol.dns import tag_lists
from postroad.protocol.mime import address, address_lists
from postroad.protocol.signatures import dkim_verification

# All reports share what one account could have: strangers send them.
PARTY: Final = "reports"
# Hashing more than this would block the event loop for more than a millisecond.
LARGE_BYTES: Final = 128 * 1024
# A name has one key; more are a mistake, and each would cost an operation.
MAX_RECORDS: Final = 3
# A field with one address or a date is shorter. Parsing one of the size of a header would block the event loop.
MAX_VALUE_BYTES: Final = 1_000
# For all lookups of a report, with the wait for its turn: a session cannot be held longer, whatever it claims.
LOOKUP_SECONDS: Final = 10.0
# Longer than most failures of DNS.
RETRY_SECONDS: Final = 300
NO_ANSWER: Final = "DNS returned no answer for the key of the report's signature"


class Proof(msgspec.Struct, frozen=True):
    """A signature that authenticates a report, as a hash of its value, and the signed To; empty if it is not signed."""

    signature: str
    sent_to: str


async def authenticate(ctx: context.Context, content: bytes) -> Proof | None:
    """The proof that a listed reporter has signed this report recently; None without one.

    Raises TemporaryFailure when DNS does not tell.
    """
    message = dkim_verification.Message(content)
    author = _only_address(message, b"from")
    if not author or not _is_listed(author, ctx.settings.inbound.complaint_reporters):
        return None
    # Only the parts of a multipart are read the same whatever the other fields say, such as a transfer encoding.
    if not _only_value(message, b"content-type").lower().startswith("multipart/"):
        return None
    now = ctx.clock()
    find = functools.partial(message.signatures, now=now // times.SECOND)
    signatures = await ctx.threads.run(PARTY, find) if len(content) > LARGE_BYTES else find()
    usable = [each for each in signatures if _is_usable(each, message, author, now=now)]
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            proven = await _proven(ctx, usable)
    except TimeoutError:
        raise errors.TemporaryFailure(NO_ANSWER, retry_after=RETRY_SECONDS) from None
    if proven is None:
        return None
    sent_to = _only_address(message, b"to") if b"to" in proven.names else ""
    return Proof(hashlib.sha256(proven.value).hexdigest(), sent_to)


async def _proven(
    ctx: context.Context, signatures: Sequence[dkim_verification.Signature]
) -> dkim_verification.Signature | None:
    """The first signature that its key proves. A failure of DNS matters only if no other signature is proven."""
    has_failed = False
    for signature in signatures:
        records = await ctx.dns.txt(tag_lists.dkim_name(signature.selector, signature.domain), party=PARTY)
        has_failed = has_failed or records is None
        if any(dkim_verification.is_proven(signature, record) for record in (records or ())[:MAX_RECORDS]):
            return signature
    if has_failed:
        raise errors.TemporaryFailure(NO_ANSWER, retry_after=RETRY_SECONDS)
    return None


def _is_usable(
    signature: dkim_verification.Signature, message: dkim_verification.Message, author: str, *, now: int
) -> bool:
    """Whether it is the author's, covers how the body is read, and is recent."""
    if not _is_within(author.rpartition("@")[2], signature.domain) or b"content-type" not in signature.names:
        return False
    signed_at = None if signature.signed_at is None else signature.signed_at * times.SECOND
    if signed_at is None and b"date" in signature.names:
        signed_at = times.parse_mail_date(_only_value(message, b"date"))
    if signed_at is None:
        return False
    age = now - signed_at
    return -bounce_guard.MAX_SIGNATURE_SKEW <= age <= bounce_guard.MAX_SIGNATURE_AGE


def _only_value(message: dkim_verification.Message, name: bytes) -> str:
    """The value of the only field with this name; empty when there are several, or it is long or not ASCII."""
    values = message.values(name)
    if len(values) != 1 or len(values[0]) > MAX_VALUE_BYTES or not values[0].isascii():
        return ""
    return values[0].decode("ascii")


def _only_address(message: dkim_verification.Message, name: bytes) -> str:
    """The only address of the only field with this name, in lower case; empty otherwise."""
    try:
        mailboxes = address_lists.parse_list(_only_value(message, name))
    except address.AddressError:
        return ""
    return mailboxes[0].key if len(mailboxes) == 1 else ""


def _is_listed(author: str, reporters: tuple[str, ...]) -> bool:
    """Whether the address is on the list, or its domain or a parent of it."""
    domain = author.rpartition("@")[2]
    return any(author == each or _is_within(domain, each) for each in map(str.lower, reporters))


def _is_within(domain: str, parent: str) -> bool:
    return f".{domain}".endswith(f".{parent}")
