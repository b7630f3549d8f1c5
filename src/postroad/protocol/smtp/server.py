"""The server's side of an SMTP session, without sockets: bytes in, events out, replies in, bytes out (RFC 5321).

The driver feeds `receive`, asks `next_event` until there is none, answers each event with `reply`, and sends what
`take_output` gives. No command is looked at before the one before it was answered, so pipelined commands (RFC 2920) are
answered in order. What needs no decision (NOOP, wrong order, wrong syntax, …) is answered here, without an event.

The table is the whole of the order in a session: for each verb the states in which it may come, and where a positive
reply leads. While content, a chunk or a response to AUTH is read, no verb can come at all.
"""

import re
from collections.abc import Callable, Mapping
from enum import IntEnum, auto
from typing import ClassVar, Final

from postroad.protocol.smtp import (
    authentication,
    server_commands,
    server_events,
    server_reading,
    server_replies,
    values,
)


class State(IntEnum):
    """Where a session stands between two commands. It is a number because its hash is taken for every command."""

    START = auto()  # nobody has said hello, or not since TLS began
    READY = auto()
    MAIL = auto()  # there is a sender
    RECIPIENTS = auto()  # and at least one recipient
    CHUNKS = auto()  # and a part of the content
    SECURING = auto()  # STARTTLS was agreed on; nothing is read before `secured`
    CLOSED = auto()


_ANYWHERE: Final = {state: state for state in (State.START, State.READY, State.MAIL, State.RECIPIENTS, State.CHUNKS)}
_TO_READY: Final = dict.fromkeys(_ANYWHERE, State.READY)

TRANSITIONS: Final[Mapping[str, Mapping[State, State]]] = {
    "EHLO": _TO_READY,
    "HELO": _TO_READY,
    "STARTTLS": {State.READY: State.SECURING},
    "AUTH": {State.READY: State.READY},
    "MAIL": {State.READY: State.MAIL},
    "RCPT": {State.MAIL: State.RECIPIENTS, State.RECIPIENTS: State.RECIPIENTS},
    "DATA": {State.RECIPIENTS: State.READY},
    "BDAT": {State.RECIPIENTS: State.CHUNKS, State.CHUNKS: State.CHUNKS},
    "RSET": {**_TO_READY, State.START: State.START},
    "NOOP": _ANYWHERE,
    "VRFY": _ANYWHERE,
    "EXPN": _ANYWHERE,
    "HELP": _ANYWHERE,
    "QUIT": dict.fromkeys(_ANYWHERE, State.CLOSED),
}
_WITHOUT_ARGUMENT: Final = frozenset({"STARTTLS", "DATA", "RSET", "QUIT"})
# A browser can be made to speak to a mail server; a mail client never says these.
_FOREIGN: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"})

# RFC 5321 section 4.5.3.1.4 asks for 512 octets; extensions add to it, DSN the most (RFC 3461 section 5).
LINE_OCTETS: Final = 2048
RESPONSE_OCTETS: Final = 12_288  # RFC 4954 section 4
_LINE = re.compile(rb"[^\r\n]*\r\n")


class Server:
    """One session."""

    def __init__(self, features: server_events.Features, session: server_events.Session) -> None:
        self.session = session
        self._features = features
        self._state = State.START
        self._buffer = bytearray()
        self._output: list[bytes] = []
        self._pending: server_events.Event | None = None
        self._verb = ""
        self._bad_commands = 0
        self._exchange: authentication.Exchange | None = None
        self._content: server_reading.DotStuffed | None = None
        self._chunks: server_reading.Chunks | None = None
        self._is_chunk = False
        self._sender = server_commands.Path("", {})
        self._recipients: list[str] = []

    # What the driver asks.

    @property
    def is_closed(self) -> bool:
        """Whether the connection is to be closed once the output is sent."""
        return self._state is State.CLOSED

    @property
    def is_reading_content(self) -> bool:
        """Whether the next bytes are content and not a command."""
        return self._content is not None or self._is_chunk

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost when the session ends now."""
        return self._state in (State.START, State.READY) and self._pending is None and not self.is_reading_content

    def take_output(self) -> bytes:
        """The replies that were made since the last call."""
        output = b"".join(self._output)
        self._output.clear()
        return output

    # What the driver tells.

    def greet(self, banner: values.Reply) -> None:
        """Open the session; a banner that is no 220 ends it."""
        self._say(banner)
        if banner.code != 220:  # noqa: PLR2004 - RFC 5321 section 4.2.2
            self._state = State.CLOSED

    def receive(self, data: bytes) -> None:
        """Bytes from the client."""
        self._buffer += data

    def next_event(self) -> server_events.Event | None:
        """What is to be decided next; None when the session waits for bytes, or for a reply."""
        if self._pending is None:
            while self._state in _ANYWHERE and self._read():
                event: server_events.Event | None = self._pending
                if event is not None:
                    return event
        return None

    def reply(self, reply: values.Reply) -> None:
        """Answer the event; 421 closes the session (RFC 5321 section 3.8)."""
        event, self._pending = self._pending, None
        if event is None or isinstance(event, server_events.StartTls):
            raise RuntimeError("there is no event to reply to")
        is_positive = 200 <= reply.code < 400  # noqa: PLR2004 - RFC 5321 section 4.2.1
        if isinstance(event, server_events.Hello) and is_positive:
            self._welcome(event, reply)
        else:
            self._say(reply)
        self._follow(event, is_positive=is_positive)
        if reply.code == 421:  # noqa: PLR2004
            self._state = State.CLOSED

    def secured(self) -> None:
        """TLS is in place: what was said before it is void (RFC 3207 section 4.2)."""
        self._pending = None
        self._forget()
        self._state = State.START
        self.session.hello = ""
        self.session.is_authenticated = False
        self.session.is_secure = True

    def close(self, reply: values.Reply | None = None) -> None:
        """End the session from this side, with a word or without."""
        if reply is not None and self._state is not State.CLOSED:
            self._say(reply)
        self._pending = None
        self._state = State.CLOSED

    # Reading: each takes one thing out of the buffer, or says that it is not complete.

    def _read(self) -> bool:
        if self._content is not None:
            return self._read_content(self._content)
        if self._is_chunk and self._chunks is not None:
            return self._read_chunk(self._chunks)
        line = server_reading.take_line(self._buffer, RESPONSE_OCTETS if self._exchange else LINE_OCTETS)
        if line is None:
            return False
        try:
            if self._exchange is not None:
                self._continue(self._exchange, line)
            else:
                self._obey(line)
        except server_commands.Refused as refused:
            self._exchange = None
            self._complain(refused.reply)
        return True

    def _read_content(self, collecting: server_reading.DotStuffed) -> bool:
        received = collecting.read(self._buffer)
        if received is None:
            return False
        self._content = None
        self._complete(received, is_too_large=collecting.is_too_large)
        return True

    def _read_chunk(self, chunks: server_reading.Chunks) -> bool:
        if not chunks.read(self._buffer):
            return False
        self._is_chunk = False
        if self._state not in TRANSITIONS["BDAT"]:
            self._chunks = None
            self._complain(self._wrong_order("BDAT"))
        elif chunks.is_last or chunks.is_too_large:
            self._complete(chunks.content(), is_too_large=chunks.is_too_large)
        else:
            self._state = State.CHUNKS
            self._say(values.Reply(250, f"{chunks.size} octets received", "2.0.0"))
        return True

    # Verbs.

    def _obey(self, line: bytes) -> None:
        if not _LINE.fullmatch(line):
            why = "the line has a bare CR or LF; end it with CR LF" if line else "the line is too long"
            raise server_commands.Refused(500, "5.5.2", why)
        verb, argument = server_commands.split(line[:-2])
        if verb in _FOREIGN:
            self.close(values.Reply(421, "this is a mail server", "4.7.0"))
            return
        if verb not in TRANSITIONS:
            raise server_commands.Refused(500, "5.5.2", "the command is not known")
        self._verb = verb
        # A chunk follows BDAT in whatever order, and its octets must not be read as commands.
        if self._state not in TRANSITIONS[verb] and verb != "BDAT":
            self._complain(self._wrong_order(verb))
            return
        if argument and verb in _WITHOUT_ARGUMENT:
            raise server_commands.Refused(501, "5.5.4", f"{verb} takes no argument")
        if verb in server_replies.FIXED:
            self._say(server_replies.FIXED[verb])
        else:
            self._VERBS[verb](self, argument)

    def _hello(self, argument: str) -> None:
        self._pending = server_events.Hello(server_commands.hello_name(argument))

    def _starttls(self, _argument: str) -> None:
        if not self._features.starttls or self.session.is_secure:
            raise server_commands.Refused(502, "5.5.1", "TLS is not offered here and now")
        if self._buffer:
            # Commands that came in the clear would be obeyed as if they had come under TLS.
            self.close(values.Reply(421, "nothing may follow STARTTLS before TLS is in place", "4.7.0"))
            return
        self._say(values.Reply(220, "ready for TLS", "2.0.0"))
        self._state = State.SECURING
        self._pending = server_events.StartTls()

    def _auth(self, argument: str) -> None:
        if not self._features.offers_auth(self.session):
            code, enhanced = (538, "5.7.11") if self._features.auth else (502, "5.5.1")
            raise server_commands.Refused(code, enhanced, "AUTH is not offered here and now")
        if self.session.is_authenticated:
            raise server_commands.Refused(503, "5.5.1", "you are authenticated already")
        mechanism, _, initial = argument.partition(" ")
        exchange = self._exchange = authentication.Exchange(mechanism.upper())
        if initial:
            self._take_response(exchange, initial)
        else:
            self._say(exchange.challenge())

    def _continue(self, exchange: authentication.Exchange, line: bytes) -> None:
        if not _LINE.fullmatch(line) or not line.isascii():
            raise server_commands.Refused(501, "5.5.2", "the response is too long, or is no line of base64")
        self._take_response(exchange, line[:-2].decode("ascii"))

    def _take_response(self, exchange: authentication.Exchange, response: str) -> None:
        credentials = exchange.answer(response)
        if credentials is None:
            self._say(exchange.challenge())
        else:
            self._exchange = None
            self._pending = server_events.Authenticate(credentials)

    def _mail(self, argument: str) -> None:
        path = server_commands.sender(argument)
        server_commands.refuse_unoffered(
            path, is_extended=self.session.is_extended, is_utf8="SMTPUTF8" in path.parameters
        )
        if int(path.parameters.get("SIZE", 0)) > self._features.message_octets:
            self._say(self._too_large())
        else:
            self._pending = server_events.Mail(path)

    def _rcpt(self, argument: str) -> None:
        path = server_commands.recipient(argument)
        server_commands.refuse_unoffered(
            path, is_extended=self.session.is_extended, is_utf8="SMTPUTF8" in self._sender.parameters
        )
        if len(self._recipients) >= self._features.recipients:
            self._say(values.Reply(452, "too many recipients; send to the others in another transaction", "4.5.3"))
        else:
            self._pending = server_events.Recipient(path)

    def _data(self, _argument: str) -> None:
        self._pending = server_events.Data()

    def _begin_chunk(self, argument: str) -> None:
        found = server_commands.chunk(argument)
        if found is None:
            # Nobody can tell where the commands begin again.
            self.close(values.Reply(501, "write BDAT and the size of the chunk, and LAST with the last one", "5.5.4"))
            return
        if self._state is not State.CHUNKS or self._chunks is None:
            is_allowed = self._state in TRANSITIONS["BDAT"]
            self._chunks = server_reading.Chunks(self._features.message_octets if is_allowed else 0)
        size, is_last = found
        self._chunks.begin(size, is_last=is_last)
        self._is_chunk = True

    def _rset(self, _argument: str) -> None:
        self._forget()
        self._state = TRANSITIONS["RSET"][self._state]
        self._say(values.Reply(250, "forgotten", "2.0.0"))

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
        "BDAT": _begin_chunk,
        "RSET": _rset,
        "QUIT": _quit,
    }

    # Our own.

    def _follow(self, event: server_events.Event, *, is_positive: bool) -> None:
        """Go where the reply to an event leads."""
        if isinstance(event, server_events.Message):
            return
        if not is_positive:
            # A refused recipient is no fault of the client's; a wrong password may be a guess.
            self._bad_commands += isinstance(event, server_events.Authenticate)
            return
        match event:
            case server_events.Recipient(path):
                self._recipients.append(path.address)
            case server_events.Mail(path):
                self._forget()
                self._sender = path
            case server_events.Data():
                self._content = server_reading.DotStuffed(self._features.message_octets)
                self._buffer[:0] = b"\r\n"
            case server_events.Hello():
                self._forget()
            case server_events.Authenticate():
                self.session.is_authenticated = True
        self._state = TRANSITIONS[self._verb][self._state]

    def _complete(self, received: bytes, *, is_too_large: bool) -> None:
        """The content is there: the transaction is over, whatever becomes of it."""
        sender, recipients = self._sender, tuple(self._recipients)
        self._forget()
        self._state = State.READY
        if is_too_large:
            self._say(self._too_large())
        elif server_reading.has_bare_line_ends(received):
            self._complain(values.Reply(550, "the message has a bare CR or LF; end lines with CR LF", "5.6.0"))
        else:
            envelope = values.Envelope(
                sender=sender.address,
                recipients=recipients,
                content=(received,),
                is_8bit=sender.parameters.get("BODY", "").upper() == "8BITMIME",
                needs_smtputf8="SMTPUTF8" in sender.parameters,
            )
            self._pending = server_events.Message(envelope)

    def _forget(self) -> None:
        self._sender = server_commands.Path("", {})
        self._recipients = []
        self._chunks = None

    def _welcome(self, hello: server_events.Hello, reply: values.Reply) -> None:
        self.session.hello = hello.name
        self.session.is_extended = self._verb == "EHLO"
        offered = self._features.extensions(self.session) if self.session.is_extended else ()
        first = f"{self._features.name} {reply.text}"
        self._output.append(server_replies.encode_lines(reply.code, [first, *offered]))

    def _wrong_order(self, verb: str) -> values.Reply:
        if self._state is State.START:
            return values.Reply(503, "say EHLO first", "5.5.1")
        if self._state is State.MAIL and verb in ("DATA", "BDAT"):
            return values.Reply(554, "no recipient was accepted", "5.5.1")
        return values.Reply(503, f"{verb} cannot come here", "5.5.1")

    def _too_large(self) -> values.Reply:
        return values.Reply(552, f"the message is larger than {self._features.message_octets} octets", "5.3.4")

    def _complain(self, reply: values.Reply) -> None:
        """Answer a command that should not have come; there is an end to that."""
        self._bad_commands += 1
        if self._bad_commands > self._features.bad_commands:
            self.close(values.Reply(421, "too many errors", "4.7.0"))
        else:
            self._say(reply)

    def _say(self, reply: values.Reply) -> None:
        self._output.append(server_replies.encode(reply))
