"""The server's side of an SMTP session, without sockets: bytes in, events out, replies in, bytes out (RFC 5321).

The driver feeds `receive`, asks `next_event` until there is none, answers each event with `reply`, and sends what
`take_output` gives. No command is looked at before the one before it was answered, so pipelined commands (RFC 2920) are
answered in order. What needs no decision (NOOP, wrong order, wrong syntax, …) is answered here, without an event.

The table is the whole of the order in a session: for each verb the states in which it may come, and where a positive
reply leads. While content, a chunk or a response to AUTH is read, no verb can come at all.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum, auto
from typing import ClassVar, Final

from postroad.protocol.smtp import (
    authentication,
    server_commands,
    server_events,
    server_limits,
    server_reading,
    server_replies,
    server_transaction,
    values,
)


class State(IntEnum):
    """Where a session stands between two commands; in the last two it takes none."""

    START = auto()  # nobody has said hello, or not since TLS began
    READY = auto()
    MAIL = auto()  # there is a sender
    RECIPIENTS = auto()  # and at least one recipient
    CHUNKS = auto()  # and a part of the content
    SECURING = auto()  # STARTTLS was agreed on; nothing is read before `secured`
    CLOSED = auto()


# Each attribute of an enumeration costs a fifth of a microsecond, and a message passes dozens of them.
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
# What is wrong with their addresses concerns the sender of a mail, so the policy has the last word on it.
_ADDRESS_VERBS: Final = frozenset({"MAIL", "RCPT"})
_WITHOUT_ARGUMENT: Final = frozenset({"STARTTLS", "DATA", "RSET", "QUIT"})

# RFC 5321 section 4.5.3.1.4 asks for 512 octets; extensions add to it, DSN the most (RFC 3461 section 5).
LINE_OCTETS: Final = 2048
RESPONSE_OCTETS: Final = 12_288  # RFC 4954 section 4
# RFC 5321 section 4.2.1.
_FIRST_REFUSAL: Final = 400
_SERVICE_CLOSING: Final = 421  # RFC 5321 section 3.8


class Server:
    """One session."""

    def __init__(self, features: server_events.Features, session: server_events.Session) -> None:
        self.session = session
        self._features = features
        self._state = START
        self._buffer = bytearray()
        self._output: list[bytes] = []
        self._pending: server_events.Event | None = None
        self._verb = ""
        self._limits = server_limits.SessionLimits(features)
        # What the next bytes belong to, if not to a command.
        self._exchange: authentication.Exchange | None = None
        self._reading: server_reading.Reader | None = None
        self._transaction = server_transaction.TransactionBuilder()

    # What the driver asks.

    @property
    def is_closed(self) -> bool:
        """Whether the connection is to be closed once the output is sent."""
        return self._state is CLOSED

    @property
    def is_reading_content(self) -> bool:
        """Whether the next bytes are content and not a command."""
        return self._reading is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost when the session ends now."""
        return self._state <= READY and self._pending is None and self._reading is None

    def take_output(self) -> bytes:
        """The replies that were made since the last call."""
        output = b"".join(self._output)
        self._output.clear()
        return output

    # What the driver tells.

    def greet(self, banner: values.Reply) -> None:
        """Open the session; a banner that is no 220 ends it."""
        self._reply(banner)
        if banner.code != 220:  # noqa: PLR2004 - RFC 5321 section 4.2.2
            self._state = CLOSED

    def receive(self, data: bytes) -> None:
        """Bytes from the client."""
        self._buffer += data

    def next_event(self) -> server_events.Event | None:
        """What is to be decided next; None when the session waits for bytes, or for a reply."""
        if self._pending is not None:
            return None
        # A chunk may be complete without a byte.
        while (self._buffer or self._reading is not None) and self._state < SECURING and self._read():
            event: server_events.Event | None = self._pending
            if event is not None:
                return event
        return None

    def reply(self, reply: values.Reply) -> None:
        """Answer the event; 421 closes the session (RFC 5321 section 3.8)."""
        event, self._pending = self._pending, None
        if event is None or isinstance(event, server_events.StartTls):
            raise RuntimeError("there is no event to reply to")
        if reply.code < _FIRST_REFUSAL:
            self._accept(event, reply)
        else:
            self._refuse(event, reply)

    def secured(self) -> None:
        """TLS is in place: what was said before it is void (RFC 3207 section 4.2)."""
        self._pending = None
        self._reset_transaction()
        self._state = START
        self.session.reset()

    def close(self, reply: values.Reply | None = None) -> None:
        """End the session from this side, with a word or without."""
        if reply is not None and self._state is not CLOSED:
            self._reply(reply)
        self._pending = None
        self._state = CLOSED

    # Reading: each takes one thing out of the buffer, or says that it is not complete.

    def _read(self) -> bool:
        if self._reading is not None:
            return self._read_content(self._reading)
        line = server_reading.take_line(self._buffer, RESPONSE_OCTETS if self._exchange else LINE_OCTETS)
        if line is None:
            return False
        try:
            if self._exchange is not None:
                self._take_response(self._exchange, _strip_line_end(line, 501))
            else:
                self._verb = ""
                self._dispatch(_strip_line_end(line, 500))
        except server_commands.CommandError as refused:
            self._exchange = None
            self._reject(refused.reply)
        return True

    def _read_content(self, reader: server_reading.Reader) -> bool:
        if not reader.read(self._buffer):
            return False
        self._reading = None
        if self._verb == "BDAT" and self._state not in TRANSITIONS["BDAT"]:
            self._reject(self._wrong_order())
        elif reader.is_complete:
            self._complete(reader)
        else:
            self._state = CHUNKS
            self._reply(values.Reply(250, "the chunk is here", "2.0.0"))
        return True

    def _complete(self, reader: server_reading.Reader) -> None:
        """The content is there: the transaction is over, whatever becomes of it."""
        transaction = self._transaction
        self._reset_transaction()
        self._state = READY
        if reader.is_too_large:
            self._defer_refusal(server_replies.too_large(self._features.message_octets))
        elif not reader.has_bare_line_ends:
            self._limits.message()
            self._pending = server_events.Message(transaction.build(reader.content()))
        elif self._count_error():
            self._defer_refusal(server_replies.BARE_LINE_END)

    # Verbs.

    def _dispatch(self, line: bytes) -> None:
        verb, argument = server_commands.split(line)
        self._verb = verb
        self._limits.command(verb)
        if verb in server_replies.HTTP_METHODS:
            self.close(server_replies.HTTP_REQUEST_REJECTED)
        elif verb not in TRANSITIONS:
            self._reject(server_replies.NOT_IMPLEMENTED.get(verb, server_replies.UNKNOWN_COMMAND))
        # A chunk follows BDAT in whatever order, and its octets must not be read as commands.
        elif self._state not in TRANSITIONS[verb] and verb != "BDAT":
            self._reject(self._wrong_order())
        elif argument and verb in _WITHOUT_ARGUMENT:
            raise server_commands.CommandError(501, "5.5.4", f"{verb} takes no argument")
        elif verb in server_replies.FIXED:
            self._reply(server_replies.FIXED[verb])
        else:
            self._VERBS[verb](self, argument)

    def _hello(self, argument: str) -> None:
        self._pending = server_events.Hello(server_commands.hello_name(argument))

    def _starttls(self, _argument: str) -> None:
        if not self._features.starttls or self.session.is_secure:
            raise server_commands.CommandError(502, "5.5.1", "TLS is not offered here and now")
        if self._buffer:
            # Commands that came in the clear would be obeyed as if they had come under TLS.
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
        path = server_commands.sender(argument)
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
            # Nobody can tell where the commands begin again.
            self.close(server_replies.BAD_CHUNK_SIZE)
            return
        if self._state is RECIPIENTS:
            self._transaction.chunks = server_reading.Chunks(self._features.message_octets)
        size, is_last = found
        self._limits.chunk(size)
        self._transaction.chunks.begin(size, is_last=is_last)
        self._reading = self._transaction.chunks

    def _rset(self, _argument: str) -> None:
        self._reset_transaction()
        self._state = TRANSITIONS["RSET"][self._state]
        self._reply(server_replies.RESET_DONE)

    def _quit(self, _argument: str) -> None:
        self.close(values.Reply(221, f"{self._features.name} closes the connection", "2.0.0"))

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

    # What the replies to events lead to.

    def _accept(self, event: server_events.Event, reply: values.Reply) -> None:
        if isinstance(event, server_events.Hello):
            self._accept_hello(event, reply)
        else:
            self._reply(reply)
        if isinstance(event, (server_events.Message, server_events.Rejected)):
            return  # the transaction was over before
        if isinstance(event, server_events.Recipient):
            self._transaction.add(event.path.address)
        elif isinstance(event, server_events.Mail):
            self._transaction.sender = event.path
        elif isinstance(event, server_events.Data):
            self._reading = server_reading.DotStuffed(self._features.message_octets)
            self._buffer[:0] = b"\r\n"
        elif isinstance(event, server_events.Authenticate):
            self.session.is_authenticated = True
        self._state = TRANSITIONS[self._verb][self._state]

    def _refuse(self, event: server_events.Event, reply: values.Reply) -> None:
        # A failed login may be a guess; a refused recipient is no fault of the client's.
        if isinstance(event, server_events.Authenticate):
            try:
                self._limits.failed_login()
            except server_commands.CommandError as refused:
                reply = refused.reply
        self._reply(reply)
        if reply.code == _SERVICE_CLOSING:
            self._state = CLOSED

    # Our own.

    def _reset_transaction(self) -> None:
        self._transaction = server_transaction.TransactionBuilder()

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
        return values.Reply(503, f"{self._verb} cannot come here", "5.5.1")

    def _reject(self, reply: values.Reply) -> None:
        """Answer a command that should not have come."""
        if reply.code == _SERVICE_CLOSING:
            self.close(reply)
        elif not self._count_error():
            return
        elif self._verb in _ADDRESS_VERBS and self._state in TRANSITIONS[self._verb]:
            self._defer_refusal(reply)
        else:
            self._reply(reply)

    def _count_error(self) -> bool:
        """Count an error of the client; there is an end to them."""
        try:
            self._limits.error()
        except server_commands.CommandError as refused:
            self.close(refused.reply)
        return self._state is not CLOSED

    def _defer_refusal(self, reply: values.Reply) -> None:
        self._pending = server_events.Rejected(self._verb, reply)

    def _reply(self, reply: values.Reply) -> None:
        self._output.append(server_replies.encode(reply))


def _strip_line_end(line: bytes, code: int) -> bytes:
    """A line that was taken out of the buffer, with the only LF in it at its end; it is empty if it was too long."""
    words, _, end = line.partition(b"\r")
    if end != b"\n":
        why = "the line has a bare CR or LF; end it with CR LF" if line else "the line is too long"
        raise server_commands.CommandError(code, "5.5.2", why)
    return words
