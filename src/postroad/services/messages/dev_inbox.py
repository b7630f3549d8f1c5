"""The inbox of `postroad dev`: messages received by the mailbox simulator, in memory.

It is bounded by messages and by octets; the oldest are dropped first. It belongs to the process: every account of the
installation sees all of it, and it is empty after a restart.
"""

import email.errors
import email.header
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from postroad import errors
from postroad.model import identifiers
from postroad.protocol import address
from postroad.protocol.smtp import values

ID_PREFIX: Final = "inb_"
# The built-in webhook endpoint for development; the API serves it, the dashboard offers it.
WEBHOOK_PATH: Final = "/v1/inbox/webhook"
MAX_MESSAGES: Final = 500
MAX_OCTETS: Final = 256 * 1024 * 1024

_SUBJECT = re.compile(rb"^subject[ \t]*:([^\r\n]*(?:\r\n[ \t][^\r\n]*)*)", re.IGNORECASE | re.MULTILINE)
# Longer subjects are cut; the raw message has all of it.
SUBJECT_OCTETS: Final = 4096


@dataclass(frozen=True, slots=True)
class CapturedMessage:
    """A delivered message. `received_at` is in microseconds."""

    id: str
    received_at: int
    envelope_from: str
    envelope_to: tuple[str, ...]
    subject: str
    content: bytes = field(repr=False)


class Inbox:
    """Messages, oldest first."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        max_messages: int = MAX_MESSAGES,
        max_octets: int = MAX_OCTETS,
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._max_messages = max_messages
        self._max_octets = max_octets
        self._messages: dict[str, CapturedMessage] = {}
        self._octets = 0

    def add(self, transaction: values.MailTransaction) -> CapturedMessage:
        """Add a message; the oldest make room for it."""
        now = self._clock()
        content = b"".join(transaction.content)
        received = CapturedMessage(
            id=identifiers.make(ID_PREFIX, now=now, entropy=self._entropy(identifiers.ENTROPY_BYTES)),
            received_at=now,
            envelope_from=transaction.sender,
            envelope_to=transaction.recipients,
            subject=subject(content),
            content=content,
        )
        self._messages[received.id] = received
        self._octets += len(content)
        while len(self._messages) > self._max_messages or self._octets > self._max_octets:
            oldest = self._messages.pop(next(iter(self._messages)))
            self._octets -= len(oldest.content)
        return received

    def newest_first(self, *, to: str | None = None) -> list[CapturedMessage]:
        """All messages, or those to one envelope recipient, case-insensitive."""
        newest = reversed(self._messages.values())
        if to is None:
            return list(newest)
        wanted = address.key_of(to)
        return [message for message in newest if any(address.key_of(given) == wanted for given in message.envelope_to)]

    def find(self, message_id: str) -> CapturedMessage:
        """One message."""
        try:
            return self._messages[message_id]
        except KeyError:
            raise errors.NotFound("no such message in the inbox") from None

    def clear(self) -> None:
        """Remove all messages."""
        self._messages.clear()
        self._octets = 0


def subject(content: bytes) -> str:
    """The subject, unfolded and decoded; unchanged where decoding fails."""
    head, _, _ = content.partition(b"\r\n\r\n")
    found = _SUBJECT.search(head)
    if found is None:
        return ""
    text = found[1][:SUBJECT_OCTETS].decode("utf-8", "replace").replace("\r\n", "").strip()
    try:
        decoded = str(email.header.make_header(email.header.decode_header(text)))
    except (ValueError, LookupError, email.errors.MessageError):
        return text
    # Some character sets can represent what Unicode cannot.
    return decoded.encode("utf-8", "replace").decode("utf-8")
