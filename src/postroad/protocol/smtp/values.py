"""Values of an SMTP session: replies, a mail transaction, and a result for each recipient.

A result is a value, not control flow. It says how far a recipient got and what the destination replied there; without
a reply, `detail` says what happened instead.
"""

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
