"""The server's side of an SMTP session, without sockets: bytes in, events out, replies in, bytes out (RFC 5321).

The driver feeds `receive`, calls `next_event` until it returns None, answers each event with `reply`, and sends what
`take_output` returns. A command is not read before the previous one is answered, so pipelined commands (RFC 2920) are
answered in order. What needs no decision (NOOP, bad sequence, bad syntax, …) is answered here, without an event.

`TRANSITIONS` is the state machine: for each verb, the states that allow it and the state after a positive reply. No
verb is accepted while content, a chunk or an AUTH response is read. All 2xx, 4xx and 5xx replies except the banner and
the reply to EHLO carry an enhanced status code (RFC 2034 section 4).
"""

from collections.abc import Callable, Mapping
from enum import IntEnum, auto
from typing import ClassVar, Final

from postroad.protocol.smtp import authentication, server_commands, server_events, server_input, server_replies, values


class State(IntEnum):
    """The state between two commands; the last two accept none."""

    START = auto()  # no EHLO yet, or none since TLS started
    READY = auto()
    MAIL = auto()  # a sender was accepted
    RECIPIENTS = auto()  # at least one recipient was accepted
    CHUNKS = auto()  # at least one chunk was received
    SECURING = auto()  # STARTTLS was accepted; nothing is read before `secured`
    CLOSED = auto()


# Module names, because each enum attribute access costs 0.2 µs and a message needs dozens.
START, READY, MAIL, RECIPIENTS, CHUNKS, SECURING, CLOSED = State

_ANYWHERE: Final = {state: state for state in (START, READY, MAIL, RECIPIENTS, CHUNKS)}
_TO_READY: Final = dict.fromkeys(_ANYWHERE, READY)

TRANSITIONS: Final[Mapping[str, Mapping[State, State]]] = {
    "EHLO": _TO_READY,
    "HELO": _TO_READY,
    "STARTTLS": {READY: SECURING},
    "AUTH": {READY: READY},
    "MAIL": {READY: MAIL},
    "RCPT": {MAIL: RECIPIENTS, RECIPIENTS: RECIPIENTS},
    "DATA": {RECIPIENTS: READY},
    "BDAT": {RECIPIENTS: CHUNKS, CHUNKS: CHUNKS},
    "RSET": {**_TO_READY, START: START},
    "NOOP": _ANYWHERE,
    "HELP": _ANYWHERE,
    "QUIT": dict.fromkeys(_ANYWHERE, CLOSED),
}
# The policy may replace the reply to a malformed address.
_ADDRESS_VERBS: Final = frozenset({"MAIL", "RCPT"})
_CONTENT_VERBS: Final = frozenset({"DATA", "BDAT"})
_WITHOUT_ARGUMENT: Final = frozenset({"STARTTLS", "DATA", "RSET", "QUIT"})

# RFC 5321 section 4.5.3.1.4 asks for 512 octets; extensions add to it, DSN the most (RFC 3461 section 5).
LINE_OCTETS: Final = 2048
RESPONSE_OCTETS: Final = 12_288  # RFC 4954 section 4
# RFC 5321 section 4.2.1.
_FIRST_REFUSAL: Final = 400
_SERVICE_CLOSING: Final = 421  # RFC 5321 section 3.8


class Server:
    def __init__(
        self,
        features: server_events.Features,
        session: server_events.Session,
        open_store: server_input.OpenStore = server_input.MemoryStore,
    ) -> None:
        """`open_store` is called for each content that is too large to be kept in memory while it arrives."""
        self.session = session
        self._features = features
        self._state = START
        self._buffer = bytearray()
        self._output: list[bytes] = []
        self._pending: server_events.Event | None = None
        self._verb = ""
        self._limits = server_events.SessionLimits(features)
        # What the next bytes belong to, when not to a command.
        self._exchange: authentication.Exchange | None = None
        self._reading: server_input.Reader | None = None
        self._transaction = server_input.TransactionBuilder(features.message_octets, open_store)

    # Read by the driver.

    @property
    def is_closed(self) -> bool:
        """Whether the connection is to be closed once the output is sent."""
        return self._state is CLOSED

    @property
    def is_reading_content(self) -> bool:
        """Whether a content has begun and is not complete; between its chunks there are commands."""
        return self._reading is not None or self._state is CHUNKS

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost when the session ends now."""
        return self._state <= READY and self._pending is None and self._reading is None

    @property
    def is_after_message(self) -> bool:
        """Whether the last thing that was answered is a message, accepted or not."""
        return self._state is READY and self._verb in _CONTENT_VERBS

    def take_output(self) -> bytes:
        output = b"".join(self._output)
        self._output.clear()
        return output

    # Called by the driver.

    def greet(self, banner: values.Reply) -> None:
        """Open the session; a banner other than 220 ends it."""
        self._reply(banner)
        if banner.code != 220:  # noqa: PLR2004 - RFC 5321 section 4.2.2
            self._state = CLOSED

    def receive(self, data: bytes) -> None:
        self._buffer += data

    def next_event(self) -> server_events.Event | None:
        """The next event to decide; None while the session waits for bytes or for a reply."""
        if self._pending is not None:
            return None
        # A chunk of size 0 is complete without a byte.
        while (self._buffer or self._reading is not None) and self._state < SECURING:
            if not (self._read_line() if self._reading is None else self._read_content(self._reading)):
                return None
            event: server_events.Event | None = self._pending
            if event is not None:
                return event
        return None

    def reply(self, reply: values.Reply) -> None:
        """Answer the pending event; 421 closes the session (RFC 5321 section 3.8)."""
        event, self._pending = self._pending, None
        if event is None or isinstance(event, server_events.StartTls):
            raise RuntimeError("there is no event to reply to")
        if reply.code >= _FIRST_REFUSAL:
            self._refuse(event, reply)
            return
        if isinstance(event, server_events.Hello):
            self._accept_hello(event, reply)
        else:
            self._output.append(server_replies.encode(reply))
        if isinstance(event, (server_events.Message, server_events.Rejected)):
            return  # the transaction has already ended
        if isinstance(event, server_events.Recipient):
            self._transaction.add(event.path.address)
        elif isinstance(event, server_events.Mail):
            self._transaction.sender = event.path
        elif isinstance(event, server_events.Data):
            self._reading = self._transaction.begin_data()
            self._buffer[:0] = b"\r\n"
        elif isinstance(event, server_events.Authenticate):
            self.session.is_authenticated = True
        self._state = TRANSITIONS[self._verb][self._state]

    def secured(self) -> None:
        """TLS is established: discard everything learned before it (RFC 3207 section 4.2)."""
        self._pending = None
        self._reset_transaction()
        self._state = START
        self.session.reset()

    def close(self, reply: values.Reply | None = None) -> None:
        """End the session from this side, with a reply or without."""
        if reply is not None and self._state is not CLOSED:
            self._reply(reply)
        self._pending = None
        self._state = CLOSED
        self._reset_transaction()

    def load_content(self, *, refusal: values.Reply | None = None) -> server_events.Event | None:
        """Read a large content back, or refuse it: the event to decide instead, if the session is still open."""
        event, self._pending = self._pending, None
        if isinstance(event, server_events.LargeContent):
            self._decide_content(refusal)
        return self._pending

    # Each reader takes one item out of the buffer, or returns False while it is incomplete.

    def _read_line(self) -> bool:
        line = server_input.take_line(self._buffer, RESPONSE_OCTETS if self._exchange else LINE_OCTETS)
        if line is None:
            return False
        try:
            if self._exchange is not None:
                self._take_response(self._exchange, server_input.strip_line_end(line, 501))
            else:
                self._verb = ""
                self._dispatch(server_input.strip_line_end(line, 500))
        except server_commands.CommandError as refused:
            self._exchange = None
            self._reject(refused.reply)
        return True

    def _read_content(self, reader: server_input.Reader) -> bool:
        if not reader.read(self._buffer):
            return False
        self._reading = None
        if self._verb == "BDAT" and self._state not in TRANSITIONS["BDAT"]:
            self._reject(self._wrong_order())
        elif reader.is_complete:
            self._complete()
        else:
            self._state = CHUNKS
            self._reply(server_replies.CHUNK_ACCEPTED)
        return True

    def _complete(self) -> None:
        """The content is complete: the transaction is over, whatever the reply."""
        self._state = READY
        if self._transaction.is_large:
            self._pending = server_events.LargeContent()
        else:
            self._decide_content()

    def _decide_content(self, refusal: values.Reply | None = None) -> None:
        result = refusal or self._transaction.result()
        self._reset_transaction()
        if isinstance(result, values.MailTransaction):
            self._limits.message()
            self._pending = server_events.Message(result)
        elif result is not server_replies.BARE_CR or self._count_error():
            self._defer_refusal(result)

    # Verbs.

    def _dispatch(self, line: bytes) -> None:
        verb, argument = server_commands.split(line)
        self._verb = verb
        if verb not in server_events.MESSAGE_VERBS:
            self._limits.idle_command()
        if verb in server_replies.HTTP_METHODS:
            self.close(server_replies.HTTP_REQUEST_REJECTED)
        elif verb not in TRANSITIONS:
            self._reject(server_replies.NOT_IMPLEMENTED.get(verb, server_replies.UNKNOWN_COMMAND))
        # A chunk follows BDAT even out of sequence, and its octets must not be read as commands.
        elif self._state not in TRANSITIONS[verb] and verb != "BDAT":
            self._reject(self._wrong_order())
        elif argument and verb in _WITHOUT_ARGUMENT:
            raise server_commands.CommandError(501, "5.5.4", f"Syntax error: {verb} takes no arguments")
        elif verb in server_replies.FIXED:
            self._reply(server_replies.FIXED[verb])
        else:
            self._VERBS[verb](self, argument)

    def _hello(self, argument: str) -> None:
        self._pending = server_events.Hello(server_commands.hello_name(argument))

    def _starttls(self, _argument: str) -> None:
        if not self._features.starttls or self.session.is_secure:
            raise server_commands.CommandError(502, "5.5.1", "STARTTLS not available")
        if self._buffer:
            # Otherwise plain-text commands would run as if sent under TLS (command injection, CVE-2011-0411).
            self.close(server_replies.INPUT_AFTER_STARTTLS)
            return
        self._reply(server_replies.READY_FOR_TLS)
        self._state = SECURING
        self._pending = server_events.StartTls()

    def _auth(self, argument: str) -> None:
        self._features.refuse_unoffered_auth(self.session)
        mechanism, _, initial = argument.partition(" ")
        exchange = self._exchange = authentication.Exchange(mechanism.upper())
        if initial:
            self._take_response(exchange, initial.encode())
        else:
            self._reply(exchange.challenge())

    def _take_response(self, exchange: authentication.Exchange, response: bytes) -> None:
        credentials = exchange.answer(response)
        if credentials is None:
            self._reply(exchange.challenge())
        else:
            self._exchange = None
            self._pending = server_events.Authenticate(credentials)

    def _mail(self, argument: str) -> None:
        path = self._features.sender(argument)
        path.refuse_unoffered(is_extended=self.session.is_extended, is_utf8="SMTPUTF8" in path.parameters)
        if int(path.parameters.get("SIZE", 0)) > self._features.message_octets:
            self._defer_refusal(server_replies.too_large(self._features.message_octets))
        else:
            self._pending = server_events.Mail(path)

    def _rcpt(self, argument: str) -> None:
        self._limits.recipient()
        path = server_commands.recipient(argument)
        path.refuse_unoffered(is_extended=self.session.is_extended, is_utf8=self._transaction.is_utf8)
        if not self._transaction.has_room(path.address, self._features.recipients):
            self._defer_refusal(server_replies.TOO_MANY_RECIPIENTS)
        else:
            self._pending = server_events.Recipient(path)

    def _data(self, _argument: str) -> None:
        self._pending = server_events.Data()

    def _bdat(self, argument: str) -> None:
        found = server_commands.chunk(argument)
        if found is None:
            # Where the next command starts is unknown.
            self.close(server_replies.BAD_CHUNK_SIZE)
            return
        size, is_last = found
        self._limits.chunk(size)
        self._reading = self._transaction.begin_chunk(size, is_last=is_last, is_first=self._state is RECIPIENTS)

    def _rset(self, _argument: str) -> None:
        self._reset_transaction()
        self._state = TRANSITIONS["RSET"][self._state]
        self._reply(server_replies.RESET_DONE)

    def _quit(self, _argument: str) -> None:
        self.close(values.Reply(221, f"{self._features.name} Service closing transmission channel", "2.0.0"))

    _VERBS: ClassVar[Mapping[str, Callable[["Server", str], None]]] = {
        "EHLO": _hello,
        "HELO": _hello,
        "STARTTLS": _starttls,
        "AUTH": _auth,
        "MAIL": _mail,
        "RCPT": _rcpt,
        "DATA": _data,
        "BDAT": _bdat,
        "RSET": _rset,
        "QUIT": _quit,
    }

    # Internal.

    def _refuse(self, event: server_events.Event, reply: values.Reply) -> None:
        # A failed login may be a guessed password; a refused recipient is not an error of the client.
        if isinstance(event, server_events.Authenticate):
            try:
                self._limits.failed_login()
            except server_commands.CommandError as refused:
                reply = refused.reply
        self._reply(reply)
        if reply.code == _SERVICE_CLOSING:
            self._state = CLOSED

    def _reset_transaction(self) -> None:
        self._transaction = self._transaction.discard()

    def _accept_hello(self, hello: server_events.Hello, reply: values.Reply) -> None:
        self._reset_transaction()
        self.session.hello = hello.name
        self.session.is_extended = self._verb == "EHLO"
        offered = self._features.extensions(self.session) if self.session.is_extended else ()
        first = f"{self._features.name} {reply.text}"
        self._output.append(server_replies.encode_lines(reply.code, [first, *offered]))

    def _wrong_order(self) -> values.Reply:
        if self._state is START:
            return server_replies.HELLO_REQUIRED
        if self._state is MAIL and self._verb in ("DATA", "BDAT"):
            return server_replies.NO_RECIPIENT
        return server_replies.BAD_SEQUENCE

    def _reject(self, reply: values.Reply) -> None:
        if reply.code == _SERVICE_CLOSING:
            self.close(reply)
        elif not self._count_error():
            return
        elif self._verb in _ADDRESS_VERBS and self._state in TRANSITIONS[self._verb]:
            self._defer_refusal(reply)
        else:
            self._reply(reply)

    def _count_error(self) -> bool:
        """Count a client error; False when there were too many and the session is closed."""
        try:
            self._limits.error()
        except server_commands.CommandError as refused:
            self.close(refused.reply)
        return self._state is not CLOSED

    def _defer_refusal(self, reply: values.Reply) -> None:
        self._pending = server_events.Rejected(self._verb, reply)

    def _reply(self, reply: values.Reply) -> None:
        self._output.append(server_replies.encode(reply))
