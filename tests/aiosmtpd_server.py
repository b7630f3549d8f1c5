"""A mail server that is not ours: aiosmtpd, which knows no PIPELINING. It takes everything but mail for bob.

With `passwords` it requires a login.
"""

import asyncio
import contextlib
import ssl
import warnings
from collections.abc import AsyncIterator, Mapping

import aiosmtpd.smtp


class Mailbox:
    """What aiosmtpd calls. `taken` holds recipients, the content as it came, and whether it came under TLS."""

    def __init__(self) -> None:
        self.taken: list[tuple[list[str], bytes, bool]] = []

    async def handle_RCPT(  # noqa: N802 - as aiosmtpd has it
        self,
        server: aiosmtpd.smtp.SMTP,
        session: aiosmtpd.smtp.Session,
        envelope: aiosmtpd.smtp.Envelope,
        address: str,
        options: list[str],
    ) -> str:
        if address.startswith("bob@"):
            return "550 5.7.1 not for bob"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 ok"

    async def handle_DATA(  # noqa: N802 - as aiosmtpd has it
        self, server: aiosmtpd.smtp.SMTP, session: aiosmtpd.smtp.Session, envelope: aiosmtpd.smtp.Envelope
    ) -> str:
        assert isinstance(envelope.original_content, bytes)
        self.taken.append((envelope.rcpt_tos, envelope.original_content, session.ssl is not None))
        return "250 2.0.0 taken"


@contextlib.asynccontextmanager
async def serving(
    mailbox: Mailbox,
    *,
    name: str,
    tls: ssl.SSLContext | None,
    implicit_tls: bool = False,
    passwords: Mapping[str, str] | None = None,
) -> AsyncIterator[int]:
    """The server for the time of the block; gives its port. The passwords of users may change meanwhile."""

    def check(
        _server: object, _session: object, _envelope: object, _mechanism: str, given: aiosmtpd.smtp.LoginPassword
    ) -> aiosmtpd.smtp.AuthResult:
        is_known = (passwords or {}).get(given.login.decode()) == given.password.decode()
        return aiosmtpd.smtp.AuthResult(success=is_known, handled=False)

    def make() -> aiosmtpd.smtp.SMTP:
        with warnings.catch_warnings(action="ignore"):  # a login without TLS is for tests only
            return made()

    def made() -> aiosmtpd.smtp.SMTP:
        return aiosmtpd.smtp.SMTP(
            mailbox,
            hostname=name,
            tls_context=None if implicit_tls else tls,
            enable_SMTPUTF8=True,
            authenticator=check if passwords is not None else None,
            auth_required=passwords is not None,
            auth_require_tls=tls is not None and not implicit_tls,
        )

    from_the_start = tls if implicit_tls else None
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0, ssl=from_the_start)
    async with server:
        yield server.sockets[0].getsockname()[1]
