"""A client at each listener of one service: the same rules hold over HTTP and over SMTP.

The fixtures are imported by the tests that need them.
"""

import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiosmtplib
import httpx
import pytest_asyncio

from postroad import context
from postroad.services.templates import templates
from postroad.web import application
from tests import asgi
from tests.api.management import served, switch
from tests.submission.submission_server import ADA, SENDER, SubmissionServer, send

__all__ = ["served", "switch"]

ALIAS = "welcome"
GOOD: dict[str, Any] = {"from": SENDER, "to": ADA, "subject": "Hello", "text": "Hi"}
USUAL = {"From": SENDER, "To": ADA, "Subject": "Hello"}


@dataclasses.dataclass(frozen=True)
class Mime:
    """A message over SMTP: header lines beside or instead of the usual ones, its body and its recipients."""

    lines: Sequence[str] = ()
    body: str = "Hi\r\n"
    to: Sequence[str] = (ADA,)
    without: str = ""

    @property
    def content(self) -> bytes:
        given = {self.without, *(line.partition(":")[0] for line in self.lines)}
        usual = [f"{name}: {value}" for name, value in USUAL.items() if name not in given]
        return "\r\n".join([*usual, *self.lines, "", self.body]).encode()


@dataclasses.dataclass
class Listeners:
    """A client at each listener, for the same credential."""

    http: httpx.AsyncClient
    smtp: aiosmtplib.SMTP
    server: SubmissionServer
    keys: int = 0

    async def post(self, *, key: str | None = None, **fields: object) -> httpx.Response:
        self.keys += 1
        headers = {"Idempotency-Key": key or f"key-{self.keys}"}
        return await self.http.post("/emails", json=GOOD | fields, headers=headers)

    async def send(self, mime: Mime, *, sender: str = SENDER) -> None:
        """A refusal is aiosmtplib's exception."""
        try:
            await send(self.smtp, mime.content, *mime.to, sender=sender)
        except aiosmtplib.SMTPResponseException:
            await self.smtp.rset()
            raise

    async def submit(self, mime: Mime) -> int:
        """The code of the last reply."""
        try:
            await self.send(mime)
        except aiosmtplib.SMTPResponseException as refused:
            return refused.code
        return 250


@pytest_asyncio.fixture
async def both(
    ctx: context.Context, server: SubmissionServer, served: application.Application[context.Context]
) -> AsyncIterator[Listeners]:
    await templates.put(ctx, server.account.id, ALIAS, subject="Welcome", text="Hi", html=None)
    await templates.put(ctx, server.account.id, "x" * 64, subject="Welcome", text="Hi", html=None)
    transport = httpx.ASGITransport(asgi.of(served))
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://postroad.test", auth=server.login, timeout=60) as http,
        server.client() as smtp,
    ):
        yield Listeners(http, smtp, server)
