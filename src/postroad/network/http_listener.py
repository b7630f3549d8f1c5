"""The listening side of HTTP: bind, accept, sweep once a second, stop in order.

uvicorn's protocol does the HTTP; its server is not used, because it takes over signals and exits the process. The
listener starts and stops inside the caller's event loop. Stopping means: no new connection, idle ones closed,
requests under way finished within the grace time, the rest cancelled and cut.
"""

import asyncio
import contextlib
import email.utils
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import uvicorn
from uvicorn import server as uvicorn_server

from postroad.network import http_protocol

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

SWEEP_SECONDS: Final = 1.0
BACKLOG: Final = 2048
# A cancelled request has only to write its error object.
CANCEL_SECONDS: Final = 1.0


class HttpListener:
    """One listening address and its connections."""

    def __init__(
        self,
        application: Application,
        *,
        refuse: http_protocol.Refuse,
        limits: http_protocol.Limits | None = None,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        self._limits = limits or http_protocol.Limits()
        self._refuse = refuse
        self._sweep_seconds = sweep_seconds
        self._state = uvicorn_server.ServerState()
        self._config = uvicorn.Config(
            application,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            # A caller must not choose its own address; proxies are a matter for the settings.
            proxy_headers=False,
            timeout_keep_alive=self._limits.idle_seconds,
        )
        self._server: asyncio.Server | None = None
        self._address: tuple[str, int] | None = None
        self._stopping = False
        self._ticker: asyncio.TimerHandle | None = None
        self._quiet = asyncio.Event()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port that are bound."""
        if self._address is None:
            raise RuntimeError("the listener is not started")
        return self._address

    async def start(self, host: str, port: int) -> None:
        """Bind and accept; port 0 takes a free one."""
        loop = asyncio.get_running_loop()
        self._config.load()
        self._server = await loop.create_server(self._make_protocol, host, port, backlog=BACKLOG)
        self._address = self._server.sockets[0].getsockname()[:2]
        self._tick()

    async def stop(self, *, grace_seconds: float) -> None:
        """Finish what is under way within the grace time, and close everything."""
        if self._server is None:
            return
        self._stopping = True
        self._server.close()
        self._let_go()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._finish()
        except TimeoutError:
            await self._cut()
        if self._ticker is not None:
            self._ticker.cancel()

    def _make_protocol(self) -> http_protocol.HttpProtocol:
        return http_protocol.HttpProtocol(
            self._config, self._state, limits=self._limits, refuse=self._refuse, lost=self._on_lost
        )

    def _let_go(self) -> None:
        """Close connections that are idle; the others close when their request is answered."""
        for connection in list(self._state.connections):
            connection.shutdown()

    def _on_lost(self) -> None:
        if not self._state.connections:
            self._quiet.set()

    def _tick(self) -> None:
        """Once a second: end what is overdue, and write the date anew (RFC 9110 section 6.6.1)."""
        loop = asyncio.get_running_loop()
        self._ticker = loop.call_later(self._sweep_seconds, self._tick)
        self._state.default_headers = [(b"date", email.utils.formatdate(time.time(), usegmt=True).encode())]
        now = loop.time()
        for connection in list(self._state.connections):
            connection.sweep(now)  # type: ignore[union-attr]  # our own protocol, see _make_protocol
        if self._stopping:
            # For one that was accepted just before the listening socket closed.
            self._let_go()

    async def _finish(self) -> None:
        while self._state.tasks or self._state.connections:
            if self._state.tasks:
                await asyncio.wait(set(self._state.tasks))
            elif self._state.connections:
                self._quiet.clear()
                await self._quiet.wait()

    async def _cut(self) -> None:
        for task in set(self._state.tasks):
            task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._finish()
        for connection in list(self._state.connections):
            connection.transport.abort()
