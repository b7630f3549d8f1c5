"""Whether a DNS answer is small enough to be parsed, decided from its bytes (RFC 1035 section 4).

The owner of a zone decides how much work its answers are. A parser needs time for every record, and for a name in its
data in proportion to the square of its labels; by compression, each record can repeat a name of 127 labels in two
bytes. Therefore the parts are counted first. What is malformed is left to the parser, which refuses it.
"""

import itertools
import struct
from collections.abc import Generator, Iterator
from typing import Final

# The largest sets of texts that real domains publish have some 10 KB.
MAX_BYTES: Final = 16_384
# Of all sections, with the question: far beyond the mail hosts, addresses or texts of any real name.
MAX_RECORDS: Final = 256
# Labels of names, pointers to names and strings of texts: enough for 256 addresses of a host of four labels. Eleven of
# the longest names have as many: with them, the parser needs some 70 ms on a slow core, and without a limit 17 seconds.
MAX_PARTS: Final = 1_500

_HEADER: Final = struct.Struct("!4x4H")
_QUESTION_BYTES: Final = 4
_RECORD: Final = struct.Struct("!H6xH")
_POINTER: Final = 0xC0
_TXT: Final = 16
# Where the names in a record's data begin, and how many there are: NS, CNAME, SOA, PTR, MX and DNAME. A resolver adds
# no other records with names to the answers to our questions.
_NAMES: Final = {2: (0, 1), 5: (0, 1), 6: (0, 2), 12: (0, 1), 15: (2, 1), 39: (0, 1)}


def why_refused(wire: bytes) -> str | None:
    """Why an answer must not be parsed; None when it may be."""
    if len(wire) > MAX_BYTES:
        return f"the answer has more than {MAX_BYTES} bytes"
    try:
        questions, *sections = _HEADER.unpack_from(wire)
        if questions + sum(sections) > MAX_RECORDS:
            return f"the answer has more than {MAX_RECORDS} records"
        parts = _message(wire, questions, sum(sections))
        if next(itertools.islice(parts, MAX_PARTS, None), None):
            return f"the answer has more than {MAX_PARTS} labels and strings"
    except (IndexError, struct.error):
        pass
    return None


def _message(wire: bytes, questions: int, records: int) -> Iterator[str]:
    at = _HEADER.size
    for _ in range(questions):
        at = (yield from _name(wire, at)) + _QUESTION_BYTES
    for _ in range(records):
        at = yield from _name(wire, at)
        kind, length = _RECORD.unpack_from(wire, at)
        at += _RECORD.size
        yield from _data(wire, kind, at, at + length)
        at += length


def _data(wire: bytes, kind: int, at: int, end: int) -> Iterator[str]:
    before, names = _NAMES.get(kind, (0, 0))
    at += before
    for _ in range(names):
        at = yield from _name(wire, at)
    while kind == _TXT and at < end:
        yield "string"
        at += 1 + wire[at]


def _name(wire: bytes, at: int) -> Generator[str, None, int]:
    """Yields the parts of a name; returns where it ends."""
    end = 0
    while wire[at]:
        if wire[at] < _POINTER:
            yield "label"
            at += 1 + wire[at]
        else:
            yield "pointer"
            end = end or at + 2
            at = (wire[at] - _POINTER) * 256 + wire[at + 1]
    return end or at + 1
