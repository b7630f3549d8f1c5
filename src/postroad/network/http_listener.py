"""The listening side of HTTP: bind, accept, sweep once a second, stop in order.

The listener starts and stops inside the caller's event loop and leaves signals alone. It owns what its connections
share. Stopping means: no new connection, idle ones closed, requests under way finished within the grace time, the rest
cancelled and cut.
"""

import asyncio
import contextlib
import email.utils
import time
from typing import Final

from postroad.network import http_exchange, http_limits, http_protocol

SWEEP_SECONDS: Final = 1.0
BACKLOG: Final = 2048
# A cancelled request has only to write its error object.
CANCEL_SECONDS: Final = 1.0


class HttpListener:
    """One listening address and its connections."""

    def __init__(
        self,
        application: http_exchange.Application,
        *,
        refuse: http_exchange.Refuse,
        limits: http_limits.Limits | None = None,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        self._limits = limits or http_limits.Limits()
        self._sweep_seconds = sweep_seconds
        self._shared = http_exchange.Shared(application, refuse)
        self._connections: set[http_protocol.HttpProtocol] = set()
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
        self._server = await loop.create_server(self._make_protocol, host, port, backlog=BACKLOG)
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

    def _make_protocol(self) -> http_protocol.HttpProtocol:
        return http_protocol.HttpProtocol(self._shared, limits=self._limits, connections=self._connections)

    def _let_go(self) -> None:
        """Close connections that are idle; the others close when their request is answered."""
        for connection in list(self._connections):
            connection.shutdown()

    def _tick(self) -> None:
        """Once a second: end what is overdue, and write the date anew (RFC 9110 section 6.6.1)."""
        loop = asyncio.get_running_loop()
        self._ticker = loop.call_later(self._sweep_seconds, self._tick)
        self._shared.date = b"date: " + email.utils.formatdate(time.time(), usegmt=True).encode()
        now = loop.time()
        for connection in list(self._connections):
            connection.sweep(now)
        if self._shared.changed is not None:
            # For one that was accepted just before the listening socket closed.
            self._let_go()

    async def _finish(self, changed: asyncio.Event) -> None:
        while self._shared.under_way or self._connections:
            changed.clear()
            await changed.wait()

    async def _cut(self, changed: asyncio.Event) -> None:
        for exchange in list(self._shared.under_way):
            exchange.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._finish(changed)
        for connection in list(self._connections):
            connection.transport.abort()
