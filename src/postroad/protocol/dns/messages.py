"""Questions to a name server and its answers, as bytes (RFC 1035 section 4, RFC 6891).

Of an answer only what the question is about is read: the records of its type, behind aliases, and how long it may be
kept. `answer_limits.py` comes first: it bounds the work. A record is read by the function of its type, from its bytes
and the message, because names in it may point there.
"""

import ipaddress
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

import msgspec

Record = TypeVar("Record")

NO_ERROR: Final = 0
NXDOMAIN: Final = 3
# What people call the other codes (RFC 6895 section 2.3).
CODES: Final = {1: "FORMERR", 2: "SERVFAIL", 4: "NOTIMP", 5: "REFUSED", 6: "YXDOMAIN", 9: "NOTAUTH"}

# Codes with which a server may leave out the question.
_REFUSALS: Final = frozenset({1, 2, 4, 5})
_HEADER: Final = struct.Struct("!2sHHHHH")
_RECORD: Final = struct.Struct("!HHIH")
_UINT32: Final = struct.Struct("!I")
_IS_RESPONSE, _OPCODES, _TRUNCATED, _AUTHENTIC = 0x8000, 0x7800, 0x0200, 0x0020
# Recursion is desired, and authenticity of interest (RFC 6840 section 5.7).
_FLAGS: Final = 0x0120
_INTERNET: Final = 1
_CNAME, _SOA, _OPT = 5, 6, 41
_POINTER: Final = 0xC0
MAX_NAME_OCTETS: Final = 255
MAX_LABEL_OCTETS: Final = 63
# Longer than any real chain of aliases; other resolvers use it too.
MAX_ALIASES: Final = 16
# RFC 2181 section 8: a TTL with the highest bit counts as 0.
_MAX_TTL: Final = 2**31 - 1
_PLAIN: Final = re.compile(rb"[A-Za-z0-9_-]+")
# What has a meaning in the text of a name (RFC 1035 section 5.1).
_SPECIAL: Final = frozenset(b'"().;\\@$')
_PRINTABLE: Final = range(0x21, 0x7F)


class BadAnswer(Exception):
    """The bytes are no answer to the question."""


class RecordType(msgspec.Struct, Generic[Record], frozen=True):
    """A type by its number, and what its records are: `read` gets the message, and where the data begins and ends."""

    number: int
    read: Callable[[bytes, int, int], Record]


class Answer(msgspec.Struct, Generic[Record], frozen=True):
    """The records, at most `max_records`, how long they, or their absence, may be kept, and the code."""

    code: int
    records: tuple[Record, ...]
    ttl: int
    is_authentic: bool
    is_truncated: bool = False


def question_of(name: str, kind: int) -> bytes | None:
    """The question of a name, which is absolute; None if the name cannot be written."""
    try:
        labels = name.removesuffix(".").encode("ascii").split(b".") if name not in {"", "."} else []
    except UnicodeEncodeError:
        return None
    if not all(0 < len(label) <= MAX_LABEL_OCTETS for label in labels):
        return None
    written = b"".join([bytes([len(label)]) + label for label in labels]) + b"\0"
    return written + struct.pack("!HH", kind, _INTERNET) if len(written) <= MAX_NAME_OCTETS else None


def query(question: bytes, *, query_id: bytes, udp_bytes: int) -> bytes:
    """A message with the question, with a two-octet ID; `udp_bytes` bounds the answer over UDP."""
    options = b"\0" + _RECORD.pack(_OPT, udp_bytes, 0, 0)
    return _HEADER.pack(query_id, _FLAGS, 1, 0, 0, 1) + question + options


def read(wire: bytes, question: bytes, kind: RecordType[Record], *, max_records: int) -> Answer[Record]:
    """The answer to a question; raises `BadAnswer`."""
    try:
        return _read(wire, question, kind, max_records)
    except (IndexError, struct.error):
        raise BadAnswer from None


def _read(wire: bytes, question: bytes, kind: RecordType[Record], max_records: int) -> Answer[Record]:
    _, flags, questions, *sections = _HEADER.unpack_from(wire)
    at = _HEADER.size + len(question)
    # RFC 5452 section 9.1: the question is part of what makes an answer ours.
    is_ours = questions == 1 and wire[_HEADER.size : at].lower() == question.lower()
    is_refusal = questions == 0 and flags & 0xF in _REFUSALS
    if not flags & _IS_RESPONSE or flags & _OPCODES or not (is_ours or is_refusal):
        raise BadAnswer
    code, is_authentic = flags & 0xF, bool(flags & _AUTHENTIC)
    if is_refusal or flags & _TRUNCATED:
        return Answer(code, (), 0, is_authentic=is_authentic, is_truncated=bool(flags & _TRUNCATED))
    sets = _sets(wire, at, sections)
    name, ttl, code = question[:-4].lower(), _MAX_TTL, code | sets.code
    for _ in range(MAX_ALIASES):
        if found := sets.answers.get((name, kind.number)):
            records = [kind.read(wire, begin, end) for _, begin, end in found]
            ttl = min(ttl, *[each for each, _, _ in found])
            return Answer(code, tuple(dict.fromkeys(records))[:max_records], ttl, is_authentic=is_authentic)
        aliases = sets.answers.get((name, _CNAME))
        if not aliases:
            return Answer(code, (), min(ttl, _negative_ttl(name, sets.soa_ttls)), is_authentic=is_authentic)
        ttl = min(ttl, *[each for each, _, _ in aliases])
        name, end = _name(wire, aliases[0][1])
        if end != aliases[0][2]:
            raise BadAnswer
    raise BadAnswer


class _Sets(msgspec.Struct):
    """The records of a message: those that answer by owner and type, each with its TTL and the place of its data."""

    answers: dict[tuple[bytes, int], list[tuple[int, int, int]]]
    soa_ttls: dict[bytes, int]  # how long it may be kept that there is nothing
    code: int = 0  # its upper part (RFC 6891 section 6.1.3)


def _sets(wire: bytes, at: int, sections: Sequence[int]) -> _Sets:
    sets = _Sets({}, {})
    answers, authorities, _ = sections
    for number in range(sum(sections)):
        owner, at = _name(wire, at)
        kind, _, ttl, length = _RECORD.unpack_from(wire, at)
        begin = at + _RECORD.size
        at = begin + length
        if at > len(wire):
            raise BadAnswer
        if kind == _OPT:
            sets.code = ttl >> 24 << 4
        elif number < answers:
            sets.answers.setdefault((owner, kind), []).append((ttl if ttl <= _MAX_TTL else 0, begin, at))
        elif kind == _SOA and number < answers + authorities:
            sets.soa_ttls[owner] = min(ttl if ttl <= _MAX_TTL else 0, *_UINT32.unpack_from(wire, at - _UINT32.size))
    if at != len(wire):
        raise BadAnswer
    return sets


def _negative_ttl(name: bytes, soa_ttls: dict[bytes, int]) -> int:
    """RFC 2308 section 5: that of the nearest zone that the name is in."""
    while name not in soa_ttls:
        if name == b"\0":
            return _MAX_TTL
        name = name[name[0] + 1 :]
    return soa_ttls[name]


def _name(wire: bytes, at: int) -> tuple[bytes, int]:
    """A name in lower case without pointers, and where it ends in the message."""
    parts: list[bytes] = []
    octets, end, first = 1, 0, at
    while length := wire[at]:
        if length >= _POINTER:
            end = end or at + 2
            at = (length - _POINTER) * 256 + wire[at + 1]
            # Each points to what comes before the name that it is in, so a name ends.
            if at >= first:
                raise BadAnswer
            first = at
            continue
        octets += length + 1
        if length > MAX_LABEL_OCTETS or octets > MAX_NAME_OCTETS:
            raise BadAnswer
        parts.append(wire[at : at + length + 1])
        at += length + 1
    # The octets of lengths are none of letters.
    return b"".join(parts).lower() + b"\0", end or at + 1


def _host(wire: bytes, begin: int, end: int) -> str:
    """A name as text, in lower case and without a final dot; empty for the root."""
    name, after = _name(wire, begin)
    if after != end:
        raise BadAnswer
    return ".".join(_labels(name))


def _labels(name: bytes) -> Iterator[str]:
    at = 0
    while length := name[at]:
        label = name[at + 1 : at + 1 + length]
        at += length + 1
        yield label.decode() if _PLAIN.fullmatch(label) else "".join(map(_escaped, label))


def _escaped(octet: int) -> str:
    if octet in _SPECIAL:
        return f"\\{chr(octet)}"
    return chr(octet) if octet in _PRINTABLE else f"\\{octet:03}"


def _mx(wire: bytes, begin: int, end: int) -> tuple[int, str]:
    return int.from_bytes(wire[begin : begin + 2]), _host(wire, begin + 2, end)


def _ipv4(wire: bytes, begin: int, end: int) -> str:
    if end - begin != 4:  # noqa: PLR2004 - its octets
        raise BadAnswer
    return ".".join(map(str, wire[begin:end]))


def _ipv6(wire: bytes, begin: int, end: int) -> str:
    if end - begin != 16:  # noqa: PLR2004 - its octets
        raise BadAnswer
    return str(ipaddress.IPv6Address(wire[begin:end]))


def _text(wire: bytes, begin: int, end: int) -> str:
    """The strings of a text, joined (RFC 7208 section 3.3)."""
    strings: list[bytes] = []
    while begin < end:
        after = begin + 1 + wire[begin]
        if after > end:
            raise BadAnswer
        strings.append(wire[begin + 1 : after])
        begin = after
    return b"".join(strings).decode(errors="replace")


def _association(wire: bytes, begin: int, end: int) -> tuple[int, int, int, bytes]:
    """Usage, selector, matching type and data (RFC 6698 section 2.1)."""
    if end - begin < 3:  # noqa: PLR2004 - usage, selector and matching type
        raise BadAnswer
    return wire[begin], wire[begin + 1], wire[begin + 2], wire[begin + 3 : end]


A: Final = RecordType(1, _ipv4)
CNAME: Final = RecordType(_CNAME, _host)
PTR: Final = RecordType(12, _host)
MX: Final = RecordType(15, _mx)
TXT: Final = RecordType(16, _text)
AAAA: Final = RecordType(28, _ipv6)
TLSA: Final = RecordType(52, _association)
