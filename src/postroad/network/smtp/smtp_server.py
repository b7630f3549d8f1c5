"""The SMTP server: a listener and its sessions, which connect a transport, the sans-IO server and a policy."""

import abc
import asyncio
import contextlib
import dataclasses
import math
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad.model.people import login_rules
from postroad.network import listener
from postroad.network.smtp import content_spool
from postroad.network.tls import server_tls
from postroad.protocol.smtp import server, server_commands, server_events, values

# The policy of an SMTP session: what a listener decides, a method for each verb.
#
# A decision is a reply, `None` to close the connection, or an awaitable of either.

SENDER_OK: Final = values.Reply(250, "Sender OK", "2.1.0")
RECIPIENT_OK: Final = values.Reply(250, "Recipient OK", "2.1.5")
START_INPUT: Final = values.Reply(354, "Start mail input; end with <CRLF>.<CRLF>")

ReplyOrClose = values.Reply | None
PolicyDecision = ReplyOrClose | Awaitable[ReplyOrClose]


class SessionPolicy(abc.ABC):
    """The decisions of one session, a method for each verb. The defaults accept everything but credentials."""

    # Whether a decision only waits, to slow a flood down.
    is_delayed = False

    @property
    def account_id(self) -> str | None:
        """The account that the session has authenticated for: its messages share room. Others count by network."""
        return None

    def hello(self, name: str) -> PolicyDecision:
        return values.Reply(250, f"Hello {name}")

    def authenticate(self, username: str, password: str) -> PolicyDecision:  # noqa: ARG002 - used by overrides
        """AUTH; 235 authenticates the client."""
        return values.Reply(535, "Authentication credentials invalid", "5.7.8")

    def mail(self, sender: str, parameters: server_commands.Parameters) -> PolicyDecision:  # noqa: ARG002
        """MAIL: a transaction begins."""
        return SENDER_OK

    def recipient(self, address: str, parameters: server_commands.Parameters) -> PolicyDecision:  # noqa: ARG002
        return RECIPIENT_OK

    def data(self) -> PolicyDecision:
        """DATA, before the content; 354 asks for it. Not called for BDAT."""
        return START_INPUT

    def refused(self, verb: str, reply: values.Reply) -> PolicyDecision:  # noqa: ARG002
        """An address, a recipient over the limit, a size or a content is refused; `reply` says why."""
        return reply

    def closed(self) -> None:  # noqa: B027 - used by overrides
        """The connection is closed; a complete message may still be on its way to the store."""

    @abc.abstractmethod
    def message(self, transaction: values.MailTransaction) -> PolicyDecision:
        """The message is complete; 250 takes responsibility for it."""


def dispatch(policy: SessionPolicy, event: server_events.Event) -> PolicyDecision:
    """The policy's decision on an event."""
    # Ordered by frequency; a match statement on classes costs several times as much.
    if isinstance(event, server_events.Recipient):
        return policy.recipient(event.path.address, event.path.parameters)
    if isinstance(event, server_events.Mail):
        return policy.mail(event.path.address, event.path.parameters)
    if isinstance(event, server_events.Data):
        return policy.data()
    if isinstance(event, server_events.Message):
        return policy.message(event.transaction)
    if isinstance(event, server_events.Rejected):
        return policy.refused(event.verb, event.reply)
    if isinstance(event, server_events.Hello):
        return policy.hello(event.name)
    if isinstance(event, server_events.Authenticate):
        return policy.authenticate(event.credentials.username, event.credentials.password)
    raise RuntimeError("a policy does not decide on TLS")


# About a millisecond of work; a pipelined transaction seldom has as many.
MAX_EVENTS_PER_TURN: Final = 50
_BUSY: Final = values.Reply(451, "Too many large messages at the same time; try again later", "4.3.2")
_TOO_MANY: Final = {
    listener.Excess.TOTAL: values.Reply(421, "Too many connections; try again later", "4.3.2"),
    listener.Excess.PER_ADDRESS: values.Reply(421, "Too many connections from your address; try again later", "4.7.0"),
    listener.Excess.PER_ACCOUNT: values.Reply(421, "Too many connections of your account; try again later", "4.7.0"),
}
_AUTHENTICATED: Final = 235
# A transaction whose next command does not come for this long is no longer one in progress.
SLOW_COMMAND_SECONDS: Final = 10.0


class ListenerLimits(msgspec.Struct, frozen=True):
    """Limits of a listener and of each of its connections."""

    connections: int = 1000
    # An IPv6 network counts as one address.
    connections_per_address: int = 50
    # RFC 5321 section 4.5.3.2.7.
    command_seconds: float = 300
    # 10 MiB in ten minutes: 140 kbit/s.
    content_seconds: float = 600
    # In octets a second, on average. Any network is faster; a slower client holds the connection on purpose.
    min_content_speed: float = 500
    # Content may pause for this long before its speed counts.
    speed_grace_seconds: float = 60
    handshake_seconds: float = 30
    # A client that does not read its replies for this long is disconnected.
    write_seconds: float = 60
    # How long a client may stay unauthenticated, where authentication is required.
    login_seconds: float = math.inf


@dataclass(slots=True)
class SmtpListenerState:
    """State shared by the connections of a listener."""

    features: server_events.Features
    make_policy: Callable[[server_events.Session], SessionPolicy]
    failed: Callable[[Exception], None]
    limits: ListenerLimits
    spool: content_spool.ContentSpool = field(default_factory=content_spool.ContentSpool)
    # Called for each handshake, because the certificate may be renewed. None while there is none.
    tls: Callable[[], ssl.SSLContext | None] | None = None
    connections: listener.OpenConnections = field(init=False)
    working: set[asyncio.Task[None]] = field(default_factory=set)
    # Set before the listener stops: each session ends after its next message.
    is_draining: bool = False
    # Present while the listener stops; set when a connection or a task ends.
    changed: asyncio.Event | None = None

    def __post_init__(self) -> None:
        self.connections = listener.OpenConnections(
            total=self.limits.connections, per_address=self.limits.connections_per_address
        )

    def offered_features(self) -> server_events.Features:
        """What the next session offers: STARTTLS only while there is a certificate."""
        has_certificate = self.tls is not None and self.tls() is not None
        if has_certificate or not self.features.starttls:
            return self.features
        return dataclasses.replace(self.features, starttls=False)

    def leave(self, connection: listener.Connection) -> bool:
        """Stop counting a connection; whether it was counted."""
        if not self.connections.leave(connection):
            return False
        self.note_change()
        return True

    def note_change(self) -> None:
        """Wake the listener, if it is stopping."""
        if self.changed is not None:
            self.changed.set()


class SmtpSession(asyncio.Protocol):
    """A connection; it is in `connections` while it is open."""

    transport: asyncio.Transport
    _server: server.Server
    _policy: SessionPolicy

    def __init__(self, shared: SmtpListenerState, *, on_admitted: Callable[[], None] | None = None) -> None:
        """`on_admitted` is called first, to release the slot that the handshake held."""
        self._shared = shared
        self._on_admitted = on_admitted
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._next_turn: asyncio.Handle | None = None
        self._deadline = math.inf
        self._was_content = False
        self._content_since = 0.0
        self._content_octets = 0
        self._is_admitted = False
        self._is_in_handshake = False
        self._has_unread_input = False
        self._has_received_eof = False
        self._is_paused = False
        self._is_unwritable = False
        self._stuck_since = math.inf
        self._unauthenticated_since = math.inf
        # When the client connected, or last began a content: other commands are no progress.
        self._progress_at = self._loop.time()

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection; one over the limit is refused at once."""
        shared = self._shared
        self.transport = transport
        session = server_events.Session(
            listener.peer_address(transport), is_secure=transport.get_extra_info("sslcontext") is not None
        )
        self._server = server.Server(shared.offered_features(), session, lambda: shared.spool.open(self._owner))
        if self._on_admitted is not None:
            self._on_admitted()
        excess = shared.connections.enter(self, session.client_address)
        if excess is None:
            self._policy = shared.make_policy(session)
            self._is_admitted = True
            self._server.greet(values.Reply(220, f"{shared.features.name} ESMTP"))
        else:
            self._server.greet(_TOO_MANY[excess])
        self._idle()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the cause does not matter
        """The connection is closed. A message that is being accepted is still accepted."""
        if self._shared.leave(self) and self._is_admitted:
            self._policy.closed()
        self._server.close()

    def data_received(self, data: bytes) -> None:
        self._server.receive(data)
        self._content_octets += len(data)
        if self._task is None and self._next_turn is None:
            self._work()
        else:
            # Pause only now: most clients wait for their replies.
            self._has_unread_input = True
            self._update_flow()

    def eof_received(self) -> bool:
        """The client sends no more; pending replies are still sent, where the transport allows it."""
        self._has_received_eof = True
        return self._is_busy and not self._server.session.is_secure

    def pause_writing(self) -> None:
        """The client does not read its replies."""
        self._is_unwritable = True
        self._update_flow()

    def resume_writing(self) -> None:
        """The client has read, or has disconnected."""
        self._is_unwritable = False
        self._update_flow()

    # Called by the listener.

    @property
    def idle_since(self) -> float | None:
        """Since when the client has made no progress. A handshake is none: it may never end.

        One that is authenticated has until its next command, and in a transaction a while.
        """
        if self._was_content:
            return None
        if self._task is not None:
            return self._progress_at if self._is_in_handshake or self._policy.is_delayed else None
        if not self._server.session.is_authenticated:
            return self._progress_at
        replied_at = self._deadline - self._shared.limits.command_seconds
        is_idle = self._server.is_idle or self._loop.time() - replied_at >= SLOW_COMMAND_SECONDS
        return replied_at if is_idle and self._next_turn is None else None

    def evict(self) -> None:
        """Close, to make room for another."""
        if self._task is not None:
            if not self._is_in_handshake:
                self._server.close(_TOO_MANY[listener.Excess.TOTAL])
                self._flush()
            self._task.cancel()
        elif self._is_unwritable or self.transport.is_closing():
            self.transport.abort()
        else:
            self._server.close(_TOO_MANY[listener.Excess.TOTAL])
            self._idle()

    def shutdown(self) -> None:
        """Close as soon as no transaction is in progress."""
        if not self._is_busy:
            self._idle()
        elif self._is_in_handshake and self._task is not None:
            self._task.cancel()

    def sweep(self, now: float) -> None:
        """Close the connection if a deadline has passed."""
        if self._is_unwritable or self.transport.is_closing():
            self._stuck_since = min(self._stuck_since, now)
            if now - self._stuck_since >= self._shared.limits.write_seconds:
                self.transport.abort()
            return
        self._stuck_since = math.inf
        self._unauthenticated_since = (
            math.inf if self._server.session.is_authenticated else min(self._unauthenticated_since, now)
        )
        if self._is_busy:
            return
        if now >= self._deadline:
            awaited = "the message content" if self._was_content else "a command"
            self._server.close(values.Reply(421, f"Timeout waiting for {awaited}", "4.4.2"))
            self._idle()
        elif self._is_too_slow(now):
            self._server.close(values.Reply(421, "The message content arrives too slowly", "4.4.2"))
            self._idle()
        elif now - self._unauthenticated_since >= self._shared.limits.login_seconds:
            self._server.close(values.Reply(421, "Authentication timeout", "4.4.2"))
            self._idle()
        elif self._shared.is_draining:
            self._idle()

    # Internal.

    @property
    def _owner(self) -> Hashable:
        return self._policy.account_id or login_rules.network_of(self._server.session.client_address)

    @property
    def _is_busy(self) -> bool:
        return self._task is not None or self._next_turn is not None

    def _is_too_slow(self, now: float) -> bool:
        limits, elapsed = self._shared.limits, now - self._content_since
        is_measurable = self._was_content and elapsed >= limits.speed_grace_seconds
        return is_measurable and self._content_octets < limits.min_content_speed * elapsed

    def _work(self) -> None:
        """Process the input until it is used up, a decision is asynchronous, or the turn is over."""
        self._next_turn = None
        for _ in range(MAX_EVENTS_PER_TURN):
            if (event := self._server.next_event()) is None or self.transport.is_closing():
                self._idle()
                return
            # Whatever content comes next is another one; chunks of one content are no events.
            self._was_content = False
            if isinstance(event, server_events.StartTls):
                self._is_in_handshake = True
                self._begin(self._secure())
                self._update_flow()
                return
            if isinstance(event, server_events.LargeContent):
                self._begin(self._load_content())
                return
            decision = self._decide(event)
            if decision is None or isinstance(decision, values.Reply):
                self._reply(decision)
            else:
                self._begin(self._wait_for(decision))
                return
        self._flush()
        self._has_unread_input = True
        self._update_flow()
        self._next_turn = self._loop.call_soon(self._work)

    def _decide(self, event: server_events.Event) -> PolicyDecision:
        try:
            return dispatch(self._policy, event)
        except Exception as problem:  # noqa: BLE001 - a bug in a policy must not leave the client waiting
            return self._internal_error(problem)

    async def _load_content(self) -> None:
        """Read a large message back and decide on it, when there is memory for it."""
        try:
            async with self._shared.spool.turn(self._owner):
                await self._decide_loaded(self._server.load_content())
        except TimeoutError:
            await self._decide_loaded(self._server.load_content(refusal=_BUSY))

    async def _decide_loaded(self, event: server_events.Event | None) -> None:
        if event is not None:  # otherwise the client has disconnected
            decision = self._decide(event)
            await self._wait_for(decision) if isinstance(decision, Awaitable) else self._reply(decision)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        """Run a task; earlier replies are sent first, and no input is processed meanwhile."""
        self._flush()
        self._task = self._loop.create_task(work)
        self._shared.working.add(self._task)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._shared.working.discard(task)
        self._shared.note_change()
        if task.cancelled():
            self.transport.abort()
        elif (problem := task.exception()) is not None:
            self.transport.abort()
            raise problem
        else:
            self._work()

    async def _wait_for(self, decision: Awaitable[ReplyOrClose]) -> None:
        try:
            reply = await decision
        except Exception as problem:  # noqa: BLE001 - as above
            reply = self._internal_error(problem)
        if not self._server.is_closed:
            self._reply(reply)

    def _internal_error(self, problem: Exception) -> values.Reply:
        self._shared.failed(problem)
        return values.Reply(451, "Local error in processing; try again later", "4.3.0")

    def _reply(self, reply: ReplyOrClose) -> None:
        if reply is None:
            self._server.close()
        elif reply.code == _AUTHENTICATED and not self._count_for_account():
            self._server.reply(_TOO_MANY[listener.Excess.PER_ACCOUNT])
        else:
            self._server.reply(reply)

    def _count_for_account(self) -> bool:
        connections = self._shared.connections
        return self not in connections or connections.note_account(self, self._owner, is_session=True)

    async def _secure(self) -> None:
        """Do the TLS handshake; after a failed one no reply could be read, so the connection is dropped."""
        tls = self._shared.tls() if self._shared.tls is not None else None
        if tls is None:
            raise RuntimeError("TLS is offered without a certificate")
        transport = None
        try:
            with contextlib.suppress(OSError):
                transport = await self._loop.start_tls(
                    self.transport,
                    self,
                    tls,
                    server_side=True,
                    ssl_handshake_timeout=self._shared.limits.handshake_seconds,
                    ssl_shutdown_timeout=server_tls.SHUTDOWN_SECONDS,
                )
        finally:
            if transport is None:
                # asyncio does not report a connection lost during the handshake.
                self.transport.abort()
                self.connection_lost(None)
        if transport is not None:
            self.transport = transport
            self._is_in_handshake = self._is_paused = False
            self._server.secured()

    def _idle(self) -> None:
        """All input is answered: wait for more, or close."""
        is_stopping = self._shared.changed is not None
        if self._shared.is_draining and self._server.is_idle and (is_stopping or self._server.is_after_message):
            self._server.close(values.Reply(421, "Service shutting down; try again later", "4.3.2"))
        output = self._server.take_output()
        if output and not self.transport.is_closing():
            self.transport.write(output)
        if self._server.is_closed or self._has_received_eof:
            self.transport.close()
            return
        is_content = self._server.is_reading_content
        if is_content != self._was_content or (output and not is_content):
            limits, now = self._shared.limits, self._loop.time()
            self._deadline = now + (limits.content_seconds if is_content else limits.command_seconds)
            self._content_since, self._content_octets = now, 0
            if is_content:
                self._progress_at = now
        self._was_content = is_content
        self._has_unread_input = False
        if self._is_paused:
            self._update_flow()

    def _flush(self) -> None:
        output = self._server.take_output()
        if output and not self.transport.is_closing():
            self.transport.write(output)

    def _update_flow(self) -> None:
        """Read only while input can be processed and the client reads its replies."""
        # Bytes sent before the handshake must not be taken for bytes sent under TLS.
        pause = self._has_unread_input or self._is_unwritable or self._is_in_handshake
        if pause == self._is_paused or self.transport.is_closing():
            return
        self._is_paused = pause
        if pause:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()


class SmtpListener(listener.Listener):
    """One listening address and its connections. STARTTLS and `implicit_tls` need `tls`.

    `tls` is called for each handshake and returns None while there is no certificate, `refresh` once a second to check
    for a renewed one.
    """

    def __init__(
        self,
        make_policy: Callable[[server_events.Session], SessionPolicy],
        *,
        features: server_events.Features,
        failed: Callable[[Exception], None],
        limits: ListenerLimits | None = None,
        spool: content_spool.ContentSpool | None = None,
        tls: Callable[[], ssl.SSLContext | None] | None = None,
        implicit_tls: bool = False,
        refresh: Callable[[], None] | None = None,
        sweep_seconds: float = listener.SWEEP_SECONDS,
    ) -> None:
        if tls is None and (features.starttls or implicit_tls):
            raise ValueError("TLS is offered without a certificate")
        shared = SmtpListenerState(
            features,
            make_policy,
            failed=failed,
            limits=limits or ListenerLimits(),
            spool=spool or content_spool.ContentSpool(),
            tls=tls,
        )

        handshakes = None
        if implicit_tls and tls is not None:
            handshakes = server_tls.Handshakes(
                tls,
                lambda on_admitted: SmtpSession(shared, on_admitted=on_admitted),
                connections=shared.connections,
                state=shared,
                seconds=shared.limits.handshake_seconds,
            )

        def make_connection() -> asyncio.Protocol:
            return SmtpSession(shared) if handshakes is None else server_tls.TlsAccept(handshakes)

        super().__init__(
            make_connection,
            shared=shared,
            connections=shared.connections,
            working=shared.working,
            sweep_seconds=sweep_seconds,
        )
        self._refresh = refresh

    def on_sweep(self) -> None:
        if self._refresh is not None:
            self._refresh()
