"""Everything around the service, on loopback and in this process: name server, mail hosts, and an HTTPS server.

Mail to `example.net`, the victim's, is taken and timed. Mail to any domain under `hanging.example` gets no reply to its
final dot, mail to `quick.example` is taken. The HTTPS server notes when it is told about mail of the victim, never
answers under `/hangs`, and has a file for whoever asks with GET.
"""

import asyncio
import collections.abc
import contextlib
import itertools
import json
import pathlib
import ssl
import time
import typing

import trustme

from benchmarks import message
from benchmarks.peers import name_server, process, timed_sink

HOOKS = "hooks.example.org"
HOOKS_ADDRESS = "127.0.1.3"
QUICK_DOMAIN, HANGING_DOMAIN = "quick.example", "hanging.example"
QUICK_ADDRESS, HANGING_ADDRESS = "127.0.1.1", "127.0.1.2"
FILE_BYTES = 4 * 1024 * 1024
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"


class Names(collections.abc.Mapping[tuple[str, str], str]):
    """Where mail goes: every domain has a mail host of its own name, and that of a hanging domain hangs."""

    def __getitem__(self, question: tuple[str, str]) -> str:
        name, kind = question
        if kind == "MX" and not name.startswith("mx."):
            return f"10 mx.{name}."
        if kind == "A" and name.endswith(HOOKS):
            return HOOKS_ADDRESS
        if kind == "A" and name.startswith("mx."):
            return HANGING_ADDRESS if name.endswith(HANGING_DOMAIN) else QUICK_ADDRESS
        raise KeyError(question)

    def __iter__(self) -> typing.Iterator[tuple[str, str]]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Outside:
    """The running servers, and when mail of the victim arrived and was reported, by recipient."""

    def __init__(self, *, names: str, mx_port: int, hooks_port: int, authority: pathlib.Path) -> None:
        self.name_server = names
        self.mx_port = mx_port
        self.authority = authority
        self.hooks = f"https://{HOOKS}:{hooks_port}"
        self.mail = timed_sink.TimedSink(prefix="customer-", expected=0)
        self.reported: dict[str, float] = {}
        self._serials = itertools.count()

    def new_serial(self) -> str:
        """The number of one more message of the victim; `recipient` has its address."""
        return f"{next(self._serials):012}"

    async def hang(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A mail host that takes everything but the end of a message."""
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            writer.write(b"220 hanging ESMTP\r\n")
            while line := await reader.readline():
                verb = line[:4].upper()
                if verb == b"DATA":
                    writer.write(b"354 go on\r\n")
                    await reader.read()  # until the service gives up
                else:
                    writer.write(b"250 ok\r\n")

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection to the HTTPS server."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length:")), b":0")
                body = await reader.readexactly(int(length.partition(b":")[2]))
                if head.startswith(b"post /hangs"):
                    await reader.read()
                    return
                if head.startswith(b"get"):
                    writer.write(OK % FILE_BYTES + bytes(FILE_BYTES))
                else:
                    self.reported.setdefault(str(json.loads(body)["data"].get("to")), time.perf_counter())
                    writer.write(OK % 0)


@contextlib.asynccontextmanager
async def running(folder: pathlib.Path) -> typing.AsyncIterator[Outside]:
    """All of them, for the time of the block; their certificate goes into the folder."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOOKS, f"*.{HOOKS}").configure_cert(context)
    mx_port, hooks_port = process.free_ports(2)
    with name_server.running(Names()) as names:
        outside = Outside(names=names, mx_port=mx_port, hooks_port=hooks_port, authority=folder / "authority.pem")
        async with (
            await asyncio.start_server(outside.mail.serve, QUICK_ADDRESS, mx_port, limit=FILE_BYTES),
            await asyncio.start_server(outside.hang, HANGING_ADDRESS, mx_port),
            await asyncio.start_server(outside.receive, HOOKS_ADDRESS, hooks_port, ssl=context),
        ):
            yield outside


def recipient(serial: str) -> str:
    """Whom a message of the victim goes to."""
    return f"customer-{serial}@{message.RECIPIENT_DOMAIN}"
