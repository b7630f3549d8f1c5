"""Whether a DNS answer is cheap enough to be parsed, decided from its bytes (RFC 1035 section 4).

The owner of a zone decides how much work its answers are. A parser needs time for every record, and for a name in
proportion to the square of its labels; by compression, each record can repeat a name of 127 labels in two bytes.
Therefore the work is estimated first. What is malformed is left to the parser, which refuses it.
"""

import struct
from collections.abc import Generator, Iterator
from typing import Final

# The largest sets of texts that real domains publish have some 10 KB.
MAX_BYTES: Final = 16_384
# In units of some 0.4 microseconds of a slow core: 150 addresses or texts of a name.
MAX_WORK: Final = 30_000
# For a record, for a string of a text, and for a byte of the options: what the parser was measured to need.
_RECORD_WORK: Final = 150
_STRING_WORK: Final = 16
_OPTION_BYTE_WORK: Final = 10

_HEADER: Final = struct.Struct("!4x4H")
_QUESTION_BYTES: Final = 4
_RECORD: Final = struct.Struct("!HH4xH")
_POINTER: Final = 0xC0
_INTERNET: Final = 1
_TXT: Final = 16
_OPT: Final = 41
# Types that answers to our questions may have: where the names in their data begin, and how many there are, in NS,
# CNAME, SOA, PTR, MX, DNAME, RRSIG and NSEC; then those without names, A, TXT, AAAA, OPT, DS, DNSKEY, NSEC3 and TLSA.
_NAMES: Final = {2: (0, 1), 5: (0, 1), 6: (0, 2), 12: (0, 1), 15: (2, 1), 39: (0, 1), 46: (18, 1), 47: (0, 1)}
_WITHOUT_NAMES: Final = frozenset({1, _TXT, 28, _OPT, 43, 48, 50, 52})


class _UnexpectedError(Exception):
    """A record has a type or a class that was not asked for."""


def why_refused(wire: bytes) -> str | None:
    if len(wire) > MAX_BYTES:
        return f"the answer has more than {MAX_BYTES} bytes"
    work = 0
    try:
        for units in _message(wire):
            work += units
            if work > MAX_WORK:
                return "the answer would take too long to parse"
    except _UnexpectedError as problem:
        return str(problem)
    except (IndexError, struct.error):
        pass
    return None


def _message(wire: bytes) -> Iterator[int]:
    questions, *sections = _HEADER.unpack_from(wire)
    at = _HEADER.size
    for _ in range(questions):
        at = (yield from _name(wire, at)) + _QUESTION_BYTES
    for _ in range(sum(sections)):
        yield _RECORD_WORK
        at = yield from _name(wire, at)
        kind, record_class, length = _RECORD.unpack_from(wire, at)
        is_known = kind in _NAMES or kind in _WITHOUT_NAMES
        if not is_known or (record_class != _INTERNET and kind != _OPT):
            raise _UnexpectedError(f"the answer has a record of type {kind} and class {record_class}")
        at += _RECORD.size
        yield from _data(wire, kind, at, at + length)
        at += length


def _data(wire: bytes, kind: int, at: int, end: int) -> Iterator[int]:
    before, names = _NAMES.get(kind, (0, 0))
    yield _OPTION_BYTE_WORK * (end - at) if kind == _OPT else 0
    at += before
    for _ in range(names):
        at = yield from _name(wire, at)
    while kind == _TXT and at < end:
        yield _STRING_WORK
        at += 1 + wire[at]


def _name(wire: bytes, at: int) -> Generator[int, None, int]:
    """Yields the work for each label and pointer, the square of their number in all; returns where the name ends."""
    end, parts = 0, 0
    while wire[at]:
        yield 2 * parts + 1
        parts += 1
        if wire[at] < _POINTER:
            at += 1 + wire[at]
        else:
            end = end or at + 2
            at = (wire[at] - _POINTER) * 256 + wire[at + 1]
    return end or at + 1
