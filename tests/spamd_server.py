"""A daemon of SpamAssassin on loopback, which gives one answer to every request."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from postroad.network import spamd

SPAM = b"SPAMD/1.1 0 EX_OK\r\nContent-length: 23\r\nSpam: True ; 6.5 / 5.0\r\n\r\n pts rule name\n 6.5 GTUBE\n"

VERDICT = spamd.Verdict(is_spam=True, score=6.5, threshold=5.0, report="pts rule name\n 6.5 GTUBE")


@contextlib.asynccontextmanager
async def running(answer: bytes | None, *, path: Path | None = None) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A daemon that answers so, or never; its address and the requests."""
    requests: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"Content-length: ")[2].partition(b"\r\n")[0])
            requests.append(head + await reader.readexactly(length))
            if answer is None:
                await reader.read()
                return
            writer.write(answer)
            await writer.drain()

    if path is not None:
        async with await asyncio.start_unix_server(take, path):
            yield str(path), requests
        return
    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}", requests
