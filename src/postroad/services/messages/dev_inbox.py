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
from postroad.keys import installation_keys
from postroad.mail import return_path
from postroad.model.units import identifiers
from postroad.protocol.mime import address
from postroad.protocol.smtp import values

ID_PREFIX: Final = "inb_"
# The built-in webhook endpoint for development; the API serves it, the dashboard offers it.
WEBHOOK_PATH: Final = "/v1/inbox/webhook"
MAX_MESSAGES: Final = 500
MAX_OCTETS: Final = 256 * 1024 * 1024

_VALUE: Final = rb"[ \t]*:([^\r\n]*(?:\r\n[ \t][^\r\n]*)*)"
_SUBJECT: Final = re.compile(rb"^subject" + _VALUE, re.IGNORECASE | re.MULTILINE)
_FROM: Final = re.compile(rb"^from" + _VALUE, re.IGNORECASE | re.MULTILINE)
# Longer fields are cut; the raw message has all of it.
FIELD_OCTETS: Final = 4096


@dataclass(frozen=True, slots=True)
class CapturedMessage:
    """A delivered message. `received_at` is in microseconds; `sender` is the From field, for people."""

    id: str
    received_at: int
    envelope_from: str
    envelope_to: tuple[str, ...]
    sender: str
    subject: str
    content: bytes = field(repr=False)


class Inbox:
    """Messages, oldest first. `command` writes a command so that it finds this installation."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        max_messages: int = MAX_MESSAGES,
        max_octets: int = MAX_OCTETS,
        command: Callable[[str], str] = "postroad {}".format,
    ) -> None:
        self.command = command
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
            sender=sender(content),
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

    def search(self, text: str) -> list[CapturedMessage]:
        """The messages whose From, subject and envelope recipients contain every word, newest first."""
        words = text.casefold().split()
        return [message for message in self.newest_first() if all(word in _searched(message) for word in words)]

    def of_message(self, keys: installation_keys.Keys, message_id: str) -> list[CapturedMessage]:
        """What was received of a message that this service sent, oldest first."""
        return [received for received in self._messages.values() if sent_as(keys, received) == message_id]

    def find(self, message_id: str) -> CapturedMessage:
        try:
            return self._messages[message_id]
        except KeyError:
            raise errors.NotFound("no such message in the inbox") from None

    def clear(self) -> None:
        self._messages.clear()
        self._octets = 0


def sent_as(keys: installation_keys.Keys, received: CapturedMessage) -> str | None:
    """The id of the message that this service sent, which its return path names; None for mail of others."""
    named = return_path.named_by(keys, received.envelope_from)
    return None if named is None else named.message_id


def subject(content: bytes) -> str:
    """The subject, unfolded and decoded; unchanged where decoding fails."""
    return _field(_SUBJECT, content)


def sender(content: bytes) -> str:
    """The same of the From field."""
    return _field(_FROM, content)


def _searched(message: CapturedMessage) -> str:
    return "\n".join((message.sender, message.subject, *message.envelope_to)).casefold()


def _field(field: re.Pattern[bytes], content: bytes) -> str:
    head, _, _ = content.partition(b"\r\n\r\n")
    found = field.search(head)
    if found is None:
        return ""
    text = found[1][:FIELD_OCTETS].decode("utf-8", "replace").replace("\r\n", "").strip()
    try:
        decoded = str(email.header.make_header(email.header.decode_header(text)))
    except (ValueError, LookupError, email.errors.MessageError):
        return text
    # Some character sets can represent what Unicode cannot.
    return decoded.encode("utf-8", "replace").decode("utf-8")
