"""Mail that an account has received, as rows of the store: for tests of what shows it."""

import hashlib
from typing import Any, Final

import msgspec

from postroad import context
from postroad.mail.authentication import authenticate, dmarc_check, spf_check
from postroad.model.units import identifiers
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import routes
from postroad.storage.mail import received

DOMAIN: Final = "example.com"
MATCH: Final = "support+*@in.example.com"
RECIPIENT: Final = "support+1042@in.example.com"
PASSED: Final = authenticate.Results(
    spf_check.Spf("pass", "example.net", "mailfrom"),
    (authenticate.Dkim("pass", "example.net", "s1"),),
    dmarc_check.Dmarc("pass", "example.net", "reject", ("spf", "dkim")),
    authenticate.Arc("none"),
)
FAILED: Final = authenticate.Results(
    spf_check.Spf("softfail", "example.net", "mailfrom"),
    (authenticate.Dkim("fail", "example.net", "s1", "the key does not prove the signature"),),
    dmarc_check.Dmarc("fail", "example.net", "quarantine"),
    authenticate.Arc("pass", ("lists.example.org",)),
)
MAIL: Final = (
    b"From: Ada <ada@example.net>\r\nTo: Support <support+1042@in.example.com>\r\nSubject: Re: Your receipt\r\n"
    b"Date: Sat, 31 Jan 2026 09:30:00 +0000\r\nMessage-ID: <1@example.net>\r\nMIME-Version: 1.0\r\n"
    b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    b'--b\r\nContent-Type: multipart/alternative; boundary="c"\r\n\r\n'
    b"--c\r\nContent-Type: text/plain\r\n\r\nIt was due on Monday.\r\n"
    b"--c\r\nContent-Type: text/html\r\n\r\n<p>It was due on <b>Monday</b>.</p>\r\n--c--\r\n"
    b'--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename="order.csv"\r\n\r\n'
    b"id,due\r\n1042,monday\r\n--b--\r\n"
)


async def route(ctx: context.Context, account_id: str, match: str = MATCH) -> received.Route:
    """A route of the account, which gets the domain for it if it has none yet."""
    name = match.rpartition("@")[2].removeprefix("in.")
    if name not in [domain.name for domain in await domains.of_account(ctx, account_id)]:
        await domains.add(ctx, account_id, name, verified=True)
    return await routes.add(ctx, account_id, match)


async def put(
    ctx: context.Context,
    account_id: str,
    *,
    route_id: str = "rt_" + "0" * 28,
    content: bytes = MAIL,
    results: authenticate.Results = PASSED,
    **fields: Any,
) -> received.Received:
    """A mail of this content; `fields` are those of its row."""
    now = ctx.clock()
    received_id = ctx.new_id(identifiers.RECEIVED, now=now)
    values: dict[str, Any] = {
        "recipient": RECIPIENT,
        "envelope_sender": "ada@example.net",
        "sender": "Ada <ada@example.net>",
        "subject": "Re: Your receipt",
        "message_id_field": "<1@example.net>",
        "email_id": None,
        "attachment_count": 1,
        "spam": None,
        "client_address": "192.0.2.1",
        "received_at": now,
    }
    row = received.Received(
        account_id=account_id,
        id=received_id,
        route_id=route_id,
        size=len(content),
        authentication=msgspec.json.encode(results).decode(),
        fingerprint=hashlib.sha256(received_id.encode()).digest(),
        **values | fields,
    )
    async with ctx.store.transaction() as tx:
        assert await received.insert(tx, row, content)
    return row
