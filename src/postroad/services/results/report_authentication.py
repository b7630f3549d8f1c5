"""Authentication of reports: whether a report comes from a mailbox provider's feedback loop, and not from anybody.

Whoever gets a message has its token and can write a report about it. So a report counts for the bounce guard only if it
is from an address of `bounce_guard.reporters` and that address is proven: a DKIM signature holds, and its domain is the
address's or a parent of it. Nothing is asked of DNS for any other report.
"""

import functools
from typing import Final

from postroad.model import times
from postroad.protocol import address, dkim_verification
from postroad.protocol.dns import dkim_record
from postroad.protocol.mime import address_lists
from postroad.services import context

# All reports share what one account could have: strangers send them.
PARTY: Final = "reports"
# Hashing more than this would block the event loop for more than a millisecond.
LARGE_BYTES: Final = 128 * 1024
# A name has one key; more are a mistake, and each would cost an operation.
MAX_RECORDS: Final = 3


async def is_authenticated(ctx: context.Context, content: bytes) -> bool:
    """Whether a listed reporter has signed this report."""
    message = dkim_verification.Message(content)
    author = _author(message)
    if author is None or not _is_listed(author, ctx.settings.bounce_guard.reporters):
        return False
    now = ctx.clock() // times.SECOND
    if len(content) > LARGE_BYTES:
        signatures = await ctx.threads.run(PARTY, functools.partial(message.signatures, now=now))
    else:
        signatures = message.signatures(now=now)
    for signature in signatures:
        if _is_within(author.rpartition("@")[2], signature.domain):
            records = await ctx.dns.txt(dkim_record.name(signature.selector, signature.domain), party=PARTY)
            if any(dkim_verification.is_proven(signature, record) for record in records[:MAX_RECORDS]):
                return True
    return False


def _author(message: dkim_verification.Message) -> str | None:
    """The only address of the only From field, in lower case."""
    fields = message.values(b"from")
    if len(fields) != 1:
        return None
    try:
        mailboxes = address_lists.parse_list(fields[0].decode("ascii"))
    except (address.AddressError, UnicodeDecodeError):
        return None
    return mailboxes[0].key if len(mailboxes) == 1 else None


def _is_listed(author: str, reporters: tuple[str, ...]) -> bool:
    """Whether the address is on the list, or its domain or a parent of it."""
    domain = author.rpartition("@")[2]
    return any(author == each or _is_within(domain, each) for each in map(str.lower, reporters))


def _is_within(domain: str, parent: str) -> bool:
    return f".{domain}".endswith(f".{parent}")
