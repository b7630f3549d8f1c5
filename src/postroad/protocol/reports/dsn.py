"""Parser of delivery status notifications: what other hosts report about a message that they had accepted.

The format is RFC 3464 in a report of RFC 6522, with the addresses of RFC 6533; `bounce_text.py` parses older formats
in prose. The parser never fails: mail that is not a report has no outcomes, and an invalid field is missing. A report
is a claim of its author; its texts are truncated and cleaned before they are stored.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from postroad.protocol.mime import report_parser
from postroad.protocol.reports import bounce_text
from postroad.protocol.smtp import values

# A host must accept this many in one transaction (RFC 5321 section 4.5.3.1.8).
MAX_RECIPIENTS: Final = 100
ADDRESS_CHARACTERS: Final = 400
_STATUS_TYPES: Final = frozenset({"message/delivery-status", "message/global-delivery-status"})
_STATUS: Final = re.compile(r"[245]\.\d{1,3}\.\d{1,3}(?!\.?\d)", re.ASCII)
_ESCAPED: Final = re.compile(r"\\x\{([0-9A-Fa-f]{2,6})\}")
_HIGHEST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class Action(StrEnum):
    """What became of a recipient (RFC 3464 section 2.3.3)."""

    FAILED = "failed"
    DELAYED = "delayed"
    DELIVERED = "delivered"
    RELAYED = "relayed"
    EXPANDED = "expanded"


# For a report without an action: what the class of its status says (RFC 3463 section 2).
_ACTION_OF_CLASS: Final = {"2": Action.DELIVERED, "4": Action.DELAYED, "5": Action.FAILED}


class RecipientReport(msgspec.Struct, frozen=True):
    """What a report says of one recipient. Addresses are as written there, and empty when it names none.

    `words` are those of the host that refused; `reply` is the reply quoted there, or the closest equivalent.
    """

    action: Action
    final_recipient: str
    original_recipient: str
    status: str
    words: str
    reply: values.Reply


def read(content: bytes) -> tuple[RecipientReport, ...]:
    """The outcomes that a message reports; none when it is not a report."""
    parts = list(report_parser.walk(content))
    for part in parts:
        if part.content_type in _STATUS_TYPES:
            return tuple(_recipient_reports(part.text))[:MAX_RECIPIENTS]
    failures = bounce_text.read(report_parser.header(content), parts[0]) if parts else []
    return tuple(_failed(address, words) for address, words in failures[:MAX_RECIPIENTS])


def _recipient_reports(text: str) -> Iterator[RecipientReport]:
    """One for each group of fields about a recipient; the first group is usually about the message."""
    for group in bounce_text.paragraphs(text, limit=MAX_RECIPIENTS + 1):
        outcome = _recipient_report(report_parser.read_fields(group))
        if outcome is not None:
            yield outcome


def _recipient_report(fields: Mapping[str, str]) -> RecipientReport | None:
    status = bounce_text.first_match(_STATUS, fields.get("status", ""))
    action = _action(fields.get("action", ""), status)
    if action is None:
        return None
    kind, semicolon, words = fields.get("diagnostic-code", "").partition(";")
    words = bounce_text.clean(words if semicolon else kind)
    return RecipientReport(
        action,
        _address(fields.get("final-recipient", "")),
        _address(fields.get("original-recipient", "")),
        status,
        words,
        bounce_text.reply(words, status=status),
    )


def _failed(address: str, words: str) -> RecipientReport:
    words = bounce_text.clean(words)
    reply = bounce_text.reply(words, status="")
    return RecipientReport(Action.FAILED, _address(address), "", reply.enhanced, words, reply)


def _action(text: str, status: str) -> Action | None:
    word = text.lower().partition(" ")[0]
    return Action(word) if word in Action.__members__.values() else _ACTION_OF_CLASS.get(status[:1])


def _address(text: str) -> str:
    """`rfc822; user@example.com`, also without its type, in brackets, or with a comment behind it."""
    kind, semicolon, address = text.partition(";")
    words = (address if semicolon else kind).split(maxsplit=1)
    if not words:
        return ""
    if kind.strip().lower() == "utf-8":
        words[0] = _ESCAPED.sub(_unescape, words[0])  # RFC 6533 section 3
    return bounce_text.clean(words[0].strip("<>"))[:ADDRESS_CHARACTERS]


def _unescape(match: re.Match[str]) -> str:
    number = int(match[1], 16)
    return match[0] if number > _HIGHEST or number in _SURROGATES else chr(number)
