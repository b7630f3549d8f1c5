"""SMTP servers on loopback that behave as a test tells them to: well, badly, or not at all.

    async with smtp_peers.serving({"RCPT": "550 5.1.1 nobody here"}) as peer: ...

A script says what answers each verb. Its keys are verbs, and BANNER, HANDSHAKE (after the reply to STARTTLS), RECEIVING
(after the 354, before any content is read), CONTENT (after the final dot) and QUIT. An answer is

    "250 ok"            a reply; it may have several lines, with the codes as written
    b"..."              these octets and no others
    CLOSE, RESET        hang up politely, or with a TCP reset
    SILENCE             say nothing more, and keep the connection until the peer stops
    ENDLESS             a reply that never ends
    Drip("250 ok", 0.1) a tarpit: one octet at a time, so many seconds apart
    Held("250 ok")      an answer that is only sent together with the next one that is not held
    (one, two)          one after the other, at once
    [one, two]          the first time one, from the second time on two
    a function          called with the line, gives one of the above; CONTENT: with the content, BANNER: the client's
                        address

What is not in the script is answered well, and DATA without a recipient with 554. `transactions` are the messages that
were taken: answered with 2xx, or not answered at all after the final dot.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

TIMEOUT_SECONDS = 300.0
MAX_LINE = 1024 * 1024
ALL_EXTENSIONS = ("PIPELINING", "SIZE 20000000", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES")


class Act(Enum):
    """What is not a reply."""

    CLOSE = auto()
    RESET = auto()
    SILENCE = auto()
    ENDLESS = auto()


CLOSE, RESET, SILENCE, ENDLESS = Act


@dataclass(frozen=True)
class Drip:
    """A reply that comes octet by octet."""

    text: str
    seconds: float


@dataclass(frozen=True)
class Held:
    """A reply that waits for the next one."""

    text: str


Simple = str | bytes | Act | Drip | Held
Answer = Simple | tuple[Simple, ...] | list["Answer"] | Callable[[str], "Answer"]
Script = Mapping[str, Answer]

GOOD: Script = {
    "BANNER": "220 peer.example ESMTP",
    "HELO": "250 peer.example",
    "STARTTLS": "220 2.0.0 go on",
    "MAIL": "250 2.1.0 ok",
    "RCPT": "250 2.1.5 ok",
    "DATA": "354 go on",
    "CONTENT": "250 2.0.0 taken",
    "RSET": "250 2.0.0 ok",
    "NOOP": "250 2.0.0 ok",
    "QUIT": ("221 2.0.0 bye", CLOSE),
}


@dataclass
class Transaction:
    """A message that a peer took."""

    mail: str  # the whole MAIL command, with its parameters
    recipients: list[str]
    content: bytes  # with doubled dots undone
    is_encrypted: bool
    wire: bytes = b""  # as it came, without the final dot
    client: str = ""  # the address that it came from


@dataclass
class Peer:
    """A running peer, and what it has seen."""

    script: Script
    extensions: tuple[str, ...] = ALL_EXTENSIONS
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    port: int = 0
    connections: int = 0
    commands: list[str] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    server_names: list[str | None] = field(default_factory=list)  # SNI, once for each handshake
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)  # notified for each command and content
    _times: dict[str, int] = field(default_factory=dict)

    def answer(self, verb: str, line: str) -> Answer:
        """What the script has for this verb, this time."""
        answer = self.script.get(verb, GOOD.get(verb, "500 5.5.1 what?"))
        if verb == "EHLO" and verb not in self.script:
            answer = "\n".join(("250-peer.example", *(f"250-{name}" for name in self.extensions), "250 HELP"))
        if isinstance(answer, list):
            time = self._times.get(verb, 0)
            self._times[verb] = time + 1
            answer = answer[min(time, len(answer) - 1)]
        return answer(line) if callable(answer) else answer

    def verbs(self) -> list[str]:
        """The verbs that were received, over all connections."""
        return [command.split(" ")[0].split(":")[0].upper() for command in self.commands]

    async def wait_for(self, verb: str) -> None:
        """Until this verb has come; CONTENT is the final dot."""
        async with asyncio.timeout(TIMEOUT_SECONDS), self.arrived:
            await self.arrived.wait_for(lambda: verb in self.verbs())


@contextlib.asynccontextmanager
async def serving(
    script: Script | None = None,
    *,
    extensions: tuple[str, ...] = ALL_EXTENSIONS,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    receive_buffer: int = 0,
) -> AsyncIterator[Peer]:
    """A peer that runs for as long as the block; with a context it offers STARTTLS.

    With a receive buffer of some octets the system takes little more than that for a peer that does not read.
    """
    offered = (*extensions, "STARTTLS") if tls is not None else extensions
    peer = Peer(script or {}, offered, tls, host)
    sessions: set[asyncio.Task[None]] = set()
    if tls is not None:
        tls.sni_callback = lambda _, name, __: peer.server_names.append(name)

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        sessions.add(task)
        peer.connections += 1
        try:
            await _Session(peer, reader, writer).run()
        except (OSError, EOFError, asyncio.CancelledError, asyncio.LimitOverrunError):
            pass
        finally:
            sessions.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(session, peer.host, port, limit=MAX_LINE)
    peer.port = server.sockets[0].getsockname()[1]
    if receive_buffer:
        server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        yield peer
    finally:
        server.close()
        for task in list(sessions):
            task.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)
        await asyncio.sleep(0)  # lets the loop close the aborted transports


@contextlib.contextmanager
def refusing_port(host: str = "127.0.0.1") -> Iterator[int]:
    """A port that refuses connections, because its owner does not listen."""
    with socket.socket() as owner:
        owner.bind((host, 0))
        yield owner.getsockname()[1]


@contextlib.contextmanager
def black_hole_port() -> Iterator[int]:
    """A port whose connections are never established: the queue of its listener is full."""
    with socket.socket() as owner, contextlib.ExitStack() as stack:
        owner.bind(("127.0.0.1", 0))
        owner.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0)
            filler.connect_ex(owner.getsockname())
        yield owner.getsockname()[1]


class _Session:
    """One connection to a peer."""

    def __init__(self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._peer = peer
        self._reader = reader
        self._writer = writer
        self._held = b""
        self._is_encrypted = False
        self._mail = ""
        self._recipients: list[str] = []
        self._client: str = writer.get_extra_info("peername")[0]

    async def run(self) -> None:
        await self._say("BANNER", self._client)
        while True:
            line = (await self._reader.readuntil(b"\n")).decode("utf-8", "replace").rstrip("\r\n")
            await self._note(line)
            verb = line.split(" ")[0].upper()
            if verb == "DATA" and verb not in self._peer.script and not (self._mail and self._recipients):
                await self._give("554 5.5.1 no valid recipients")
                continue
            code = await self._say(verb, line)
            if verb in {"MAIL", "RSET", "EHLO", "HELO"}:
                self._mail, self._recipients = "", []
            if verb == "MAIL" and code == "2":
                self._mail, self._recipients = line, []
            elif verb == "RCPT" and code == "2":
                self._recipients.append(line)
            elif verb == "DATA" and code == "3":
                await self._take_content()
            elif verb == "STARTTLS" and code == "2":
                await self._secure()

    async def _take_content(self) -> None:
        if "RECEIVING" in self._peer.script:
            await self._say("RECEIVING")
        received = bytearray(b"\r\n")
        while not received.endswith(b"\r\n.\r\n"):
            received += await self._reader.readuntil(b"\r\n")
        await self._note("CONTENT")
        content = bytes(received[:-3]).replace(b"\r\n..", b"\r\n.")[2:]
        # Taken before it is answered: a peer that hangs up now has the message.
        wire = bytes(received[2:-3])
        transaction = Transaction(self._mail, self._recipients, content, self._is_encrypted, wire, self._client)
        answer = self._peer.answer("CONTENT", content.decode("latin-1"))
        if _first_digit(answer) in {"2", ""}:
            self._peer.transactions.append(transaction)
        self._mail, self._recipients = "", []
        await self._give(answer)

    async def _secure(self) -> None:
        if "HANDSHAKE" in self._peer.script:
            await self._say("HANDSHAKE")
        assert self._peer.tls is not None
        await self._writer.start_tls(self._peer.tls)
        self._is_encrypted = True

    async def _note(self, command: str) -> None:
        async with self._peer.arrived:
            self._peer.commands.append(command)
            self._peer.arrived.notify_all()

    async def _say(self, verb: str, line: str = "") -> str:
        answer = self._peer.answer(verb, line)
        await self._give(answer)
        return _first_digit(answer)

    async def _give(self, answer: Answer) -> None:
        for part in answer if isinstance(answer, tuple) else (answer,):
            if isinstance(part, Held):
                self._held += _lines(part.text)
            elif isinstance(part, str | bytes):
                self._writer.write(self._held + (_lines(part) if isinstance(part, str) else part))
                self._held = b""
                await self._writer.drain()
            elif isinstance(part, Drip):
                for octet in _lines(part.text):
                    self._writer.write(bytes([octet]))
                    await asyncio.sleep(part.seconds)
            else:
                assert isinstance(part, Act)
                await self._act(part)

    async def _act(self, act: Act) -> None:
        if act is Act.SILENCE:
            await asyncio.get_running_loop().create_future()
        if act is Act.ENDLESS:
            while True:
                self._writer.write(b"250-and so on\r\n")
                await self._writer.drain()
        if act is Act.RESET:
            # Closing with a linger time of zero sends RST.
            linger = b"\1\0\0\0\0\0\0\0"
            self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._writer.transport.abort()
        else:
            self._writer.close()
        raise EOFError


def _lines(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode() + b"\r\n"


def _first_digit(answer: Answer) -> str:
    first = answer[0] if isinstance(answer, tuple) else answer
    text = first.text if isinstance(first, Drip | Held) else first
    return text[:1] if isinstance(text, str) else ""
