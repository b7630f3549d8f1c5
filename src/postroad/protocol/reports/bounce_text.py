"""Bounces in prose, and the SMTP reply quoted in a text.

Two old formats are parsed, because their hosts send nothing else: qmail's (QSBMF: a greeting, then a paragraph for each
address in brackets), and Exim's, which names the addresses in `X-Failed-Recipients` and quotes the reply below each of
them in the text. All other prose is ignored.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from postroad.protocol.mime import report_parser
from postroad.protocol.smtp import values

# The bound for every reply that is kept.
TEXT_CHARACTERS: Final = 2_000
# No classification rule blames the address for these codes: without a text the fault is unknown.
UNEXPLAINED_FAILURE: Final = 554
UNEXPLAINED_DELAY: Final = 451
# One for each recipient that a message can have, and some around them.
MAX_PARAGRAPHS: Final = 150
GREETING: Final = "Hi. This is the"
# Controls and blanks, and what breaks lines or turns their direction in a terminal or a page.
_UNSEEN: Final = re.compile(r"[\x00-\x20\x7f-\xa0\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
_REPLY: Final = re.compile(
    r"(?:^|[\s:>(])([45]\d\d)(?:[ -]+[#(]{0,2}([45]\.\d{1,3}\.\d{1,3})(?!\.?\d)|(?=[ -]))", re.ASCII
)
_STATUS: Final = re.compile(r"(?<![\d.])[45]\.\d{1,3}\.\d{1,3}(?!\.?\d)", re.ASCII)
_BLANK_LINES: Final = re.compile(r"\n(?:[ \t\r]*\n)+")

Failure = tuple[str, str]


def read(header: Mapping[str, str], part: report_parser.Part) -> list[Failure]:
    """Addresses and what is said of each, by the first part of a message; none when it has neither of the two forms."""
    if part.content_type != "text/plain":
        return []
    text = part.text.lstrip()
    if text.startswith(GREETING):
        return list(_of_qmail(text))
    return list(_of_exim(text, header.get("x-failed-recipients", "")))


def reply(words: str, *, status: str) -> values.Reply:
    """The reply that clean words quote. `status` is what the report says by itself; the more specific one counts."""
    match = _REPLY.search(words)
    quoted = (match[2] if match else None) or first_match(_STATUS, words)
    enhanced = quoted if quoted and (not status or status.endswith(".0.0")) else status
    if match is None:
        return values.Reply(UNEXPLAINED_DELAY if enhanced.startswith("4") else UNEXPLAINED_FAILURE, words, enhanced)
    # A reply of several lines repeats its codes.
    repeated = rf"(?:^|(?<= )){match[1]}[ -]+" + (rf"(?:[#(]*{re.escape(quoted)}[) ]*)?" if quoted else "")
    return values.Reply(int(match[1]), re.sub(repeated, "", words[match.start(1) :]).strip(), enhanced)


def paragraphs(text: str, *, limit: int) -> list[str]:
    """The first paragraphs of a text; empty lines are between them."""
    return _BLANK_LINES.split(text.strip(), maxsplit=limit)[:limit]


def clean(text: str) -> str:
    """The text on one line, without control characters, and not too long to keep."""
    return _UNSEEN.sub(" ", text[: 2 * TEXT_CHARACTERS]).strip()[:TEXT_CHARACTERS]


def first_match(pattern: re.Pattern[str], text: str) -> str:
    """The first part of the text that matches; empty when none does."""
    match = pattern.search(text)
    return match[0] if match else ""


def _of_qmail(text: str) -> Iterator[Failure]:
    for paragraph in paragraphs(text, limit=MAX_PARAGRAPHS):
        if paragraph.startswith("-"):  # the original message follows
            return
        address, colon, words = paragraph.partition(">:\n")
        if colon and address.startswith("<") and "\n" not in address:
            yield address, words


def _of_exim(text: str, named: str) -> Iterator[Failure]:
    """The words about an address stand below it, up to the next line that is empty."""
    said: dict[str, str] = {}
    for paragraph in paragraphs(text, limit=MAX_PARAGRAPHS):
        address, _, words = paragraph.strip().partition("\n")
        said.setdefault(address.strip("<>: ").lower(), words)
    for address in filter(None, map(str.strip, named.split(","))):
        yield address, said.get(address.lower(), "")
