"""The field Message-ID of messages, without reading all of their content.

Postroad writes it for what it composes itself (`accept/compose.py`). Mail over SMTP may have its own, which is only
in the content.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from postroad.model.mail import statuses
from postroad.model.units import identifiers
from postroad.storage.engine import store
from postroad.storage.mail import messages

_FIELD: Final = re.compile(rb"^message-id[ \t]*+:\s*+(<[^<>\s]++>)", re.IGNORECASE | re.MULTILINE)


class Sent(msgspec.Struct, frozen=True):
    """A message, and what its Message-ID follows from."""

    account_id: str
    id: str
    source: str
    sender_domain: str


async def find(tx: store.Transaction, sent: Iterable[Sent]) -> dict[str, str | None]:
    """The Message-IDs by message; None where the content had it and is no longer retained."""
    found: dict[str, str | None] = {message.id: f"<{message.id}@{message.sender_domain}>" for message in sent}
    own = [(message.account_id, message.id) for message in sent if message.source == statuses.Source.SMTP]
    if own:
        heads = await messages.heads(tx, own)
        found |= {message_id: _read(heads.get((account_id, message_id), b"")) for account_id, message_id in own}
    return found


def message_of(field: str) -> str | None:
    """The message whose Message-ID is one that Postroad writes; whether there is such a message is another question."""
    message_id = field[1:].partition("@")[0]
    return message_id if identifiers.is_identifier(message_id, identifiers.MESSAGE) else None


def _read(head: bytes) -> str | None:
    field = _FIELD.search(head.partition(b"\r\n\r\n")[0])
    return field[1].decode("utf-8", "replace") if field else None
