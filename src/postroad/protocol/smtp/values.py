"""What an SMTP session hands to the rest of the house: replies, an envelope, and a result for each recipient.

A result is a value, not control flow. It says how far a recipient got and what the destination said there; when the
destination said nothing, `trouble` says in plain words what happened instead.
"""

from enum import StrEnum

import msgspec


class Stage(StrEnum):
    """How far a transaction got before its result was known."""

    ROUTE = "route"
    CONNECT = "connect"
    BANNER = "banner"
    HELLO = "hello"
    STARTTLS = "starttls"
    MAIL = "mail"
    RECIPIENT = "recipient"
    DATA = "data"
    CONTENT = "content"  # the content was sent; the result is the answer to its final dot


class Reply(msgspec.Struct, frozen=True):
    """A server's reply (RFC 5321 section 4.2). `text` is its lines joined by a blank, without control characters."""

    code: int
    text: str
    enhanced: str = ""  # RFC 3463, such as `5.1.1`; empty when the server gave none

    @property
    def words(self) -> str:
        """What the server said after its code."""
        return f"{self.enhanced} {self.text}" if self.enhanced else self.text


class MailTransaction(msgspec.Struct, frozen=True):
    """One transaction: who it is from, who gets it, and the content in pieces that are sent one after the other.

    The content is a complete message with CRLF line ends, not dot-stuffed. An empty sender is the null reverse-path.
    """

    sender: str
    recipients: tuple[str, ...]
    content: tuple[bytes, ...]
    is_8bit: bool = False
    needs_smtputf8: bool = False

    @property
    def size(self) -> int:
        """Octets, as the SIZE extension counts them (RFC 1870)."""
        return sum(map(len, self.content))


class RecipientResult(msgspec.Struct, frozen=True):
    """What became of one recipient in one attempt.

    `permanent` marks a refusal that was decided here, without a reply, and that no retry can change. `in_doubt` means
    that the final dot may have been received but its reply never came: the message may have been delivered.
    """

    stage: Stage
    reply: Reply | None = None
    detail: str = ""
    permanent: bool = False
    in_doubt: bool = False

    @property
    def words(self) -> str:
        """The destination's words, or what happened instead."""
        return self.reply.words if self.reply else self.detail
