"""Mail for routes, and what became of it."""

import contextlib
from collections.abc import AsyncIterator

import aiosmtplib

from postroad import context
from postroad.inbound import session
from postroad.storage.mail import received
from tests.api import app_server

TO = "support@in.example.com"
MAIL = (
    b"From: Anna <anna@example.net>\r\nTo: support@in.example.com\r\nSubject: My order\r\n"
    b"Message-ID: <1@example.net>\r\nDate: Fri, 15 Jan 2027 08:00:00 +0000\r\n\r\nWhere is it?\r\n"
)


@contextlib.asynccontextmanager
async def connected(
    ctx: context.Context, lines: app_server.CapturedLog | None = None
) -> AsyncIterator[aiosmtplib.SMTP]:
    """A client of the inbound listener."""
    log = (lines or app_server.CapturedLog()).logger()
    listener = session.listener(ctx, name="mx.example.com", log=log)
    await listener.start("127.0.0.1", 0)
    host, port = listener.address
    try:
        async with aiosmtplib.SMTP(
            hostname=host, port=port, start_tls=False, timeout=60, local_hostname="mail.example.net"
        ) as client:
            await client.ehlo()
            yield client
    finally:
        await listener.stop(grace_seconds=10)


async def send(
    client: aiosmtplib.SMTP, content: bytes = MAIL, *, to: str = TO, sender: str = "anna@example.net"
) -> str:
    """Hand mail in, and return the code and the enhanced code of the last reply."""
    try:
        await client.mail(sender)
        await client.rcpt(to)
        response = await client.data(content)
        return f"{response.code} {response.message.split()[0]}"
    except (aiosmtplib.SMTPRecipientRefused, aiosmtplib.SMTPDataError) as refused:
        await client.rset()
        return f"{refused.code} {refused.message.split()[0]}"


async def stored(ctx: context.Context, account_id: str) -> list[received.Received]:
    """The mail of an account, the oldest first."""
    async with ctx.store.reading() as tx:
        return (await received.of_account(tx, account_id, before="in_~", limit=100))[::-1]


async def body(ctx: context.Context, mail: received.Received) -> bytes:
    async with ctx.store.reading() as tx:
        return await received.body(tx, mail.account_id, mail.id) or b""
