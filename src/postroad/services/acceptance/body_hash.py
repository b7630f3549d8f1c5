"""What "the same body" means for an idempotency key (docs/api.md, "Retrying"): requests are compared by their meaning.

The hash is taken over the validated request in one normal form. A member that is null, empty or absent is the same, and
so are a lone string and a list of one. Addresses count as parsed, the names of headers in lower case, files by their
content. Headers, variables and metadata are in the order of their names, and `1.0` is `1`; any other order counts.

Options that came later are part of it only where they are given: hashes of other requests stay as they are stored.
"""

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from postroad.model import mail
from postroad.protocol import address
from postroad.services.acceptance import validation

# Unlike JSON it needs no escapes, and it tells texts, numbers and truth values apart.
_encoder: Final = msgspec.msgpack.Encoder()
_INTEGERS: Final = range(-(2**63), 2**64)


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def of(checked: validation.CheckedSend, *, digest: Callable[[bytes], bytes] = _sha256) -> bytes:
    """The hash of a validated request."""
    normal_form: tuple[object, ...] = (
        _address(checked.sender),
        [_address(mailbox) for mailbox in checked.to],
        [_address(mailbox) for mailbox in checked.cc],
        [_address(mailbox) for mailbox in checked.bcc],
        _one_or_several(checked.reply_to) if checked.reply_to else None,
        checked.subject,
        checked.text,
        checked.html,
        checked.template,
        [(name, _number(value)) for name, value in sorted(checked.variables.items())],
        sorted([(name.lower(), value) for name, value in checked.headers.items()]),
        checked.tags,
        [
            (file.filename, file.content_type, file.content_id, hashlib.sha256(file.content).digest())
            for file in checked.attachments
        ],
    )
    if checked.has_options:
        normal_form += (_options(checked),)
    return digest(_encoder.encode(normal_form))


def _options(checked: validation.CheckedSend) -> dict[str, object]:
    """The options that are given, by their names."""
    known = {
        "send_at": checked.send_at,
        "expires_in": checked.expires_in,
        "metadata": sorted(checked.metadata.items()) or None,
        "simulate": checked.simulation or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _address(mailbox: address.Mailbox) -> tuple[str | None, str, str]:
    return mailbox.display_name, mailbox.local, mailbox.domain


def _one_or_several(mailboxes: tuple[address.Mailbox, ...]) -> object:
    """One address stays as it was when there could be only one: stored hashes have it that way."""
    return _address(mailboxes[0]) if len(mailboxes) == 1 else [_address(mailbox) for mailbox in mailboxes]


def _number(value: mail.TemplateValue) -> mail.TemplateValue:
    if isinstance(value, float) and value.is_integer() and int(value) in _INTEGERS:
        return int(value)
    if isinstance(value, list):
        return [_number(item) for item in value]
    if isinstance(value, dict):
        return {name: _number(item) for name, item in sorted(value.items())}
    return value
