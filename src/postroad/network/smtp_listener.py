"""The listening side of SMTP: bind, accept, sweep once a second, stop in order.

The listener starts and stops inside the caller's event loop and leaves signals alone. Stopping means: no new
connection, idle ones closed with 421, transactions under way finished within the grace time, the rest cancelled and
cut.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Final

from postroad.network import smtp_session
from postroad.protocol.smtp import server_events

SWEEP_SECONDS: Final = 1.0
BACKLOG: Final = 1024
# A transport that was cut has only to tell so.
CUT_SECONDS: Final = 1.0


class SmtpListener:
    """One listening address and its connections. STARTTLS needs a TLS context; `implicit_tls` begins with TLS."""

    def __init__(
        self,
        make_policy: Callable[[server_events.Session], smtp_session.Policy],
        *,
        features: server_events.Features,
        failed: Callable[[Exception], None],
        limits: smtp_session.Limits | None = None,
        tls: ssl.SSLContext | None = None,
        implicit_tls: bool = False,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        if tls is None and (features.starttls or implicit_tls):
            raise ValueError("TLS is offered without a certificate")
        self._shared = smtp_session.Shared(
            features, make_policy, failed=failed, limits=limits or smtp_session.Limits(), tls=tls
        )
        self._accept_tls = tls if implicit_tls else None
        self._sweep_seconds = sweep_seconds
        self._server: asyncio.Server | None = None
        self._address: tuple[str, int] | None = None
        self._ticker: asyncio.TimerHandle | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that are bound."""
        if self._address is None:
            raise RuntimeError("the listener is not started")
        return self._address

    async def start(self, host: str, port: int) -> None:
        """Bind and accept; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: smtp_session.SmtpSession(self._shared), host, port, backlog=BACKLOG, ssl=self._accept_tls
        )
        self._address = self._server.sockets[0].getsockname()[:2]
        self._tick()

    async def stop(self, *, grace_seconds: float) -> None:
        """Finish what is under way within the grace time, and close everything."""
        if self._server is None:
            return
        self._shared.changed = asyncio.Event()
        self._server.close()
        self._let_go()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._finish(self._shared.changed)
        except TimeoutError:
            await self._cut(self._shared.changed)
        if self._ticker is not None:
            self._ticker.cancel()

    def _let_go(self) -> None:
        """Close connections without a transaction; the others close when theirs is over."""
        for connection in list(self._shared.connections):
            connection.shutdown()

    def _tick(self) -> None:
        """Once a second: end what is overdue."""
        loop = asyncio.get_running_loop()
        self._ticker = loop.call_later(self._sweep_seconds, self._tick)
        now = loop.time()
        for connection in list(self._shared.connections):
            connection.sweep(now)
        if self._shared.changed is not None:
            # For one that was accepted just before the listening socket closed.
            self._let_go()

    async def _finish(self, changed: asyncio.Event) -> None:
        while self._shared.working or self._shared.connections:
            changed.clear()
            await changed.wait()

    async def _cut(self, changed: asyncio.Event) -> None:
        for task in list(self._shared.working):
            task.cancel()
        for connection in list(self._shared.connections):
            connection.transport.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CUT_SECONDS):
                await self._finish(changed)
