"""A connection to a destination: the pump between a socket and the SMTP client, and the owner of its time.

    connect --banner, EHLO, STARTTLS by policy--> idle --deliver--> busy --results--> idle
    whatever a peer does wrong --> closed: `deliver` returns results that say so, and never raises

Only one transaction is under way at a time. A connection has one timer. It is not moved for every command: the deadline
is a plain number, and the timer, when it fires, looks whether that has passed.
"""

import asyncio
import contextlib
import math
import os
import ssl
from dataclasses import dataclass
from typing import Final

from postroad.model import tls_policy
from postroad.network import tls
from postroad.protocol.smtp import client, values

# A server that does not answer QUIT has still taken our mail; nobody has to wait for its manners.
QUIT_SECONDS: Final = 2.0
# The loop tells of the end of an aborted transport in its next round.
ABORT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to connect, and how the connection has to be secured."""

    host: str
    address: str
    port: int
    tls: tls_policy.TlsPolicy = tls_policy.OPPORTUNISTIC
    source_address: str | None = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds (RFC 5321 section 4.5.3.2): to connect and for a handshake, for a reply, for progress of the content."""

    connect: float
    reply: float
    content: float


class ConnectFailed(Exception):
    """There is no session; the result says how far it came."""

    def __init__(self, result: values.RecipientResult) -> None:
        super().__init__(result.detail or (result.reply.text if result.reply else ""))
        self.result = result


async def connect(
    destination: Destination, *, hello_name: str, timeouts: Timeouts, ca_file: str | None = None
) -> "SmtpConnection":
    """A session that is ready for mail. `ca_file` takes the place of the system's authorities."""
    mode = destination.tls.mode
    if mode is tls_policy.Mode.PLAIN:
        return await _open(destination, hello_name=hello_name, timeouts=timeouts)
    context = tls.context(verifies=mode is tls_policy.Mode.VERIFIED, ca_file=ca_file)
    try:
        return await _open(destination, hello_name=hello_name, timeouts=timeouts, context=context)
    except _TlsFailed:
        if mode is not tls_policy.Mode.OPPORTUNISTIC:
            raise
    return await _open(destination, hello_name=hello_name, timeouts=timeouts)


class _TlsFailed(ConnectFailed):
    """STARTTLS was offered and did not lead to a session."""


async def _open(
    destination: Destination, *, hello_name: str, timeouts: Timeouts, context: ssl.SSLContext | None = None
) -> "SmtpConnection":
    loop = asyncio.get_running_loop()
    source = destination.source_address
    try:
        async with asyncio.timeout(timeouts.connect):
            _, connection = await loop.create_connection(
                lambda: SmtpConnection(destination, hello_name=hello_name, timeouts=timeouts, context=context),
                destination.address,
                destination.port,
                local_addr=None if source is None else (source, 0),
            )
    except TimeoutError:
        raise _connect_failed(destination, f"no answer within {timeouts.connect:g} s") from None
    except OSError as problem:
        raise _connect_failed(destination, _reason(problem)) from None
    try:
        await connection.greet()
    except BaseException:
        connection.abort()
        raise
    return connection


class SmtpConnection(asyncio.Protocol):
    """A connection; `connect` makes it."""

    def __init__(
        self, destination: Destination, *, hello_name: str, timeouts: Timeouts, context: ssl.SSLContext | None
    ) -> None:
        self.destination = destination
        self.tls = ""
        self.deliveries = 0
        self._timeouts = timeouts
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._client = client.Client(hello_name, starttls=context is not None)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._gone = asyncio.Event()
        self._is_paused = False
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the next transaction may begin here."""
        return self._client.step is client.IDLE

    async def deliver(self, transaction: values.MailTransaction) -> tuple[values.RecipientResult, ...]:
        """One transaction; a result for each recipient, in their order."""
        session = self._client
        session.begin(transaction)
        if session.is_waiting:
            self.deliveries += 1
            await self._wait_until_idle()
        return session.results()

    async def close(self) -> None:
        """Say good-bye where that is polite, for a moment at most."""
        try:
            if self.is_usable:
                self._client.quit()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(QUIT_SECONDS):
                        await self._wait_until_idle()
        finally:
            self.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ABORT_SECONDS):
                await self._gone.wait()

    def abort(self) -> None:
        """Drop the connection; a delivery that is under way ends with results that say so."""
        self._fail("the connection was given up on this side")

    # How a session begins.

    async def greet(self) -> None:
        """Banner, EHLO, STARTTLS as far as the policy wants it; `connect` calls this once."""
        session, mode = self._client, self.destination.tls.mode
        await self._wait_until_idle()
        if session.step is client.HANDSHAKE and self._context is not None:
            await self._secure(self._context)
            session.secured()
            await self._wait_until_idle()
        if session.failure is not None:
            is_about_tls = session.failure.stage is values.Stage.STARTTLS or (self.tls and not session.failure.reply)
            raise (_TlsFailed if is_about_tls else ConnectFailed)(session.failure)
        if not self.tls and mode not in {tls_policy.Mode.PLAIN, tls_policy.Mode.OPPORTUNISTIC}:
            raise _TlsFailed(_tls_failure("the destination does not offer STARTTLS, which is required here"))

    async def _secure(self, context: ssl.SSLContext) -> None:
        assert self._transport is not None  # noqa: S101 - the handshake follows a reply
        destination = self.destination
        try:
            transport = await self._loop.start_tls(
                self._transport,
                self,
                context,
                server_hostname=destination.host.rstrip("."),
                ssl_handshake_timeout=self._timeouts.connect,
            )
            if transport is None:
                raise ConnectionResetError("the destination closed the connection")
            self._transport = transport
            seen = transport.get_extra_info("ssl_object")
            found = tls.check(seen, destination.tls, host=destination.host)
        except tls.CertificateRejected as problem:
            raise _TlsFailed(_tls_failure(str(problem))) from None
        except (OSError, ValueError) as problem:  # ValueError: a host name that cannot be sent as SNI
            raise _TlsFailed(_tls_failure(f"the TLS handshake failed: {_reason(problem)}")) from None
        self.tls = f"{seen.version()} {found}".rstrip()

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Connected; the banner is awaited."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Replies, or parts of them."""
        session = self._client
        before = session.replies
        session.receive(data)
        # A server that sends its reply octet by octet does not win time with each of them.
        self._advance(is_progress=session.replies != before)

    def eof_received(self) -> None:
        """The server has said its last word."""
        self._fail("the destination closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._gone.set()
        reason = f"the connection was lost: {_reason(exc)}" if exc else "the destination closed the connection"
        self._fail(reason)

    def pause_writing(self) -> None:
        """The server does not read as fast as we write."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The server has read: that is progress, and the content may go on."""
        self._is_paused = False
        if self._client.is_waiting:
            self._advance(is_progress=True)

    # Our own.

    async def _wait_until_idle(self) -> None:
        """Wait until the client waits for nothing more."""
        self._waiter = self._loop.create_future()
        self._advance(is_progress=True)
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._waiter = None

    def _advance(self, *, is_progress: bool) -> None:
        """Write what there is; then wait for a reply in time, or wake who waits for the client to rest."""
        session, transport = self._client, self._transport
        if transport is not None:
            # A transport that a write has failed on swallows the next ones: a final dot that it got never left.
            while not (self._is_paused or transport.is_closing()) and (data := session.next_bytes()):
                transport.write(data)
        if session.step < client.HANDSHAKE:  # as `is_waiting` says, without the call
            if is_progress:
                self._set_deadline()
            return
        self._deadline = math.inf
        if session.step is client.CLOSED:
            self._drop()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, detail: str) -> None:
        if self._client.step is not client.CLOSED:
            self._client.fail(detail)
            self._advance(is_progress=False)
        self._drop()

    def _drop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    def _set_deadline(self) -> None:
        seconds = self._timeouts.content if self._client.step is client.CONTENT else self._timeouts.reply
        self._deadline = self._loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= self._deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._deadline == math.inf:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._tick)
        else:
            self._fail("the destination did not answer in time")


def _connect_failed(destination: Destination, reason: str) -> ConnectFailed:
    where = f"{destination.host} [{destination.address}]:{destination.port}"
    return ConnectFailed(values.RecipientResult(values.Stage.CONNECT, detail=f"connecting to {where}: {reason}"))


def _tls_failure(detail: str) -> values.RecipientResult:
    return values.RecipientResult(values.Stage.STARTTLS, detail=detail)


def _reason(problem: BaseException) -> str:
    """An error of the system in its own words, without the decoration that differs between event loops."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return str(problem.verify_message)
    if isinstance(problem, ssl.SSLError):
        return (problem.reason or "TLS error").replace("_", " ").lower()
    if isinstance(problem, OSError) and problem.errno:
        return os.strerror(problem.errno).lower()
    return str(problem) or type(problem).__name__
