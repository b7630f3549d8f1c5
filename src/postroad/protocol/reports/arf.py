"""Parser of feedback reports: complaints passed on by a mailbox provider (ARF, RFC 5965; RFC 6591 for authentication).

A report is a part `message/feedback-report` with fields, followed by the message or its header. The parser never fails
and is bounded: mail that is not a report is None, and an invalid field is missing. Providers often redact whom a report
is about, so its contents are claims to be checked against what is known.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from postroad.protocol.mime import report_parser
from postroad.protocol.reports import bounce_text

REPORT_TYPE: Final = "message/feedback-report"
_RETURNED_TYPES: Final = frozenset(
    {"message/rfc822", "message/global", "text/rfc822-headers", "message/rfc822-headers", "message/global-headers"}
)
ADDRESS_CHARACTERS: Final = 400
# The names are short, and those of the registry are shorter.
TYPE_CHARACTERS: Final = 40


class FeedbackReport(msgspec.Struct, frozen=True):
    """What a report says: its type in lower case, and possible envelope senders, the most reliable first."""

    kind: str
    senders: tuple[str, ...]


def read(content: bytes) -> FeedbackReport | None:
    parts = list(report_parser.walk(content))
    for place, part in enumerate(parts):
        if part.content_type == REPORT_TYPE:
            fields = report_parser.read_fields(part.text.replace("\r\n", "\n"))
            senders = [fields.get("original-mail-from", ""), *_return_paths(parts[place + 1 :])]
            return FeedbackReport(
                bounce_text.clean(fields.get("feedback-type", "")).lower()[:TYPE_CHARACTERS],
                tuple(filter(None, map(_address, senders))),
            )
    return None


def _return_paths(parts: Sequence[report_parser.Part]) -> Iterator[str]:
    """The field that the last host added to the returned message (RFC 5321 section 4.4)."""
    for part in parts:
        if part.content_type in _RETURNED_TYPES:
            yield report_parser.header(part.text.encode(errors="replace")).get("return-path", "")


def _address(text: str) -> str:
    """`<user@example.com>`, also without the brackets, with a type before it or a comment behind it."""
    kind, semicolon, rest = text.partition(";")
    words = bounce_text.clean(rest if semicolon else kind).split(maxsplit=1)
    return words[0].strip("<>")[:ADDRESS_CHARACTERS] if words else ""
