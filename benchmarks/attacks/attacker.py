"""The attacking client, a program of its own: `python -m benchmarks.attacks.attacker PLAN`, until SIGTERM.

It sends requests that were encoded before, each connection one after the other, and opens a connection again when it is
closed. It is the least urgent program of the machine: what is measured is the service, not who attacks it. At its end
it prints how often it got which answer.
"""

import asyncio
import collections
import itertools
import os
import pathlib
import signal
import sys
import typing

import httptools
import msgspec
import uvloop

from benchmarks import message

NICENESS = 10
# Before a connection that could not be opened, or was closed, is opened again.
RETRY_SECONDS = 0.05
SERIAL = message.SERIAL.encode()
SMTP_COMMANDS = 4


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """So many connections from one address, which all send these requests in turn; without requests, they are silent.

    A request over SMTP is a mail transaction: SMTP_COMMANDS commands, sent at once.

    Where `message.SERIAL` stands in a request, each time another number is sent.
    """

    port: int
    connections: int
    requests: list[bytes] = []
    source: str = "127.0.0.1"
    is_smtp: bool = False


class Client(asyncio.Protocol):
    """One connection: a request, its answer, and the next request; or silence."""

    def __init__(self, requests: typing.Iterator[bytes], counts: collections.Counter[str]) -> None:
        self.closed = asyncio.Event()
        self._requests = requests
        self._counts = counts
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first one."""
        self._transport = typing.cast("asyncio.Transport", transport)
        self._send()

    def on_message_complete(self) -> None:
        """An answer is there."""
        self._counts[str(self._parser.get_status_code())] += 1
        self._parser = httptools.HttpResponseParser(self)
        self._send()

    def data_received(self, data: bytes) -> None:
        """Bytes of answers, or a greeting for one that is silent."""
        if self._transport is not None:
            self._parser.feed_data(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """Let it be opened again."""
        self._counts["closed"] += 1
        self.closed.set()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport = None  # a silent one
        elif self._transport is not None:
            self._transport.write(request)


class SmtpClient(Client):
    """The same over SMTP, after the greeting; the answer to a request is the last of its replies."""

    def __init__(self, requests: typing.Iterator[bytes], counts: collections.Counter[str]) -> None:
        super().__init__(requests, counts)
        self._awaited = 1
        self._unread = b""
        self._is_greeted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server speaks first."""
        self._transport = typing.cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Lines of replies; the last one of each has a space behind its code."""
        *lines, self._unread = (self._unread + data).split(b"\r\n")
        for line in lines:
            if line[3:4] == b" ":
                self._awaited -= 1
                if not self._awaited:
                    self._answered(line[:3].decode())

    def _answered(self, code: str) -> None:
        if self._is_greeted:
            self._counts[code] += 1
        self._is_greeted, self._awaited = True, SMTP_COMMANDS
        self._send()


def client_of(stream: Stream, requests: typing.Iterator[bytes], counts: collections.Counter[str]) -> Client:
    """A connection of a stream."""
    return (SmtpClient if stream.is_smtp else Client)(requests, counts)


async def attack(streams: typing.Sequence[Stream]) -> collections.Counter[str]:
    """Send until SIGTERM; how often each status came."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    counts: collections.Counter[str] = collections.Counter()
    serials = itertools.count()
    tasks = []
    for stream in streams:
        requests = endless(stream.requests, serials)
        tasks += [
            asyncio.create_task(_keep_open(stream, requests, counts), name=f"connection {number}")
            for number in range(stream.connections)
        ]
    await stopping.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return counts


async def _keep_open(
    stream: Stream, requests: typing.Iterator[bytes], counts: collections.Counter[str]
) -> typing.NoReturn:
    loop = asyncio.get_running_loop()
    while True:
        try:
            _, client = await loop.create_connection(
                lambda: client_of(stream, requests, counts),
                "127.0.0.1",
                stream.port,
                local_addr=(stream.source, 0),
            )
            await client.closed.wait()
        except OSError:
            counts["not connected"] += 1
        await asyncio.sleep(RETRY_SECONDS)


def endless(requests: typing.Iterable[bytes], serials: typing.Iterator[int]) -> typing.Iterator[bytes]:
    """The requests in turn, each time with another serial."""
    for parts in itertools.cycle([request.split(SERIAL) for request in requests]):
        yield f"{next(serials):012}".encode().join(parts)


def main() -> None:
    """Read the plan, attack, print the counts."""
    os.nice(NICENESS)
    streams = msgspec.msgpack.decode(pathlib.Path(sys.argv[1]).read_bytes(), type=list[Stream])
    print(msgspec.json.encode(uvloop.run(attack(streams))).decode())


if __name__ == "__main__":
    main()
