"""A proxy that loses the first answer: the service has done the work, and the client cannot know it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib import parse

from clients.conformance import wire


class LosingProxy:
    """Passes requests on, each over a connection of its own. The first answer is swallowed, and the client reset."""

    def __init__(self, upstream: str) -> None:
        self.requests: list[wire.Request] = []
        self.lost_answers: list[bytes] = []
        self._address = parse.urlsplit(upstream)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client."""
        request = await wire.read_request(reader, writer)
        if request is None:
            return
        self.requests.append(request)
        is_first = len(self.requests) == 1
        answer = await self._pass_on(request)
        if is_first:
            self.lost_answers.append(answer)
            wire.reset(writer)
            return
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _pass_on(self, request: wire.Request) -> bytes:
        """All of the service's answer; it says `Connection: close`, because we do."""
        reader, writer = await asyncio.open_connection(self._address.hostname, self._address.port)
        ours = ("connection", "content-length", "expect", "transfer-encoding")
        lines = [f"{request.method} {request.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers if name not in ours]
        lines += [f"Content-Length: {len(request.body)}", "Connection: close", "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + request.body)
        try:
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def losing(upstream: str) -> AsyncIterator[tuple[LosingProxy, str]]:
    """The proxy, and its base URL, for the time of the block."""
    proxy = LosingProxy(upstream)
    listener = wire.Listener(proxy.serve)
    port = await listener.open()
    try:
        yield proxy, f"http://127.0.0.1:{port}"
    finally:
        await listener.close()
