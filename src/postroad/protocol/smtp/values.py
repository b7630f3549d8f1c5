"""Values of an SMTP session: replies and their parser, a mail transaction, results by recipient, the conversation."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

import msgspec


class Stage(StrEnum):
    """How far a transaction got before its result was known."""

    ROUTE = "route"
    CONNECT = "connect"
    BANNER = "banner"
    HELLO = "hello"
    STARTTLS = "starttls"
    AUTH = "auth"
    MAIL = "mail"
    RECIPIENT = "recipient"
    DATA = "data"
    CONTENT = "content"  # the content was sent; the result is the answer to its final dot


class Cause(StrEnum):
    """Why a recipient has a result without a reply. Set where the failure is detected.

    `CONFIGURATION` may come with a reply: it is a fault of this installation, which its operator has to correct.
    """

    CONFIGURATION = "configuration"
    # Routing.
    BAD_ADDRESS = "bad_address"
    DOMAIN_NOT_FOUND = "domain_not_found"
    NULL_MX = "null_mx"
    MAIL_LOOP = "mail_loop"
    NO_ROUTE = "no_route"
    DNS_FAILED = "dns_failed"
    PRIVATE_ADDRESS = "private_address"
    # Loading the message.
    CONTENT_MISSING = "content_missing"
    WORKER_CRASHES = "worker_crashes"
    INTERNAL_ERROR = "internal_error"
    # Connecting.
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_TIMED_OUT = "connection_timed_out"
    HOST_UNREACHABLE = "host_unreachable"
    CONNECTION_FAILED = "connection_failed"
    # The session.
    TLS_FAILED = "tls_failed"
    CONNECTION_LOST = "connection_lost"
    REPLY_TIMED_OUT = "reply_timed_out"
    PROTOCOL_ERROR = "protocol_error"
    # What this server or SMTP cannot carry.
    MESSAGE_TOO_LARGE = "message_too_large"
    EXTENSION_MISSING = "extension_missing"
    UNSENDABLE_ADDRESS = "unsendable_address"


# No retry can change these.
PERMANENT_CAUSES: Final = frozenset(
    {
        Cause.BAD_ADDRESS,
        Cause.DOMAIN_NOT_FOUND,
        Cause.NULL_MX,
        Cause.MAIL_LOOP,
        Cause.NO_ROUTE,
        Cause.CONTENT_MISSING,
        Cause.MESSAGE_TOO_LARGE,
        Cause.EXTENSION_MISSING,
        Cause.UNSENDABLE_ADDRESS,
    }
)


class Reply(msgspec.Struct, frozen=True):
    """A server's reply (RFC 5321 section 4.2). `text` is its lines joined by a blank, without control characters."""

    code: int
    text: str
    enhanced: str = ""  # RFC 3463, such as `5.1.1`; empty when the server gave none

    @property
    def response_text(self) -> str:
        """The reply after its basic code."""
        return f"{self.enhanced} {self.text}" if self.enhanced else self.text


class MailTransaction(msgspec.Struct, frozen=True):
    """One mail transaction (RFC 5321 section 3.3): the envelope, and the content in pieces.

    The content is a complete message with CRLF line ends, not dot-stuffed. An empty sender is the null reverse-path.
    `fallback` is for servers without SMTPUTF8, with the same recipients; without one, these cannot get the message.
    """

    sender: str
    recipients: tuple[str, ...]
    content: tuple[bytes, ...]
    is_8bit: bool = False
    needs_smtputf8: bool = False
    fallback: "MailTransaction | None" = None

    @property
    def size(self) -> int:
        """Octets, as the SIZE extension counts them (RFC 1870)."""
        return sum(map(len, self.content))


class RecipientResult(msgspec.Struct, frozen=True):
    """The result of one attempt for one recipient: a reply, or a cause with its detail.

    `in_doubt` means that the final dot may have been received but its reply never came: the message may have been
    delivered.
    """

    stage: Stage
    reply: Reply | None = None
    cause: Cause | None = None
    detail: str = ""
    in_doubt: bool = False

    @property
    def permanent(self) -> bool:
        """Whether delivery failed without a reply and no retry can change that."""
        return self.cause in PERMANENT_CAUSES

    @property
    def response_text(self) -> str:
        """The server's reply without its code, or the detail."""
        return self.reply.response_text if self.reply else self.detail


# Parser of SMTP replies (RFC 5321 section 4.2): bytes in any portions in, complete replies out.
#
# A server may be broken or hostile, so everything it can make long is bounded, and an invalid reply is an error at
# once. Lines that end in a bare LF are accepted; nothing can be smuggled to a client that way. The text of a reply is
# decoded only on demand: the text of most replies is never read.

# RFC 5321 section 4.5.3.1.5 allows 512; some servers put whole paragraphs into a line.
MAX_LINE_OCTETS: Final = 2048
# The longest EHLO replies have some 25 lines.
MAX_LINES: Final = 100
MAX_REPLY_OCTETS: Final = 32 * 1024
# What is kept of a reply. The explanations of the large providers have about 500.
MAX_TEXT_CHARACTERS: Final = 2000

_CODES: Final = {b"%d" % code: code for code in range(200, 600)}
# What may follow a code; nothing, or the end of the line, when there is no text.
_SIGNS: Final = frozenset({b" ", b"-", b"", b"\r"})
_ENHANCED: Final = {digit: re.compile(rf"{digit}\.[0-9]{{1,3}}\.[0-9]{{1,3}}(?= |$)") for digit in (2, 4, 5)}
# Controls, and what breaks lines or turns their direction in a terminal or a page.
_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]+")


class BadReply(Exception):
    """The input is not a reply, or exceeds a limit; the text says which."""


# A reply as it came: its code, and what follows the code on each line, up to the LF.
Received = tuple[int, tuple[bytes, ...]]


class ReplyReader:
    __slots__ = ("_code", "_lines", "_octets", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._code = 0
        self._lines: list[bytes] = []
        self._octets = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of what was read but whole replies."""
        return not (self._rest or self._lines)

    def read(self, data: bytes) -> Iterator[Received]:
        """The replies that are complete with this data; those before a bad one are given before it is raised."""
        *lines, self._rest = ((self._rest + data) if self._rest else data).split(b"\n")
        for line in lines:
            code, sign = _CODES.get(line[:3]), line[3:4]
            if code is None or sign not in _SIGNS or len(line) > MAX_LINE_OCTETS:
                raise _bad(line)
            if sign == b"-" or self._lines:
                self._add(code, line)
                if sign == b"-":
                    continue
                yield code, tuple(self._lines)
                self._lines.clear()
                self._octets = 0
            else:
                yield code, (line[4:],)
        if len(self._rest) > MAX_LINE_OCTETS:
            raise _bad(self._rest)

    def _add(self, code: int, line: bytes) -> None:
        if self._lines and code != self._code:
            raise _bad(line)
        self._code = code
        self._lines.append(line[4:])
        self._octets += len(line)
        if len(self._lines) > MAX_LINES or self._octets > MAX_REPLY_OCTETS:
            raise BadReply("the destination sent a reply that is too long")


def first_reply(received: Received) -> Reply:
    """The reply as people may see it, its enhanced status code (RFC 2034) apart from the text.

    A code of another class than the reply's own is only text. Servers repeat the code on every line; each is taken off.
    """
    code, lines = received
    texts: list[str] = []
    pattern = _ENHANCED.get(code // 100)
    enhanced = ""
    for line in lines:
        text = presentable(line)
        if not texts and pattern is not None and (found := pattern.match(text)) is not None:
            enhanced = found[0]
        texts.append(text.removeprefix(enhanced).lstrip() if enhanced else text)
    text = texts[0] if len(texts) == 1 else " ".join([text for text in texts if text])
    return Reply(code, text[:MAX_TEXT_CHARACTERS], enhanced)


def extensions(received: Received) -> dict[str, str]:
    """The keywords of an EHLO reply (RFC 5321 section 4.1.1.1); its first line is a greeting."""
    offered = {}
    for line in received[1][1:]:
        keyword, _, parameters = line.decode("ascii", "replace").strip().partition(" ")
        if keyword:
            offered[keyword.upper()] = parameters.strip()
    return offered


def _bad(line: bytes) -> BadReply:
    if len(line) > MAX_LINE_OCTETS:
        return BadReply(f"the destination sent a line of more than {MAX_LINE_OCTETS} octets")
    return BadReply(f"the destination sent an invalid reply: {presentable(line[:100])}")


def presentable(line: bytes, *, unseen: str = "") -> str:
    """Octets as people may see them, with something else for what cannot be seen."""
    text = line.decode("utf-8", "replace").strip()
    return text if text.isprintable() else _UNSEEN.sub(unseen, text)


# What was said in a session, for people who ask why a message was refused.
#
# A client collects what passes by as it is, which costs a few list operations; it is written out only for a failure.
# The text is bounded however much a server says, and has no content of a message and nothing of a login. Lines of the
# client begin with `C:`, those of the server with `S:`, and what happened besides stands in parentheses.

# Bytes of a command or of several, a reply, or a remark of ours.
ConversationEntry = bytes | Received | str

MAX_CONVERSATION_OCTETS: Final = 4096
# Half of it for how the session began, where the long greetings are; the end has what was refused.
MAX_OPENING_OCTETS: Final = 2048
# A reply may have lines of 2,048.
MAX_LINE_CHARACTERS: Final = 400
AUTHENTICATION: Final = "authentication"
CONTENT: Final = "the message content"
TLS_ESTABLISHED: Final = "TLS established"
WITHHELD: Final = b"(text withheld)"


class Conversation:
    """What was said in a session: how it began, and since the last transaction began."""

    __slots__ = ("_opening", "said")

    def __init__(self) -> None:
        self._opening: list[str] | None = None
        self.said: list[ConversationEntry] = []

    def begin_transaction(self) -> None:
        """What was said of the transaction before is no longer kept."""
        if self._opening is None:
            # Bounded now: a session may be idle for long, and what a server says at first may be long too.
            self._opening = _bounded(_lines(self.said), limit=MAX_OPENING_OCTETS)
        self.said.clear()

    def text(self) -> str:
        """The lines, at most MAX_OCTETS of them all."""
        return "\n".join(_bounded([*(self._opening or ()), *_lines(self.said)], limit=MAX_CONVERSATION_OCTETS))


def _lines(entries: Iterable[ConversationEntry]) -> Iterator[str]:
    """The lines of a conversation, each with whose it is."""
    for entry in entries:
        if isinstance(entry, str):
            yield f"({entry})"
        elif isinstance(entry, bytes):
            for command in entry.removesuffix(b"\r\n").split(b"\r\n"):
                yield f"C: {_presentable(command)}"
        else:
            code, texts = entry
            for text in texts[:-1]:
                yield f"S: {code}-{_presentable(text)}"
            yield f"S: {code} {_presentable(texts[-1])}"


def _bounded(said: Iterable[str], *, limit: int) -> list[str]:
    """The lines, without some in the middle if all have more octets than the limit."""
    shown = list(said)
    if _octets(shown) <= limit:
        return shown
    head, tail = _first(shown, limit // 2), _first(reversed(shown), limit // 2)
    return [*head, f"({len(shown) - len(head) - len(tail)} lines left out)", *reversed(tail)]


def _first(said: Iterable[str], limit: int) -> list[str]:
    kept: list[str] = []
    for line in said:
        limit -= _octets([line])
        if limit < 0:
            break
        kept.append(line)
    return kept


def _octets(said: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in said)


def _presentable(line: bytes) -> str:
    text = presentable(line[: 4 * MAX_LINE_CHARACTERS], unseen="\ufffd")
    return text if len(text) <= MAX_LINE_CHARACTERS else f"{text[:MAX_LINE_CHARACTERS]}…"
