"""The client side of an SMTP session, without sockets: bytes in, bytes out, a result for each recipient (RFC 5321).

The driver passes what the server sent to `receive` and writes what `next_bytes` returns until that is empty. Then
either a reply is awaited (`is_waiting`), or the client is ready for `begin`, waits for a TLS handshake (`secured`), or
is closed. Credentials are sent before the first transaction, and never while STARTTLS is still wanted. With PIPELINING
(RFC 2920) the commands of a transaction leave together, but their replies go through the same steps as without it. An
unfinished transaction is reset when the next one begins.
"""

import re
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, cast

from postroad.protocol.smtp import authentication, values

# The commands of a transaction as bytes, or the result that says why they are not sent.
#
# A message that a server has announced it cannot accept is refused here (RFC 1870 SIZE, RFC 6531 SMTPUTF8, RFC 6152
# 8BITMIME), and so is an address that could end its command and inject another.
#
# Messages are 7-bit when they are accepted, except those that must not be changed (protocol/mime/seven_bit.py):
# encoding them here would break their signatures.

DATA_COMMAND: Final = b"DATA\r\n"
FINAL_DOT: Final = b".\r\n"
QUIT_COMMAND: Final = b"QUIT\r\n"
RSET_COMMAND: Final = b"RSET\r\n"
STARTTLS_COMMAND: Final = b"STARTTLS\r\n"

# RFC 5321 section 4.5.3.1: a local part of 64 octets, an @, and a domain of 255.
_MAX_ADDRESS_OCTETS: Final = 320
# A local part that is quoted may hold blanks and angle brackets; nothing may hold a control character.
_PLAIN: Final = r'[^\x00-\x20\x7f<>"\\]+'
_QUOTED: Final = r'"(?:[^\x00-\x1f\x7f"\\]|\\[^\x00-\x1f\x7f])*"'
_ADDRESS: Final = re.compile(rf"(?:{_PLAIN}|{_QUOTED})@{_PLAIN}")


def hello_command(verb: str, name: str) -> bytes:
    return f"{verb} {name}\r\n".encode("ascii")


def mail_command(transaction: values.MailTransaction, extensions: Mapping[str, str]) -> bytes | values.RecipientResult:
    """MAIL with the parameters that the server's extensions allow, or why this message cannot be sent there."""
    size = transaction.size
    sender = _address(transaction.sender, is_utf8=transaction.needs_smtputf8) if transaction.sender else b""
    mismatch = _mismatch(transaction, extensions, size)
    if mismatch is not None:
        return mismatch
    if sender is None:
        detail = "the sender's address cannot be sent by SMTP"
        return values.RecipientResult(values.Stage.MAIL, cause=values.Cause.UNSENDABLE_ADDRESS, detail=detail)
    command = b"MAIL FROM:<%b> SIZE=%d" % (sender, size) if "SIZE" in extensions else b"MAIL FROM:<%b>" % sender
    if transaction.is_8bit and "8BITMIME" in extensions:  # or it has SMTPUTF8, which includes it (RFC 6531 section 3.1)
        command += b" BODY=8BITMIME"
    return command + (b" SMTPUTF8\r\n" if transaction.needs_smtputf8 else b"\r\n")


def recipient_command(address: str, *, is_utf8: bool) -> bytes | values.RecipientResult:
    """RCPT, or why it cannot be sent for this recipient."""
    encoded = _address(address, is_utf8=is_utf8)
    if encoded is None:
        detail = "the recipient's address cannot be sent by SMTP"
        return values.RecipientResult(values.Stage.RECIPIENT, cause=values.Cause.UNSENDABLE_ADDRESS, detail=detail)
    return b"RCPT TO:<%b>\r\n" % encoded


def _mismatch(
    transaction: values.MailTransaction, extensions: Mapping[str, str], size: int
) -> values.RecipientResult | None:
    limit = extensions.get("SIZE", "")
    # RFC 1870 section 4: zero, or no number, is no fixed limit.
    if limit and limit.isdecimal() and 0 < int(limit) < size:
        detail = f"the destination takes messages of at most {limit} octets, and this one has {size}"
        return values.RecipientResult(values.Stage.MAIL, cause=values.Cause.MESSAGE_TOO_LARGE, detail=detail)
    if transaction.needs_smtputf8 and "SMTPUTF8" not in extensions:
        detail = "the message has an internationalized address, and the destination does not offer SMTPUTF8"
        return values.RecipientResult(values.Stage.MAIL, cause=values.Cause.EXTENSION_MISSING, detail=detail)
    if transaction.is_8bit and not transaction.needs_smtputf8 and "8BITMIME" not in extensions:
        detail = "the message has 8-bit content that must not be changed, and the destination does not offer 8BITMIME"
        return values.RecipientResult(values.Stage.MAIL, cause=values.Cause.EXTENSION_MISSING, detail=detail)
    return None


def _address(address: str, *, is_utf8: bool) -> bytes | None:
    if not (address.isascii() or is_utf8) or _ADDRESS.fullmatch(address) is None:
        return None
    try:
        encoded = address.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return None
    return encoded if len(encoded) <= _MAX_ADDRESS_OCTETS else None


# Message content on the wire: CRLF line ends only, and leading dots doubled (RFC 5321 section 4.5.2).
#
# A bare CR or LF is never sent: servers disagree on whether it ends a line, which allows a second message to be
# smuggled (RFC 5321 section 2.3.8). Most messages need no change, and checking that costs a few microseconds: removing
# all CR and inserting one before each LF gives the same message.

_BARE: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")


def transparent(pieces: Sequence[bytes]) -> bytes:
    """The pieces as one, ready to be followed by the final dot (RFC 5321 section 4.5.2)."""
    content = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if content.replace(b"\r", b"").replace(b"\n", b"\r\n") != content:
        content = _BARE.sub(b"\r\n", content)
    content = content.replace(b"\r\n.", b"\r\n..")
    if content.startswith(b"."):
        content = b"." + content
    return content if content.endswith(b"\r\n") else content + b"\r\n"


class Step(IntEnum):
    """What the client waits for: the reply to a command, or, in the last three, none."""

    BANNER = 0
    EHLO = 1
    HELO = 2
    STARTTLS = 3
    AUTH = 4
    RESET = 5
    MAIL = 6
    RECIPIENT = 7
    DATA = 8
    CONTENT = 9
    QUIT = 10
    HANDSHAKE = 11
    IDLE = 12
    CLOSED = 13


# Module names, because each enum attribute access costs 0.2 µs and a message needs dozens.
BANNER, EHLO, HELO, STARTTLS, AUTH, RESET, MAIL, RECIPIENT, DATA, CONTENT, QUIT, HANDSHAKE, IDLE, CLOSED = Step

# The next step after a 2xx, a 3xx, a 4xx or 5xx reply. None is a protocol error, which closes the session,
# as 421 does everywhere. Without PIPELINING, RECIPIENT and DATA lead to IDLE once no recipient is left; after
# the last recipient comes DATA; and EHLO leads to STARTTLS where that is wanted and offered, then to AUTH where there
# are credentials.
TRANSITIONS: Final[dict[Step, tuple[Step | None, Step | None, Step | None]]] = {
    BANNER: (EHLO, None, CLOSED),
    EHLO: (IDLE, None, HELO),
    HELO: (IDLE, None, CLOSED),
    STARTTLS: (HANDSHAKE, None, CLOSED),
    AUTH: (IDLE, AUTH, CLOSED),
    RESET: (MAIL, None, None),
    MAIL: (RECIPIENT, None, RECIPIENT),
    RECIPIENT: (RECIPIENT, None, RECIPIENT),
    DATA: (None, CONTENT, IDLE),
    CONTENT: (IDLE, None, IDLE),
    QUIT: (CLOSED, CLOSED, CLOSED),
}

STAGES: Final = {
    BANNER: values.Stage.BANNER,
    EHLO: values.Stage.HELLO,
    HELO: values.Stage.HELLO,
    STARTTLS: values.Stage.STARTTLS,
    HANDSHAKE: values.Stage.STARTTLS,
    AUTH: values.Stage.AUTH,
    RESET: values.Stage.MAIL,
    MAIL: values.Stage.MAIL,
    RECIPIENT: values.Stage.RECIPIENT,
    DATA: values.Stage.DATA,
    CONTENT: values.Stage.CONTENT,
}

# Fits the transport's buffer, so that waiting for it is waiting for the server.
CHUNK_OCTETS: Final = 64 * 1024
SERVICE_CLOSING: Final = 421  # RFC 5321 section 3.8: may come at any moment
FIRST_REFUSAL: Final = 400
FIRST_PERMANENT: Final = 500
NO_TRANSACTION: Final = values.MailTransaction("", (), ())


class Client:
    """One session; it begins before the banner, or, with `implicit_tls`, before a handshake."""

    __slots__ = (
        "_auth_lines",
        "_auth_sent",
        "_commands",
        "_content_at",
        "_credentials",
        "_dot_sent",
        "_hello_name",
        "_is_open",
        "_is_pipelined",
        "_reader",
        "_replied",
        "_results",
        "_starttls",
        "_transaction",
        "content",
        "conversation",
        "extensions",
        "failure",
        "outgoing",
        "replies",
        "step",
    )

    def __init__(
        self,
        hello_name: str,
        *,
        starttls: bool,
        implicit_tls: bool = False,
        credentials: authentication.Credentials | None = None,
    ) -> None:
        if not hello_name.isascii() or not hello_name.isprintable() or " " in hello_name or not hello_name:
            raise ValueError(f"{hello_name!r} is not a name for EHLO")
        self._hello_name = hello_name
        self._starttls = starttls  # whether to use it if it is offered
        self._credentials = credentials
        self._auth_lines: list[bytes] = []
        self._auth_sent = 0
        self.step = HANDSHAKE if implicit_tls else BANNER
        self.extensions: dict[str, str] = {}  # keyword in capitals, and its parameters
        # Why a session ended before its first transaction.
        self.failure: values.RecipientResult | None = None
        self.replies = 0  # how many were received
        self.conversation = values.Conversation()
        self._reader = values.ReplyReader()
        self.outgoing = b""
        # The transaction.
        self._transaction = NO_TRANSACTION
        self._results: list[values.RecipientResult | None] = []
        self._commands: list[tuple[int, bytes]] = []  # RCPT for each valid recipient
        self._replied = 0
        self._is_pipelined = False
        self._is_open = False  # whether one must be reset before the next
        self.content: bytes | None = None
        self._content_at = 0
        self._dot_sent = False

    @property
    def is_waiting(self) -> bool:
        return self.step < HANDSHAKE

    @property
    def is_in_doubt(self) -> bool:
        """Whether the server may have the whole message, and has not replied to it."""
        return self.step is CONTENT and self._dot_sent

    # Called by the driver.

    def receive(self, data: bytes) -> None:
        reader = self._reader
        try:
            for received in reader.read(data):
                self._handle_reply(received)
        except values.BadReply as problem:
            # A server that repeats what it was sent would have the password quoted.
            quoted = "the destination sent an invalid reply" if self.step is AUTH else str(problem)
            self.fail(values.Cause.PROTOCOL_ERROR, quoted)
        # RFC 3207 section 4.2: plain text after the reply to STARTTLS was injected by a third party.
        if (self.step is IDLE or self.step is HANDSHAKE) and not reader.is_empty:
            self.fail(values.Cause.PROTOCOL_ERROR, "the destination sent an unexpected reply")

    def next_bytes(self) -> bytes:
        """What to write now; empty without `outgoing` and `content`."""
        if self.outgoing:
            data, self.outgoing = self.outgoing, b""
            self.conversation.said.append(values.AUTHENTICATION if self.step is AUTH else data)
            return data
        if self.content is None:
            return b""
        begin, end = self._content_at, self._content_at + CHUNK_OCTETS
        if end < len(self.content):
            self._content_at = end
            return self.content[begin:end]
        # From here on the server may have the whole message, even if the connection is lost.
        data, self.content, self._dot_sent = self.content[begin:] + FINAL_DOT, None, True
        return data

    def secured(self) -> None:
        """The handshake is done: discard what the server said before (RFC 3207 section 4.2)."""
        self._starttls = False
        self.extensions = {}
        self.conversation.said.append(values.TLS_ESTABLISHED)
        if self.replies:
            self._enter(EHLO)
        else:
            self.step = BANNER  # implicit TLS (RFC 8314 section 3.3)

    def begin(self, transaction: values.MailTransaction) -> None:
        """Start a transaction. When nothing of it can be sent, its results are known at once."""
        if self.step <= HANDSHAKE:
            raise RuntimeError("a transaction can only begin after the previous one has ended")
        self.conversation.begin_transaction()
        if transaction.fallback is not None and "SMTPUTF8" not in self.extensions:
            transaction = transaction.fallback
        self._transaction = transaction
        self._results = [None] * len(transaction.recipients)
        self._replied = 0
        self._dot_sent = False
        if self.step is CLOSED:
            self._resolve(
                values.RecipientResult(
                    values.Stage.MAIL,
                    cause=values.Cause.CONNECTION_LOST,
                    detail="the connection was closed before the transaction",
                )
            )
            return
        mail = mail_command(transaction, self.extensions)
        if isinstance(mail, values.RecipientResult):
            self._resolve(mail)
            return
        self._commands = self._recipient_commands(transaction)
        if not self._commands:
            return
        self._is_pipelined = "PIPELINING" in self.extensions
        reset = RSET_COMMAND if self._is_open else b""
        self._is_open = True
        self.step = RESET if reset else MAIL
        if self._is_pipelined:
            recipients = [command for _, command in self._commands]
            self.outgoing = b"".join([reset, mail, *recipients, DATA_COMMAND])
        else:
            self.outgoing = reset or mail

    def results(self) -> tuple[values.RecipientResult, ...]:
        """One for each recipient, in their order; the transaction must be over."""
        if None in self._results:
            raise RuntimeError("the transaction is not over")
        results = cast("tuple[values.RecipientResult, ...]", tuple(self._results))
        # A session may be idle for long, and the content may be large.
        self._transaction = NO_TRANSACTION
        return results

    def quit(self) -> None:
        """Send QUIT; only between transactions."""
        self.outgoing = QUIT_COMMAND
        self.step = QUIT

    def fail(self, cause: values.Cause, detail: str) -> None:
        """The connection is lost or unusable: recipients without a result get this one."""
        self._end(None, cause, detail)

    # Internal.

    def _recipient_commands(self, transaction: values.MailTransaction) -> list[tuple[int, bytes]]:
        commands = []
        for index, address in enumerate(transaction.recipients):
            command = recipient_command(address, is_utf8=transaction.needs_smtputf8)
            if isinstance(command, values.RecipientResult):
                self._results[index] = command
            else:
                commands.append((index, command))
        return commands

    def _handle_reply(self, received: values.Received) -> None:
        step, code = self.step, received[0]
        if step >= HANDSHAKE:
            self.fail(values.Cause.PROTOCOL_ERROR, "the destination sent an unexpected reply")
            return
        self.replies += 1
        self.conversation.said.append((code, (values.WITHHELD,)) if step is AUTH else received)
        is_refused = code >= FIRST_REFUSAL
        following = TRANSITIONS[step][2 if is_refused else code // 100 - 2]
        # A reply before its command was sent is invalid, like one without a command.
        if following is None or code == SERVICE_CLOSING or self.outgoing or (step is CONTENT and not self._dot_sent):
            self._abort(received, is_refused=is_refused)
            return
        if step is RECIPIENT:
            self._record_recipient(received, is_refused=is_refused)
        elif is_refused or step is CONTENT or step is EHLO:
            self._record_reply(received, is_refused=is_refused)
        if following is RECIPIENT and self._is_pipelined:
            self.step = RECIPIENT if self._replied < len(self._commands) else DATA
        elif self.step is step:
            self._enter(following)

    def _abort(self, received: values.Received, *, is_refused: bool) -> None:
        """Handle a reply that ends the session."""
        if received[0] == SERVICE_CLOSING:
            self._end(values.first_reply(received))
        elif self.step is CONTENT and not self._dot_sent:
            # A server that answers before the final dot would read the rest as commands.
            if is_refused:
                self._resolve(values.RecipientResult(values.Stage.DATA, values.first_reply(received)))
            self.fail(values.Cause.PROTOCOL_ERROR, "the destination answered before the content was sent")
        elif self.outgoing:
            self.fail(values.Cause.PROTOCOL_ERROR, "the destination sent an unexpected reply")
        else:
            detail = f"the destination answered {self.step.name} with {received[0]}, which is not a valid reply"
            self.fail(values.Cause.PROTOCOL_ERROR, detail)

    def _record_reply(self, received: values.Received, *, is_refused: bool) -> None:
        """Record a reply about the session or the whole transaction."""
        step = self.step
        if step is CONTENT or step is MAIL or step is DATA:
            self._is_open = self._is_open and step is DATA
            self._resolve(values.RecipientResult(STAGES[step], values.first_reply(received)))
        elif step is EHLO and not is_refused:
            self.extensions = values.extensions(received)
        elif step is BANNER or step is HELO or step is STARTTLS:
            self._end(values.first_reply(received))
        elif step is AUTH:
            # A login that is refused for good is a matter of settings, which only the operator can change.
            reply = values.first_reply(received)
            self._end(reply, values.Cause.CONFIGURATION if reply.code >= FIRST_PERMANENT else None)

    def _record_recipient(self, received: values.Received, *, is_refused: bool) -> None:
        index = self._commands[self._replied][0]
        self._replied += 1
        # After a refused MAIL this reply only follows from it.
        if is_refused and self._results[index] is None:
            self._results[index] = values.RecipientResult(values.Stage.RECIPIENT, values.first_reply(received))

    def _enter(self, step: Step) -> None:
        """Wait for the next reply, and send its command unless it was sent already."""
        if step is RECIPIENT and self._replied == len(self._commands):
            step = DATA
        elif step is IDLE and self._starttls and "STARTTLS" in self.extensions:
            step = STARTTLS
        elif step is IDLE and self._credentials is not None and not self._starttls:
            step = AUTH
            self._auth_lines = authentication.client_lines(self._credentials, self.extensions.get("AUTH", ""))
            self._credentials = None  # once a session
        if not self._is_pipelined and (step is RECIPIENT or step is DATA) and None not in self._results:
            step = IDLE
        self.step = step
        if step is CONTENT:
            self._enter_content()
        elif step is EHLO or step is HELO:
            self.outgoing = hello_command(step.name, self._hello_name)
        elif step is STARTTLS:
            self.outgoing = STARTTLS_COMMAND
        elif step is AUTH:
            self._send_auth_line()
        elif not self._is_pipelined and step < CONTENT:
            self.outgoing = self._command(step)

    def _send_auth_line(self) -> None:
        if not self._auth_lines:
            mechanisms = " nor ".join(authentication.MECHANISMS)
            self.fail(values.Cause.CONFIGURATION, f"the destination offers neither AUTH {mechanisms}")
        elif self._auth_sent == len(self._auth_lines):
            self.fail(values.Cause.PROTOCOL_ERROR, "the destination sent an unexpected challenge")
        else:
            self.outgoing = self._auth_lines[self._auth_sent] + b"\r\n"
            self._auth_sent += 1

    def _enter_content(self) -> None:
        if None in self._results:
            self.conversation.said.append(values.CONTENT)
            self.content, self._content_at = transparent(self._transaction.content), 0
        else:
            # RFC 2920 section 3.1: DATA was sent ahead and accepted with no recipient; an empty message ends it.
            self.outgoing, self._dot_sent = FINAL_DOT, True

    def _command(self, step: Step) -> bytes:
        if step is MAIL:
            mail = mail_command(self._transaction, self.extensions)
            return b"" if isinstance(mail, values.RecipientResult) else mail
        return self._commands[self._replied][1] if step is RECIPIENT else DATA_COMMAND

    def _resolve(self, result: values.RecipientResult) -> None:
        for place, known in enumerate(self._results):
            if known is None:
                self._results[place] = result

    def _end(self, reply: values.Reply | None, cause: values.Cause | None = None, detail: str = "") -> None:
        stage = STAGES.get(self.step)
        if reply is None:
            self.conversation.said.append(detail)
        if self.step is AUTH and reply is not None:
            text = authentication.masked(reply.text, self._auth_lines)
            reply = values.Reply(reply.code, text, reply.enhanced)
        if stage is not None:
            in_doubt = self.step is CONTENT and self._dot_sent and reply is None
            result = values.RecipientResult(stage, reply, cause, detail, in_doubt)
            if self.step < RESET or self.step is HANDSHAKE:
                self.failure = result
            else:
                self._resolve(result)
        self.step = CLOSED
        self.outgoing = b""
        self.content = None
