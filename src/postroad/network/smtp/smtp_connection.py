"""A connection to a destination: connects a socket to the sans-IO SMTP client, and owns its timeouts.

    connect --banner, EHLO, STARTTLS by policy, AUTH--> idle --deliver--> busy --results--> idle
    any protocol error or loss --> closed: `deliver` returns results with the cause and never raises

Only one transaction is in progress at a time. A connection has one timer. It is not rescheduled for each command: the
deadline is a plain number, and the timer compares it when it fires.
"""

import asyncio
import contextlib
import errno
import math
import os
import ssl
from typing import Final

import msgspec

from postroad.model.delivery import tls_policy
from postroad.network.tls import client_tls
from postroad.protocol.reports import tls_report
from postroad.protocol.smtp import authentication, client, values

# The mail is accepted even if the server does not answer QUIT.
QUIT_SECONDS: Final = 2.0
# The loop reports the end of an aborted transport in its next iteration.
ABORT_SECONDS: Final = 1.0
CONNECT_CAUSES: Final = {
    errno.ECONNREFUSED: values.Cause.CONNECTION_REFUSED,
    errno.ETIMEDOUT: values.Cause.CONNECTION_TIMED_OUT,
    errno.ENETUNREACH: values.Cause.HOST_UNREACHABLE,
    errno.EHOSTUNREACH: values.Cause.HOST_UNREACHABLE,
}
NO_STARTTLS: Final = tls_report.FailureType.STARTTLS_NOT_SUPPORTED
# The sessions to try, where a policy allows a weaker one when TLS fails.
FALLBACKS: Final = {
    tls_policy.Mode.TESTING: (
        tls_policy.Mode.VERIFIED,
        tls_policy.Mode.OPPORTUNISTIC,
        tls_policy.Mode.PLAIN,
    ),
    tls_policy.Mode.OPPORTUNISTIC: (tls_policy.Mode.OPPORTUNISTIC, tls_policy.Mode.PLAIN),
}


class Destination(msgspec.Struct, frozen=True):
    """Where to connect, how the connection has to be secured, and what to authenticate with.

    With `implicit_tls` the handshake comes before the banner (RFC 8314 section 3.3).
    """

    host: str
    address: str
    port: int
    tls: tls_policy.TlsPolicy = tls_policy.OPPORTUNISTIC
    source_address: str | None = None
    implicit_tls: bool = False
    credentials: authentication.Credentials | None = None


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds (RFC 5321 section 4.5.3.2): to connect and for a handshake, for a reply, for progress of the content."""

    connect: float
    reply: float
    content: float


class ConnectFailed(Exception):
    """No session was established; the result says how far it got, and `tls_failure` how TLS failed, if it did."""

    def __init__(self, result: values.RecipientResult, tls_failure: tls_report.FailureType | None = None) -> None:
        super().__init__(result.detail or (result.reply.text if result.reply else ""))
        self.result = result
        self.tls_failure = tls_failure
        self.source_address = ""
        # What was said before it failed.
        self.conversation = ""


async def connect(
    destination: Destination, *, hello_name: str, timeouts: Timeouts, ca_file: str | None = None
) -> "SmtpConnection":
    """A session that is ready for mail. `ca_file` takes the place of the system's authorities."""
    modes = FALLBACKS.get(destination.tls.mode, (destination.tls.mode,))
    tls_failure: tls_report.FailureType | None = None
    for mode in modes[:-1]:
        try:
            connection = await _open(destination, mode, hello_name=hello_name, timeouts=timeouts, ca_file=ca_file)
            break
        except _TlsFailed as failed:
            tls_failure = tls_failure or failed.tls_failure
    else:
        connection = await _open(destination, modes[-1], hello_name=hello_name, timeouts=timeouts, ca_file=ca_file)
    connection.tls_failure = tls_failure or connection.tls_failure
    # For the next message it is a connection under the policy that was asked for.
    connection.destination = destination
    return connection


class _TlsFailed(ConnectFailed):
    """TLS did not lead to a session."""


async def _open(
    destination: Destination, mode: tls_policy.Mode, *, hello_name: str, timeouts: Timeouts, ca_file: str | None
) -> "SmtpConnection":
    """A session of this mode, whatever the mode of the policy."""
    loop = asyncio.get_running_loop()
    source = destination.source_address
    try:
        verifies = mode is tls_policy.Mode.VERIFIED
        context = None if mode is tls_policy.Mode.PLAIN else client_tls.context(verifies=verifies, ca_file=ca_file)
    except OSError as problem:
        reason = f"{ca_file} cannot be used: {_reason(problem)}"
        raise _connect_failed(destination, values.Cause.CONFIGURATION, reason) from None
    if mode is not destination.tls.mode:
        destination = msgspec.structs.replace(destination, tls=msgspec.structs.replace(destination.tls, mode=mode))
    try:
        async with asyncio.timeout(timeouts.connect):
            _, connection = await loop.create_connection(
                lambda: SmtpConnection(destination, hello_name=hello_name, timeouts=timeouts, context=context),
                destination.address,
                destination.port,
                local_addr=None if source is None else (source, 0),
            )
    except TimeoutError:
        detail = f"no answer within {timeouts.connect:g} s"
        raise _connect_failed(destination, values.Cause.CONNECTION_TIMED_OUT, detail) from None
    except OSError as problem:
        cause = CONNECT_CAUSES.get(problem.errno or 0, values.Cause.CONNECTION_FAILED)
        # Not EACCES: a firewall of the destination causes it (ICMPv6: administratively prohibited).
        if source is not None and problem.errno == errno.EADDRNOTAVAIL:
            cause = values.Cause.CONFIGURATION
            raise _connect_failed(destination, cause, f"cannot send from {source}: {_reason(problem)}") from None
        raise _connect_failed(destination, cause, _reason(problem)) from None
    try:
        await connection.greet()
    except BaseException as problem:
        if isinstance(problem, ConnectFailed):
            problem.source_address = connection.source_address
            problem.conversation = connection.conversation
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
        self.tls_failure: tls_report.FailureType | None = None
        self.deliveries = 0
        self._timeouts = timeouts
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._client = client.Client(
            hello_name,
            starttls=context is not None and not destination.implicit_tls,
            implicit_tls=destination.implicit_tls,
            credentials=destination.credentials,
        )
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._gone = asyncio.Event()
        self._is_paused = False
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None

    @property
    def source_address(self) -> str:
        name = self._transport.get_extra_info("sockname") if self._transport is not None else None
        return str(name[0]) if name else ""

    @property
    def peer_certificate(self) -> bytes | None:
        """The certificate of the server, in DER, if the connection is encrypted."""
        session = self._transport.get_extra_info("ssl_object") if self._transport is not None else None
        return session.getpeercert(binary_form=True) if session is not None else None

    @property
    def is_usable(self) -> bool:
        """Whether the next transaction may begin here."""
        return self._client.step is client.IDLE

    @property
    def is_in_doubt(self) -> bool:
        """Whether the server may have the message of the transaction, and has not replied to it."""
        return self._client.is_in_doubt

    @property
    def conversation(self) -> str:
        """What was said in the session and in its last transaction, for people."""
        return self._client.conversation.text()

    async def deliver(self, transaction: values.MailTransaction) -> tuple[values.RecipientResult, ...]:
        """One transaction; a result for each recipient, in their order."""
        session = self._client
        session.begin(transaction)
        if session.step < client.HANDSHAKE:  # as `is_waiting` says, without the call
            self.deliveries += 1
            await self._wait_until_idle()
        return session.results()

    async def close(self) -> None:
        """Send QUIT if the session is idle, then close; bounded by `QUIT_SECONDS`."""
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
        """Drop the connection; a delivery in progress ends with results that say so."""
        self._fail(values.Cause.CONNECTION_LOST, "the connection was closed by this host")

    # Session setup.

    async def greet(self) -> None:
        """Banner, EHLO, STARTTLS as far as the policy wants it, AUTH; `connect` calls this once."""
        session, mode = self._client, self.destination.tls.mode
        await self._wait_until_idle()
        if session.step is client.HANDSHAKE and self._context is not None:
            await self._secure(self._context)
            session.secured()
            await self._wait_until_idle()
        if session.failure is not None:
            stage = session.failure.stage
            is_about_tls = stage is values.Stage.STARTTLS or (
                self.tls and stage is not values.Stage.AUTH and not session.failure.reply
            )
            if not is_about_tls:
                raise ConnectFailed(session.failure)
            is_refused = not self.tls and session.failure.reply is not None
            raise _TlsFailed(session.failure, NO_STARTTLS if is_refused else tls_report.FailureType.VALIDATION_FAILURE)
        if not self.tls and mode is not tls_policy.Mode.PLAIN:
            self.tls_failure = NO_STARTTLS
            if mode is not tls_policy.Mode.OPPORTUNISTIC:
                detail = "the destination does not offer STARTTLS, which is required here"
                raise _TlsFailed(_tls_failure(detail), NO_STARTTLS)

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
            found = client_tls.check(seen, destination.tls, host=destination.host)
        except client_tls.CertificateRejected as problem:
            raise _TlsFailed(_tls_failure(str(problem)), problem.failure) from None
        except (OSError, ValueError) as problem:  # ValueError: a host name that cannot be sent as SNI
            result = _tls_failure(f"the TLS handshake failed: {_reason(problem)}")
            raise _TlsFailed(result, client_tls.failure_of(problem)) from None
        self.tls = f"{seen.version()} {found}".rstrip()

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Connected; the banner is awaited."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Replies, or parts of them."""
        session = self._client
        before = session.replies
        session.receive(data)
        # A reply that arrives octet by octet does not extend the deadline.
        self._advance(is_progress=session.replies != before)

    def eof_received(self) -> None:
        """The server sends no more."""
        self._fail(values.Cause.CONNECTION_LOST, "the destination closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        # TCP gives up when segments stay unacknowledged: the host stopped answering.
        is_timeout = isinstance(exc, OSError) and exc.errno == errno.ETIMEDOUT
        cause = values.Cause.REPLY_TIMED_OUT if is_timeout else values.Cause.CONNECTION_LOST
        self._fail(
            cause, f"the connection was lost: {_reason(exc)}" if exc else "the destination closed the connection"
        )

    def pause_writing(self) -> None:
        """The server does not read as fast as we write."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The server has read: that is progress, and the content may go on."""
        self._is_paused = False
        if self._client.is_waiting:
            self._advance(is_progress=True)

    # Internal.

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
        """Write pending bytes; then set the deadline for a reply, or wake the waiter when the client is idle."""
        session, transport = self._client, self._transport
        if transport is not None:
            # After a failed write a transport silently drops data: a final dot written then never leaves.
            while (session.outgoing or session.content is not None) and not (self._is_paused or transport.is_closing()):
                transport.write(session.next_bytes())
        if session.step < client.HANDSHAKE:  # as `is_waiting` says, without the call
            if is_progress:
                self._set_deadline()
            return
        self._deadline = math.inf
        if session.step is client.CLOSED:
            self._drop()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, cause: values.Cause, detail: str) -> None:
        if self._client.step is not client.CLOSED:
            self._client.fail(cause, detail)
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
            self._fail(values.Cause.REPLY_TIMED_OUT, "the destination did not answer in time")


def _connect_failed(destination: Destination, cause: values.Cause, reason: str) -> ConnectFailed:
    detail = f"connecting to {destination.host} [{destination.address}]:{destination.port}: {reason}"
    return ConnectFailed(values.RecipientResult(values.Stage.CONNECT, cause=cause, detail=detail))


def _tls_failure(detail: str) -> values.RecipientResult:
    return values.RecipientResult(values.Stage.STARTTLS, cause=values.Cause.TLS_FAILED, detail=detail)


def _reason(problem: BaseException) -> str:
    """The text of a system error, without what differs between event loops."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return str(problem.verify_message)
    if isinstance(problem, ssl.SSLError):
        return (problem.reason or "TLS error").replace("_", " ").lower()
    if isinstance(problem, OSError) and problem.errno:
        return os.strerror(problem.errno).lower()
    return str(problem) or type(problem).__name__
