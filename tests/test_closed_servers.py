"""Connections that come in the step of the loop in which their server closes."""

import asyncio
import gc
import socket
from typing import Any

import pytest


async def test_a_connection_to_a_server_that_closes_is_closed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loop: Any = asyncio.get_running_loop()
    accept = loop._accept_connection
    taken: list[socket.socket] = []

    def accept_and_close(*arguments: Any) -> None:
        accept(*arguments)
        taken.append(arguments[1])
        server.close()

    monkeypatch.setattr(loop, "_accept_connection", accept_and_close)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()) as caller:
        caller.settimeout(0)
        async with asyncio.timeout(60):
            assert await loop.sock_recv(caller, 1) == b""
    assert len(taken) == 1
    gc.collect()  # a transport that was left behind would warn here, and warnings are errors
