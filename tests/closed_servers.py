"""A connection that comes while its server closes is closed too.

asyncio takes it from the system in one step of the loop and makes its transport in the next. If the server was closed
in between, an assertion within the transport fails unseen, and the socket is left to the garbage collector, which
blames whatever test runs then (https://github.com/python/cpython/issues/109564).
"""

import asyncio
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Callable, Coroutine
from typing import Any


def install() -> None:
    """Close such connections in this process from now on."""
    make_transport: Callable[..., Coroutine[Any, Any, None]] = BaseSelectorEventLoop._accept_connection2  # type: ignore[attr-defined]

    async def make_or_close(
        loop: asyncio.AbstractEventLoop,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        connection: socket.socket,
        extra: dict[str, Any],
        sslcontext: object = None,
        server: asyncio.Server | None = None,
        *limits: Any,
        **named_limits: Any,
    ) -> None:
        if server is not None and not server.sockets:
            connection.close()
            return
        await make_transport(loop, protocol_factory, connection, extra, sslcontext, server, *limits, **named_limits)

    BaseSelectorEventLoop._accept_connection2 = make_or_close  # type: ignore[attr-defined]
